# SPDX-License-Identifier: Apache-2.0
"""The verdicts on a timeline: on what a leg takes, and by which it checks itself.

A message that came before it was sent, beyond the hard intervals of both places, says that a clock is wrong
for certain. That is a check of the bench; no leg of such a measurement has a verdict.
"""

from __future__ import annotations

from collections.abc import Sequence

from reports.record.context import Context, Sample, build_record
from reports.record.measurement import Limit, Measurement, Uncertainty, UncertaintyPart
from reports.record.verdict import Verdict, judge
from reports.requirements import Requirement
from reports.timeline.capability import (
    CONTRADICTIONS,
    DELAY_ERROR,
    FROM_TARGET,
    PLACES_BEYOND_U,
    PLACES_OUTSIDE,
    QUANTILES,
    TO_TARGET,
)
from reports.timeline.clock_record import Times
from reports.timeline.contradictions import Causality
from reports.timeline.delayed_legs import FoundDelay
from reports.timeline.leg import Leg, quantile_ns, quantile_uncertainty
from reports.timeline.legs import Legs
from reports.timeline.place_errors import PlaceErrors
from reports.timeline.turns import TURNS_MIN

CHECK = "BENCH-TIMELINE"
DELAY_CHECKS = {TO_TARGET: "BENCH-DELAY-TO-TARGET", FROM_TARGET: "BENCH-DELAY-FROM-TARGET"}
BOUND_CHECK, U_CHECK = "BENCH-PLACES-BOUND", "BENCH-PLACES-U"
BOUND_LIMIT = Limit(0, None, "no event lies outside its hard interval")
U_LIMIT = Limit(5, None, "U is made for 95 % of the events")
PLACES_MIN = 100
"""Events that both have."""
CHECK_LIMIT = Limit(0, None, "nothing comes before it was sent")


def leg_uncertainty(leg: Leg, statistic: str) -> Uncertainty:
    """Return U of a quantile of a leg, in ns.

    Args:
        leg: At least one message.
        statistic: `median` or `p99`.
    """
    return quantile_uncertainty(leg.time_ns, leg.u_ns, QUANTILES[statistic])


def leg_measurement(found: Legs, requirement: Requirement, context: Context) -> Measurement:
    """Judge a quantile of a leg and return the record, in ns.

    Args:
        found: What the events of both ends tell.
        requirement: On LEG_TIME, of one leg.
        context: Whose subject is on the axis `leg`.
    """
    leg = found.leg(requirement.of)
    uncertainty = leg_uncertainty(leg, requirement.statistic) if len(leg) else None
    return quantile_measurement(
        requirement, leg.time_ns, uncertainty, found.missing(leg), undecided(found), context
    )


def quantile_measurement(
    requirement: Requirement,
    time_ns: Times,
    uncertainty: Uncertainty | None,
    lost: int,
    why: str,
    context: Context,
) -> Measurement:
    """Judge a quantile of times that messages take, and return the record, in ns.

    Args:
        requirement: On the quantity; its statistic is `median` or `p99`.
        time_ns: Shape (n,): what each message took.
        uncertainty: Of the quantile; None: there is no message.
        lost: Messages that should have a time.
        why: Why there is no verdict; empty: there is one.
        context: Whose subject the times are of.
    """
    n, allowed, statistic = time_ns.size, requirement.lost or 0, requirement.statistic
    value = quantile_ns(time_ns, QUANTILES[statistic]) if n else None
    u = uncertainty or Uncertainty.from_parts([])
    judged = judge(
        value, requirement.limit, u, n=n, n_required=requirement.samples, lost=lost, allowed_lost=allowed,
        statistic=statistic, unit="ns",
    )  # fmt: skip
    if why and judged.outcome in ("pass", "fail"):
        judged = Verdict("inconclusive", judged.margin, why)
    sample = Sample(requirement.quantity, statistic, value, n, requirement.samples, lost, allowed)
    return build_record(requirement.id, sample, requirement.limit, u, judged, context)


def undecided(found: Legs) -> str:
    """Return why no leg has a verdict; empty: each has one."""
    causes = found.causality
    if causes.is_certain:
        return contradiction_text(causes)
    if found.lost_events:
        return f"{found.lost_events} events had no room in a ring"
    return "" if found.complete else "a program was stopped before its end"


def contradiction_text(causes: Causality) -> str:
    """Return the worst contradiction in words."""
    worst = causes.contradictions[0]
    whose = f"; the clock of {' or '.join(causes.suspects)} is wrong" if causes.suspects else ""
    return (
        f"{worst.count} of {worst.of} messages from {worst.sender} to {worst.receiver} came before they were"
        f" sent, by {worst.worst_ns} ns beyond what the clocks' bounds allow{whose}"
    )


def contradiction_measurement(found: Legs, context: Context) -> Measurement:
    """Judge how many messages came before they were sent, for certain."""
    causes = found.causality
    certain = [each for each in causes.contradictions if each.weight == "certain"]
    count, n = sum(each.count for each in certain), sum(map(len, found.legs))
    nothing = Uncertainty.from_parts([])
    judged = judge(count, CHECK_LIMIT, nothing, n=n, n_required=1, statistic="count")
    if certain and judged.outcome == "fail":
        judged = Verdict("fail", judged.margin, contradiction_text(causes))
    sample = Sample(CONTRADICTIONS, "count", count, n, 1)
    return build_record(CHECK, sample, CHECK_LIMIT, nothing, judged, context)


def delay_measurement(found: Sequence[FoundDelay], context: Context) -> Measurement:
    """Judge by how much a known delay is off in its own leg, and shows in the other: the worse of both.

    Args:
        found: Of one delay, in each leg.
        context: Whose subject is the delayed leg.
    """
    worst = max(found, key=lambda each: abs(each.error_ns) + each.u_ns)
    half_ns = worst.put_ns // 2
    limit = Limit(half_ns, -half_ns, "half of the delay: it is told from none")
    uncertainty = Uncertainty.from_parts([UncertaintyPart("turns", "standard", worst.standard_ns)])
    judged = judge(
        worst.error_ns, limit, uncertainty, n=worst.turns, n_required=TURNS_MIN, statistic="median", unit="ns"
    )
    if judged.outcome != "pass":
        judged = Verdict(judged.outcome, judged.margin, f"{worst.leg}: {judged.reason}")
    sample = Sample(DELAY_ERROR, "median", worst.error_ns, worst.turns, TURNS_MIN)
    return build_record(DELAY_CHECKS[worst.delayed], sample, limit, uncertainty, judged, context)


def place_measurements(errors: PlaceErrors, context: Context) -> tuple[Measurement, Measurement]:
    """Judge how many events lie outside the hard interval, and which share of them beyond U, by the card."""
    nothing, n = Uncertainty.from_parts([]), len(errors)
    outside, share = errors.outside, 100 * errors.beyond_u / n if n else None
    found: list[Measurement] = []
    for name, quantity, statistic, value, limit in (
        (BOUND_CHECK, PLACES_OUTSIDE, "count", outside if n else None, BOUND_LIMIT),
        (U_CHECK, PLACES_BEYOND_U, "share", share, U_LIMIT),
    ):
        sample = Sample(quantity, statistic, value, n, PLACES_MIN)
        judged = judge(
            value, limit, nothing, n=n, n_required=PLACES_MIN, statistic=statistic, unit=sample.unit
        )
        found.append(build_record(name, sample, limit, nothing, judged, context))
    return found[0], found[1]
