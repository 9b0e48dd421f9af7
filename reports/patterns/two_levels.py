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
ALIKE = 0.6
"""Of the jumps: as high as the levels differ, to a third."""
TAIL = 6.0
"""Of Student's t, by which values lie about a level."""
RARE = 1e-3
"""Of the densest: a value at neither level."""
STEPS = 6000
SETTLE = 1000


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
    # From one value to the next no noise has wandered far.
    alike = heights[np.abs(heights - abs(height)) < abs(height) / 3]
    deviation = float(alike.std(ddof=1)) / math.sqrt(len(alike))
    height = math.copysign(float(alike.mean()), height)
    to_old, to_new = _nearness(values[near], before, height)
    start = np.array([times_s[first], times_s[last] - times_s[first]])
    drawn = change_chain(times_s[near], to_old, to_new, start)
    begin_s, course_s = np.median(drawn, axis=0)
    parameters = {
        name: Parameter.of_draws(each, "s")
        for name, each in (("start", drawn[:, 0]), ("end", drawn.sum(axis=1)))
    }
    parameters["height"] = Parameter.about(height, deviation, "value")
    is_new = times_s > begin_s + course_s
    inside_it = np.flatnonzero((times_s[near] > begin_s) & (times_s[near] <= begin_s + course_s))
    is_new[near.start + inside_it] = to_new[inside_it] > to_old[inside_it]
    return TwoLevels(Finding("two_levels", parameters, chance), height * is_new)


def _nearness(values: Floats, before: float, height: float) -> tuple[Floats, Floats]:
    """Return the densities of values at the old level and at the new one, each by the values' scatter."""
    off = np.stack((values - before, values - before - height))
    scatter = max(scale_of(off[np.argmin(np.abs(off), axis=0), np.arange(len(values))]), 1e-6 * abs(height))
    densities = (1 + (off / scatter) ** 2 / TAIL) ** (-(TAIL + 1) / 2)
    return densities[0], densities[1]


def change_chain(times_s: Floats, to_old: Floats, to_new: Floats, start: Floats) -> Floats:
    """Return draws of when a change begins and how long it takes, shape (draws, 2).

    Args:
        times_s: Shape (n,).
        to_old: Density of each value at the old level, shape (n,).
        to_new: The same at the new one.
        start: Begin and length, about.
    """
    rng = np.random.default_rng(5)
    step_s = float(np.median(np.diff(times_s)))
    widths = np.full(2, start[1] / 10 + step_s)
    to_old, to_new = to_old + RARE, to_new + RARE
    by = to_new - to_old

    def chance(of: Floats) -> float:
        if of[1] <= 0 or of[0] < times_s[0] or of[0] + of[1] > times_s[-1]:
            return -math.inf
        return float(np.log(to_old + np.clip((times_s - of[0]) / of[1], 0, 1) * by).sum())

    now, was = start, chance(start)
    draws: list[Floats] = []
    for step in range(STEPS):
        tried = now + widths * rng.standard_normal(2) * math.exp(rng.uniform(-2, 0.7))
        found = chance(tried)
        accepted = math.log(rng.random() + 1e-300) < found - was
        if accepted:
            now, was = tried, found
        if step < SETTLE:
            widths = widths * (1.04 if accepted else 0.98)
        else:
            draws.append(now)
    return np.array(draws)
