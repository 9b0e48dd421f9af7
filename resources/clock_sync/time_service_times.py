# SPDX-License-Identifier: Apache-2.0
"""How long the time service is measured, and what happens to it: `time_service.times.toml`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hw.errors import ConfigError
from hw.fields import Fields
from resources.clock_sync.settings import SYSTEM_CLOCK, StackSpec, stacks_of_any_kind

TIMES = Path(__file__).with_name("time_service.times.toml")
EVENTS = ("killed", "server-lost", "system-clock", "server-stepped", "paused", "rebooted")
"""What happens to a time service in mid-run, in this order."""
PAPER_SYNCHRONISED_S = 300
"""Before the paper's holdover (Table 2, `No sync`): a shorter one says little of how it drifts."""


@dataclass(frozen=True)
class TableRow:
    """A row of Table 2: the interval between synchronisations, and its samples."""

    interval_s: int
    iterations: int


@dataclass(frozen=True)
class TimeServiceTimes:
    """How long and how often.

    Attributes:
        interval_s: Between synchronisations, of all trials but those of Table 2.
        measure_s: Of the trial in steady state.
        rows: Of Table 2.
        row_max_s: Time after which fewer samples have to do.
        synchronised_s: Before it is cut off from its server.
        holdover_iterations: Samples afterwards.
        holdover_max_s: Time after which fewer have to do.
        beside: Stacks that are measured on the same target against the same server.
        beside_s: Each of them.
        events: What happens to it in mid-run.
        lost_s: How long its server is lost.
        events_s: Of the trial that those fall into of which the reference knows.
        reads: Readings whose cost is measured.
    """

    interval_s: int
    measure_s: int
    rows: tuple[TableRow, ...]
    row_max_s: int
    synchronised_s: int
    holdover_iterations: int
    holdover_max_s: int
    beside: tuple[str, ...]
    beside_s: int
    events: tuple[str, ...]
    lost_s: int
    events_s: int
    reads: int

    @property
    def is_papers_holdover(self) -> bool:
        """Tell whether it is synchronised for as long as the paper's, so that its drift can be judged."""
        return self.synchronised_s >= PAPER_SYNCHRONISED_S


def time_service_times(table: Fields) -> TimeServiceTimes:
    """Read the table of a profile; raises ConfigError: names file, field and allowed range."""
    intervals_s = table.integers("table_intervals_s", 1, 3600)
    iterations = table.integers("table_iterations", 1, 10_000_000_000)
    if len(intervals_s) != len(iterations):
        raise ConfigError(
            f"time_service.table_iterations: must be as many as table_intervals_s, {len(intervals_s)},"
            f" found {len(iterations)}"
        )
    times = TimeServiceTimes(
        interval_s=table.integer("interval_s", 1, 3600),
        measure_s=table.integer("measure_s", 1, 86_400),
        rows=tuple(TableRow(*row) for row in zip(intervals_s, iterations, strict=True)),
        row_max_s=table.integer("table_max_s", 1, 7 * 86_400),
        synchronised_s=table.integer("synchronised_s", 1, 86_400),
        holdover_iterations=table.integer("holdover_iterations", 1, 10_000_000_000),
        holdover_max_s=table.integer("holdover_max_s", 1, 7 * 86_400),
        beside=table.texts("beside", stacks_of_any_kind(_steers_the_system)),
        beside_s=table.integer("beside_s", 1, 86_400),
        events=table.texts("events", EVENTS),
        lost_s=table.integer("lost_s", 1, 86_400),
        events_s=table.integer("events_s", 1, 86_400),
        reads=table.integer("reads", 1, 10_000_000_000),
    )
    table.finish()
    return times


def _steers_the_system(stack: StackSpec) -> bool:
    return stack.is_locked_to_server and stack.device == SYSTEM_CLOCK
