# SPDX-License-Identifier: Apache-2.0
"""How many samples are needed, and what a count of misses or an order statistic proves.

Exact binomial statistics, no normal approximation. Every function works on counts; units do not matter.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from reports.errors import ReportError

CONFIDENCE = 0.95
"""Level of confidence of every bound and interval of this package."""

_BISECTIONS = 200
_NEGLIGIBLE = 1e-18


def required_samples(miss_probability: float) -> int:
    """Return how many samples without a miss exclude this miss probability with 95 % confidence.

    n = ceil(ln 0.05 / ln(1 - p)): 3 % needs 99 samples, 0.1 % needs 2,995.

    Raises:
        ReportError: The probability does not lie between 0 and 1, both excluded.
    """
    if not 0.0 < miss_probability < 1.0:
        raise ReportError(f"miss probability {miss_probability} must lie between 0 and 1")
    return math.ceil(math.log(1.0 - CONFIDENCE) / math.log1p(-miss_probability))


def miss_probability_upper_95(misses: int, n: int) -> float:
    """Return the upper bound, one-sided 95 %, of the probability of a miss.

    Clopper and Pearson (1934): the p at which `misses` or fewer of `n` happen with a probability of 5 %.
    Without samples nothing is excluded: the bound is 1.

    Raises:
        ReportError: The counts are negative, or there are more misses than samples.
    """
    if misses < 0 or n < 0 or misses > n:
        raise ReportError(f"{misses} misses of {n} samples: need 0 <= misses <= samples")
    if misses == n:
        return 1.0
    low, high = misses / n, 1.0
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        if binomial_cdf(misses, n, middle) > 1.0 - CONFIDENCE:
            low = middle
        else:
            high = middle
    return high


def binomial_cdf(k: int, n: int, p: float) -> float:
    """Return the probability of at most k successes in n trials of probability p."""
    if k < 0:
        return 0.0
    if k >= n or p <= 0.0:
        return 1.0
    if p >= 1.0:
        return 0.0
    if k > n * p:
        return 1.0 - _tail_from(n - k - 1, n, 1.0 - p)
    return _tail_from(k, n, p)


def _tail_from(k: int, n: int, p: float) -> float:
    """Sum the terms of the binomial from k downwards, which shrink while k is below the mean."""
    term = _pmf(k, n, p)
    total = term
    odds = (1.0 - p) / p
    for i in range(k, 0, -1):
        term *= i / (n - i + 1) * odds
        total += term
        if term <= total * _NEGLIGIBLE:  # also where all of them are too small for a float
            break
    return min(total, 1.0)


def _pmf(k: int, n: int, p: float) -> float:
    log_choose = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
    return math.exp(log_choose + k * math.log(p) + (n - k) * math.log1p(-p))


@dataclass(frozen=True, slots=True)
class RankInterval:
    """Ranks (1 = smallest) of a quantile and of its 95 % interval; None: not bounded on that side."""

    rank: int
    lower: int | None
    upper: int | None


@cache
def quantile_ranks(quantile: float, n: int) -> RankInterval:
    """Return which order statistics of n samples estimate a quantile and enclose it with 95 %.

    The sample of rank l lies at or below the quantile with probability P(B >= l), that of rank u at or
    above it with P(B <= u - 1), B binomial(n, quantile): 2.5 % are given away on each side, with no
    assumption about the distribution (David and Nagaraja, Order Statistics, 7.1).

    Raises:
        ReportError: There is no sample, or the quantile does not lie between 0 and 1.
    """
    if n < 1 or not 0.0 < quantile < 1.0:
        raise ReportError(f"quantile {quantile} of {n} samples: need 0 < quantile < 1 and a sample")
    given_away = 0.5 * (1.0 - CONFIDENCE)
    below = _first(lambda k: binomial_cdf(k, n, quantile) > given_away, n)
    above = _first(lambda k: binomial_cdf(k, n, quantile) >= 1.0 - given_away, n)
    rank = min(n, max(1, math.ceil(quantile * n - 1e-9)))
    return RankInterval(rank, below if below >= 1 else None, above + 1 if above + 1 <= n else None)


def _first(holds: Callable[[int], bool], n: int) -> int:
    """Return the smallest k of 0..n for which a condition that stays true holds."""
    low, high = 0, n
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low
