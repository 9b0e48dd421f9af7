# SPDX-License-Identifier: Apache-2.0
"""Outliers that come again: single values far from those around them, at equal distances in time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from reports.dependence import Floats
from reports.patterns.comb import comb, longest, slots
from reports.patterns.filters import running_median
from reports.patterns.finding import CHANCE, Finding, Parameter
from reports.patterns.noise import scale_of
from reports.patterns.regular import regular
from reports.patterns.series import SEARCHED, Series
from reports.patterns.surrogate import false_alarms

AROUND = 9
"""Values whose median an outlier is held against."""
FINER = 16
"""Of the transform: single values have many harmonics."""
USUAL_QUANTILE = 0.95
"""Of the distances: a grid, or what follows gaps, makes many values lie far off, beside which outliers are
looked for by what is far among those."""
CLIP = 12.0
"""By the scatter: what is farther off counts no more, as heavy tails go far."""
SMALL = 2.0
"""By the scatter: what is no farther off is no outlier."""
FAR = 3.0
"""By the scatter, or half of the usual height: an outlier."""
SAME_PERIOD = 0.003


class Explained(NamedTuple):
    """A period that has a cause already, and by how much another may differ from it, of itself."""

    period_s: float
    within: float = SAME_PERIOD


def same_period(one_s: float, other_s: float, within: float = SAME_PERIOD) -> bool:
    """Tell whether one period is the other, or a whole part of it."""
    ratio = max(one_s / other_s, other_s / one_s)
    return round(ratio) <= 6 and abs(ratio - round(ratio)) < within * ratio


class Outliers(NamedTuple):
    """Outliers that come again, and which values they are, shape (n,)."""

    finding: Finding
    mask: np.ndarray


def find_outliers(series: Series, explained: Sequence[Explained]) -> Outliers | None:
    """Return the outliers of a series, if they come again.

    Args:
        series: The values.
        explained: Periods that have a cause already, as that of gaps: outliers at one, or at whole parts or
            multiples of it, are what follows them.
    """
    wide, close = (series.values - running_median(series.values, size) for size in (AROUND, 3))
    off = np.where(np.abs(wide) < np.abs(close), wide, close)  # where a ramp jumps is no outlier
    found = [_of_scatter(series, off, scatter, explained) for scatter in _scatters(wide)]
    found = [each for each in found if each is not None]
    if not found:
        return None
    hits, period, chance = min(found, key=lambda each: each[2])
    around = np.clip(hits + np.array([-2, -1, 1, 2])[:, None], 0, len(off) - 1)
    heights = series.values[hits] - series.values[around].mean(axis=0)
    deviation = float(heights.std(ddof=1)) / math.sqrt(len(heights))
    mask = np.zeros(len(off), np.bool_)
    mask[hits] = True
    parameters = {
        "period": period,
        "height": Parameter.about(float(heights.mean()), deviation, "value"),
    }
    return Outliers(Finding("periodic_outlier", parameters, chance), mask)


def _scatters(off: Floats) -> list[float]:
    """Return the usual distances that are looked beside, of different size."""
    distances = np.abs(off - np.median(off))
    usual = scale_of(off)
    wider = float(np.quantile(distances, USUAL_QUANTILE)) / 1.96
    return [usual] if wider < 2 * usual else [usual, wider]


def _of_scatter(
    series: Series, off: Floats, scatter: float, explained: Sequence[Explained]
) -> tuple[np.ndarray, Parameter, float] | None:
    """Return outliers beside a scatter: which values they are, their period, how often chance does that."""
    times_s, step_s = series.times_s, series.step_s
    block = -(-len(off) // SEARCHED)
    whole = len(off) // block * block
    blocks = off[:whole].reshape(-1, block)
    largest = np.argmax(np.abs(blocks), axis=1)
    picked = np.arange(len(blocks)) * block + largest
    train = np.clip(off[picked] / scatter, -CLIP, CLIP)
    slot_s = max(step_s * block, series.length_s / SEARCHED)
    train = np.where(np.abs(train) > SMALL, train, 0.0)
    slotted = slots(times_s[picked], train, slot_s)
    found = comb(slotted, finer=FINER)
    chance = false_alarms(
        float(found.powers.max()), lambda each: float(comb(each, finer=FINER).powers.max()), slotted
    )
    if chance > CHANCE:
        return None
    period_s = longest(found) * slot_s
    if any(same_period(period_s, *each) for each in explained):
        return None
    best: tuple[np.ndarray, Parameter] | None = None
    for sign in (1.0, -1.0):
        far = np.flatnonzero(sign * off > FAR * scatter)
        if len(far) < 4:
            continue
        weights = np.minimum(sign * off[far] / scatter, CLIP)
        again = regular(times_s[far], period_s, weights, near_s=1.5 * step_s + period_s / 200)
        if again is not None and (best is None or len(again.which) > len(best[0])):
            best = far[again.which], again.period
    if best is None:
        return None
    hits, period = best
    heights = np.abs(off[hits])
    return hits[heights > np.median(heights) / 2], period, chance
