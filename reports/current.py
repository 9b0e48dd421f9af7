# SPDX-License-Identifier: Apache-2.0
"""The run folder of this process: the listener opens it, keyword libraries write to it."""

from __future__ import annotations

from reports.errors import RunFolderError
from reports.run_folder import RunFolder

_open: list[RunFolder] = []


def current_run() -> RunFolder:
    """Return the run folder of this process.

    Raises:
        RunFolderError: None is open: Robot Framework was started without the listener.
    """
    if not _open:
        raise RunFolderError("no run folder is open: start robot with --listener reports.listener.Listener")
    return _open[-1]


def open_run() -> RunFolder | None:
    """Return the run folder of this process; None: none is open."""
    return _open[-1] if _open else None


def set_current_run(run: RunFolder | None) -> None:
    """Make a run folder the current one, or none."""
    _open.clear()
    if run is not None:
        _open.append(run)
