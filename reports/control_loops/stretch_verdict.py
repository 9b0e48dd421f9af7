# SPDX-License-Identifier: Apache-2.0
"""The verdict on a stretch of a loop, and what checks of loops have in common."""

from __future__ import annotations

import math

from reports.control_loops.capability import QUANTILES, WHOLE
from reports.control_loops.loop import Loop, Stretch
from reports.record.context import Context, Sample, build_record
from reports.record.measurement import Limit, Measurement, Uncertainty, UncertaintyPart
from reports.record.verdict import Verdict, judge
from reports.requirements import Requirement
from reports.timeline.clock_record import ClockLimits
from reports.timeline.leg import off_in_quarters_ns, quantile_ns, quantile_uncertainty
from reports.timeline.verdict import contradiction_text

PPB = 1_000_000_000


def stretch_uncertainty(stretch: Stretch, statistic: str) -> Uncertainty:
    """Return U of a quantile of a stretch, in ns.

    Args:
        stretch: At least one message.
        statistic: `median` or `p99`.
    """
    share = QUANTILES[statistic]
    if stretch.u_ns is not None:
        return quantile_uncertainty(stretch.time_ns, stretch.u_ns, share)
    value_ns = quantile_ns(stretch.time_ns, share)
    return Uncertainty.from_parts(
        [
            UncertaintyPart("counter", "bound", math.ceil(abs(value_ns) * ClockLimits().rate_ppb / PPB)),
            UncertaintyPart("quarters", "bound", off_in_quarters_ns(stretch.time_ns, share)),
        ]
    )


def stretch_measurement(
    found: Loop, requirement: Requirement, context: Context, name: str = ""
) -> Measurement:
    """Judge a quantile of a stretch and return the record, in ns.

    Args:
        found: What the events of all programs tell.
        requirement: On LOOP_DELAY or LOOP_WIRE_DELAY, of one stretch.
        context: Whose subject is on the axis `stretch`.
        name: Of the stretch; empty: what the requirement is on.

    Raises:
        RecordError: The loop has no such stretch.
    """
    stretch, limit = found.stretch(requirement.quantity, name or requirement.of), requirement.limit
    n, lost = len(stretch), found.missing(stretch)
    value, uncertainty = None, Uncertainty.from_parts([])
    if n:
        value = quantile_ns(stretch.time_ns, QUANTILES[requirement.statistic])
        uncertainty = stretch_uncertainty(stretch, requirement.statistic)
    allowed = requirement.lost or 0
    judged = judge(
        value, limit, uncertainty, n=n, n_required=requirement.samples, lost=lost, allowed_lost=allowed,
        statistic=requirement.statistic, unit="ns",
    )  # fmt: skip
    if (why := undecided(found, stretch)) and judged.outcome in ("pass", "fail"):
        judged = Verdict("inconclusive", judged.margin, why)
    sample = Sample(requirement.quantity, requirement.statistic, value, n, requirement.samples, lost, allowed)
    return build_record(requirement.id, sample, limit, uncertainty, judged, context)


def undecided(found: Loop, stretch: Stretch) -> str:
    """Return why a stretch has no verdict; empty: it has one. The whole needs no other machine's clock."""
    causes = found.causality
    if causes.is_certain and stretch.u_ns is not None and stretch.name != WHOLE:
        return contradiction_text(causes)
    if found.lost_events:
        return f"{found.lost_events} events had no room in a ring of bw-events"
    return "" if found.complete else "a program was stopped before its end"


def count_measurement(
    check: str, quantity: str, limit: Limit, value: int, n: int, why: str, context: Context
) -> Measurement:
    """Judge a count that has to be 0; of nothing there is none."""
    nothing = Uncertainty.from_parts([])
    judged = judge(value if n else None, limit, nothing, n=n, n_required=1, statistic="count")
    if why and judged.outcome == "fail":
        judged = Verdict("fail", judged.margin, why)
    sample = Sample(quantity, "count", value if n else None, n, 1)
    return build_record(check, sample, limit, nothing, judged, context)
