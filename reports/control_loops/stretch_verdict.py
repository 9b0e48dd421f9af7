# SPDX-License-Identifier: Apache-2.0
"""The verdict on a stretch of a loop, and what checks of loops have in common."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from reports.control_loops.capability import ORDER, QUANTILES, WHOLE, WHOLE_BEYOND_U, WHOLE_OUTSIDE
from reports.control_loops.loop import Loop, Stretch
from reports.record.context import Context, Sample, build_record
from reports.record.measurement import Limit, Measurement, Uncertainty, UncertaintyPart
from reports.record.verdict import Verdict, judge
from reports.requirements import Requirement
from reports.timeline.clock_record import ClockLimits, Times
from reports.timeline.contradictions import Causality
from reports.timeline.leg import off_in_quarters_ns, quantile_ns, quantile_uncertainty
from reports.timeline.verdict import contradiction_text, quantile_measurement

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
    stretch = found.stretch(requirement.quantity, name or requirement.of)
    uncertainty = stretch_uncertainty(stretch, requirement.statistic) if len(stretch) else None
    lost = found.missing(stretch)
    why = undecided(found, stretch) or _unstamped(found, stretch, requirement.statistic)
    return quantile_measurement(requirement, stretch.time_ns, uncertainty, lost, why, context)


def _unstamped(found: Loop, stretch: Stretch, statistic: str) -> str:
    """Return in words that too many messages have no stamp of their own for a quantile; empty: few have none.

    Were all of them slow, or all quick, the quantile would be another one: by half of the way to its end.
    """
    count = found.unstamped(stretch)
    allowed = min(QUANTILES[statistic], 1 - QUANTILES[statistic]) / 2 * (len(stretch) + count)
    if count <= allowed:
        return ""
    return f"{count} of {len(stretch) + count} messages share the stamp of another, {math.floor(allowed)} may"


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


def order_measurement(check: str, limit: Limit, causes: Causality, n: int, context: Context) -> Measurement:
    """Judge how many of n messages came before they were sent, for certain."""
    certain = [each for each in causes.contradictions if each.weight == "certain"]
    value = sum(each.count for each in certain)
    why = contradiction_text(causes) if certain else ""
    return count_measurement(check, ORDER, limit, value, n, why, context)


@dataclass(frozen=True, slots=True)
class WholeCheck:
    """The whole by the timeline, held against the same by one counter.

    Attributes:
        bound, u: Names of the checks.
        bound_limit, u_limit: Theirs; of a count, and of a share in percent.
    """

    bound: str
    bound_limit: Limit
    u: str
    u_limit: Limit

    def measurements(
        self, time_ns: Times, own_ns: Times, bound_ns: Times, u_ns: Times, context: Context
    ) -> tuple[Measurement, Measurement]:
        """Judge how many lie outside the bounds, and which share of them beyond U.

        Args:
            time_ns: Shape (n,), by the timeline.
            own_ns: Shape (n,), by the counter.
            bound_ns: Shape (n,), of `time_ns`.
            u_ns: Likewise.
            context: Whose subject is the whole.
        """
        n = time_ns.size
        off_ns = np.abs(time_ns - own_ns)
        rate_ns = own_ns * ClockLimits().rate_ppb // PPB
        outside = int((off_ns > bound_ns + rate_ns).sum())
        beyond = int((off_ns > u_ns + rate_ns).sum())
        one = count_measurement(self.bound, WHOLE_OUTSIDE, self.bound_limit, outside, n, "", context)
        nothing, share = Uncertainty.from_parts([]), 100 * beyond / n if n else None
        judged = judge(share, self.u_limit, nothing, n=n, n_required=1, statistic="share", unit="%")
        sample = Sample(WHOLE_BEYOND_U, "share", share, n, 1)
        return one, build_record(self.u, sample, self.u_limit, nothing, judged, context)
