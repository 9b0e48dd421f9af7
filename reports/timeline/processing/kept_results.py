# SPDX-License-Identifier: Apache-2.0
"""The file of a graph as a part of a run: kept beside its results, and computed again to the same bytes.

RUN/evidence/timeline/NAME/
    NAME.toml            the file
    filters/             the site's modules, where it names a folder of them
    processing.json      SHA-256 of the file, the modules and all that was read; what was left out
    results/             what the steps wrote

Nothing in it depends on when or where it was computed.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from reports.durable import draft_of, write_error
from reports.errors import ReportError, RunFolderError
from reports.run.folder import EVIDENCE, RunFolder
from reports.run.integrity import list_files, sha256_bytes
from reports.timeline.processing.graph_file import read_raw
from reports.timeline.processing.graph_run import run_graph
from reports.timeline.processing.known_filters import site_files

PLACE = "timeline"
MODULES, RESULTS, HASHES = "filters", "results", "processing.json"
_NAME = re.compile(r"(?!attempt-\d)[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Kept:
    """What a graph has come to.

    Attributes:
        folder: Where it lies.
        files: How many results.
        differences: What is not as it was there before, one line a file; None: nothing was there.
        left_out: What sources hold and do not give, a line each.
    """

    folder: Path
    files: int
    differences: tuple[str, ...] | None
    left_out: tuple[str, ...]


def process(run: Path, file: Path, output: Path | None) -> Kept:
    """Compute a graph; keep what it comes to in the run, or hold it against what is kept there.

    Args:
        run: The run folder.
        file: The graph's.
        output: A folder instead of the run's own.

    Raises:
        ReportError: The file or what it reads is wrong, the run is finalised, or a folder cannot be written.
    """
    opened = RunFolder.open(run)
    if not _NAME.fullmatch(file.stem) or file.suffix != ".toml":
        raise ReportError(f"{file}: must be called NAME.toml, NAME of A-Z a-z 0-9 . _ -, no attempt-N")
    if output is None:
        target = opened.path / EVIDENCE / PLACE / file.stem
        if opened.finalised and not (target / HASHES).exists():
            raise RunFolderError(f"{run}: the run is finalised; it must not change: give --output FOLDER")
    else:
        target = _outside(output, run)
    with _computed(run, file, file.parent) as made:
        return _keep(*made, target)


def again(run: Path) -> list[Kept]:
    """Compute all graphs that a run holds again.

    Args:
        run: The run folder.

    Raises:
        ReportError: It has none, or one cannot be computed.
    """
    RunFolder.open(run)
    place = run / EVIDENCE / PLACE
    folders = sorted(path for path in place.glob("*") if path.is_dir() and _NAME.fullmatch(path.name))
    if not folders:
        raise ReportError(f"{run}: holds no graph: --process FILE.toml computes one")
    found: list[Kept] = []
    for folder in folders:
        with _computed(run, folder / f"{folder.name}.toml", None) as made:
            found.append(_keep(*made, folder))
    return found


def _outside(output: Path, run: Path) -> Path:
    if output.resolve().is_relative_to(run.resolve()):
        raise ReportError(f"{output}: lies in the run folder, whose files are listed and summed")
    if output.is_symlink() or (output.exists() and not output.is_dir()):
        raise ReportError(f"{output}: exists and is no folder")
    if output.is_dir() and any(output.iterdir()) and not (output / HASHES).exists():
        raise ReportError(f"{output}: is not empty, and holds no results of a graph")
    return output


@contextmanager
def _computed(run: Path, file: Path, beside: Path | None) -> Generator[tuple[Path, tuple[str, ...]]]:
    """Give a folder for a while that holds all that a graph comes to, and what was left out.

    Args:
        run: The run folder.
        file: The graph's.
        beside: The folder from which it counts; None: it is the copy of a run.
    """
    try:
        data = file.read_bytes()
    except OSError as error:
        raise ReportError(f"{file}: {error.strerror}") from error
    raw = read_raw(data, file.name)
    modules: Mapping[str, bytes] = {}
    if raw.folder:
        modules = site_files(file.parent / MODULES if beside is None else beside / raw.folder, raw.folder)
    with TemporaryDirectory(prefix="benchwright-processing-") as name:
        made = Path(name) / "made"
        (made / RESULTS).mkdir(parents=True)
        read, left_out = run_graph(raw, modules, run, beside, made / RESULTS)
        (made / file.name).write_bytes(data)
        for module, source in modules.items():
            (made / MODULES).mkdir(exist_ok=True)
            (made / MODULES / module).write_bytes(source)
        hashes = {
            "file": {file.name: sha256_bytes(data)},
            "filters": {module: sha256_bytes(source) for module, source in modules.items()},
            "inputs": dict(sorted(read.items())),
            "left_out": left_out,
        }
        (made / HASHES).write_text(json.dumps(hashes, indent=1) + "\n", encoding="utf-8")
        yield made, tuple(f"{step}: {words}" for step, all_of in left_out.items() for words in all_of)


def _keep(made: Path, left_out: tuple[str, ...], target: Path) -> Kept:
    count = len(list_files(made / RESULTS))
    if target.is_dir() and any(target.iterdir()):
        return Kept(target, count, tuple(_differences(target, made)), left_out)
    draft = draft_of(target.absolute())
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(made, draft)
        draft.replace(target)
    except OSError as error:
        raise write_error(target, error) from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return Kept(target, count, None, left_out)


def _differences(before: Path, now: Path) -> list[str]:
    """Say which files differ; of what was read, which of it has changed."""
    names = {folder: set(list_files(folder)) for folder in (before, now)}
    found: list[str] = []
    for name in sorted(names[before] | names[now]):
        if name not in names[now]:
            found.append(f"{name}: is not computed any more")
        elif name not in names[before]:
            found.append(f"{name}: was not there")
        elif (before / name).read_bytes() != (now / name).read_bytes():
            found.append(f"{name}: other bytes")
    if f"{HASHES}: other bytes" in found:
        found += [f"{HASHES}: {each}" for each in _changed_inputs(before / HASHES, now / HASHES)]
    return found


def _changed_inputs(before: Path, now: Path) -> list[str]:
    try:
        old, new = (json.loads(path.read_text(encoding="utf-8"))["inputs"] for path in (before, now))
        return [f"{name} has changed" for name in sorted({*old, *new}) if old.get(name) != new.get(name)]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return ["damaged"]
