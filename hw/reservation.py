# SPDX-License-Identifier: Apache-2.0
"""Reservation of a bench on this host: one run at a time, and the second hears who holds it."""

from __future__ import annotations

import fcntl
import getpass
import json
import os
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from hw.errors import BenchError

LOCK_FOLDER = Path("/run/benchwright")
DYING_S = 3.0
"""How long a holder that was killed may take to let go."""
_held: list[int] = []


def locks() -> tuple[int, ...]:
    """Return the descriptors by which this process holds benches.

    A command that builds a bench inherits them: where its run is killed, the bench stays held until that
    command has ended, too, and nothing is made behind the back of whoever undoes what the run has left.
    """
    return tuple(_held)


@contextmanager
def reserve(bench_name: str, folder: Path = LOCK_FOLDER) -> Generator[None, None, None]:
    """Hold the bench for the length of the context.

    The kernel drops the lock when the holder dies, however it dies.

    Args:
        bench_name: Name of the bench, as in its file.
        folder: Where lock files are kept.

    Raises:
        BenchError: Somebody else holds the bench; the text says who, since when and with which command.
    """
    path = folder / f"{bench_name}.lock"
    with lock_file(path) as descriptor:
        if not _lock(descriptor, time.monotonic() + DYING_S):
            raise BenchError(f"bench {bench_name!r} is held by {_holder(path)}")
        _write_holder(descriptor)
        _held.append(descriptor)
        try:
            yield
        finally:
            _held.remove(descriptor)
        os.ftruncate(descriptor, 0)


@contextmanager
def lock_file(path: Path) -> Generator[int, None, None]:
    """Open a lock file that nobody else can open: who can read a file can hold its lock, for ever.

    Raises:
        BenchError: It belongs to somebody else, or its folder cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise BenchError(f"{path}: cannot be locked: {error.strerror}") from error
    try:
        os.fchmod(descriptor, 0o600)
        yield descriptor
    finally:
        os.close(descriptor)


def _lock(descriptor: int, deadline_s: float) -> bool:
    """Try until a time of the monotonic clock; return whether the lock is ours."""
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline_s:
                return False
            time.sleep(0.05)
        else:
            return True


def _write_holder(descriptor: int) -> None:
    holder = {
        "user": getpass.getuser(),
        "pid": os.getpid(),
        "since_utc": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": " ".join(sys.argv)[:200],
    }
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, json.dumps(holder).encode(), 0)


def _holder(path: Path) -> str:
    try:
        holder = json.loads(path.read_text())
        return f"{holder['user']} (process {holder['pid']}, since {holder['since_utc']}: {holder['command']})"
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return "another process that has not written its name yet"
