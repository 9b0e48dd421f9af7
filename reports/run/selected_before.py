# SPDX-License-Identifier: Apache-2.0
"""What a run asked of each target, read from its folder, whatever version has written it.

Since the manifest says it (reports/run/selected.py), that is all. The version before noted the requirements
files that each suite had read, in `evidence/requirements/asked.json`; all requirements of a file counted as
asked.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reports.errors import RecordError
from reports.record.document import read_document
from reports.run.manifest import Manifest
from reports.run.selected import KEPT, SelectedFile, SelectedSuite

_ASKED = "asked.json"
_SCHEMA = "benchwright.asked/1"


@dataclass(frozen=True)
class _SuiteFiles:
    target: str
    suites: str
    files: tuple[str, ...] = ()


@dataclass(frozen=True)
class _SuitesFiles:
    asked: tuple[_SuiteFiles, ...]
    schema: str = _SCHEMA


def selected_in(run: Path, manifest: Manifest) -> tuple[SelectedSuite, ...]:
    """Return what a run asked of each target.

    Of a run of the version before a file that no suite is noted for counts as asked of every target, and so
    do all where its note is damaged.
    """
    if manifest.asked is not None:
        return manifest.asked
    ids = {path.name: _ids(path) for path in sorted((run / KEPT).glob("*.toml"))}
    noted: tuple[_SuiteFiles, ...] = ()
    if (run / KEPT / _ASKED).exists():
        try:
            noted = read_document(_SuitesFiles, run / KEPT / _ASKED, _SCHEMA).asked
        except RecordError:
            noted = ()
    found = [
        SelectedSuite(
            each.target,
            each.suites,
            tuple(SelectedFile(file, ids.get(file, ())) for file in each.files) if each.files else None,
        )
        for each in noted
    ]
    loose = ids.keys() - {file for each in noted for file in each.files}
    found += [SelectedSuite("", file, (SelectedFile(file, ids[file]),)) for file in sorted(loose)]
    return tuple(found)


def _ids(path: Path) -> tuple[str, ...]:
    """Return the ids of the requirements in a file; none where it is damaged."""
    try:
        items: Any = tomllib.loads(path.read_text(encoding="utf-8-sig"))["requirement"]
        return tuple(str(item["id"]) for item in items)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return ()
