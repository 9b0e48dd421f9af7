# SPDX-License-Identifier: Apache-2.0
"""The time service on a target: steady state, Table 2 with all its rows, and beside other stacks.

It steers no clock; what is measured is what programs read of it (`device` of its stack.toml), and
what it tells them of its error.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from hw.errors import BenchError
from hw.provisioning import TARGETS
from reports.clock_sync.trial import ClockTrial
from reports.clock_sync.usage import READ_COST, Usage, write_usage
from reports.requirements import Requirement
from resources.clock_sync.command import clock_command
from resources.clock_sync.kind import ARCHIVE, load_clock_kind
from resources.clock_sync.lab import ClockLab
from resources.clock_sync.settings import SYSTEM_CLOCK
from resources.clock_sync.stack_trials import holdover_trial, locked_trial
from resources.clock_sync.time_service_times import TableRow, TimeServiceTimes
from resources.clock_sync.trial import CLOCK_PRIORITY, TrialSettings

STACK = "timeservice"
READ_MAX_S = 30
STARTING_S = 60.0
_CPU_SCRIPT = (
    'pid=$(pgrep -x "$0" | head -n 1) && read -r up _ </proc/uptime && stat=$(cat "/proc/$pid/stat")'
    ' && set -- ${stat##*)} && echo "$up ${12} ${13} $(getconf CLK_TCK)"'
)
"""Uptime in s, and time in user space and kernel in ticks, of a process by its name (proc(5))."""


class TimeServiceTrials:
    """Trials of the time service in a lab."""

    def __init__(self, lab: ClockLab, times: TimeServiceTimes) -> None:
        """Take a lab that is open, and how long each trial takes."""
        self.lab = lab
        self.times = times

    def steady(self, requirement: Requirement, clock: str = STACK) -> ClockTrial:
        """Put a stack on, wait for its lock, and measure its error and what it costs; it stays.

        Args:
            requirement: By when it has to lock.
            clock: The time service, or a stack that is measured beside it.

        Raises:
            MeasurementError: It did not lock in time, or a daemon died.
            BenchError: What a reading costs could not be measured.
        """
        times = self.times
        own = clock == STACK
        settings = TrialSettings(times.measure_s if own else times.beside_s, two_way=False)
        spent = _CpuUse(self._cpu_s, clock, self.lab.stack_spec(clock).daemon)
        of_clock = replace(requirement, subject=("clock", clock))
        trial = locked_trial(self.lab, of_clock, times.interval_s, settings, spent.begin)
        usage = spent.end()
        self._read_cost(trial)
        write_usage(trial.folder, usage)
        return trial

    def holdover(self, requirement: Requirement) -> ClockTrial:
        """Synchronise, cut it off from its server, and measure (Table 2, `No sync`)."""
        times = self.times
        settings = TrialSettings(times.holdover_max_s, times.holdover_iterations)
        return holdover_trial(self.lab, requirement, times.synchronised_s, settings, times.interval_s)

    def row(self, requirement: Requirement, row: TableRow) -> ClockTrial:
        """Measure a row of Table 2."""
        name = f"{requirement.of}-every-{row.interval_s}-s-{row.iterations}"
        folder = self.lab.folder / name
        with self.lab.locked(requirement, folder, row.interval_s) as (stack, lock, _):
            self.lab.progress(f"{requirement.of}: locked, synchronising every {row.interval_s} s; measuring")
            facts = self.lab.facts(stack, "interval", lock)
            settings = TrialSettings(self.times.row_max_s, row.iterations)
            return self.lab.measured(stack, facts, settings, folder)

    def _cpu_s(self, daemon: str) -> float | None:
        """Return what a daemon has had of the CPU, in s; None where the target does not say."""
        if not has_shell(self.lab):
            return None
        node = self.lab.bench.node(self.lab.target.node)
        done = node.run(["sh", "-c", _CPU_SCRIPT, daemon], check=False)
        words = done.stdout.split()
        if done.exit_code or len(words) != 4:
            return None
        _, user, system, hz = (float(word) for word in words)
        return (user + system) / hz

    def _read_cost(self, trial: ClockTrial) -> None:
        """Measure what a reading of the stack's clock costs, and of the system's clock beside it."""
        lab = self.lab
        for clock in dict.fromkeys([trial.facts.device, SYSTEM_CLOCK]):
            argv = clock_command(lab.bench, lab.target.node, "latency", clock=clock)
            argv += ["--reads", str(self.times.reads), "--duration-ms", str(READ_MAX_S * 1000)]
            argv += ["--priority", str(CLOCK_PRIORITY)]
            done = lab.bench.node(lab.target.node).run(argv, READ_MAX_S + STARTING_S, check=False)
            if done.exit_code:
                said = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.exit_code}"]
                raise BenchError(f"bw-clock latency --clock {clock}: {said[0]}")
            (trial.folder / READ_COST.format(clock=clock)).write_text(done.stdout, encoding="utf-8")


def has_shell(lab: ClockLab) -> bool:
    """Tell whether the target has the programs by which its processes are looked at and ended."""
    return load_clock_kind(TARGETS / lab.target.provisioning).transfer == ARCHIVE


class _CpuUse:
    """What a daemon spends of the CPU between two looks."""

    def __init__(self, look: Callable[[str], float | None], clock: str, daemon: str) -> None:
        self._look = look
        self._clock = clock
        self._daemon = daemon
        self._before: tuple[float | None, float] = (None, 0.0)

    def begin(self) -> None:
        self._before = (self._look(self._daemon), time.monotonic())

    def end(self) -> Usage:
        before_s, begun_s = self._before
        after_s, elapsed_s = self._look(self._daemon), time.monotonic() - begun_s
        spent_s = None if before_s is None or after_s is None else round(after_s - before_s, 3)
        return Usage(self._clock, self._daemon, spent_s, round(elapsed_s, 3))
