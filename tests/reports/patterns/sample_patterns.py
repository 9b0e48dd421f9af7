# SPDX-License-Identifier: Apache-2.0
"""Patterns of a run as its folder keeps them, found in series that a test states."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np

from reports.dependence import Floats
from reports.patterns.detect import detect
from reports.patterns.drawn import drawn_of
from reports.patterns.kept import PATTERNS, SCHEMA, RunPatterns, SearchedSeries
from reports.patterns.series import series_of

COUNT, STEP_S = 400, 0.1


@cache
def ramp_series(
    place: str, name: str, period_s: float | None = 5.0, *, height_ms: float = 5.0, count: int = COUNT
) -> SearchedSeries:
    """Return a series of ramps in noise of 0.5 ms, searched; without a period it is noise alone."""
    times_s: Floats = STEP_S * np.arange(count, dtype=np.float64)
    values = 20 + 0.5 * np.random.default_rng(1).standard_normal(count)
    if period_s is not None:
        values += height_ms * (times_s / period_s % 1)
    series = series_of(times_s, values)
    found = detect(series).findings
    drawn = drawn_of(series, found) if found else None
    return SearchedSeries(place, name, count, series.length_s, found, (), drawn)


def write_sample_patterns(run: Path, *series: SearchedSeries) -> RunPatterns:
    """Write the file of a run folder, and return what it says."""
    made = RunPatterns(SCHEMA, 16, series, ())
    path = run / PATTERNS
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(made.to_bytes())
    return made
