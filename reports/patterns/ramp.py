# SPDX-License-Identifier: Apache-2.0
"""Ramps: values rise or fall along a line, jump back, and do so again, each time after the same period."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reports.dependence import Floats
from reports.patterns.comb import HARMONICS, comb, slots
from reports.patterns.finding import CHANCE, Finding, Parameter
from reports.patterns.fit import Fit, Height, Posterior, Shape, climb, posterior
from reports.patterns.series import PERIODS_MIN, Series
from reports.patterns.surrogate import false_alarms

PHASES = 40


class Ramp(NamedTuple):
    """A ramp that was found.

    Attributes:
        start: Period in s, and when it jumps first.
        height: Of a ramp that rises; negative: it falls.
        false_alarms: As of a finding.
        pattern: What it adds to the values, shape (n,).
    """

    start: Floats
    height: Height
    false_alarms: float
    pattern: Floats


def shape_of(times_s: Floats) -> Shape:
    """Return ramps that rise by 1, about 0, by period and first jump."""
    length_s = float(times_s[-1])

    def shape(of: Floats) -> Floats | None:
        if not 0 < of[0] <= length_s / PERIODS_MIN * 1.05:
            return None
        turns = (times_s - of[1]) / of[0]
        return turns - np.floor(turns) - 0.5

    return shape


def find_ramp(series: Series, fit: Fit, guess: bool = False) -> Ramp | None:
    """Return the ramps of a series, if there are any.

    Args:
        series: The values.
        fit: Of them, in their noise.
        guess: What chance hardly shows is enough.
    """
    times_s, slot_s = series.times_s, series.step_s
    clipped = np.clip(fit.news, -6 * fit.news.std(), 6 * fit.news.std())
    slotted = slots(times_s, clipped, slot_s)
    found = comb(slotted, fit.noise.power)
    shape = shape_of(times_s)
    best, best_gain = np.zeros(2), 0.0
    strongest_s = float(found.periods[np.argmax(found.powers)]) * slot_s
    longest_s = series.length_s / PERIODS_MIN
    for period_s in [strongest_s * k for k in range(1, HARMONICS) if strongest_s * k <= longest_s]:
        turns = times_s / period_s - np.arange(PHASES)[:, None] / PHASES
        white = fit.whitened(turns - np.floor(turns) - 0.5)
        gains = (white @ fit.news) ** 2 / np.maximum((white**2).sum(axis=1), 1e-300)
        if gains.max() > best_gain:
            best, best_gain = (
                np.array([period_s, int(np.argmax(gains)) / PHASES * period_s]),
                float(gains.max()),
            )
    if not best_gain:
        return None
    period_s = best[0]
    best = climb(
        fit, shape, [float(each) for each in best], (period_s**2 / series.length_s * 0.1, period_s * 0.02)
    )
    made = shape(best)
    if made is None:
        return None
    height = fit.height(made)
    left = fit.news - height.value * fit.whitened(made)

    def statistic(news: Floats) -> float:
        return float(comb(slots(times_s, news, slot_s), fit.noise.power).powers.max())

    left = np.clip(left, -6 * left.std(), 6 * left.std())
    chance = false_alarms(float(found.powers.max()), statistic, left, guess)
    if chance > CHANCE:
        return None
    return Ramp(best, height, chance, height.value * made)


def ramp_finding(series: Series, fit: Fit, ramp: Ramp) -> tuple[Finding, Posterior]:
    """Return the parameters of ramps, with their intervals, once all else is taken out."""
    period_s = ramp.start[0]
    scales = (period_s**2 / series.length_s * 0.003, series.step_s)
    found = posterior(fit, shape_of(series.times_s), ramp.start, scales)
    low, high = np.quantile(found.draws, (0.025, 0.975), axis=0)
    height = found.best[2]
    slopes = np.quantile(found.draws[:, 2] / found.draws[:, 0], (0.025, 0.975))
    heights = sorted((abs(low[2]), abs(high[2])))
    finding = Finding(
        "ramp",
        {
            "period": Parameter(float(np.median(found.draws[:, 0])), float(low[0]), float(high[0]), "s"),
            "height": Parameter(abs(float(height)), float(heights[0]), float(heights[1]), "value"),
            "slope": Parameter(float(height / found.best[0]), float(slopes[0]), float(slopes[1]), "value/s"),
        },
        ramp.false_alarms,
    )
    return finding, found
