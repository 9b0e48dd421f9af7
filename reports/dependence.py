# SPDX-License-Identifier: Apache-2.0
"""For how long samples in the order of time depend on each other, and how many blocks of them do not.

What follows closely on something is like it: n samples of a clock that wanders tell less of their mean than
n independent ones. Blocks that are long enough are nearly independent; that so few tell a variance badly goes
into U (Student's t, or what takes its place).

The length is the automatic one of Politis and White (2004, corrected 2009), and thrice that: it is made for
the least squared error of the variance, while a coverage wants a variance that is not too small. It is at
least 2 n^(1/3), as dependence that is too weak to be seen at one lag still adds up.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]

BLOCKS_MIN = 8
"""Fewer tell no variance."""
LENGTHENED = 3.0
SEEN_MIN = 12
"""Automatic lengths that a series has to hold: shorter ones do not show for how long they depend."""
LAGS_SHARE = 1 / 4
"""Of a series: how far its dependence is looked for."""
SCORED_LAGS = 3
"""Dependence is largest at the first lags; further ones add more noise than they tell."""
ALONE_SHARE = 1 / 10
"""Of the chance that series have by themselves: their scores have a longer tail than their sum has."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """How a series is cut into blocks that hardly depend on each other.

    Attributes:
        length: Samples in each, at least 1.
        count: Whole blocks; BLOCKS_MIN at least, where there are as many samples.
        fits: The series is SEEN_MIN automatic lengths long; else samples depend for so long that what blocks
            say of the scatter may be far too little.
    """

    length: int
    count: int
    fits: bool


def blocks_of(series: Sequence[Floats]) -> Blocks:
    """Return the blocks for series of the same samples: of the one that depends for longest."""
    n = len(series[0])
    automatic = max(map(automatic_length, series))
    length = block_length(automatic, n, least=2 * n ** (1 / 3), blocks_min=BLOCKS_MIN)
    return Blocks(length, n // length, automatic <= n / SEEN_MIN)


def block_length(automatic: float, n: int, *, least: float, blocks_min: int) -> int:
    """Return the length of a block of n samples, of which so many blocks at least remain."""
    return max(1, math.ceil(min(max(LENGTHENED * automatic, least), n // blocks_min)))


def mean_variance(means: Floats, count: int, deviation: float) -> float:
    """Return the variance of a mean as an estimate of what many more samples would have.

    At least that of independent samples. Where the samples do not show for how long they depend on each
    other, all of them tell one independent value. Variances of few are enlarged by (n - 1) / (n - 3), as GUM
    supplement 1 (6.4.9.4) has it.

    Args:
        means: Of samples, or of short blocks of them that follow each other; at least 4.
        count: Samples, at least 4.
        deviation: Standard deviation of all of them.
    """
    independent = deviation**2 / count * (count - 1) / (count - 3)
    blocks = blocks_of([means])
    if not blocks.fits:
        return independent * count
    longer = means[: blocks.count * blocks.length].reshape(blocks.count, blocks.length).mean(axis=1)
    seen = float(longer.var(ddof=1)) / blocks.count * (blocks.count - 1) / (blocks.count - 3)
    return max(independent, seen)


def depends(series: Sequence[Floats], chance: float) -> NDArray[np.bool_]:
    """Return in which series samples that follow each other go together by more than chance, shape (series,).

    An automatic length is no test: by chance one lag in eighty has a length, and many series have many lags.
    The score is the sum of the autocorrelations at the first lags, by Bartlett's window, over its standard
    deviation were the samples independent (1 / n for each lag). All series together tell a dependence that
    no single one shows, and then it is in all; by how much they repeat each other is their correlation
    squared (Bartlett 1946).

    Args:
        series: Of the same samples, each of shape (n,).
        chance: How often it may say so of any, were the samples independent.
    """
    values = np.array([(each - each.mean()) / (each.std() or 1.0) for each in series])
    count, n = values.shape
    lags = np.arange(1, SCORED_LAGS + 1)
    weights = 1 - lags / (SCORED_LAGS + 1)
    alike = np.array([np.sum(values[:, lag:] * values[:, :-lag], axis=1) / n for lag in lags])
    unbiased = alike + ((n - lags) / (n * (n - 1)))[:, None]
    scores = weights @ unbiased / math.sqrt(float(weights**2 @ (n - lags)) / n**2)
    repeated = float(((values @ values.T / n) ** 2).sum())
    together = float(scores.sum()) / math.sqrt(max(repeated, 1.0))
    alone = NormalDist().inv_cdf(1 - chance * ALONE_SHARE / count)
    return (scores > alone) | (together > NormalDist().inv_cdf(1 - chance))


def automatic_length(values: Floats, least_lag: int = 0) -> float:
    """Return the automatic length of a bootstrap's block for a series of shape (n,), in values.

    (2 G² / D)^(1/3) n^(1/3) with D = 4/3 of the squared long-run variance, both by a flat-top window that
    ends where the autocorrelation does. 0: nothing depends; infinite: the series is too short to tell.

    Args:
        values: In the order of time.
        least_lag: Where the autocorrelation ends at the earliest: 1 for samples that are known to depend.
    """
    n = len(values)
    steps = max(5, math.ceil(math.sqrt(math.log10(n))))
    lags = min(n - 1, max(2 * (math.ceil(math.sqrt(n)) + steps), int(LAGS_SHARE * n)))
    covariance = autocovariance(values, lags)
    if covariance[0] <= 0:
        return 0.0
    small = np.abs(covariance[1:]) < 2 * math.sqrt(math.log10(n) / n) * covariance[0]
    quiet = np.convolve(small, np.ones(steps), "valid") == steps
    last = max(least_lag, int(np.argmax(quiet)) if quiet.any() else lags // 2)
    if not last:
        return 0.0
    lag = np.arange(min(2 * last, lags) + 1)
    window = np.clip(2 * (1 - lag / (2 * last)), 0, 1) * np.where(lag, 2, 1)
    spectrum = float(window @ covariance[: len(lag)])
    slope = float(window @ (lag * covariance[: len(lag)]))
    return (1.5 * (slope / spectrum) ** 2 * n) ** (1 / 3) if spectrum > 0 else math.inf


def autocovariance(values: Floats, lags: int) -> Floats:
    """Return the autocovariance at lags 0 to `lags`, each over n."""
    size = 1 << (len(values) + lags).bit_length()
    spectrum = np.fft.rfft(values - values.mean(), size)
    return np.fft.irfft(np.abs(spectrum) ** 2, size)[: lags + 1] / len(values)
