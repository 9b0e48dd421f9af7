# SPDX-License-Identifier: Apache-2.0
"""Which files a run has as it ends, and how large they are: the list that its manifest carries.

The pages show the hash of the manifest: the list is written before them, and names them without a size.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from reports.run.folder import MANIFEST, RunFolder
from reports.run.integrity import list_files
from reports.run.seal import ADVICE, RENEWAL, SEAL
from reports.run.targets import page_names, targets_of

PAGE = "qualification.html"
NOT_LISTED = frozenset({MANIFEST, SEAL, RENEWAL, ADVICE})
"""The manifest itself, and what is written after it: seals and the advice of the history."""


def write_file_list(run: RunFolder) -> None:
    """Write into the manifest which files a run has, and their sizes; after it come pages and seals alone.

    Raises:
        RunFolderError: A file cannot be listed, or the disk does not take the manifest.
    """
    targets = targets_of(run.path, run.manifest, run.records().measurements)
    run.update(file_sizes_bytes=file_sizes_bytes(run.path, targets))


def pages_of(targets: Sequence[str]) -> tuple[str, ...]:
    """Return the names of a run's pages: its own, and one of each target where it has several."""
    return (PAGE, *(page_names(PAGE, targets).values() if len(targets) > 1 else ()))


def file_sizes_bytes(folder: Path, targets: Sequence[str]) -> dict[str, int | None]:
    """Return the size of each file of a run folder by its name, sorted; None of pages.

    Args:
        folder: The run folder, with or without its pages.
        targets: Of the run: it gets a page, and of several targets one for each.

    Raises:
        RunFolderError: The folder holds something that cannot be summed, see `list_files`.
    """
    sizes: dict[str, int | None] = dict.fromkeys(pages_of(targets))
    for name in list_files(folder):
        if name not in NOT_LISTED and name not in sizes:
            sizes[name] = (folder / name).stat().st_size
    return dict(sorted(sizes.items()))
