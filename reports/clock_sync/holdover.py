# SPDX-License-Identifier: Apache-2.0
"""Holdover: how far a clock has gone since it lost its reference, in one or several trials.

Times and offsets are ns; positive: the clock under test is ahead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reports.clock_sync.series import ClockSeries
from reports.units import NS_PER_S


@dataclass(frozen=True, eq=False, slots=True)
class HoldoverEnvelope:
    """The extremes of the time error since the reference was lost, up to each moment, over all trials.

    Attributes:
        elapsed_ns: Time since the loss, ascending: where an extreme changes, the first and the last.
        low_ns: Smallest time error so far.
        high_ns: Largest time error so far.
        trials: Trials that reach the first moment; a shorter one ends earlier and stays in the extremes.
        rate_ppb: Drift of each trial: slope of its least-squares line, None of fewer than three samples.
        gaps: Gaps in all trials: the clock was not seen there.
    """

    elapsed_ns: NDArray[np.int64]
    low_ns: NDArray[np.float64]
    high_ns: NDArray[np.float64]
    trials: int
    rate_ppb: tuple[float | None, ...]
    gaps: int


def measured_holdover(trials: Sequence[tuple[ClockSeries, int]]) -> HoldoverEnvelope | None:
    """Return the envelope over trials; None where no trial has a sample after its loss.

    Args:
        trials: Of each trial its series, and the time in ns at which the reference was cut off.
    """
    elapsed: list[NDArray[np.int64]] = []
    errors: list[NDArray[np.float64]] = []
    rates: list[float | None] = []
    gaps = 0
    for series, loss_ns in trials:
        times, offsets = series.times(), series.offsets()
        after = times >= loss_ns
        if not after.any():
            continue
        elapsed.append(times[after] - loss_ns)
        errors.append(offsets[after].astype(np.float64))
        rates.append(_rate_ppb(elapsed[-1], errors[-1]))
        gaps += sum(end > loss_ns for _, end in series.gaps)
    if not elapsed:
        return None
    moments, places = np.unique(np.concatenate(elapsed), return_inverse=True)
    all_errors = np.concatenate(errors)
    low, high = np.full(len(moments), np.inf), np.full(len(moments), -np.inf)
    np.minimum.at(low, places, all_errors)
    np.maximum.at(high, places, all_errors)
    low, high = np.minimum.accumulate(low), np.maximum.accumulate(high)
    kept = _changes(low, high)
    return HoldoverEnvelope(moments[kept], low[kept], high[kept], len(elapsed), tuple(rates), gaps)


def _changes(low: NDArray[np.float64], high: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the places where an extreme changes, and both ends."""
    changed = np.flatnonzero((np.diff(low) != 0) | (np.diff(high) != 0)) + 1
    return np.unique(np.concatenate(([0], changed, [len(low) - 1])))


def _rate_ppb(elapsed: NDArray[np.int64], errors: NDArray[np.float64]) -> float | None:
    if len(elapsed) < 3 or elapsed[-1] == elapsed[0]:
        return None
    times = (elapsed - elapsed.mean()) / NS_PER_S
    return float(np.dot(times, errors - errors.mean()) / np.dot(times, times))
