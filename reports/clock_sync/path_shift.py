# SPDX-License-Identifier: Apache-2.0
"""How far an asymmetric path has shifted a clock, from pairs of trials without and with the asymmetry.

A delay D on the way from the server alone makes the servo take the server for D / 2 late: the target ends up
D / 2 behind. The servo cannot know; the reference shows it. Pairs by turns take slow changes of the path out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean, stdev
from typing import Any, cast

from scipy.special import stdtrit

from reports.clock_sync.server_replies import silence_causes
from reports.clock_sync.trial import ClockTrial
from reports.errors import RecordError
from reports.record.context import Context, Sample, build_record
from reports.record.measurement import Limit, Measurement, Uncertainty
from reports.record.verdict import Verdict, judge
from reports.units import format_measured

SHIFT_QUANTITY = "path_shift"
SHIFT_REQUIREMENT = "BENCH-PATH-SHIFT"
SHIFT_PAIRS_MIN = 3
"""Fewer pairs say nothing of their own spread."""
COVERAGE = 0.95


@dataclass(frozen=True)
class PathShift:
    """The shift of the reference's and of the servo's mean offset, in ns, and what was to be seen.

    Attributes:
        pairs: Pairs of trials.
        reference_ns: With - without, as the reference says.
        reference_half_ns: Half the 95 % interval of that mean (Student's t over the pairs).
        expected_ns: Minus half the asymmetry: of each pair as captures saw it, else the one that was set.
        residual_half_ns: Half the 95 % interval of the mean of what each pair differs from what it should.
        servo_ns: The shift as the servo says of itself; None where it says nothing.
        unheard: Why trials of theirs are of a clock that was not synchronised; empty: all of them were.
    """

    pairs: int
    reference_ns: float
    reference_half_ns: float
    expected_ns: float
    residual_half_ns: float
    servo_ns: float | None
    unheard: tuple[str, ...] = ()

    def text(self) -> str:
        """Return both shifts in words."""
        shown = format_measured(self.reference_ns, "ns")
        half = format_measured(self.reference_half_ns, "ns", 2)
        servo = "nothing" if self.servo_ns is None else format_measured(self.servo_ns, "ns")
        interval = f"95 %: +-{half}, {self.pairs} pairs"
        return f"the reference shows a shift of {shown} ({interval}), the servo of {servo}"


def path_shift(pairs: Sequence[tuple[ClockTrial, ClockTrial]], set_ns: float) -> PathShift:
    """Return the shift over pairs of trials, without and with the asymmetry.

    Args:
        pairs: The trials.
        set_ns: The asymmetry that was set; positive: what the server sends is delayed.

    Raises:
        RecordError: There are fewer than SHIFT_PAIRS_MIN pairs, or a trial has no sample.
    """
    if len(pairs) < SHIFT_PAIRS_MIN:
        raise RecordError(f"{len(pairs)} pairs of trials: need at least {SHIFT_PAIRS_MIN}")
    shifts = [_mean_ns(after) - _mean_ns(before) for before, after in pairs]
    servo = [
        float(after.facts.servo.mean_ns - before.facts.servo.mean_ns)
        for before, after in pairs
        if before.facts.servo is not None
        and after.facts.servo is not None
        and before.facts.servo.mean_ns is not None
        and after.facts.servo.mean_ns is not None
    ]
    expected = _expected_ns(pairs, set_ns)
    return PathShift(
        pairs=len(shifts),
        reference_ns=mean(shifts),
        reference_half_ns=_half_ns(shifts),
        expected_ns=mean(expected),
        residual_half_ns=_half_ns([shift - wanted for shift, wanted in zip(shifts, expected, strict=True)]),
        servo_ns=mean(servo) if servo else None,
        unheard=tuple(cause for pair in pairs for trial in pair for cause in silence_causes(trial)),
    )


def shift_measurement(shift: PathShift, context: Context) -> Measurement:
    """Return the record of the check that the reference shows the shift: what is expected, and not 0.

    U is used up by the limits, as in the known-delay check; the servo's own figure is in the reason.

    Args:
        shift: Over all pairs.
        context: Of which run, test and subject.
    """
    expected_ns, half_ns = shift.expected_ns, shift.residual_half_ns
    towards = 1 if expected_ns > 0 else -1
    near_ns = towards * max(towards * expected_ns - half_ns, shift.reference_half_ns)
    far_ns = expected_ns + towards * half_ns
    shown = format_measured(expected_ns, "ns")
    source = f"half the asymmetry, {shown}, lies in the 95 % interval, and 0 does not"
    limit = Limit(round(max(near_ns, far_ns)), round(min(near_ns, far_ns)), source)
    nothing = Uncertainty.from_parts([])
    value_ns = round(shift.reference_ns)
    n = shift.pairs
    verdict = judge(value_ns, limit, nothing, n=n, n_required=SHIFT_PAIRS_MIN, statistic="mean", unit="ns")
    if verdict.outcome == "pass" and shift.unheard:
        verdict = Verdict("inconclusive", verdict.margin, "; ".join(shift.unheard))
    elif verdict.outcome == "pass":
        verdict = Verdict("pass", verdict.margin, shift.text())
    elif verdict.outcome == "fail":
        # It is the bench that does not see; the target has not failed by that.
        verdict = Verdict("inconclusive", verdict.margin, f"{shift.text()}; {verdict.reason}")
    sample = Sample(SHIFT_QUANTITY, "mean", value_ns, n, SHIFT_PAIRS_MIN)
    return build_record(SHIFT_REQUIREMENT, sample, limit, nothing, verdict, context)


def _expected_ns(pairs: Sequence[tuple[ClockTrial, ClockTrial]], set_ns: float) -> list[float]:
    """Return what each pair should show: a path wanders, and so does what is put in on it."""
    seen = [
        float(after.facts.asymmetry_ns - before.facts.asymmetry_ns)
        for before, after in pairs
        if before.facts.asymmetry_ns is not None and after.facts.asymmetry_ns is not None
    ]
    return [-each / 2 for each in (seen if len(seen) == len(pairs) else [set_ns] * len(pairs))]


def _half_ns(values: Sequence[float]) -> float:
    """Return half the 95 % interval of a mean."""
    factor = float(cast(Any, stdtrit)(len(values) - 1, 0.5 + COVERAGE / 2))
    return factor * stdev(values) / math.sqrt(len(values))


def _mean_ns(trial: ClockTrial) -> float:
    found = trial.filtered.offset.mean_ns
    if found is None:
        raise RecordError(f"{trial.folder.name}: no sample")
    return float(found)
