# SPDX-License-Identifier: Apache-2.0
"""How many wake-ups a profile asks for, how long tracers run, and beside which loads."""

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
TRACED_MAX_S = 600
"""What the kernel holds of a recording until it ends."""


@dataclass(frozen=True)
class BaselineTimes:
    """How many wake-ups.

    Attributes:
        cycles: Of each thread.
        histogram_us: Latencies from there on overflow.
        loads: Kinds of load, beside each of which they are measured once more.
        noise_s: Hardware noise is looked for as long.
        timerlat_s: So long timerlat wakes threads up, and late ones are split.
        traced_loads: Those of `loads` beside which both are done once more.
    """

    cycles: int
    histogram_us: int
    loads: tuple[str, ...]
    noise_s: int
    timerlat_s: int
    traced_loads: tuple[str, ...]

    @property
    def cases(self) -> tuple[str, ...]:
        """Return the loads, idle first: empty."""
        return "", *self.loads

    @property
    def traced_cases(self) -> tuple[str, ...]:
        """Return the loads beside which the tracers run, idle first: empty."""
        return "", *self.traced_loads


def baseline_times(table: Fields) -> BaselineTimes:
    """Read the table of a profile; raises ConfigError: names file, field and allowed range."""
    loads = table.texts("loads", LOADS)
    times = BaselineTimes(
        cycles=table.integer("cycles", 1000, 1_000_000_000),
        histogram_us=table.integer("histogram_us", 10, HISTOGRAM_MAX_US),
        loads=loads,
        noise_s=table.integer("noise_s", 1, TRACED_MAX_S),
        timerlat_s=table.integer("timerlat_s", 1, TRACED_MAX_S),
        traced_loads=table.texts("traced_loads", loads),
    )
    for name, each in (("loads", loads), ("traced_loads", times.traced_loads)):
        if len(set(each)) < len(each):
            raise table.fault(name, f"{list(each)}; needed: each once")
    table.finish()
    return times


def checked_interval_us(text: str) -> int:
    """Return the interval of wake-ups in µs; raises ConfigError: says what is allowed."""
    low, high = INTERVAL_RANGE_US
    if not text.isascii() or not text.isdigit() or not low <= int(text) <= high:
        raise ConfigError(f"WAKEUP_INTERVAL_US: {text!r}; allowed: a whole number in {low}..{high}")
    return int(text)
