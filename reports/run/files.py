# SPDX-License-Identifier: Apache-2.0
"""Which files a run has as it ends, and how large they are: the list that its manifest carries."""

from __future__ import annotations

from pathlib import Path

from reports.run.integrity import list_files
from reports.run.seal import ADVICE, RENEWAL, SEAL

NOT_LISTED = frozenset({"run.json", SEAL, RENEWAL, ADVICE})
"""The manifest itself, and what is written after it: seals and the advice of the history."""


def file_sizes_bytes(folder: Path) -> dict[str, int]:
    """Return the size of each file of a run folder by its name, sorted.

    Raises:
        RunFolderError: The folder holds something that cannot be summed, see `list_files`.
    """
    return {name: (folder / name).stat().st_size for name in list_files(folder) if name not in NOT_LISTED}
