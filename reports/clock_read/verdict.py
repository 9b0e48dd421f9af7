# SPDX-License-Identifier: Apache-2.0
"""The verdict on what reading a clock costs.

The value is the paper's (Table I): it includes the two readings of the processor's counter around each
reading of the clock, which therefore enter U whole. Where the machine tells interrupted readings apart, only
the others count. Where it does not, a maximum over the limit may be an interruption's: it is inconclusive,
not a fail. A mean carries its own scatter in U, which rare long interruptions widen as they raise the mean,
and so does a machine whose readings cost more for a while.
"""

from __future__ import annotations

import math

import numpy as np

from reports.clock_read.capability import QUANTITY
from reports.clock_read.readings import ReadCost
from reports.dependence import mean_variance
from reports.record.context import Context, Sample, build_record
from reports.record.measurement import Limit, Measurement, Number, Uncertainty, UncertaintyPart
from reports.record.verdict import Verdict, judge

MEAN_MIN = 4
"""Fewer readings do not tell how they depend on each other."""


def read_value_ns(cost: ReadCost, statistic: str) -> Number | None:
    """Return mean or maximum of the readings that count, in ns; None without any."""
    summary = cost.undisturbed
    return summary.mean_ns if statistic == "mean" else summary.max_ns


def read_uncertainty(cost: ReadCost, statistic: str) -> Uncertainty:
    """Return U of what a reading costs, in ns, with its parts."""
    parts = [
        UncertaintyPart("counter_pair", "bound", math.ceil(cost.pair_cost_ns)),
        # A tick; and each value, and their mean, is rounded to a whole nanosecond.
        UncertaintyPart("counter_resolution", "bound", math.ceil(1e9 / cost.tsc_hz) + 1),
    ]
    summary = cost.undisturbed
    if statistic == "mean" and summary.n and summary.stddev_ns is not None:
        scatter_ns = math.ceil(_scatter_ns(cost, summary.n, float(summary.stddev_ns)))
        parts.append(UncertaintyPart("scatter", "standard", scatter_ns))
    return Uncertainty.from_parts(parts)


def _scatter_ns(cost: ReadCost, n: int, deviation_ns: float) -> float:
    """Return what the mean scatters by: as blocks of readings show, where the tool tells them."""
    if cost.block_means_ns is None or n < MEAN_MIN:
        return deviation_ns / math.sqrt(n)
    return math.sqrt(mean_variance(np.array(cost.block_means_ns), n, deviation_ns))


def judge_read_cost(
    cost: ReadCost, statistic: str, limit: Limit, n_required: int
) -> tuple[Verdict, Uncertainty]:
    """Judge what a reading costs; see the module for the rule."""
    uncertainty = read_uncertainty(cost, statistic)
    n = cost.undisturbed.n
    value = read_value_ns(cost, statistic)
    judged = judge(value, limit, uncertainty, n=n, n_required=n_required, statistic=statistic, unit="ns")
    causes = cost.invalid()
    if causes and judged.outcome != "unset":
        return Verdict("inconclusive", judged.margin, "; ".join(causes)), uncertainty
    if judged.outcome == "fail" and statistic == "max" and cost.kept is None:
        reason = f"{judged.reason}; interrupted readings were not told apart: {cost.interrupted_reason}"
        return Verdict("inconclusive", judged.margin, reason), uncertainty
    return judged, uncertainty


def read_measurement(
    cost: ReadCost, statistic: str, requirement: str, limit: Limit, n_required: int, context: Context
) -> Measurement:
    """Judge what a reading costs and return the record, in ns."""
    verdict, uncertainty = judge_read_cost(cost, statistic, limit, n_required)
    value = read_value_ns(cost, statistic)
    sample = Sample(QUANTITY, statistic, value, cost.undisturbed.n, n_required)
    return build_record(requirement, sample, limit, uncertainty, verdict, context)


def unread_measurement(
    reason: str, statistic: str, requirement: str, limit: Limit, n_required: int, context: Context
) -> Measurement:
    """Return the record of a clock that could not be read: `unset`, with the reason."""
    sample = Sample(QUANTITY, statistic, None, 0, n_required)
    nothing = Uncertainty.from_parts([])
    return build_record(requirement, sample, limit, nothing, Verdict("unset", None, reason), context)
