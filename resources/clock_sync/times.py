# SPDX-License-Identifier: Apache-2.0
"""How long clocks are measured: `times.toml`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hw.fields import Fields

TIMES = Path(__file__).with_name("times.toml")
NETWORKS = ("same", "separate")
LOADS = ("cpu", "disk", "network")


@dataclass(frozen=True)
class ClockTimes:
    """How long clocks are measured."""

    measure_s: int
    """Each trial of a clock."""
    intervals_s: tuple[int, ...]
    """Synchronisation intervals of the sweep (DAQ paper, Table 2)."""
    interval_measure_s: int
    """At each of them."""
    synchronised_s: int
    """Before the clock is cut off from its server."""
    holdover_s: int
    """After that."""
    relocks: int
    """How often the time to lock is measured."""
    loads: tuple[str, ...]
    """Loads under which clocks are measured: `cpu`, `disk`, `network`."""
    networks: tuple[str, ...]
    """Where clocks are measured under the data-acquisition pattern: `same` network as it, `separate`."""
    alternations: int
    """How often an asymmetry is put on the path and taken off again; 0: not at all."""
    latency_reads: int
    """Readings of each clock whose cost is measured."""
    latency_max_s: int
    """Of each of them: time after which fewer readings have to do."""


def clock_times(table: Fields) -> ClockTimes:
    """Read the table of a profile; raises ConfigError: a value is out of range."""
    times = ClockTimes(
        measure_s=table.integer("measure_s", 1, 86_400),
        intervals_s=table.integers("intervals_s", 1, 86_400),
        interval_measure_s=table.integer("interval_measure_s", 1, 7 * 86_400),
        synchronised_s=table.integer("synchronised_s", 1, 86_400),
        holdover_s=table.integer("holdover_s", 1, 7 * 86_400),
        relocks=table.integer("relocks", 1, 1000),
        loads=table.texts("loads", LOADS),
        networks=table.texts("networks", NETWORKS),
        alternations=table.integer("alternations", 0, 1000),
        latency_reads=table.integer("latency_reads", 1, 10_000_000_000),
        latency_max_s=table.integer("latency_max_s", 1, 3600),
    )
    table.finish()
    return times
