# SPDX-License-Identifier: Apache-2.0
"""The instrument's own measurement of the delay between two channels, and its statistics.

Base and top are the commonest codes of the lower and of the upper half of the span (the guides: they are not
minimum and maximum), and an edge is where the line between two samples crosses their middle.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hw.virtual.oscilloscope.recorder import Segment

AMPLITUDE_MIN_CODES = 4
HYSTERESIS_SHARE = 0.1


@dataclass(frozen=True)
class ScreenEdge:
    """An edge that the instrument sees in a record: seconds from the trigger, and its direction."""

    time_s: float
    rising: bool


def screen_edges(segment: Segment, channel: int) -> tuple[ScreenEdge, ...]:
    """Return the edges of a channel from left to right; none when it shows no pulse."""
    codes = segment.codes.get(channel)
    if codes is None:
        return ()
    levels = base_and_top(codes)
    if levels is None:
        return ()
    base, top = levels
    middle = (base + top) / 2
    band = HYSTERESIS_SHARE * (top - base)
    state = np.where(codes >= middle + band, 1, np.where(codes <= middle - band, -1, 0))
    decided = np.flatnonzero(state)
    changes = np.flatnonzero(np.diff(state[decided]))
    interval_s = segment.setup.sample_interval_s
    found: list[ScreenEdge] = []
    for change in changes:
        begin, end = int(decided[change]), int(decided[change + 1])
        above = codes[begin : end + 1] >= middle
        rising = bool(above[-1])
        place = begin + int(np.flatnonzero(above[:-1] != rising)[-1])
        low, high = float(codes[place]), float(codes[place + 1])
        position = place + (middle - low) / (high - low)
        found.append(ScreenEdge(segment.first_sample_s + position * interval_s, rising))
    return tuple(found)


def base_and_top(codes: NDArray[np.int16]) -> tuple[int, int] | None:
    """Return the settled levels, in codes, or None when there are not two of them."""
    low, high = int(codes.min()), int(codes.max())
    if high - low < AMPLITUDE_MIN_CODES:
        return None
    counts = np.bincount(codes.astype(np.int64) - low)
    half = len(counts) // 2
    base, top = low + int(counts[:half].argmax()), low + half + int(counts[half:].argmax())
    return (base, top) if top - base >= AMPLITUDE_MIN_CODES else None


def nearest(edges: Sequence[ScreenEdge], time_s: float) -> ScreenEdge | None:
    """Return the edge nearest to an instant."""
    return min(edges, key=lambda edge: abs(edge.time_s - time_s), default=None)


def numbered(edges: Sequence[ScreenEdge], rising: bool, number: int) -> ScreenEdge | None:
    """Return the n-th edge of a direction from the left, counted from 1."""
    chosen = [edge for edge in edges if edge.rising == rising]
    return chosen[number - 1] if 1 <= number <= len(chosen) else None


class Statistics:
    """Count, mean, extremes and deviation of values, none of which is kept (Welford's method)."""

    def __init__(self) -> None:
        self.count = 0
        self.current = math.nan
        self.mean = math.nan
        self.minimum = math.nan
        self.maximum = math.nan
        self._squares = 0.0

    def add(self, value: float) -> None:
        """Take in one value."""
        self.count += 1
        self.current = value
        before = 0.0 if self.count == 1 else self.mean
        self.mean = before + (value - before) / self.count
        self._squares += (value - before) * (value - self.mean) if self.count > 1 else 0.0
        self.minimum = value if self.count == 1 else min(self.minimum, value)
        self.maximum = value if self.count == 1 else max(self.maximum, value)

    @property
    def deviation(self) -> float:
        """Standard deviation of the values; 0 for one, NaN for none."""
        if self.count < 2:
            return 0.0 if self.count else math.nan
        return math.sqrt(self._squares / (self.count - 1))
