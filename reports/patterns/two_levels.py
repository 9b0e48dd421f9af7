# SPDX-License-Identifier: Apache-2.0
"""Two levels at once: while a level gives way to another, each value lies at one of them.

Values that jump to and fro are looked for in differences of values that follow each other: many that are far
off, all within one part of the series. When that begins and ends is a chain's of a mixture of both levels, of
which the share of the new one rises along a line.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from reports.dependence import Floats
from reports.patterns.finding import CHANCE, Finding, Parameter
from reports.patterns.noise import scale_of
from reports.patterns.series import Series
from reports.patterns.surrogate import false_alarms

FAR = 5.0
"""By the scatter of differences: a jump."""
COURSE_SHARE = 0.2
"""Of a series, at most."""
JUMPS_MIN = 12
FIRST_SHARE = 0.12
"""Of a series: jumps within it are a warm-up's."""
ALIKE = 0.6
"""Of the jumps: as high as the levels differ, to a third."""
STEPS = 1500
SETTLE = 600


class TwoLevels(NamedTuple):
    """A change with both levels at once, and what it adds to the values, shape (n,)."""

    finding: Finding
    pattern: Floats


def find_two_levels(series: Series) -> TwoLevels | None:
    """Return the change of a series during which it has two levels, if there is one."""
    values, times_s = series.values, series.times_s
    differences = np.abs(np.diff(values))
    scatter = scale_of(np.diff(values))
    jumps = (differences > FAR * scatter).astype(np.float64)
    jumps[: round(FIRST_SHARE * len(jumps))] = 0.0
    if jumps.sum() < JUMPS_MIN:
        return None
    width = max(8, round(COURSE_SHARE * len(jumps)))

    def most(of: Floats) -> float:
        sums = np.concatenate(([0.0], np.cumsum(of)))
        return float((sums[width:] - sums[:-width]).max())

    seen = most(jumps)
    if seen < max(JUMPS_MIN, 0.7 * jumps.sum()):
        return None
    chance = false_alarms(seen, most, jumps)
    if chance > CHANCE:
        return None
    sums = np.concatenate(([0.0], np.cumsum(jumps)))
    at = int(np.argmax(sums[width:] - sums[:-width]))
    inside = at + np.flatnonzero(jumps[at : at + width])
    first, last = int(inside[0]), int(inside[-1]) + 1
    if first < 8 or last > len(values) - 8:
        return None
    around = max(16, last - first)
    before = float(np.median(values[max(0, first - around) : first]))
    after = float(np.median(values[last + 1 : last + 1 + around]))
    height = after - before
    heights = differences[inside]
    if np.mean(np.abs(heights - abs(height)) < abs(height) / 3) < ALIKE:
        return None
    near = slice(max(0, first - around), min(len(values), last + around))
    drawn = _chain(
        times_s[near],
        values[near],
        np.array([times_s[first], times_s[last] - times_s[first], before, height]),
    )
    start, course, base, height = np.median(drawn, axis=0)
    ends = drawn[:, 0] + drawn[:, 1]
    # From one value to the next no noise has wandered far.
    alike = heights[np.abs(heights - abs(height)) < abs(height) / 3]
    deviation = float(alike.std(ddof=1)) / math.sqrt(len(alike))
    parameters = {
        name: Parameter.of_draws(each, unit)
        for name, each, unit in (("start", drawn[:, 0], "s"), ("end", ends, "s"))
    }
    parameters["height"] = Parameter.about(math.copysign(float(alike.mean()), height), deviation, "value")
    is_new = (times_s > start + course) | (
        (times_s > start) & (np.abs(values - base - height) < np.abs(values - base))
    )
    return TwoLevels(Finding("two_levels", parameters, chance), height * is_new)


def _chain(times_s: Floats, values: Floats, start: Floats) -> Floats:
    """Return draws of begin, course, first level and height, shape (draws, 4)."""
    rng = np.random.default_rng(5)
    nearest = np.minimum(np.abs(values - start[2]), np.abs(values - start[2] - start[3]))
    scatter = max(1.4826 * float(np.median(nearest)), 1e-6 * abs(start[3]))

    def chance(of: Floats) -> float:
        begin_s, course_s, base, height = of
        if course_s <= 0 or begin_s < times_s[0] or begin_s + course_s > times_s[-1]:
            return -math.inf
        share = np.clip((times_s - begin_s) / course_s, 0, 1)
        densities = [(1 + ((values - level) / scatter) ** 2 / 6) ** -3.5 for level in (base, base + height)]
        return float(np.log((1 - share) * densities[0] + share * densities[1] + 1e-6).sum())

    now, was = start, chance(start)
    step_s = float(np.median(np.diff(times_s)))
    widths = np.array([start[1] / 20 + step_s, start[1] / 20 + step_s, scatter / 15, scatter / 15])
    draws: list[Floats] = []
    for step in range(STEPS):
        tried = now + widths * rng.standard_normal(4) * math.exp(rng.uniform(-2, 0.7))
        found = chance(tried)
        accepted = math.log(rng.random() + 1e-300) < found - was
        if accepted:
            now, was = tried, found
        if step < SETTLE:
            widths = widths * (1.04 if accepted else 0.98)
        else:
            draws.append(now)
    return np.array(draws)
