# SPDX-License-Identifier: Apache-2.0
"""Run a program for a bounded time, in a process group of its own, which ends as a whole.

Whoever waits sleeps: a look every 100 ms would disturb what is measured. Only a group that is being ended is
looked at often.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, BinaryIO, Self

from tests.night.machine import load

GRACE_S = 60.0
"""For a program to clean up after SIGINT, and again after SIGTERM."""
TIMED_OUT = "timed out"
INTERRUPTED = "interrupted"
_NOT_STARTED = 127
_BY_SIGNAL = 128
_LOAD_EVERY_S = 5.0
_LOOK_S = 0.1
_KILLED_S = 10.0


class Interrupts:
    """Counts SIGINT and SIGTERM, and wakes up who waits for a program."""

    def __init__(self) -> None:
        """Count none yet."""
        self.count = 0
        self._before: dict[int, Any] = {}
        self.awake, self._wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)

    def __enter__(self) -> Self:
        """Count from now on; these signals end nothing by themselves."""
        self._before = {
            number: signal.signal(number, self._take) for number in (signal.SIGINT, signal.SIGTERM)
        }
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the signals to who had them before."""
        for number, handler in self._before.items():
            signal.signal(number, handler)
        os.close(self.awake)
        os.close(self._wake)

    def _take(self, _number: int, _frame: FrameType | None) -> None:
        self.count += 1
        with contextlib.suppress(BlockingIOError):  # full of interrupts: it wakes up anyway
            os.write(self._wake, b"!")


@dataclass(frozen=True)
class ProcessEnd:
    """How a program has ended.

    Attributes:
        exit_code: Its own; 128 and the signal's number where one ended it, as a shell says it.
        why: TIMED_OUT or INTERRUPTED where it was ended; else empty.
        load_max: The highest load of the machine meanwhile.
    """

    exit_code: int
    why: str
    load_max: float


def run_bounded(
    command: Sequence[str],
    log: BinaryIO,
    limit_s: float,
    interrupts: Interrupts,
    *,
    folder: Path,
    environment: Mapping[str, str],
    grace_s: float = GRACE_S,
) -> ProcessEnd:
    """Run a program to its end, its time limit or an interrupt; nothing of its group outlives it.

    Args:
        command: Its arguments.
        log: Gets all that it prints.
        limit_s: Beyond this it is ended.
        interrupts: One that comes while it runs ends it.
        folder: Where it runs.
        environment: With which.
        grace_s: Between SIGINT and SIGTERM, and between SIGTERM and SIGKILL; a further interrupt shortens it.
    """
    try:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=log,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        log.write(f"{command[0]}: {error.strerror}\n".encode())
        log.flush()
        return ProcessEnd(_NOT_STARTED, "", load())
    why, load_max = _wait(process, time.monotonic() + limit_s, interrupts)
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL) if why else (signal.SIGTERM, signal.SIGKILL)
    for number in signals:
        if not _alive(process):
            break
        before = interrupts.count  # the next may come as soon as this signal has been sent
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        limit_s = _KILLED_S if number == signal.SIGKILL else grace_s
        _wait_for_group(process, limit_s, lambda: interrupts.count > before)  # noqa: B023 - called in this turn
    code = process.wait()
    return ProcessEnd(code if code >= 0 else _BY_SIGNAL - code, why, load_max)


def _wait(process: subprocess.Popen[bytes], deadline_s: float, interrupts: Interrupts) -> tuple[str, float]:
    """Wait until a program ends or has to be ended; return why, and the highest load."""
    load_max = load()
    ended = os.pidfd_open(process.pid)
    try:
        poll = select.poll()
        poll.register(ended, select.POLLIN)
        poll.register(interrupts.awake, select.POLLIN)
        while not interrupts.count:  # also one that came just before
            left_s = deadline_s - time.monotonic()
            ready = {fd for fd, _ in poll.poll(1e3 * max(0.0, min(left_s, _LOAD_EVERY_S)))}
            load_max = max(load_max, load())
            if ended in ready and not interrupts.count:
                return "", load_max
            if time.monotonic() >= deadline_s:
                return TIMED_OUT, load_max
        return INTERRUPTED, load_max
    finally:
        os.close(ended)


def _wait_for_group(
    process: subprocess.Popen[bytes], grace_s: float, interrupted: Callable[[], bool]
) -> None:
    """Wait until nothing of a group is left, for so long at most, or until the next interrupt."""
    deadline_s = time.monotonic() + grace_s
    while _alive(process) and time.monotonic() < deadline_s and not interrupted():
        time.sleep(_LOOK_S)


def _alive(process: subprocess.Popen[bytes]) -> bool:
    """Say whether something of a program's group still runs; what only waits to be reaped does not."""
    process.poll()
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _parent, group = file.read_text(errors="replace").rpartition(")")[2].split()[:3]
        except OSError:
            continue  # it has ended meanwhile
        if int(group) == process.pid and state not in "ZX":
            return True
    return False
