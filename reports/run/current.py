# SPDX-License-Identifier: Apache-2.0
"""The run folder of this process, which the listener opens, and what its running test judges."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from reports.errors import RunFolderError
from reports.run.folder import RunFolder
from reports.run.left_out import LeftOut

_open: list[RunFolder] = []
_judged: list[str] = []
_at_end: list[Callable[[], None]] = []
_left_out: list[LeftOut] = []
_progress: list[str] = []
_COUNTED = re.compile(r"\b\d+ of \d+ s$")


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


def judges(*requirements: str) -> None:
    """Say which requirements the test that runs judges.

    Where it is skipped they are; where it passes each has to have a record.
    """
    _judged.extend(requirements)


def take_judged() -> tuple[str, ...]:
    """Return what was said since the last call."""
    found = tuple(dict.fromkeys(_judged))
    _judged.clear()
    return found


def note_progress(line: str) -> None:
    """Note what was last said of how far a test is, such as `replaying daq12: 10 of 60 s`."""
    _progress[:] = [line]


def take_progress() -> str:
    """Return in words how far a test was that ends here; empty: nothing was said since the last call."""
    line = _progress[0] if _progress else ""
    _progress.clear()
    if counted := _COUNTED.search(line):
        return f"at least {counted[0]} counted"
    return f"after {line!r}" if line else ""


def at_end_of_run(action: Callable[[], None]) -> None:
    """Have the listener do something when the last suite has ended; once, however often it is said.

    What it raises is an error of the run.
    """
    if action not in _at_end:
        _at_end.append(action)


def take_at_end() -> tuple[Callable[[], None], ...]:
    """Return what is to be done at the end of the run, the latest first."""
    found = tuple(reversed(_at_end))
    _at_end.clear()
    return found


def set_left_out(found: Iterable[LeftOut]) -> None:
    """Say what the profile leaves out, before the run folder is open."""
    _left_out[:] = found


def take_left_out() -> tuple[LeftOut, ...]:
    """Return what was said since the last call."""
    found = tuple(_left_out)
    _left_out.clear()
    return found
