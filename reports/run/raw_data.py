# SPDX-License-Identifier: Apache-2.0
"""The raw data of a run folder with their hashes, held against what the records were judged from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from reports.record.measurement import Measurement
from reports.run.folder import EVIDENCE, MANIFEST, MEASUREMENTS
from reports.run.integrity import list_files, sha256_bytes, sha256_file
from reports.run.targets import target_of_file

RAW_DATA = (MANIFEST, MEASUREMENTS, "output.xml")


@dataclass(frozen=True, slots=True)
class HashRow:
    """A file of raw data."""

    path: str
    size_bytes: int
    sha256: str
    changed: bool


def hash_rows(folder: Path, records: Iterable[Measurement], added: Mapping[str, bytes]) -> list[HashRow]:
    """Return the raw data with their hashes, and whether a record was judged from other bytes."""
    judged: dict[str, set[str]] = {}
    for record in records:
        for evidence in record.evidence:
            judged.setdefault(evidence.path, set()).add(evidence.sha256)
    everything = sorted({*list_files(folder), *added})
    present = [name for name in everything if name in RAW_DATA or name.startswith(f"{EVIDENCE}/")]
    rows: list[HashRow] = []
    for name in present:
        if name in added:
            size_bytes, digest = len(added[name]), sha256_bytes(added[name])
        else:
            size_bytes, digest = (folder / name).stat().st_size, sha256_file(folder / name)
        known = judged.pop(name, {digest})
        rows.append(HashRow(name, size_bytes, digest, known != {digest}))
    rows += [HashRow(name, 0, "missing", True) for name in sorted(judged)]
    return rows


def rows_of_target(
    rows: Iterable[HashRow], target: str, targets: Sequence[str], records: Iterable[Measurement]
) -> list[HashRow]:
    """Return the files of one target of several: those in its folders, and what its records were judged from.

    The manifest and the records, which hold all targets, are among them.
    """
    judged = {evidence.path for record in records for evidence in record.evidence}
    return [
        row
        for row in rows
        if row.path in RAW_DATA or row.path in judged or target_of_file(row.path, targets) == target
    ]
