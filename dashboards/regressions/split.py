# SPDX-License-Identifier: Apache-2.0
"""How strongly the last runs of a series differ from those before: ranks, normal scores, every split.

Values count by their rank only. So the rate of false alarms is the same for every distribution, no outlier
is worth more than the largest rank, and a logarithm changes nothing. The ranks are turned into normal scores
(van der Waerden), which lose next to nothing against means where the noise is normal.

CUSUM on logarithms with scores limited to 2 sigma reaches the same bars, but wants a limit for each kind of
noise, takes no signed values and zeros as they are, and misses what outliers of 20 sigma hide.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Split:
    """A series in two parts.

    Attributes:
        after: How many runs, the last ones, are behind the split.
        z: Difference of the parts' mean scores in its own standard deviations; positive: values went up.
    """

    after: int
    z: float


def normal_scores(values: Sequence[float] | NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the normal score of each value by its rank; equal values share their mean rank.

    Raises:
        ValueError: A value is not finite, or there is none.
    """
    array = np.asarray(values, dtype=np.float64)
    if array.size == 0 or not np.isfinite(array).all():
        raise ValueError("values: at least one is needed, and each has to be finite")
    ordered = np.sort(array)
    doubled_rank = np.searchsorted(ordered, array, "left") + np.searchsorted(ordered, array, "right") + 1
    return score_table(array.size)[doubled_rank]


def splits(values: Sequence[float] | NDArray[np.float64], after: range) -> list[Split]:
    """Return the splits with so many runs behind them; z is 0 where all values are equal.

    Args:
        values: In the order of the runs; at least one more than the largest of `after`.
        after: How many runs to split off, from 1; steps of 1.

    Raises:
        ValueError: A value is not finite, or `after` leaves nothing before the split.
    """
    n = len(values)
    if len(after) and not 1 <= after[0] <= after[-1] < n:
        raise ValueError(f"after: {after} of {n} values; 1 .. {n - 1} are possible")
    scores = normal_scores(values)
    if not len(after):
        return []
    # The variance of scores without ties: with that of tied ones, two equal values would be a change.
    variance = score_variance(n)
    count = np.arange(after.start, after.stop)
    # These scores add up to 0: what the last runs have, the others lack. So the difference of the means is
    # sum * (1 / count + 1 / (n - count)), and its variance the variance of a score times the same.
    sums = np.cumsum((scores - scores.mean())[::-1])[count - 1]
    z = sums * np.sqrt((1 / count + 1 / (n - count)) / variance)
    return [Split(k, value) for k, value in zip(after, z.tolist(), strict=True)]


def strongest(found: Sequence[Split]) -> Split:
    """Return the split with the largest |z|, the shortest of equals."""
    return max(found, key=lambda split: abs(split.z))


@functools.lru_cache(maxsize=512)
def score_table(n: int) -> NDArray[np.float64]:
    """Return the scores of n values, indexed by twice the rank (mean ranks can be halves)."""
    normal = NormalDist()
    return np.array([math.nan, math.nan, *(normal.inv_cdf((r / 2 - 0.5) / n) for r in range(2, 2 * n + 1))])


@functools.lru_cache(maxsize=512)
def score_variance(n: int) -> float:
    """Return the variance of the scores of n values, two or more, that all differ."""
    return float(np.square(score_table(n)[2::2]).sum()) / (n - 1)
