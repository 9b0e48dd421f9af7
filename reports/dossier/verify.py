# SPDX-License-Identifier: Apache-2.0
"""Whether a dossier is what its runs give: its data made again and compared, its pages rendered again."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from reports.dossier.command import DATA_SUFFIX, future_waivers, rendered
from reports.dossier.errors import DossierError
from reports.dossier.gather import gather
from reports.dossier.model import Dossier, from_dossier_json, to_dossier_bytes
from reports.errors import RecordError, ReportError
from reports.record.json_text import load_json
from reports.run.benches import TrustedSeals
from reports.run.folder import RunFolder
from reports.run.integrity import SUMS, changed_files, sha256_file

ATTACHMENT = "dossier.json"
PDF_MAGIC = b"%PDF-"
_SHOWN = 20
_TEXT_MAX = 80


def is_dossier(path: Path) -> bool:
    """Say whether a path is a dossier: a PDF, or the data of one; a folder is a run."""
    return path.is_file()


def embedded(path: Path, data: bytes) -> Dossier:
    """Return the dossier that a file holds.

    Raises:
        ReportError: The file holds none; the message says why.
    """
    if path.suffix != DATA_SUFFIX:
        if not data.startswith(PDF_MAGIC):
            raise DossierError(f"{path}: neither a run folder, a PDF nor a dossier's data ({DATA_SUFFIX})")
        pdf: Any = import_module("reports.dossier.pdf")
        data = pdf.extract_attachment(data, ATTACHMENT)
    try:
        return from_dossier_json(load_json(data))
    except ValueError as error:  # RecordError is one
        raise RecordError(f"{path}: {ATTACHMENT}: {error}") from error


def differences(
    path: Path, runs: Sequence[Path], trust: Sequence[Path] = (), seals: TrustedSeals | None = None
) -> list[str]:
    """Return what a dossier says otherwise than its runs give, one line each; empty: not one byte.

    Nothing but signatures may stand behind its bytes, and each of them has to hold.

    Args:
        path: The dossier.
        runs: Its run folders, in any order.
        trust: Certificates that signatures have to lead to, PEM; none: that is not looked at.
        seals: What the reader knows of benches: the list that the dossier brings is its writer's. None:
            nothing, and they are not looked at.

    Raises:
        ReportError: The file holds no dossier, or a folder is no run.
    """
    data = path.read_bytes()
    held = embedded(path, data)
    found = _runs_differ(held, runs) or _seals_differ(runs, seals)
    if found:
        return found
    try:
        if problems := future_waivers(held.asked):
            return problems
        made = gather(runs, held.asked)
    except ReportError as error:
        return [f"it cannot be made again: {error}"]
    found = list(_differ("", json.loads(to_dossier_bytes(held)), json.loads(to_dossier_bytes(made))))
    if found:
        more = [f"… {len(found)} differences in all"] if len(found) > _SHOWN else []
        return [*found[:_SHOWN], *more]
    return _bytes_differ(rendered(made, list(runs), path), data, path, trust)


def _bytes_differ(again: bytes, data: bytes, path: Path, trust: Sequence[Path]) -> list[str]:
    """Return where a file differs from what is rendered from the same data, signatures left aside."""
    if data.startswith(again):
        signed = signatures(path, trust)
        if again != data and not signed:
            return [f"{len(data) - len(again)} bytes stand behind those that are rendered from the same data"]
        if trust and not signed:
            return ["it is not signed"]
        return [f"signature of {each.signer}: {problem}" for each in signed for problem in each.problems]
    where = next((i for i, (one, other) in enumerate(zip(again, data, strict=False)) if one != other), None)
    if where is None:
        return [f"its {len(data)} bytes end before the {len(again)} that are rendered from the same data"]
    return [
        f"byte {where}: the same data are rendered otherwise here (a change, or another WeasyPrint or font)"
    ]


def signatures(path: Path, trust: Sequence[Path] = ()) -> tuple[Any, ...]:
    """Return the signatures of a dossier (`reports.dossier.signature.Signature`), in their order."""
    return () if path.suffix == DATA_SUFFIX else _checked(path.read_bytes(), tuple(trust))


@lru_cache(maxsize=1)
def _checked(data: bytes, trust: tuple[Path, ...]) -> tuple[Any, ...]:
    """Check the signatures of a file once: of a long dossier that takes minutes."""
    module: Any = import_module("reports.dossier.signature")  # loads what decrypts: a second
    found: tuple[Any, ...] = module.check_signatures(data, trust)
    return found


def is_accepted(path: Path) -> bool:
    """Say whether a dossier reads accepted, with waivers or without; raises ReportError."""
    return embedded(path, path.read_bytes()).conclusion.word != "not accepted"


def _seals_differ(runs: Sequence[Path], seals: TrustedSeals | None) -> list[str]:
    """Return which runs do not have the seal of a bench that the reader knows."""
    if seals is None:
        return []
    said = [(path, seals.discrepancy(path, RunFolder.open(path).manifest)) for path in runs]
    return [f"{path}: {discrepancy}" for path, discrepancy in said if discrepancy]


def _runs_differ(held: Dossier, runs: Sequence[Path]) -> list[str]:
    """Return what is wrong with the run folders: absent, not of this dossier, or changed."""
    sums = {run.manifest.run_id: run.sums_sha256 for run in held.runs}
    named = {RunFolder.open(path).run_id: path for path in runs}
    found = [f"run {run_id}: not named with --runs" for run_id in sums if run_id not in named]
    for run_id, path in named.items():
        if run_id not in sums:
            found.append(f"{path}: run {run_id} is not part of this dossier")
            continue
        try:
            found += [f"{path}: {problem}" for problem in changed_files(path)]
            if sha256_file(path / SUMS) != sums[run_id]:
                found.append(f"{path}: {SUMS}: changed since the dossier was made")
        except (ReportError, OSError) as error:
            found.append(f"{path}: {error}")
    return found


def _differ(where: str, held: Any, made: Any) -> Iterator[str]:
    """Yield each place where two documents differ."""
    if type(held) is not type(made):
        yield f"{where}: {_shown(held)} in the dossier, {_shown(made)} from the runs"
    elif isinstance(held, dict):
        one, other = cast("dict[str, Any]", held), cast("dict[str, Any]", made)
        for key in dict.fromkeys([*one, *other]):
            yield from _differ(f"{where}.{key}".removeprefix("."), one.get(key), other.get(key))
    elif isinstance(held, list):
        ours, theirs = cast("list[Any]", held), cast("list[Any]", made)
        if len(ours) != len(theirs):
            yield f"{where}: {len(ours)} entries in the dossier, {len(theirs)} from the runs"
        for number, (one, other) in enumerate(zip(ours, theirs, strict=False)):
            yield from _differ(f"{where}[{number}]", one, other)
    elif held != made:
        yield f"{where}: {_shown(held)} in the dossier, {_shown(made)} from the runs"


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _TEXT_MAX else f"{text[:_TEXT_MAX]}…"
