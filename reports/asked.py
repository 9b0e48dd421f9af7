# SPDX-License-Identifier: Apache-2.0
"""What a run was to measure of each target: `evidence/requirements/asked.json`.

The listener notes, before the first suite starts, which suites each target takes part in; every suite then
adds the requirements files that it reads (their copies lie beside it). So a requirement that nobody measured
is told apart from one that is not asked of this kind of target.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from reports.document import read_document, write_document
from reports.errors import RecordError
from reports.run_folder import EVIDENCE, RunFolder

SCHEMA = "benchwright.asked/1"
KEPT = "requirements"
"""Folder of the requirements files in a run's evidence."""
ASKED = "asked.json"


@dataclass(frozen=True)
class AskedSuites:
    """A suite, or a folder of them, that a target takes part in, and the requirements files that it reads.

    Attributes:
        suites: As `suite_name` names it.
        files: Names of the copies; empty: none was read (yet).
    """

    target: str
    suites: str
    files: tuple[str, ...] = ()


@dataclass(frozen=True)
class Asked:
    """What `asked.json` holds."""

    asked: tuple[AskedSuites, ...]
    schema: str = SCHEMA


def suite_name(source: Path) -> str:
    """Return the name of a suite by its file: `clock_sync/sync_error.robot`; of a folder `timed_edges`."""
    if source.stem == "__init__":
        return source.parent.name
    return source.name if source.is_dir() else f"{source.parent.name}/{source.name}"


def note_asked(run: RunFolder, target: str, suites: str, file: str = "") -> None:
    """Note that a target takes part in a suite or folder, and that this reads a requirements file.

    Raises:
        ReportError: The file cannot be written, or is damaged.
    """
    known = load_asked(run.path)
    place = next((n for n, each in enumerate(known) if (each.target, each.suites) == (target, suites)), None)
    entry = AskedSuites(target, suites) if place is None else known[place]
    if file and file not in entry.files:
        entry = replace(entry, files=(*entry.files, file))
    found = (*known, entry) if place is None else (*known[:place], entry, *known[place + 1 :])
    if found != known:
        write_document(run.evidence_folder(KEPT) / ASKED, Asked(found))


def load_asked(run: Path) -> tuple[AskedSuites, ...]:
    """Read it again; empty where a run has none.

    Raises:
        RecordError: The file is damaged; names the key.
    """
    path = run / EVIDENCE / KEPT / ASKED
    return read_document(Asked, path, SCHEMA).asked if path.exists() else ()


def find_asked(run: Path) -> tuple[AskedSuites, ...]:
    """Read it again; empty also where it is damaged: then everything counts as asked of every target."""
    try:
        return load_asked(run)
    except RecordError:
        return ()


def files_asked(asked: Sequence[AskedSuites], target: str, files: Iterable[str]) -> tuple[str, ...]:
    """Return the names of the requirements files that are asked of a target.

    Where a suite read no file, because it never came so far, those count that it read for other targets.
    Files that no suite is noted for count as asked of every target, and so does all of a target without a
    note.

    Args:
        asked: What a run has noted.
        target: Its name.
        files: Names of all files that the run kept.
    """
    own = [each for each in asked if each.target == target]
    noted = {name for each in asked for name in each.files} if own else set[str]()
    found = [name for name in files if name not in noted]
    for each in own:
        alike = [other for other in asked if other.suites == each.suites]
        found += each.files or [name for other in alike for name in other.files]
    return tuple(dict.fromkeys(found))
