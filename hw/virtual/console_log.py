# SPDX-License-Identifier: Apache-2.0
"""A boot that is judged by the file which a virtual machine's console is written to."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path

from hw.answers import tail
from hw.boot import BootExpectation, BootState, BootWatch
from hw.errors import BenchError

READY = "benchwright: ready"
EXPECTED = BootExpectation(
    ready=re.compile(READY), first_output_s=45.0, silence_s=45.0, prompt_s=3.0, deadline_s=60.0
)
"""Guests start with `quiet`: on a busy machine they are silent for long."""
_POLL_S = 0.05


class SilentBootError(BenchError):
    """A machine has not said one character after it was powered on."""


class EmulatorCrashError(BenchError):
    """What emulates a machine has ended by a fault of its own while the machine booted."""


def earlier_logs(log: Path) -> list[Path]:
    """Return the logs of the boots before, the oldest first."""
    return sorted(log.parent.glob(f"{log.name}.*"), key=lambda each: int(each.suffix[1:]))


def put_aside(log: Path) -> None:
    """Keep the log of a boot under a name of its own; the next boot begins another one."""
    if log.exists():
        log.rename(log.with_name(f"{log.name}.{len(earlier_logs(log)) + 1}"))


def wait_for_boot(
    name: str, log: Path, is_running: Callable[[], bool], expected: BootExpectation = EXPECTED
) -> None:
    """Return when a machine's console says that it is up.

    Args:
        name: What an error begins with: the machine.
        log: What its console has said since it was powered on; need not be there yet.
        is_running: Tells whether it has power.
        expected: What is expected of the boot.

    Raises:
        SilentBootError: It said nothing at all.
        BenchError: It did not come up; the text says how, and quotes the console.
    """
    watch = BootWatch(expected, time.monotonic())
    read_bytes = 0
    while True:
        running = is_running()  # asked first: what it says at its end is read below
        if log.exists():
            with log.open("rb") as console:
                console.seek(read_bytes)
                data = console.read()
            read_bytes += len(data)
            watch.feed(data, time.monotonic())
        found = watch.finding(time.monotonic())
        if found is not None and found.state is BootState.READY:
            return
        if found is not None:
            kind = SilentBootError if found.state is BootState.NEVER_BOOTS else BenchError
            raise kind(f"{name}: {found.state.value}: {found.detail}; console: {tail(log)}")
        if not running:
            raise BenchError(f"{name}: ended while it booted; console: {tail(log)}")
        time.sleep(_POLL_S)
