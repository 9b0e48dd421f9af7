# SPDX-License-Identifier: Apache-2.0
"""Ramps: values rise or fall along a line, jump back, and do so again, each time after the same period."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reports.dependence import Floats
from reports.patterns.comb import HARMONICS, comb, longest, slots
from reports.patterns.edges import jump_draws
from reports.patterns.finding import CHANCE, Finding, Parameter
from reports.patterns.fit import Fit, Height, Shape, climb
from reports.patterns.noise import scale_of
from reports.patterns.regular import regular
from reports.patterns.series import PERIODS_MIN, Series
from reports.patterns.surrogate import false_alarms

PHASES = 40
HEIGHTS, DRAWS = 100, 40
"""Of the draws of periods and jumps those whose height is fitted, and draws of each such height."""
JUMP = 6.0
"""By the scatter of the news: a jump."""
JUMP_CLIP = 3.0
"""By the usual jump: one that is higher counts no more."""
JUMPS_FINER = 16
"""Of the transform: jumps have many harmonics."""


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
    """Return ramps that rise by 1 from 0, by period and first jump."""
    length_s = float(times_s[-1])

    def shape(of: Floats) -> Floats | None:
        if not 0 < of[0] <= length_s / PERIODS_MIN * 1.05:
            return None
        turns = (times_s - of[1]) / of[0]
        return turns - np.floor(turns)

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
    strongest_s = float(found.periods[np.argmax(found.powers)]) * slot_s
    longest_s = series.length_s / PERIODS_MIN
    starts = [
        (strongest_s * k, phase * strongest_s * k / PHASES)
        for k in range(1, HARMONICS)
        if strongest_s * k <= longest_s
        for phase in range(PHASES)
    ]
    jumps = _by_jumps(series, fit)
    rated: list[tuple[float, Floats]] = []
    for group in (starts, jumps):
        if group:
            of = np.array(group)
            best = of[int(np.argmax(gains_of(times_s, fit, of)))]
            climbed = climb(
                fit,
                shape,
                [float(each) for each in best],
                (best[0] ** 2 / series.length_s * 0.1, best[0] * 0.02)
                if group is starts
                else (slot_s * best[0] / series.length_s, slot_s),
            )
            rated.append((fit.height(made).gain if (made := shape(climbed)) is not None else 0.0, climbed))
    if not rated:
        return None
    best = max(rated, key=lambda each: each[0])[1]
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


def gains_of(times_s: Floats, fit: Fit, starts: Floats) -> Floats:
    """Return the gains of ramps, shape (k,), by periods and first jumps, shape (k, 2)."""
    gains: list[Floats] = []
    for part in range(0, len(starts), PHASES):  # so many stay in a processor's cache
        of = starts[part : part + PHASES]
        turns = (times_s - of[:, 1:]) / of[:, :1]
        white = fit.whitened(turns - np.floor(turns))
        gains.append((white @ fit.news) ** 2 / np.maximum(np.einsum("ij,ij->i", white, white), 1e-300))
    return np.concatenate(gains)


def _by_jumps(series: Series, fit: Fit) -> list[tuple[float, float]]:
    """Return periods and first jumps that far news let expect: of a noise that wanders all one sees."""
    times_s, slot_s = series.times_s, series.step_s
    scatter = scale_of(fit.news)
    found: list[tuple[float, float]] = []
    for sign in (1.0, -1.0):
        far = np.flatnonzero(sign * fit.news > JUMP * scatter)
        if not PERIODS_MIN <= len(far) <= len(times_s) // 20:
            continue
        train = np.zeros(len(times_s))
        train[far] = sign * fit.news[far] / scatter
        train = np.minimum(train, JUMP_CLIP * float(np.median(train[far])))
        strongest_s = longest(comb(slots(times_s, train, slot_s), finer=JUMPS_FINER)) * slot_s
        again = regular(times_s[far], strongest_s, train[far], near_s=2 * slot_s + strongest_s / 200)
        if again is not None:
            period_s = again.period.value
            first_s = again.first_s % period_s
            found += [(period_s, first_s - late * slot_s) for late in np.linspace(0, 1.5, 13)]
    return found


def ramp_finding(series: Series, fit: Fit, ramp: Ramp) -> Finding:
    """Return the parameters of ramps, with their intervals, once all else is taken out."""
    made = shape_of(series.times_s)(ramp.start)
    if made is None:
        raise ValueError("a ramp that was found has no shape")
    height = fit.height(made)
    left = fit.news - height.value * fit.whitened(made)
    drawn = jump_draws(series.times_s, left, fit.noise, ramp.start, height.value)
    some = drawn[:: len(drawn) // HEIGHTS]
    given = [fit.height(made) for each in some if (made := shape_of(series.times_s)(each)) is not None]
    rng = np.random.default_rng(2)
    heights = np.array([each.value + each.deviation * rng.standard_normal(DRAWS) for each in given])
    slopes = heights / some[:, :1]
    return Finding(
        "ramp",
        {
            "period": Parameter.of_draws(drawn[:, 0], "s"),
            "height": Parameter.of_draws(np.abs(heights), "value"),
            "slope": Parameter.of_draws(slopes, "value/s"),
        },
        ramp.false_alarms,
    )
