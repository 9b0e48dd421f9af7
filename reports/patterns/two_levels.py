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
from numpy.typing import NDArray

from reports.dependence import Floats
from reports.patterns.filters import running_median
from reports.patterns.finding import CHANCE, Finding, Parameter
from reports.patterns.fit import draws_of
from reports.patterns.noise import fit_noise, scale_of
from reports.patterns.regression import distances_of, regress
from reports.patterns.series import Series
from reports.patterns.surrogate import false_alarms

FAR = 5.0
"""By the scatter of differences: a jump."""
COURSE_SHARE = 0.2
"""Of a series, at most."""
JUMPS_MIN = 12
ALIKE = 0.6
"""Of the jumps: as high as the levels differ, to a third."""
AROUND = 51
"""Values whose median is where the old level is, wherever ramps or a noise that wanders have moved it."""
ROUNDS = 3
TAIL = 6.0
"""Of Student's t, by which values lie about a level."""
RARE = 1e-3
"""Of the densest: a value at neither level."""
STEPS = 6000


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
    heights = differences[inside]
    usual = float(np.median(heights))
    if np.mean(np.abs(heights - usual) < usual / 3) < ALIKE:
        return None
    around = max(16, last - first)
    before = float(np.median(values[max(0, first - around) : first]))
    after = float(np.median(values[last + 1 : last + 1 + around]))
    height = math.copysign(usual, after - before)
    guesses = [
        _refined(values, guess, height, first, last)
        for guess in (
            _by_jumps(np.diff(values), height, first, last),
            np.abs(values - before - height) < np.abs(values - before),
        )
    ]
    # A wrong one leaves a level that jumps.
    bases = [running_median(values - height * guess, AROUND) for guess in guesses]
    best = int(np.argmin([np.abs(np.diff(base)).sum() for base in bases]))
    is_new, off = guesses[best], values - bases[best]
    near = slice(max(0, first - around), min(len(values), last + around))
    start = np.array([times_s[first], times_s[last] - times_s[first]])
    drawn = change_chain(times_s[near], *_nearness(off[near], height), start)
    shape = is_new.astype(np.float64)
    centre = float(np.median(values - height * shape))
    noise = fit_noise(values - height * shape)
    columns = np.stack([shape, np.ones(len(shape))])
    [fitted, _], [deviation, _] = regress(
        noise, columns, values - centre, np.array([height, 0.0]), distances_of(times_s)
    )
    if abs(fitted - height) > usual / 3:
        return None
    parameters = {
        "start": Parameter.of_draws(drawn[:, 0], "s"),
        "end": Parameter.of_draws(drawn.sum(axis=1), "s"),
        "height": Parameter.about(float(fitted), float(deviation), "value"),
    }
    return TwoLevels(Finding("two_levels", parameters, chance), float(fitted) * shape)


def _by_jumps(differences: Floats, height: float, first: int, last: int) -> NDArray[np.bool_]:
    """Return which values are at the new level, shape (n,): those behind a jump to it, whatever else moves.

    All before the first jump are at the old one, all after the last at the new one.
    """
    jump = np.zeros(len(differences) + 1)
    jump[1:] = np.where(np.abs(differences) > abs(height) / 2, np.sign(differences * height), 0.0)
    places = np.arange(len(jump))
    jump[(places <= first) | (places > last)] = 0.0
    since = np.maximum.accumulate(np.where(jump != 0, places, 0))
    return np.where(places > last, True, (since > 0) & (jump[since] > 0))


def _refined(
    values: Floats, is_new: NDArray[np.bool_], height: float, first: int, last: int
) -> NDArray[np.bool_]:
    """Return which values are at the new level, shape (n,), by how near they are to it, wherever it moves."""
    places = np.arange(len(values))
    for _ in range(ROUNDS):
        is_new = np.where(places <= first, False, np.where(places > last, True, is_new))
        off = values - running_median(values - height * is_new, AROUND)
        is_new = np.abs(off - height) < np.abs(off)
    return is_new


def _nearness(off: Floats, height: float) -> tuple[Floats, Floats]:
    """Return densities at the old level and at the new one of values by how far they are from the old."""
    both = np.stack((off, off - height))
    nearest = off - height * (np.abs(both[1]) < np.abs(both[0]))
    scatter = max(scale_of(nearest), 1e-6 * abs(height))
    densities = (1 + (both / scatter) ** 2 / TAIL) ** (-(TAIL + 1) / 2)
    return densities[0], densities[1]


def change_chain(times_s: Floats, to_old: Floats, to_new: Floats, start: Floats) -> Floats:
    """Return draws of when a change begins and how long it takes, shape (draws, 2).

    Args:
        times_s: Shape (n,).
        to_old: Density of each value at the old level, shape (n,).
        to_new: The same at the new one.
        start: Begin and length, about.
    """
    step_s = float(np.median(np.diff(times_s)))
    widths = np.full(2, start[1] / 10 + step_s)
    to_old, to_new = to_old + RARE, to_new + RARE
    by = to_new - to_old

    def chance(of: Floats) -> float:
        if of[1] <= 0 or of[0] < times_s[0] or of[0] + of[1] > times_s[-1]:
            return -math.inf
        return float(np.log(to_old + np.clip((times_s - of[0]) / of[1], 0, 1) * by).sum())

    return draws_of(chance, start, widths, STEPS)
