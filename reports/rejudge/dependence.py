# SPDX-License-Identifier: Apache-2.0
"""By how much a mean of values that follow each other scatters: docs/timed-edges.md, `Edges that are alike`.

Blocks of values are as long as these depend on each other: thrice the automatic length of Politis and White,
*Automatic block-length selection for the dependent bootstrap* (2004; corrected by Patton, 2009), for blocks
that may overlap.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, variance

LEAST_BLOCKS = 8
SHOWN = 12
"""Lengths that have to fit into the values."""
QUIET_LAGS = 5


def variance_of_mean(values: Sequence[float]) -> float | None:
    """Return the variance of the mean of values, few blocks accounted for; None: they depend for too long."""
    n = len(values)
    automatic = _automatic(values)
    if automatic * SHOWN > n:
        return None
    length = max(1, min(math.ceil(max(3 * automatic, 2 * n ** (1 / 3))), n // LEAST_BLOCKS))
    means = [fmean(values[at : at + length]) for at in range(0, n - length + 1, length)]
    blocks = len(means)
    return variance(means) / blocks * (blocks - 1) / (blocks - 3)


def _automatic(values: Sequence[float]) -> float:
    """Return (2 G^2 n / D)^(1/3), D = 4/3 g^2: g is the sum of covariances, G that of |lag| times them."""
    n = len(values)
    mean = fmean(values)
    apart = [value - mean for value in values]
    quiet_lags = max(QUIET_LAGS, math.ceil(math.sqrt(math.log10(n))))
    farthest = min(n - 1, max(2 * (math.ceil(math.sqrt(n)) + quiet_lags), n // 4))
    covariances = [math.fsum(map(float.__mul__, apart, apart[lag:])) / n for lag in range(farthest + 1)]
    if covariances[0] <= 0:
        return 0.0
    last = _last_seen(covariances, 2 * math.sqrt(math.log10(n) / n), quiet_lags)
    if last == 0:
        return 0.0
    total, weighted = covariances[0], 0.0
    for lag in range(1, min(2 * last, farthest) + 1):
        taper = 1.0 if lag <= last else 2 - lag / last
        total += 2 * taper * covariances[lag]
        weighted += 2 * taper * lag * covariances[lag]
    return math.cbrt(1.5 * n * (weighted / total) ** 2) if total > 0 else math.inf


def _last_seen(covariances: Sequence[float], threshold: float, quiet_lags: int) -> int:
    """Return the lag behind which so many in succession show no dependence; half of all where none do."""
    quiet = 0
    for lag, covariance in enumerate(covariances[1:], 1):
        quiet = quiet + 1 if abs(covariance) < threshold * covariances[0] else 0
        if quiet == quiet_lags:
            return lag - quiet_lags
    return (len(covariances) - 1) // 2
