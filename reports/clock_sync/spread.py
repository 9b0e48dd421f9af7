# SPDX-License-Identifier: Apache-2.0
"""How widely a clock's offsets scatter, and how two stacks compare: a ratio with its interval.

The paper on distributed control loops (2.2, 4.5.1) brings the error of standard NTP, 1 ms, to 10..40 us by
stamps of the kernel. The spread here is the half width around the mean that holds 95 % of the offsets, so
that neither a constant asymmetry of the path nor one late packet decides. Offsets follow each other closely:
the interval comes from a moving-block bootstrap (Kuensch 1989) with a fixed seed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reports.clock_sync.series import ClockSeries

SHARE = 0.95
RESAMPLES = 2000
BLOCKS_MIN = 8
"""Fewer blocks than this say nothing of the spread's own uncertainty."""
BLOCK_NS = 1_000_000_000
"""A block is at least as long as the servo's time between two corrections."""
SEED = 20261121


@dataclass(frozen=True)
class SpreadRatio:
    """Spread of one clock over that of another, with its 95 % interval; spreads in ns."""

    first_ns: float
    second_ns: float
    ratio: float
    lower: float
    upper: float


def spread_ns(offsets: NDArray[np.float64]) -> float:
    """Return the half width around the mean that holds 95 % of the offsets, in ns."""
    return float(np.quantile(np.abs(offsets - offsets.mean()), SHARE))


def spread_ratio(first: ClockSeries, second: ClockSeries) -> SpreadRatio | None:
    """Compare the spreads of two clocks; None where a series is too short, or the second does not scatter."""
    parts = [(_offsets(series), max(1, round(BLOCK_NS / series.tau0_ns))) for series in (first, second)]
    if any(len(offsets) < BLOCKS_MIN * block for offsets, block in parts):
        return None
    spreads = [spread_ns(offsets) for offsets, _ in parts]
    if not spreads[1]:
        return None
    rng = np.random.default_rng(SEED)
    drawn = [_resampled(offsets, block, rng) for offsets, block in parts]
    ratios = np.array(drawn[0]) / np.maximum(np.array(drawn[1]), 1e-9)
    lower, upper = np.quantile(ratios, [(1 - SHARE) / 2, (1 + SHARE) / 2])
    return SpreadRatio(spreads[0], spreads[1], spreads[0] / spreads[1], float(lower), float(upper))


def _offsets(series: ClockSeries) -> NDArray[np.float64]:
    return series.offsets().astype(np.float64)


def _resampled(offsets: NDArray[np.float64], block: int, rng: np.random.Generator) -> list[float]:
    """Return the spreads of series that are put together from blocks of the one that was measured."""
    blocks = -(-len(offsets) // block)
    steps = np.arange(block)
    found: list[float] = []
    for _ in range(RESAMPLES):
        starts = rng.integers(0, len(offsets) - block + 1, blocks)
        found.append(spread_ns(offsets[(starts[:, None] + steps).ravel()[: len(offsets)]]))
    return found
