# SPDX-License-Identifier: Apache-2.0
"""What a series of clock offsets comes to, written from the definitions.

docs/clock-analysis.md: MTIE and TDEV of ITU-T G.810, appendix II; TE_L and cTE of G.8260 as G.8273.2, clause
7.1, uses them.

Offsets are device - reference. Nothing bridges a gap: every window lies inside one stretch.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from statistics import median
from typing import Any

Sample = tuple[int, float]
"""Time and offset, ns."""

GAP_SHARE = 0.5
WINDOWS_MIN = 2
LOW_PASS_HZ = 0.1
SETTLING = 5
"""Time constants of the low-pass."""
WINDOW_NS = 1_000_000_000_000
"""Over which cTE is averaged."""
FULL_SHARE = 0.9
NS_PER_S = 1_000_000_000
UNITS_PER_NS = 1 << 20
"""Sums are made of whole numbers: they are exact."""


@dataclass(frozen=True)
class Series:
    """Samples in stretches, one every `tau0_ns`."""

    tau0_ns: int
    stretches: tuple[tuple[Sample, ...], ...]

    @property
    def samples(self) -> list[Sample]:
        """All samples, in order."""
        return [sample for stretch in self.stretches for sample in stretch]

    @property
    def length_s(self) -> float:
        """How much time the samples stand for."""
        return len(self.samples) * self.tau0_ns / NS_PER_S


@dataclass(frozen=True)
class Point:
    """A statistic at one tau, and from how many windows."""

    tau_ns: int
    value_ns: float
    windows: int

    @property
    def tau_s(self) -> float:
        """Tau in s."""
        return self.tau_ns / NS_PER_S


def series_of(answer: Mapping[str, Any]) -> Series | None:
    """Return the series of `bw-clock compare`, the mean of each interval; None of fewer than two."""
    samples = [(int(row[0]), float(row[2])) for row in answer["series"]["rows"]]
    if len(samples) < WINDOWS_MIN:
        return None
    steps = [step["time_tai_ns"] for step in answer["steps"]]
    apart = [after - before for (before, _), (after, _) in pairwise(samples)]
    forward = [each for each in apart if each > 0]
    if not forward:
        return Series(1, tuple((sample,) for sample in samples))
    usual = median(forward)
    regular = [each for each in apart if abs(each - usual) <= GAP_SHARE * usual]
    stretches: list[list[Sample]] = [samples[:1]]
    for (before, _), sample in pairwise(samples):
        is_joined = abs(sample[0] - before - usual) <= GAP_SHARE * usual
        if is_joined and not any(before < step <= sample[0] for step in steps):
            stretches[-1].append(sample)
        else:
            stretches.append([sample])
    tau0_ns = round(sum(regular) / len(regular)) if regular else round(usual)
    return Series(tau0_ns, tuple(tuple(stretch) for stretch in stretches))


def mtie(series: Series) -> list[Point]:
    """Return, by octaves of tau, the largest peak to peak in any window of tau."""
    points: list[Point] = []
    for m in _octaves(series):
        long = [_from_first(stretch) for stretch in series.stretches if len(stretch) > m]
        windows = sum(len(stretch) - m for stretch in long)
        if windows >= WINDOWS_MIN:
            widest = max(_widest(stretch, m + 1) for stretch in long)
            points.append(Point(m * series.tau0_ns, widest / UNITS_PER_NS, windows))
    return points


def _widest(offsets: Sequence[int], width: int) -> int:
    """Return the largest peak to peak of so many samples in succession."""
    highs: deque[int] = deque()
    lows: deque[int] = deque()
    widest = 0
    for place, offset in enumerate(offsets):
        while highs and offsets[highs[-1]] <= offset:
            highs.pop()
        while lows and offsets[lows[-1]] >= offset:
            lows.pop()
        highs.append(place)
        lows.append(place)
        for extremes in (highs, lows):
            if extremes[0] <= place - width:
                extremes.popleft()
        if place >= width - 1:
            widest = max(widest, offsets[highs[0]] - offsets[lows[0]])
    return widest


def tdev(series: Series) -> list[Point]:
    """Return, by octaves of tau = n tau0, the root of a sixth of the mean square of x2 - 2 x1 + x0.

    Each x is the mean of n samples, and the three follow each other.
    """
    points: list[Point] = []
    for n in _octaves(series):
        squares: list[float] = []
        for stretch in series.stretches:
            sums = [0, *accumulate(_from_first(stretch))]
            for j in range(len(stretch) - 3 * n + 1):
                first, second, third = (sums[j + (k + 1) * n] - sums[j + k * n] for k in range(3))
                squares.append(((third - 2 * second + first) / n) ** 2)
        if len(squares) >= WINDOWS_MIN:
            value = math.sqrt(math.fsum(squares) / len(squares) / 6)
            points.append(Point(n * series.tau0_ns, value / UNITS_PER_NS, len(squares)))
    return points


def _octaves(series: Series) -> list[int]:
    longest = max((len(stretch) for stretch in series.stretches), default=0)
    return [1 << k for k in range(longest.bit_length())]


def _from_first(stretch: Sequence[Sample]) -> list[int]:
    """Return offsets from the first one, in UNITS_PER_NS."""
    return [round((offset - stretch[0][1]) * UNITS_PER_NS) for _, offset in stretch]


def low_passed(series: Series) -> Series | None:
    """Return TE_L, without what the filter needs to settle; None where samples are too far apart for it."""
    tau0_s = series.tau0_ns / NS_PER_S
    if 2 * LOW_PASS_HZ * tau0_s > 1:
        return None
    turns = 2 * math.pi * LOW_PASS_HZ * tau0_s
    settling = math.ceil(SETTLING / turns)
    kept = [_filtered(stretch, 1 - math.exp(-turns))[settling:] for stretch in series.stretches]
    return Series(series.tau0_ns, tuple(stretch for stretch in kept if stretch))


def _filtered(stretch: Sequence[Sample], share: float) -> tuple[Sample, ...]:
    """Return what a first-order low-pass makes of samples; each moves it by a share of what is left."""
    found: list[Sample] = []
    first = stretch[0][1]
    level = 0.0
    for time, offset in stretch:
        level += share * (offset - first - level)
        found.append((time, first + level))
    return tuple(found)


def constant_error(series: Series) -> tuple[float, bool, int]:
    """Return cTE in ns, whether it is the worst of whole windows or else the mean, and the samples in none.

    A window of 1000 s may begin or end at any sample; one counts that has nine tenths of its samples.
    """
    times = [time for time, _ in series.samples]
    offsets = [offset for _, offset in series.samples]
    sums = list(accumulate((offset - offsets[0] for offset in offsets), initial=0))
    reach = WINDOW_NS - series.tau0_ns
    worst, inside = None, [False] * len(times)
    reached = 0
    windows = [
        (at, bisect_right(times, time + reach)) for at, time in enumerate(times) if time + reach <= times[-1]
    ]
    windows += [
        (bisect_left(times, time - reach), at + 1)
        for at, time in enumerate(times)
        if time - reach >= times[0]
    ]
    for first, behind in sorted(windows) if times == sorted(times) else []:
        count = behind - first
        if count < FULL_SHARE * WINDOW_NS / series.tau0_ns:
            continue
        mean = abs((sums[behind] - sums[first]) / count + offsets[0])
        worst = mean if worst is None else max(worst, mean)
        for at in range(max(first, reached), behind):
            inside[at] = True
        reached = max(reached, behind)
    if worst is None:
        return math.fsum(offsets) / len(offsets), False, len(times)
    return worst, True, inside.count(False)
