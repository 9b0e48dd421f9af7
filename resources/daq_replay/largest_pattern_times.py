# SPDX-License-Identifier: Apache-2.0
"""How long and how sure the largest pattern is looked for: `largest_pattern.times.toml`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hw.fields import Fields

TIMES = Path(__file__).with_name("largest_pattern.times.toml")


@dataclass(frozen=True)
class LargestPatternTimes:
    """How long and how sure the largest pattern within the budgets is looked for."""

    warmup_ms: int
    """Of each trial; the suite's own replay has warmed up the target before."""
    probe_miss_probability: float
    """What a trial on the way excludes with 95 %, of each stream."""
    excluded_miss_probability: float
    """What each trial that shows the number excludes."""
    boundary_trials: int
    """How many of them there are."""
    trial_attempts: int
    """On a simulated bench: replays of a trial at most, while it has no verdict."""


def largest_pattern_times(table: Fields) -> LargestPatternTimes:
    """Read the table of a profile; raises ConfigError: a value is out of range."""
    times = LargestPatternTimes(
        warmup_ms=table.integer("warmup_ms", 0, 3_600_000),
        probe_miss_probability=table.number("probe_miss_probability", 1e-9, 0.5),
        excluded_miss_probability=table.number("excluded_miss_probability", 1e-9, 0.5),
        boundary_trials=table.integer("boundary_trials", 1, 100),
        trial_attempts=table.integer("trial_attempts", 1, 10),
    )
    table.finish()
    return times
