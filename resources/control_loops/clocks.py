# SPDX-License-Identifier: Apache-2.0
"""What corrects the target's clock while messages go round: a clock daemon, also under SCHED_FIFO.

After the paper, 4.2.1 and 4.3.2.2: how far its clock is corrected, idle and beside a build, and its future
work, the daemon under the control of the scheduler.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from hw.bench import TargetSpec
from hw.errors import CapabilityError, MeasurementError
from hw.open_bench import OpenBench
from hw.provisioning import TARGETS
from resources.clock_sync.settings import STACKS, ClockSettings, stack_names
from resources.clock_sync.stack import ClockStack
from resources.keywords.bench import say

FIFO = "-fifo"
"""Behind a stack's name: its daemon runs under SCHED_FIFO."""
FIFO_PRIORITY = 50
FIFO_CLASS = "FF"
"""As ps(1) calls SCHED_FIFO."""
LOCK_WITHIN_S = 120.0


def known_clocks() -> tuple[str, ...]:
    """Return what may correct a clock: the clock stacks of all kinds, as they are and under SCHED_FIFO."""
    folders = sorted(TARGETS.glob(f"*/{STACKS}"))
    names = dict.fromkeys(name for folder in folders for name in stack_names(folder))
    return (*names, *(f"{name}{FIFO}" for name in names))


@contextmanager
def corrected_clock(
    bench: OpenBench, target: TargetSpec, clock: str, folder: Path
) -> Generator[ClockStack | None]:
    """Have a daemon correct the target's clock, locked to the bench's time server, while the context lasts.

    Args:
        bench: An open bench.
        target: Whose clock.
        clock: One of `known_clocks`; empty: nothing corrects it.
        folder: Logs go here.

    Raises:
        CapabilityError: The target cannot have it, or the bench has no time server.
        ConfigError: The stack cannot run under SCHED_FIFO.
        MeasurementError: It did not lock, died meanwhile, or does not run under SCHED_FIFO.
    """
    if not clock:
        yield None
        return
    server = bench.spec.time_server
    if server is None:
        raise CapabilityError(f"clock {clock}: bench {bench.spec.name} has no time server")
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as ending:
        bench.power_on([target.node, server.node])
        settings = ClockSettings(fifo_priority=FIFO_PRIORITY if clock.endswith(FIFO) else 0)
        stack = ClockStack(bench, target, clock.removesuffix(FIFO), settings, folder, say)
        ending.enter_context(stack)
        if settings.fifo_priority:
            _require_fifo(bench, target, stack.spec.leader)
        lock = stack.wait_locked(LOCK_WITHIN_S)
        say(f"{clock}: locked after {lock.after_s:.1f} s")
        yield stack
        stack.require_running()


def _require_fifo(bench: OpenBench, target: TargetSpec, daemon: str) -> None:
    """Ask the target whether a daemon runs under SCHED_FIFO; raises MeasurementError: it does not."""
    argv = ["ps", "-C", daemon, "-o", "cls=,rtprio="]
    found = bench.node(target.node).run(argv, check=False).stdout.split("\n")
    if [FIFO_CLASS, str(FIFO_PRIORITY)] not in [line.split() for line in found]:
        raise MeasurementError(
            f"{daemon} on {target.node}: not under SCHED_FIFO {FIFO_PRIORITY}: ps says {found}"
        )
