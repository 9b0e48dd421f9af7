# SPDX-License-Identifier: Apache-2.0
"""Time error of a clock: TE, max|TE|, cTE, dTE, and its distribution.

Terms of ITU-T G.8260, as G.8273.2 uses them: TE = device - reference; cTE its mean; TE_L what a first-order
low-pass of 0.1 Hz lets through; dTE_L = TE_L - cTE; dTE_H = TE - TE_L. Times and offsets are nanoseconds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reports.clock_sync.series import ClockSeries, Offsets, Stretch
from reports.errors import ReportError
from reports.record.histogram import Summary
from reports.units import NS_PER_S

LOW_PASS_HZ = 0.1
"""Bandwidth of the filter between dTE_L and dTE_H, ITU-T G.8273.2 clause 7.1."""

CTE_WINDOW_NS = 1000 * NS_PER_S
"""Windows over which cTE is averaged, ITU-T G.8273.2 clause 7.1."""

_WINDOW_SHARE_MIN = 0.9
_DEFAULT_BUCKETS = 200
_SETTLES = 5.0
"""Time constants of the filter that are left out at the beginning and after each gap."""


@dataclass(frozen=True, slots=True)
class TimeError:
    """Figures of a series, in ns; those of dTE are None where the series cannot give them.

    Attributes:
        n: Samples.
        gaps: Gaps between them.
        min_ns: Smallest time error, with its sign.
        max_ns: Largest.
        max_abs_ns: max|TE|.
        cte_ns: cTE, the mean over all samples.
        max_abs_cte_window_ns: Largest mean, without its sign, of a window of 1000 s (G.8273.2, clause 7.1),
            wherever it lies in the series; None where no window has nine tenths of its samples.
        outside_windows: Samples that lie in no such window.
        stddev_ns: Standard deviation (n - 1); None of one sample.
        max_abs_tel_ns: max|TE_L|.
        dte_l_pp_ns: Peak to peak of dTE_L.
        dte_h_pp_ns: Peak to peak of dTE_H.
        unfiltered_reason: Why there are no figures of dTE; empty where there are.
    """

    n: int
    gaps: int
    min_ns: float
    max_ns: float
    max_abs_ns: float
    cte_ns: float
    max_abs_cte_window_ns: float | None
    outside_windows: int
    stddev_ns: float | None
    max_abs_tel_ns: float | None
    dte_l_pp_ns: float | None
    dte_h_pp_ns: float | None
    unfiltered_reason: str


def time_error(series: ClockSeries) -> TimeError | None:
    """Return the figures of a series; None when it has no sample."""
    offsets = series.offsets()
    if not len(offsets):
        return None
    low, high = float(offsets.min()), float(offsets.max())
    deviation = float(np.std(offsets - offsets[0], ddof=1)) if len(offsets) > 1 else None
    filtered, reason = _filtered_figures(series)
    worst_ns, outside = _window_means(series)
    return TimeError(
        n=len(offsets),
        gaps=len(series.gaps),
        min_ns=low,
        max_ns=high,
        max_abs_ns=max(abs(low), abs(high)),
        cte_ns=mean_ns(offsets),
        max_abs_cte_window_ns=worst_ns,
        outside_windows=outside,
        stddev_ns=deviation,
        max_abs_tel_ns=filtered[0],
        dte_l_pp_ns=filtered[1],
        dte_h_pp_ns=filtered[2],
        unfiltered_reason=reason,
    )


def _filtered_figures(
    series: ClockSeries,
) -> tuple[tuple[float | None, float | None, float | None], str]:
    """Return max|TE_L|, peak to peak of dTE_L and of dTE_H in ns, and why there are none."""
    if not separable(series):
        return (None, None, None), "too few samples a second for the filter"
    filtered = low_passed(series)
    if not filtered.n:
        return (None, None, None), "no stretch is longer than the filter needs to settle"
    tel = filtered.offsets()
    rest = _of_same_times(series, filtered) - tel
    return (float(np.abs(tel).max()), float(tel.max() - tel.min()), float(rest.max() - rest.min())), ""


def mean_ns(offsets: Offsets) -> float:
    """Return the mean in ns, taken from the first sample so that large offsets cost no digits."""
    apart: NDArray[np.float64] = (offsets - offsets[0]).astype(np.float64)
    return float(offsets[0]) + float(apart.mean())


def _window_means(series: ClockSeries) -> tuple[float | None, int]:
    """Average over every window of 1000 s.

    A window begins or ends at each sample, so that they slide and none of the series is left out; one counts
    that has nine tenths of its samples.

    Returns:
        The largest |mean| in ns, None where no window counts; and the number of samples that lie in none.
    """
    times, offsets = series.times(), series.offsets()
    span_ns = CTE_WINDOW_NS - series.tau0_ns
    if not len(times) or times[-1] - times[0] < span_ns or (np.diff(times) < 0).any():
        return None, len(times)
    begin = np.arange(len(times))
    first = np.concatenate([begin, np.searchsorted(times, times - span_ns, "left")])
    behind = np.concatenate([np.searchsorted(times, times + span_ns, "right"), begin + 1])
    is_whole = np.concatenate([times + span_ns <= times[-1], times - span_ns >= times[0]])
    counts = behind - first
    counted = is_whole & (counts >= _WINDOW_SHARE_MIN * CTE_WINDOW_NS / series.tau0_ns)
    if not counted.any():
        return None, len(times)
    first, behind, counts = first[counted], behind[counted], counts[counted]
    sums = np.concatenate([[0], np.cumsum(offsets - offsets[0])])
    means = (sums[behind] - sums[first]) / counts + offsets[0]
    edges = np.bincount(first, minlength=len(times) + 1) - np.bincount(behind, minlength=len(times) + 1)
    return float(np.abs(means).max()), int((np.cumsum(edges)[:-1] == 0).sum())


def separable(series: ClockSeries) -> bool:
    """Say whether the samples are close enough (Nyquist) for the filter to part dTE_L from dTE_H."""
    return 2.0 * LOW_PASS_HZ * series.tau0_ns <= NS_PER_S


def low_passed(series: ClockSeries) -> ClockSeries:
    """Return TE_L: each stretch filtered by itself, without the first five time constants (8 s at 0.1 Hz).

    Stretches that are no longer than that vanish. MTIE and TDEV of TE_L are those of dTE_L: both ignore
    the constant cTE.

    Raises:
        ReportError: The samples are too far apart for the filter.
    """
    if not separable(series):
        raise ReportError(
            f"samples every {series.tau0_ns} ns are too far apart for a filter of {LOW_PASS_HZ} Hz"
        )
    radians = 2 * math.pi * LOW_PASS_HZ * series.tau0_ns / NS_PER_S
    unsettled = math.ceil(_SETTLES / radians)
    kept: list[Stretch] = []
    for stretch in series.stretches:
        apart = (stretch.offset_ns - stretch.offset_ns[0]).astype(np.float64)
        filtered = _low_pass(apart, radians)
        if len(apart) > unsettled:
            kept.append(Stretch(stretch.time_ns[unsettled:], filtered[unsettled:] + stretch.offset_ns[0]))
    return ClockSeries(series.tau0_ns, tuple(kept))


def _low_pass(values: NDArray[np.float64], radians: float) -> NDArray[np.float64]:
    """Filter by a first-order low-pass that begins at 0, the first value."""
    signal: Any = import_module("scipy.signal")  # here: a second, of every start; its types are incomplete
    kept = math.exp(-radians)
    return np.asarray(signal.lfilter([1 - kept], [1, -kept], values), np.float64)


def _of_same_times(series: ClockSeries, filtered: ClockSeries) -> Offsets:
    """Return the unfiltered offsets at the times that the filter has left."""
    parts: list[Offsets] = []
    remaining = iter(series.stretches)
    for part in filtered.stretches:
        whole = next(s for s in remaining if len(s) >= len(part) and s.time_ns[-1] == part.time_ns[-1])
        parts.append(whole.offset_ns[len(whole) - len(part) :])
    return np.concatenate(parts)


def distribution(offset_ns: Offsets, width_ns: int | None = None) -> Summary:
    """Return the distribution of offsets in buckets of one width, in the form that the native tools print.

    Args:
        offset_ns: Offsets in ns; a bucket holds low edge <= offset < low edge + width.
        width_ns: Width of a bucket; None: the power of two that gives 100 to 200 buckets.

    Raises:
        ReportError: The width is not positive.
    """
    if width_ns is not None and width_ns <= 0:
        raise ReportError(f"width_ns: {width_ns}; need a positive width")
    if not len(offset_ns):
        return Summary(0, None, None, None, None, 0, ())
    whole: NDArray[np.int64] = (offset_ns if offset_ns.dtype == np.int64 else np.floor(offset_ns)).astype(
        np.int64, copy=False
    )
    first, last = int(whole.min()), int(whole.max())
    width = width_ns or 1 << ((last - first) // _DEFAULT_BUCKETS).bit_length()
    low = first // width * width
    apart: NDArray[np.int64] = whole - low
    counts = np.bincount(apart >> width.bit_length() - 1 if width & (width - 1) == 0 else apart // width)
    filled = np.flatnonzero(counts)
    return Summary(
        n=len(offset_ns),
        min_ns=int(np.floor(offset_ns.min())),
        max_ns=int(np.ceil(offset_ns.max())),
        mean_ns=mean_ns(offset_ns),
        stddev_ns=float(np.std(offset_ns - offset_ns[0], ddof=1)) if len(offset_ns) > 1 else None,
        overflow=0,
        buckets=tuple((low + int(place) * width, width, int(counts[place])) for place in filled),
    )
