# SPDX-License-Identifier: Apache-2.0
"""Statistics of delays, of any number of them in bounded memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Bucket = tuple[float, float, int]
"""Low edge in s, width in s, count."""

BINS_MAX = 2048
BLOCKS_MAX = 1024
WIDTH_MIN_S = 1e-13
MILESTONES = tuple(10**power for power in range(2, 9))


@dataclass(frozen=True)
class DelaySummary:
    """What is known of a number of delays, in s.

    Attributes:
        count: Number of delays.
        mean_s: Mean.
        deviation_s: Standard deviation of a sample (n - 1); 0 of a single delay.
        minimum_s: The smallest.
        maximum_s: The largest.
        peak_to_peak_s: Peak-to-peak of the first 100, 1000, 10^4 … delays, and of all: it grows with their
            number, so only those of equal numbers compare.
        buckets: Histogram, ascending, without empty buckets.
        kurtosis: Of the histogram, see `kurtosis_of`.
        block_size: Delays in each block; the smallest power of two that leaves at most BLOCKS_MAX of them.
        block_means_s: Mean of each whole block of delays that follow each other, in their order: they show
            for how long delays depend on each other.
    """

    count: int
    mean_s: float
    deviation_s: float
    minimum_s: float
    maximum_s: float
    peak_to_peak_s: dict[int, float]
    buckets: tuple[Bucket, ...]
    kurtosis: float
    block_size: int
    block_means_s: NDArray[np.float64]


def kurtosis_of(buckets: Sequence[Sequence[float]]) -> float:
    """Return the fourth central moment over the square of the second; 3 of normal delays.

    Of a histogram (low edge, width, count, in any unit), whose buckets count at their middles: whoever has
    it finds the same. Never below 1, which is that of a single bucket.
    """
    middles = [(low + width / 2, count) for low, width, count in buckets]
    total = math.fsum(count for _, count in middles)
    mean = math.fsum(middle * count for middle, count in middles) / total
    squares = [((middle - mean) ** 2, count) for middle, count in middles]
    second = math.fsum(square * count for square, count in squares) / total
    if second == 0.0:
        return 1.0
    return max(1.0, math.fsum((square / second) ** 2 * count for square, count in squares) / total)


class DelayTally:
    """Takes delays part by part and keeps their moments, extremes, a histogram and means of blocks.

    The histogram begins with buckets of 0.1 ps and doubles their width whenever more than 2048 would be
    needed: it never has to be told a range. Blocks begin with one delay and double in the same way: it never
    has to be told a number.
    """

    def __init__(self) -> None:
        self._count = 0
        self._mean_s = 0.0
        self._squares_s2 = 0.0  # sum of squared distances from the mean
        self._minimum_s, self._maximum_s = math.inf, -math.inf
        self._milestones: dict[int, float] = {}
        self._width_s = WIDTH_MIN_S
        self._first = 0  # number of the first bin; bin k begins at k * width
        self._bins: NDArray[np.int64] = np.empty(0, np.int64)
        self._block_size = 1
        self._block_means_s: NDArray[np.float64] = np.empty(0)
        self._rest: NDArray[np.float64] = np.empty(0)  # less than a block, behind the last one

    def add(self, delay_s: NDArray[np.float64]) -> None:
        """Count delays, in the order in which they were measured.

        Raises:
            ValueError: A delay that is not a finite number.
        """
        if not np.isfinite(delay_s).all():
            raise ValueError("delays: not all are finite numbers")
        for milestone in MILESTONES:
            if self._count < milestone <= self._count + len(delay_s):
                cut = milestone - self._count
                self._add(delay_s[:cut])
                self._milestones[milestone] = self._maximum_s - self._minimum_s
                delay_s = delay_s[cut:]
        self._add(delay_s)

    def _add(self, delay_s: NDArray[np.float64]) -> None:
        if not len(delay_s):
            return
        count = len(delay_s)
        mean_s = float(delay_s.mean())
        total = self._count + count
        step_s = mean_s - self._mean_s
        self._squares_s2 += float(np.square(delay_s - mean_s).sum()) + step_s**2 * self._count * count / total
        self._mean_s += step_s * count / total
        self._count = total
        self._minimum_s = min(self._minimum_s, float(delay_s.min()))
        self._maximum_s = max(self._maximum_s, float(delay_s.max()))
        self._count_bins(delay_s)
        self._fill_blocks(delay_s)

    def _fill_blocks(self, delay_s: NDArray[np.float64]) -> None:
        """Take delays into blocks, and make two of them one as often as their number needs it."""
        while (self._count // self._block_size) > BLOCKS_MAX:
            if len(self._block_means_s) % 2:
                # Its mean is as good as the delays of the block.
                last = np.full(self._block_size, self._block_means_s[-1])
                self._rest = np.concatenate((last, self._rest))
                self._block_means_s = self._block_means_s[:-1]
            self._block_means_s = self._block_means_s.reshape(-1, 2).mean(axis=1)
            self._block_size *= 2
        waiting = np.concatenate((self._rest, delay_s))
        whole = len(waiting) // self._block_size * self._block_size
        means = waiting[:whole].reshape(-1, self._block_size).mean(axis=1)
        self._block_means_s = np.concatenate((self._block_means_s, means))
        self._rest = waiting[whole:]

    def _count_bins(self, delay_s: NDArray[np.float64]) -> None:
        """Count into bins, after their width has been doubled as often as the extremes need it."""
        while (
            math.floor(self._maximum_s / self._width_s) - math.floor(self._minimum_s / self._width_s)
            >= BINS_MAX
        ):
            self._double()
        places = np.floor(delay_s / self._width_s).astype(np.int64)
        last = self._first + len(self._bins) - 1
        low, high = int(places.min()), int(places.max())
        if len(self._bins):
            low, high = min(low, self._first), max(high, last)
        bins = np.bincount(places - low, minlength=high - low + 1).astype(np.int64)
        if len(self._bins):
            bins[self._first - low : last - low + 1] += self._bins
        self._first, self._bins = low, bins

    def _double(self) -> None:
        """Make bins twice as wide: two of them become one."""
        self._width_s *= 2
        if not len(self._bins):
            return
        places = (self._first + np.arange(len(self._bins))) // 2
        self._first = int(places[0])
        merged = np.zeros(int(places[-1]) - self._first + 1, np.int64)
        np.add.at(merged, places - self._first, self._bins)
        self._bins = merged

    @property
    def count(self) -> int:
        """Number of delays so far."""
        return self._count

    def summary(self) -> DelaySummary | None:
        """Return what is known so far; None without a delay."""
        if not self._count:
            return None
        variance = self._squares_s2 / (self._count - 1) if self._count > 1 else 0.0
        buckets = tuple(
            ((self._first + place) * self._width_s, self._width_s, int(count))
            for place, count in enumerate(self._bins)
            if count
        )
        return DelaySummary(
            count=self._count,
            mean_s=self._mean_s,
            deviation_s=math.sqrt(variance),
            minimum_s=self._minimum_s,
            maximum_s=self._maximum_s,
            peak_to_peak_s={**self._milestones, self._count: self._maximum_s - self._minimum_s},
            buckets=buckets,
            kurtosis=kurtosis_of(buckets),
            block_size=self._block_size,
            block_means_s=self._block_means_s.copy(),
        )
