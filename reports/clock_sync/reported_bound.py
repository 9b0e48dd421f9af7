# SPDX-License-Identifier: Apache-2.0
"""What is judged of a clock that tells its own error: whether interval and U held, and are not padded.

Of each trial whose device tells a hard interval and U (k = 2) with every reading:

- `bound_missed`, `u_missed`, ppm of the samples that were off by more than the interval, or U, that they were
  told. U of these quantities are those of them that were so by no more than half of their window.
- `bound_width`, `u_width`, the median of what was told (of an interval its larger side) over the median size
  of the offsets: what is padded always holds.
- `reads_left_out`, ppm of the readings whose own window, looked at before their offset, was too wide.

Of its holdover: `holdover_rate`, ppb, the slope of the least-squares line through the series.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from reports.clock_sync.answers import ClockCompare, DeviceBound, ReportedError
from reports.clock_sync.capability import HOLDOVER, LEFT_OUT, MISSED, STATED_BOUND_STATISTICS, U_MISSED, WIDTH
from reports.clock_sync.server_replies import invalid_causes
from reports.clock_sync.trial import ClockTrial
from reports.record.context import Context, Sample, build_record
from reports.record.histogram import Summary
from reports.record.measurement import Limit, Measurement, Number, Uncertainty, UncertaintyPart
from reports.record.verdict import Verdict, judge

PPM = 1_000_000
PPB = 1_000_000_000
NO_BOUND, NO_U = "the clock tells no bound", "the clock tells no U"


@dataclass(frozen=True)
class Finding:
    """A value with its U; `why` says why nothing may pass on it, empty: it may."""

    value: Number | None
    n: int
    parts: tuple[UncertaintyPart, ...] = ()
    why: str = ""


def reported_bound_measurement(
    trial: ClockTrial, quantity: str, requirement: str, limit: Limit, n_required: int, context: Context
) -> Measurement:
    """Return the record of one of these quantities of a trial.

    Args:
        trial: Of a device that tells its bound; of `holdover_rate` any, in holdover.
        quantity: One of `STATED_BOUND_STATISTICS`.
        requirement: Its id.
        limit: In the unit of the quantity.
        n_required: Samples that it has to rest on.
        context: Of which run, test and subject.
    """
    found = find(trial, quantity)
    statistic = STATED_BOUND_STATISTICS[quantity]
    uncertainty = Uncertainty.from_parts(found.parts)
    sample = Sample(quantity, statistic, found.value, found.n, n_required)
    verdict = judge(
        found.value,
        limit,
        uncertainty,
        n=found.n,
        n_required=n_required,
        statistic=statistic,
        unit=sample.unit,
    )
    causes = [*invalid_causes(trial), *([found.why] if found.why else [])]
    if causes and verdict.outcome != "unset":
        verdict = Verdict("inconclusive", verdict.margin, "; ".join(causes))
    elif verdict.outcome == "unset" and causes:
        verdict = Verdict("unset", verdict.margin, "; ".join(causes))
    return build_record(requirement, sample, limit, uncertainty, verdict, context)


def unset_reported_bound_measurement(
    quantity: str, requirement: str, limit: Limit, n_required: int, reason: str, context: Context
) -> Measurement:
    """Return the record of what could not be measured."""
    sample = Sample(quantity, STATED_BOUND_STATISTICS[quantity], None, 0, n_required)
    nothing = Uncertainty.from_parts([])
    return build_record(requirement, sample, limit, nothing, Verdict("unset", None, reason), context)


def find(trial: ClockTrial, quantity: str) -> Finding:
    """Return one of these quantities of a trial."""
    if quantity == LEFT_OUT:
        return _left_out(trial.filtered)
    if quantity == HOLDOVER:
        return _holdover(trial)
    told = trial.filtered.device_bound
    if told is None:
        return Finding(None, 0, why=NO_BOUND)
    error = told.interval if quantity in {MISSED, WIDTH} else told.u
    if error is None:
        return Finding(None, 0, why=NO_U)
    return _missed(told, error) if quantity in {MISSED, U_MISSED} else _width(trial, told, error)


def _missed(told: DeviceBound, error: ReportedError) -> Finding:
    if not told.checked:
        return Finding(None, 0, why=f"{told.without} readings, and none gave a time")
    undecided = UncertaintyPart("undecided", "bound", PPM * (error.missed - error.beyond) / told.checked)
    return Finding(PPM * error.missed / told.checked, told.checked, (undecided,))


def _width(trial: ClockTrial, told: DeviceBound, told_error: ReportedError) -> Finding:
    bound, error = told_error.sizes.quantile(0.5), median_size_ns(trial.filtered.offset)
    if bound is None or error is None:
        return Finding(None, 0, why=f"{told.without} readings, and none gave a time")
    ratio, slack_ns = bound.value_ns / error, _slack_ns(trial)
    if slack_ns >= error:
        why = f"a median error of {error} ns is smaller than what reference and bracket tell apart"
        return Finding(ratio, told.checked, (UncertaintyPart("median_error", "bound", ratio),), why)
    part = UncertaintyPart("median_error", "bound", bound.value_ns / (error - slack_ns) - ratio)
    return Finding(ratio, told.checked, (part,))


def _left_out(compare: ClockCompare) -> Finding:
    n = compare.iterations
    return Finding(PPM * compare.discarded / n, n) if n else Finding(None, 0)


def _holdover(trial: ClockTrial) -> Finding:
    points = trial.filtered.series
    if len(points) < 3:  # any two points lie on a line
        return Finding(None, 0)
    first_ns = points[0].time_tai_ns
    times = [point.time_tai_ns - first_ns for point in points]
    offsets = [round(point.mean_ns) for point in points]
    n, sum_t, sum_x = len(times), sum(times), sum(offsets)
    above = n * sum(t * x for t, x in zip(times, offsets, strict=True)) - sum_t * sum_x
    rate_ppb = float(Fraction(above * PPB, n * sum(t * t for t in times) - sum_t * sum_t))
    # Errors within +-e draw a least-squares line of 3 e / T at most.
    slope_ppb = 3 * PPB * _slack_ns(trial) / times[-1]
    return Finding(rate_ppb, n, (UncertaintyPart("slope", "bound", slope_ppb),))


def _slack_ns(trial: ClockTrial) -> int:
    """Return what reference and mean bracket leave open of a middle of offsets, in ns."""
    compare = trial.filtered
    bracket_ns = math.ceil((compare.window.mean_ns or 0) / 2)
    return (compare.reference_bound_ns or 0) + trial.facts.timecard.bound_ns + bracket_ns


def median_size_ns(offset: Summary) -> int | None:
    """Return the median of |offset| in ns, the lower edge of its bucket, 1 at least; None without samples."""
    sizes = sorted((low if low >= 0 else -(low + width - 1), count) for low, width, count in offset.buckets)
    seen = 0
    for size_ns, count in sizes:
        seen += count
        if 2 * seen >= offset.n:
            return max(1, size_ns)
    return None
