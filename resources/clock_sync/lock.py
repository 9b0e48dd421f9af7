# SPDX-License-Identifier: Apache-2.0
"""When a servo is locked: a rule over the lines of its log, never a time that is waited."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reports.clock_sync.logs import ServoSeries
from resources.clock_sync.refused_answers import rejected_answers
from resources.clock_sync.servo_log import ServoLog
from resources.clock_sync.settings import LockRule


@dataclass(frozen=True)
class RateGoal:
    """The frequency that a servo has to have found for a lock, where an oscillator has changed.

    Attributes:
        freq_ppb: As in its series: positive, the oscillator is fast.
        tolerance_ppb: How far the median of the rule's observations may be off.
    """

    freq_ppb: float
    tolerance_ppb: float

    def met(self, freq_ppb: NDArray[np.float64]) -> bool:
        """Tell whether the median is near enough; where the program says no frequency it is not."""
        return abs(float(np.median(freq_ppb)) - self.freq_ppb) <= self.tolerance_ppb

    def text(self) -> str:
        """Return the goal in words, for a report."""
        return (
            f"median of their frequencies within {self.tolerance_ppb / 1000:g} ppm of"
            f" {self.freq_ppb / 1000:+.1f} ppm"
        )


def locked_at(
    series: ServoSeries, rule: LockRule, settled_states: Sequence[str], goal: RateGoal | None = None
) -> int | None:
    """Return the index of the observation at which the rule was met first, None where it never was.

    An observation in another state than a settled one breaks the row, whatever its offset.
    """
    row = 0
    for index in range(len(series.time_ns)):
        good = series.state[index] in settled_states and abs(int(series.offset_ns[index])) < rule.offset_ns
        row = row + 1 if good else 0
        if row < rule.consecutive:
            continue
        if goal is None or goal.met(series.freq_ppb[index + 1 - rule.consecutive : index + 1]):
            return index
    return None


def is_locked(text: str, log: ServoLog, rule: LockRule, goal: RateGoal | None = None) -> bool:
    """Tell whether the rule was met anywhere in a servo's log, and the goal with it."""
    return any(
        locked_at(series, rule, log.settled_states, goal) is not None for series in log.read(text).series
    )


def settled_freq_ppb(text: str, log: ServoLog, rule: LockRule, tolerance_ppb: float) -> float | None:
    """Return the frequency on which a servo has settled; None: it has not yet, or says no frequency.

    It is the median of as many last observations as the rule asks for; that of as many before them may differ
    by the tolerance.
    """
    n = rule.consecutive
    found = [series for series in log.read(text).series if len(series.time_ns) >= 2 * n]
    if not found:
        return None
    freqs_ppb = found[-1].freq_ppb
    before_ppb, freq_ppb = float(np.median(freqs_ppb[-2 * n : -n])), float(np.median(freqs_ppb[-n:]))
    return freq_ppb if abs(freq_ppb - before_ppb) <= tolerance_ppb else None


def farthest_offset_ns(text: str, log: ServoLog) -> int:
    """Return the offset farthest from 0 in a log, 0 of an empty one; positive: the target is ahead."""
    offsets = [int(offset) for series in log.read(text).series for offset in series.offset_ns]
    return max(offsets, key=abs, default=0)


def why_not_locked(text: str, log: ServoLog, rule: LockRule) -> str:
    """Return, in words, what a servo's log says instead of a lock."""
    found = log.read(text)
    reasons: list[str] = []
    if not found.series:
        reasons.append(f"{log.daemon} has measured nothing")
    else:
        series = found.series[-1]
        reasons.append(
            f"{log.daemon}: {len(series.time_ns)} observations, the last {series.offset_ns[-1] / 1000:+.1f}"
            f" us in state {series.state[-1]}, wanted {rule.text()}"
        )
    if left_out := found.left_out():
        reasons.append(left_out)
    if found.port_changes:
        change = found.port_changes[-1]
        reasons.append(f"port {change.port} went from {change.before} to {change.after} on {change.event}")
    if rejected := rejected_answers(text):
        reasons.append(rejected)
    return "; ".join(reasons)


_SELECTED = re.compile(r"^ptp4l\[[0-9.]+\]:.* selected (?:best master|local) clock (\S+)", re.MULTILINE)


def selected_grandmaster(text: str) -> str:
    """Return the clock that ptp4l's best-master algorithm has selected last, by its log; empty: none.

    A slave that hears nobody selects its own clock.
    """
    found: list[str] = _SELECTED.findall(text)
    return found[-1] if found else ""
