# SPDX-License-Identifier: Apache-2.0
"""The files of a run, by the list in its manifest (docs/reports.md, `The list of files`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from reports.rejudge.seal import ADVICE, PAGE, RENEWAL, SEAL

KEY = "file_sizes_bytes"
NOT_LISTED = ("run.json", "SHA256SUMS", SEAL, RENEWAL, ADVICE)
"""Written with the list, or after it."""


def listed_discrepancies(run: Path, manifest: Mapping[str, Any]) -> Iterator[str]:
    """Say which files have come, gone, or have another size; nothing of a run of before the list.

    Pages have no size there: they are made after it.
    """
    sizes: Mapping[str, int | None] | None = manifest.get(KEY)
    if sizes is None:
        return
    present = {path.relative_to(run).as_posix() for path in run.rglob("*") if path.is_file()}
    for name in sorted({*sizes, *present} - {*NOT_LISTED}):
        if name not in present:
            yield f"{name}: missing; run.json lists it"
        elif name not in sizes:
            yield f"{name}: run.json does not list it"
        elif sizes[name] is None and PAGE.fullmatch(name):
            continue
        elif (size := (run / name).stat().st_size) != sizes[name]:
            yield f"{name}: has {size} bytes, run.json lists {sizes[name]}"
