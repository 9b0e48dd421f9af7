# SPDX-License-Identifier: Apache-2.0
"""A first part whose level is far off: a warm-up, whether it scatters more or not.

As of TCP's slow start, in which each picture waits for those before it, and then none does. It is the start
of a series, an eighth at most, and nothing like it comes later: else it is a change of level, or a burst.
Of a noise that wanders nothing is said, as any level is its own.
"""

from __future__ import annotations

import math

import numpy as np

from reports.dependence import Floats
from reports.patterns.finding import CHANCE, Finding, Parameter
from reports.patterns.fit import Fit
from reports.patterns.noise import Noise, scale_of
from reports.patterns.series import Series
from reports.patterns.surrogate import false_alarms

PART_MIN = 8
SHARE = 8
"""Of the series: a first part of more than one in so many is a level by itself."""
BACK_MAX = 0.1
"""Of a first part: values that are not far off, at most; else it scatters, and its end is told by that."""
FAR = 3.0
"""By the scatter of the second half: so far off, at least."""
CLIP = 6.0
"""By that: what is farther off counts no more."""
LATER_MAX = 0.5
"""Of what the first part is off by: what as many values later are, at most."""
ENDS = 100
"""That are held against chance, one as much longer than the other as the next."""


def find_late_first(series: Series, noise: Noise, distances: Floats) -> Finding | None:
    """Return the warm-up of a series whose first part lies elsewhere, if it has one.

    Args:
        series: The values, thinned.
        noise: Of its second half.
        distances: Of each value from the one before, in usual ones, shape (n,).
    """
    values, count = series.values, len(series.values)
    rest = values[count // 2 :]
    level, scatter = float(np.median(rest)), scale_of(rest)
    if noise.wanders:
        return None
    off = np.clip((values - level) / scatter, -CLIP, CLIP)
    off *= math.copysign(1.0, float(off[: 3 * PART_MIN].sum()))
    # Of two levels FAR apart, the logarithm of how much more likely the first is, of values up to each.
    chances = np.cumsum(FAR * (off - FAR / 2))
    end = int(np.argmax(chances[: count // 2])) + 1
    if end < PART_MIN or end > count // SHARE:
        return None
    if (off[:end] < FAR).mean() > BACK_MAX:
        return None
    sums = np.concatenate(([0.0], np.cumsum(off)))
    if (sums[2 * end :] - sums[end:-end]).max() > LATER_MAX * sums[end]:
        return None
    fit = Fit(off, noise, distances)
    chance = _chance(fit, end)
    if chance > CHANCE:
        return None
    weights = np.exp(chances[: count // 2] - chances[end - 1])
    share = np.cumsum(weights) / weights.sum()
    low, high = (int(np.searchsorted(share, at)) + 1 for at in (0.025, 0.975))
    times_s = series.times_s
    height = float(values[:end].mean()) - level
    white = fit.whitened((np.arange(count) < end).astype(np.float64))
    deviation = scatter * scale_of(fit.news[end:]) / math.sqrt(max(float(white @ white), 1e-300))
    return Finding(
        "warm_up",
        {
            "end": Parameter(
                float(times_s[end]), float(times_s[low]) - series.step_s, float(times_s[high]), "s"
            ),
            "height": Parameter.about(height, deviation, "value"),
        },
        chance,
    )


def _chance(fit: Fit, end: int) -> float:
    """Return how often noise has a first part that is off by as much, of any length up to an eighth."""
    count = len(fit.news)
    ends = np.geomspace(PART_MIN, count // SHARE, ENDS).astype(np.int64)
    ends = np.union1d(ends, np.array([end]))
    white = fit.whitened((np.arange(count) < ends[:, None]).astype(np.float64))
    norms = np.maximum((white**2).sum(axis=1), 1e-300)
    clip = CLIP * scale_of(fit.news[end:])
    news = np.clip(fit.news, -clip, clip)
    square = max(float(news[end:] @ news[end:]) / (count - end), 1e-300)

    def most(of: Floats) -> float:
        return float(((white @ of) ** 2 / norms).max()) / square

    return false_alarms(most(news), most, np.resize(news[end:], count))
