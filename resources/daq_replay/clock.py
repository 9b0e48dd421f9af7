# SPDX-License-Identifier: Apache-2.0
"""The clock stack on a target while a pattern is replayed into it: put on, watched, its error measured.

The target's stamps are then taken as they are. Slots are agreed on the time server's clock, against which the
clocks of producers are known by two-way transfer; what the target's clock is off its server is measured
against the timecard in it throughout the replay, and is a part of U.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from hw.bench import TargetSpec, TimeServerSpec
from hw.errors import CapabilityError, MeasurementError
from hw.open_bench import OpenBench
from hw.provisioning import TARGETS
from reports.clock_sync.answers import read_clock_compare
from reports.clock_sync.trial import Lock
from reports.daq_replay.replay_clock import CLOCK_ERROR, ReplayClock, ServerLine, measured_clock
from resources.clock_sync.command import clock_command
from resources.clock_sync.lines import ClockLine
from resources.clock_sync.settings import STACKS, SYSTEM_CLOCK, ClockSettings, load_stacks
from resources.clock_sync.stack import ClockStack
from resources.clock_sync.timecard import serve_timecards
from resources.clock_sync.trial import CLOCK_PRIORITY, FILTER_NS, SERIES_INTERVAL_MS, timecard_of
from resources.tools.jobs import end_and_fetch

Progress = Callable[[str], None]

LOCK_WITHIN_S = 120
PAUSE_MAX_US = 20_000
"""Between readings: a hundred a second see what a servo does, and take nothing from the target."""


def synchronised_stacks(target: TargetSpec) -> tuple[str, ...]:
    """Return the stacks of a target's kind that keep it on the time of its server; raises ConfigError."""
    path = TARGETS / target.provisioning / STACKS
    stacks = load_stacks(simulated=True, path=path) if path.exists() else {}
    return tuple(name for name, stack in stacks.items() if stack.is_locked_to_server)


class ClockOfReplay:
    """A clock stack that runs on a target; see `clock_of_replay`."""

    def __init__(
        self, bench: OpenBench, target: TargetSpec, server: TimeServerSpec, stack: ClockStack, lock: Lock
    ) -> None:
        """Take a stack that has locked."""
        self.bench = bench
        self.target = target
        self.server_clock = bench.spec.nodes[server.node].clock
        self.stack = stack
        self.lock = lock
        self.timecard = timecard_of(target)

    @property
    def consumer_clock(self) -> str:
        """Return what the consumer stamps with, as `bw-clock` names it; empty: the system's clock."""
        return "" if self.stack.device == SYSTEM_CLOCK else self.stack.device

    @contextmanager
    def watched(self, folder: Path, duration_ms: int) -> Generator[None, None, None]:
        """Compare the target's clock with its timecard until the context ends.

        Args:
            folder: The answer goes here.
            duration_ms: After this time the comparison ends by itself. A replay must be over sooner: an error
                that was measured over a part of it counts as unknown.

        Raises:
            BenchError: The tool did not start.
            MeasurementError: A daemon of the stack has ended meanwhile.
        """
        folder.mkdir(parents=True, exist_ok=True)
        clocks = {"device": self.stack.device, "reference": self.timecard.clock}
        argv = clock_command(self.bench, self.target.node, "compare", **clocks)
        argv += ["--read", "filtered", "--filter-ns", str(FILTER_NS)]
        argv += ["--pause-max-us", str(PAUSE_MAX_US), "--series-interval-ms", str(SERIES_INTERVAL_MS)]
        argv += ["--duration-ms", str(duration_ms), "--priority", str(CLOCK_PRIORITY)]
        job = self.bench.node(self.target.node).start(argv, folder / Path(CLOCK_ERROR).stem)
        with ExitStack() as ending:
            ending.callback(end_and_fetch, job)
            job.wait_ready()
            yield
            self.stack.require_running()

    def measured(
        self, folder: Path, before: Mapping[str, ClockLine], after: Mapping[str, ClockLine]
    ) -> ReplayClock:
        """Return what is known of the clock's error during a replay, and write it beside it.

        Args:
            folder: Of the replay; the comparison's answer lies in it.
            before: Lines of all clocks against the bench's reference before the replay.
            after: The same after it.
        """
        lines = server_lines(self.server_clock, before, after)
        compare = read_clock_compare(folder / CLOCK_ERROR)
        found = measured_clock(
            self.stack.name, self.server_clock, self.lock, self.timecard, compare, tuple(lines)
        )
        found.write(folder)
        return found


@contextmanager
def clock_of_replay(
    bench: OpenBench, target: TargetSpec, clock: str, folder: Path, progress: Progress
) -> Generator[ClockOfReplay, None, None]:
    """Put a clock stack on a target, and wait for its lock; take it off again when the context ends.

    Args:
        bench: An open bench.
        target: Whose clock is synchronised.
        clock: One of `synchronised_stacks`.
        folder: Logs go here.
        progress: Called with a line of text now and then.

    Raises:
        CapabilityError: The bench cannot say how far off the target's clock is.
        MeasurementError: The stack did not lock; the text names the cause.
    """
    server = bench.spec.time_server
    if server is None:
        raise CapabilityError(
            f"clock {clock}: no time server; add benchwright.time_server to {bench.spec.path}"
        )
    server_clock = bench.spec.nodes[server.node].clock
    if server_clock not in bench.spec.clocks:
        raise CapabilityError(
            f"clock {clock}: nobody can ask the time server's clock {server_clock!r}; add it to"
            f" benchwright.clocks of {bench.spec.path}"
        )
    timecard_of(target)
    with ExitStack() as stack:
        bench.power_on([target.node, server.node])
        stack.enter_context(serve_timecards(bench, [target.node], server.node, folder))
        progress(f"{clock}: starting on {target.node}")
        running = ClockStack(bench, target, clock, ClockSettings(), folder, progress)
        stack.enter_context(running)
        lock = running.wait_locked(LOCK_WITHIN_S)
        progress(f"{clock}: locked after {lock.after_s:.1f} s")
        yield ClockOfReplay(bench, target, server, running, lock)


def server_lines(
    server: str, before: Mapping[str, ClockLine], after: Mapping[str, ClockLine]
) -> list[ServerLine]:
    """Return the clocks of a bench against the time server's, with what their lines were off at the end.

    Args:
        server: Name of the time server's clock.
        before: Lines against the bench's reference clock, the server's among them; they were used.
        after: The same, measured when all was over.

    Raises:
        MeasurementError: The server's clock, or one that was known before, is not among them.
    """
    lines: list[ServerLine] = []
    for name, line in before.items():
        if server not in before or server not in after or name not in after:
            raise MeasurementError(f"clock {name}: not known against {server} before and after the replay")
        first, last = before[server], after[server]
        begin_ns = max(line.at_reference_tai_ns, first.at_reference_tai_ns)
        end_ns = max(after[name].at_reference_tai_ns, last.at_reference_tai_ns, begin_ns)
        was_ns = line.local_ns(begin_ns) - first.local_ns(begin_ns)
        said_ns = line.local_ns(end_ns) - first.local_ns(end_ns)
        is_ns = after[name].local_ns(end_ns) - last.local_ns(end_ns)
        lines.append(
            ServerLine(
                name=name,
                at_tai_ns=first.local_ns(begin_ns),
                offset_ns=was_ns,
                rate_ppb=line.rate_ppb - first.rate_ppb,
                bound_ns=0 if name == server else line.bound_ns + first.bound_ns,
                residual_ns=abs(is_ns - said_ns),
            )
        )
    return lines
