# SPDX-License-Identifier: Apache-2.0
"""Width, period and slope of a grid that drifts.

Its values tell the slope; in a noise that wanders as far as lines drift, they tell it badly. But where the
next line takes the place of the last one lies open in the numbers of lines, whatever the noise: the period is
known from both, and the slope is a width by period.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reports.dependence import Floats
from reports.patterns.finding import Finding, Parameter
from reports.patterns.fit import draws_of
from reports.patterns.grid import Drift, Lines, fitted
from reports.patterns.noise import fit_noise
from reports.patterns.regression import distances_of, regress
from reports.patterns.series import Series

SHIFTS = 25
STEPS = 3000
THINNED = 4
"""Of so many values one is looked at for a change of level beside the drift."""
WHOLE = 0.25
"""Of a width: how far a change may be from a whole one."""
RARE = 1e-3
"""Of values: on a line where none has been."""
FALLS = 0.5 / 12
"""Of the numbers' variance: by how much wraps let it fall, at least; those of a sawtooth by 1/12."""


class Drifting(NamedTuple):
    """A grid that drifts, and of each value the number of its line, counted from that without a wait."""

    finding: Finding
    lines: NDArray[np.int64]


def drifting_finding(series: Series, lines: Lines, drift: Drift, known: NDArray[np.int64]) -> Drifting | None:
    """Return width, period and slope of a grid that drifts; series: all else taken out; known: its lines."""
    solved = fitted(series, lines.width, drift.slope, known)
    if solved is None or not solved[0][1]:
        return None
    (width, slope, _), (width_off, slope_off, _), lines_of = solved
    sign = math.copysign(1.0, float(slope))
    times_s = series.times_s - series.times_s.mean()
    turns_per_s = float(abs(slope) / width)
    turns_off = turns_per_s * math.hypot(float(width_off / width), float(slope_off / slope))
    numbers = lines_of.astype(np.int64)
    rates = _rates(times_s, numbers, sign, turns_per_s, turns_off)
    if rates is None:
        rates = np.array(
            [turns_per_s + turns_off * z for z in np.random.default_rng(9).standard_normal(4000)]
        )
        counted = numbers
    else:
        rate, shift = np.median(rates, axis=0)
        counted = numbers + np.floor(sign * rate * times_s + shift).astype(np.int64)
        rates = rates[:, 0]
        width, width_off = _width(series, numbers + sign * float(rate) * times_s, float(width))
    widths = width + width_off * np.random.default_rng(10).standard_normal(len(rates))
    finding = Finding(
        "drifting_grid",
        {
            "width": Parameter.about(float(width), float(width_off), "value"),
            "period": Parameter.of_draws(1 / rates, "s"),
            "slope": Parameter.of_draws(sign * widths * rates, "value/s"),
        },
        lines.false_alarms,
        "ramps as high as the grid is wide: a grid whose two clocks differ in rate",
    )
    return Drifting(finding, counted)


def _rates(
    times_s: Floats, numbers: NDArray[np.int64], sign: float, turns_per_s: float, turns_off: float
) -> Floats | None:
    """Return draws of turns by s and of the shift of wraps, shape (draws, 2); None: no wraps are seen."""

    def counted(rate: float, shift: float) -> NDArray[np.int64]:
        return numbers + np.floor(sign * rate * times_s + shift).astype(np.int64)

    # By values alone the turns may be off by as much as noise wanders.
    tried = turns_per_s + turns_off * np.linspace(-3, 3, 61)
    variances = {
        (float(rate), float(shift)): float(counted(float(rate), float(shift)).var())
        for rate in tried
        for shift in np.arange(SHIFTS) / SHIFTS
    }
    start = min(variances, key=variances.__getitem__)
    # A change of level by whole widths would be taken for a wrap that comes early.
    split = min((_split(times_s, counted(*each), each) for each in variances), key=lambda each: each.variance)
    if split.by and split.variance < variances[start] - FALLS:
        numbers = numbers - split.by * (times_s > split.at_s)
        start = split.start
        variances[start] = split.variance
    drifted = float((numbers + sign * turns_per_s * times_s).var())
    if variances[start] > drifted - FALLS:
        return None
    found = counted(*start)
    least = int(found.min()) - 2
    size = int(found.max()) - least + 3
    logs = np.log(np.bincount(found - least, minlength=size) / len(found) + RARE)

    def chance(of: Floats) -> float:
        where = np.clip(counted(float(of[0]), float(of[1])) - least, 0, size - 1)
        return float(logs[where].sum()) - ((of[0] - turns_per_s) / turns_off) ** 2 / 2

    length_s = float(np.ptp(times_s))
    return draws_of(chance, np.array(start), np.array([0.02 / length_s, 0.01]), STEPS)


class _Split(NamedTuple):
    """Numbers of lines with a change: their variance beside it, when it is, by how many lines, and start."""

    variance: float
    at_s: float
    by: int
    start: tuple[float, float]


def _split(times_s: Floats, counted: NDArray[np.int64], start: tuple[float, float]) -> _Split:
    """Return the change of numbers of lines that leaves the least variance; by 0 where it is no whole one."""
    some = counted[::THINNED].astype(np.float64)
    count = np.arange(1, len(some))
    sums = np.cumsum(some)
    means = sums[:-1] / count, (sums[-1] - sums[:-1]) / (len(some) - count)
    between = count * (len(some) - count) / len(some) ** 2 * (means[1] - means[0]) ** 2
    best = int(np.argmax(between))
    by = float(means[1][best] - means[0][best])
    whole = round(by) if abs(by - round(by)) < WHOLE else 0
    return _Split(float(some.var() - between[best]), float(times_s[THINNED * best]), whole, start)


def _width(series: Series, lines: Floats, width: float) -> tuple[float, float]:
    """Return the width by generalised least squares of values on their lines, and its standard deviation."""
    centre = float(np.median(series.values - width * lines))
    noise = fit_noise(series.values - centre - width * lines)
    columns = np.stack([lines, np.ones(len(lines))])
    answer, deviations = regress(
        noise, columns, series.values - centre, np.array([width, 0.0]), distances_of(series.times_s)
    )
    return float(answer[0]), float(deviations[0])
