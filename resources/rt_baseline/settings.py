# SPDX-License-Identifier: Apache-2.0
"""How many wake-ups a profile asks for, and beside which loads."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hw.errors import ConfigError
from hw.fields import Fields
from resources.loads.kinds import CompileLikeLoad, CpuLoad

TIMES = Path(__file__).with_name("times.toml")
LOADS = CompileLikeLoad.kind, CpuLoad.kind
INTERVAL_RANGE_US = 50, 1_000_000
HISTOGRAM_MAX_US = 1_000_000
"""Of cyclictest."""


@dataclass(frozen=True)
class BaselineTimes:
    """How many wake-ups.

    Attributes:
        cycles: Of each thread.
        histogram_us: Latencies from there on overflow.
        loads: Kinds of load, beside each of which they are measured once more.
    """

    cycles: int
    histogram_us: int
    loads: tuple[str, ...]

    @property
    def cases(self) -> tuple[str, ...]:
        """Return the loads, idle first: empty."""
        return "", *self.loads


def baseline_times(table: Fields) -> BaselineTimes:
    """Read the table of a profile; raises ConfigError: names file, field and allowed range."""
    loads = table.texts("loads", LOADS)
    times = BaselineTimes(
        cycles=table.integer("cycles", 1000, 1_000_000_000),
        histogram_us=table.integer("histogram_us", 10, HISTOGRAM_MAX_US),
        loads=loads,
    )
    if len(set(loads)) < len(loads):
        raise table.fault("loads", f"{list(loads)}; needed: each once")
    table.finish()
    return times


def checked_interval_us(text: str) -> int:
    """Return the interval of wake-ups in µs; raises ConfigError: says what is allowed."""
    low, high = INTERVAL_RANGE_US
    if not text.isascii() or not text.isdigit() or not low <= int(text) <= high:
        raise ConfigError(f"WAKEUP_INTERVAL_US: {text!r}; allowed: a whole number in {low}..{high}")
    return int(text)
