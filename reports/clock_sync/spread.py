# SPDX-License-Identifier: Apache-2.0
"""How widely a clock's offsets scatter, and how two stacks compare: a ratio with its interval.

The paper on distributed control loops (2.2, 4.5.1) brings the error of standard NTP, 1 ms, to 10..40 us by
stamps of the kernel. The spread here is the half width around the mean that holds 95 % of the offsets, so
that neither a constant asymmetry of the path nor one late packet decides. Offsets follow each other closely:
how well a spread is known comes from a moving-block bootstrap (Kuensch 1989) with a fixed seed, whose blocks
are as long as the offsets of that very clock depend on each other (`reports/dependence.py`). The interval is
of the ratio's logarithm, by Student's t of so few blocks (GUM, G.4).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reports.clock_sync.series import ClockSeries
from reports.dependence import BLOCKS_MIN, Blocks, Floats, blocks_of

SHARE = 0.95
RESAMPLES = 2000
SAMPLES_MIN = 10 * BLOCKS_MIN
"""Fewer samples than this say nothing of the spread's own uncertainty."""
SEED = 20261121


@dataclass(frozen=True)
class SpreadRatio:
    """Spread of one clock over that of another, with its 95 % interval; spreads in ns.

    Attributes:
        fits: Both trials show for how long their offsets depend; else the interval is too narrow.
    """

    first_ns: float
    second_ns: float
    ratio: float
    lower: float
    upper: float
    fits: bool


def spread_ns(offsets: Floats) -> float:
    """Return the half width around the mean that holds 95 % of the offsets, in ns."""
    return float(np.quantile(np.abs(offsets - offsets.mean()), SHARE))


def spread_ratio(first: ClockSeries, second: ClockSeries) -> SpreadRatio | None:
    """Compare the spreads of two clocks; None where a series is too short, or one does not scatter."""
    both = [series.offsets().astype(np.float64) for series in (first, second)]
    if any(len(offsets) < SAMPLES_MIN for offsets in both):
        return None
    one, other = map(spread_ns, both)
    if not one or not other:
        return None
    blocks = [blocks_of([each, np.abs(each - each.mean())]) for each in both]
    factor = _factor(both, blocks)
    ratio = one / other
    return SpreadRatio(one, other, ratio, ratio / factor, ratio * factor, all(each.fits for each in blocks))


def _factor(both: Sequence[Floats], blocks: Sequence[Blocks]) -> float:
    """Return what the ratio is multiplied and divided by for the ends of its interval."""
    from scipy.special import stdtrit  # a tenth of a second for whatever lists the sections

    rng = np.random.default_rng(SEED)
    variance = [_log_variance(each, cut, rng) for each, cut in zip(both, blocks, strict=True)]
    total = sum(variance)
    if not total:
        return 1.0
    fourth = sum(each**2 / (cut.count - 1) for each, cut in zip(variance, blocks, strict=True))
    return math.exp(float(stdtrit(total**2 / fourth, (1 + SHARE) / 2)) * math.sqrt(total))


def _log_variance(offsets: Floats, blocks: Blocks, rng: np.random.Generator) -> float:
    """Return the variance of the logarithm of the spread of series that are put together from blocks.

    The spread of few blocks about their own mean is too small by K / (K - 1).
    """
    drawn = -(-len(offsets) // blocks.length)
    steps = np.arange(blocks.length)
    found: list[float] = []
    for _ in range(RESAMPLES):
        starts = rng.integers(0, len(offsets) - blocks.length + 1, drawn)
        found.append(spread_ns(offsets[(starts[:, None] + steps).ravel()[: len(offsets)]]))
    least = np.finfo(np.float64).tiny  # a resample of blocks that do not scatter
    logarithms = np.log(np.maximum(found, least))
    return float(logarithms.var(ddof=1)) * blocks.count / (blocks.count - 1)
