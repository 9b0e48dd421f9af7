# SPDX-License-Identifier: Apache-2.0
"""A first part that is more chaotic than the rest, in the news of the noise.

It takes reports.control_loops.warm_up to say so, too.
In the news of the noise no value depends on those before, so that a random walk has no first part.
"""

from __future__ import annotations

import numpy as np

from reports.control_loops.trend import middle_ranks
from reports.control_loops.warm_up import warm_up
from reports.dependence import Floats, mean_variance
from reports.patterns.filters import running_median
from reports.patterns.finding import CHANCE, Finding, Parameter
from reports.patterns.fit import Fit
from reports.patterns.noise import Noise
from reports.patterns.series import Series
from reports.patterns.surrogate import false_alarms

PART_MIN = 16
AROUND = 51
"""Values from each on whose median is its level: behind the end no chaos is in it."""
PARTS = 3
"""Of a warm-up: each is more chaotic than the rest, else something happened once."""
CLIP = 6.0
"""By the usual size of the rest: one alone, as of a jump, tells nothing."""
SPREAD_MIN = 0.5
LARGER = 1.25
"""By the rest: how much so, at least."""


def news_both_ways(values: Floats, noise: Noise, distances: Floats) -> Floats:
    """Return of each value the lesser news, by those before it and by those behind it, shape (n,).

    A value that is off by itself is news by both; one that follows it, or a jump, by one of them.
    """
    ahead = Fit(values, noise, distances).news
    before_gap = np.roll(distances, -1)
    back = Fit(values[::-1], noise, before_gap[::-1]).news[::-1]
    return np.where(np.abs(ahead) < np.abs(back), ahead, back)


def find_warm_up(series: Series, news: Floats) -> Finding | None:
    """Return the warm-up of a series, if it has one.

    Args:
        series: For the times.
        news: Of its noise, shape (n,).
    """
    news = news - running_median(news, AROUND, ahead=True)  # a level that changes later makes no chaos
    count = warm_up(series.times_s, news).count
    if count < PART_MIN * PARTS:
        return None
    sizes = np.abs(news)
    sizes = np.minimum(sizes, CLIP * float(np.median(sizes[count:])))
    ends, chances = _ends(sizes)
    count = int(ends[np.argmax(chances)])
    if count < PART_MIN * PARTS or count > len(news) // 2:
        return None
    rest = float(sizes[count:].mean())
    if any(float(part.mean()) < LARGER * rest for part in np.array_split(sizes[:count], PARTS)):
        return None
    chance = false_alarms(_score(sizes), _score, sizes[count:], logarithm=False)
    if chance > CHANCE:
        return None
    chances = chances / max(_spread(sizes[:count]), _spread(sizes[count:]))
    weights = np.exp(chances - chances.max())
    share = np.cumsum(weights) / weights.sum()
    low, middle, high = (int(ends[np.searchsorted(share, at)]) for at in (0.025, 0.5, 0.975))
    step_s = series.step_s
    times_s = series.times_s
    end = Parameter(float(times_s[middle]), float(times_s[low]) - step_s, float(times_s[high]), "s")
    return Finding("warm_up", {"end": end}, chance)


def _spread(sizes: Floats) -> float:
    """Return by how much the mean of sizes varies, by what that of Laplace's, independent, does."""
    variance = mean_variance(sizes, len(sizes), float(sizes.std())) * len(sizes)
    return max(variance / max(float(sizes.mean()) ** 2, 1e-300), SPREAD_MIN)


def _ends(sizes: Floats) -> tuple[np.ndarray, Floats]:
    """Return how many values the first part may have, and the log-likelihood of each, by Laplace's tails."""
    count = len(sizes)
    ends = np.arange(PART_MIN, count - count // 4)
    sums = np.cumsum(sizes)
    first = sums[ends - 1]
    tiny = 1e-300
    return ends, -ends * np.log(first / ends + tiny) - (count - ends) * np.log(
        (sums[-1] - first) / (count - ends) + tiny
    )


def _score(sizes: Floats) -> float:
    """Return by how much the ranks of some first part are above others, by their deviation."""
    count = len(sizes)
    ranks = middle_ranks(sizes) / count - 0.5
    ends = np.arange(PART_MIN, count - count // 4)
    sums = np.cumsum(ranks)[ends - 1]
    return float(np.max(np.maximum(sums, 0) * np.sqrt(12 * count / (ends * (count - ends)))))
