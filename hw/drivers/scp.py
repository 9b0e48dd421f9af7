# SPDX-License-Identifier: Apache-2.0
"""Copies to and from a node by scp, each with a deadline that follows from the bytes that it moves.

No keepalive ends a connection whose other end is gone (it would disturb a measurement): scp waits for ever.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

BEGIN_S = 30.0
"""Of a copy, whatever its size, and of one that comes from a node the longest time for each share of it."""
SLOWEST_BYTES_S = 100_000
"""0.8 Mbit/s: a busy emulated machine is faster."""
_LOOK_S = 0.5


class CopyError(Exception):
    """A copy that failed; the text is scp's own."""


class CopyOverdueError(CopyError):
    """A copy that came to no end in its time."""


def bytes_in(path: Path) -> int:
    """Return the bytes of a file, or of all in a folder; 0 where there is none."""
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(each.stat().st_size for each in files if each.is_file())


class Deadline:
    """Until when a copy has time."""

    def __init__(self, moves: int | Path, now_s: float) -> None:
        """Begin.

        Args:
            moves: Its bytes; or where they arrive, and each share of BEGIN_S at SLOWEST_BYTES_S then gives
                BEGIN_S more: a node that is gone is given up soon, however much it has sent.
            now_s: Of the monotonic clock.
        """
        self._moves = moves
        self._given_s = BEGIN_S + (moves / SLOWEST_BYTES_S if isinstance(moves, int) else 0)
        self._due_s = now_s + self._given_s
        self._counted = 0

    def overdue(self, now_s: float) -> str:
        """Return in words how late it is; empty: it is not."""
        arrived = 0
        if isinstance(self._moves, Path):
            arrived = bytes_in(self._moves)
            if not 0 <= arrived - self._counted < BEGIN_S * SLOWEST_BYTES_S:  # less: it replaces a file
                self._counted = arrived
                self._due_s = now_s + BEGIN_S
        if now_s <= self._due_s:
            return ""
        if isinstance(self._moves, int):
            return f"{self._moves} bytes not there after {self._given_s:g} s"
        return f"{arrived} bytes, and not its end, {self._given_s:g} s after {self._counted} bytes"


def copy(argv: Sequence[str], moves: int | Path) -> None:
    """Run scp to its end.

    Args:
        argv: Its command line.
        moves: As of its Deadline.

    Raises:
        CopyError: It failed.
        CopyOverdueError: It was ended at its deadline.
    """
    deadline = Deadline(moves, time.monotonic())
    try:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,  # it ends with the ssh that it has started, and asks no terminal
        )
    except OSError as error:
        raise CopyError(f"{argv[0]}: {error.strerror}") from error
    assert process.stderr is not None
    with process.stderr:
        try:
            said = _said(process, deadline)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise
    if process.returncode != 0:
        words = said.decode(errors="replace").strip()
        raise CopyError(words[-500:] or f"exit code {process.returncode}")


def _said(process: subprocess.Popen[bytes], deadline: Deadline) -> bytes:
    """Wait for its end; return what it complained of."""
    while True:
        try:
            return process.communicate(timeout=_LOOK_S)[1]
        except subprocess.TimeoutExpired as error:
            if process.poll() is not None:
                return error.stderr or b""  # the connection has its stderr still
        if late := deadline.overdue(time.monotonic()):
            raise CopyOverdueError(late)
