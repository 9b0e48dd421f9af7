# SPDX-License-Identifier: Apache-2.0
"""The verdict on a device's software latency, and on the sums by which the bench proves itself.

A device is judged by the mean of S, send and receive of one trip together, with its U, in which the latency
of cables and switches that was taken off has a part. Where the trips are
not what the model says (they wander, devices are not independent) U has a part for it: what every other
choice of partners and of time leads to. A verdict that stands for all of them stands, else it is
inconclusive. Sums that have to agree (roles swapped, four devices) are a check of the bench: each difference
is held with its own U against what the requirement allows; a device's S is off by at most half of it.
"""

from __future__ import annotations

import math

from reports.record.context import Context, Sample, build_record
from reports.record.measurement import Limit, Measurement, Uncertainty, UncertaintyPart
from reports.record.verdict import Verdict, judge
from reports.run.tally import WORST_FIRST
from reports.software_latency.capability import CLOSURE, QUANTITY, STATISTIC
from reports.software_latency.closure import Closure
from reports.software_latency.estimate import HARDWARE, undecided
from reports.software_latency.evidence import SoftwareLatencies

FLOAT_NOISE_NS = 1e-6
"""So much the last digits of a sum of floats may differ from processor to processor."""


def software_measurement(
    found: SoftwareLatencies, device: str, requirement: str, limit: Limit, n_required: int, context: Context
) -> Measurement:
    """Judge the mean of a device's S and return the record, in ns.

    Args:
        found: What the round trips tell.
        device: Its name.
        requirement: Id.
        limit: Of the mean, in ns.
        n_required: Trips that count of each pair that the device is part of.
        context: Whose subject is on the axis `device`.
    """
    latency = next((each for each in found.estimate.latencies if device in each.devices), None)
    if latency is None:
        sample = Sample(QUANTITY, STATISTIC, None, 0, n_required)
        silent = found.silent.get(device)
        verdict = (
            Verdict("inconclusive", None, f"{device} was not heard: {silent}")
            if silent
            else Verdict("unset", None, f"no device {device} was measured")
        )
        return build_record(requirement, sample, limit, Uncertainty.from_parts([]), verdict, context)
    own = [each for each in found.estimate.measured if {each.asker, each.reflector} & set(latency.devices)]
    n = min(each.n for each in own)
    half = _up(latency.mean_expanded_ns / 2)
    parts = [UncertaintyPart(each.name, "bound", _up(each.ns)) for each in latency.bounds]
    uncertainty = Uncertainty.from_parts([UncertaintyPart("round_trips", "standard", half), *parts])
    value = round(latency.mean_ns)
    judged = judge(value, limit, uncertainty, n=n, n_required=n_required, statistic=STATISTIC, unit="ns")
    if (open_ := undecided(found.estimate, latency)) and judged.outcome in ("pass", "fail"):
        judged = Verdict("inconclusive", judged.margin, "; ".join(open_))
    sample = Sample(QUANTITY, STATISTIC, value, n, n_required)
    return build_record(requirement, sample, limit, uncertainty, judged, context)


def closure_measurement(
    found: SoftwareLatencies, requirement: str, limit: Limit, n_required: int, context: Context
) -> Measurement:
    """Judge how far sums of means are apart that have to agree; return the record of the worst, in ns.

    Each difference has a U of its own: the largest need not be the one that is nearest to the limit.

    Args:
        found: What the round trips tell.
        requirement: Id.
        limit: Of the largest difference, in ns.
        n_required: Trips that count of each pair.
        context: Of the record.
    """
    n = min((each.n for each in found.estimate.measured), default=0)
    judged = [_judged_sums(each, n, limit, n_required) for each in found.closures if each.order == 1]
    if not judged:
        verdict = Verdict("unset", None, "no two sums of these round trips have to agree")
        sample = Sample(CLOSURE, "max", None, 0, n_required)
        return build_record(requirement, sample, limit, Uncertainty.from_parts([]), verdict, context)
    value, uncertainty, verdict = min(
        judged, key=lambda each: (WORST_FIRST.index(each[2].outcome), each[2].margin or 0, -each[0])
    )
    sample = Sample(CLOSURE, "max", value, n, n_required)
    return build_record(requirement, sample, limit, uncertainty, verdict, context)


def _judged_sums(sums: Closure, n: int, limit: Limit, n_required: int) -> tuple[int, Uncertainty, Verdict]:
    """Return how far two sums are apart in ns, with its U, and the verdict on it."""
    half = _up((sums.expanded - sums.hardware_ns) / 2)
    parts = [UncertaintyPart("round_trips", "standard", half)]
    if sums.hardware_ns > 0:
        parts.append(UncertaintyPart(HARDWARE, "bound", _up(sums.hardware_ns)))
    uncertainty = Uncertainty.from_parts(parts)
    value = round(abs(sums.one - sums.other))
    judged = judge(value, limit, uncertainty, n=n, n_required=n_required, statistic="max", unit="ns")
    if judged.outcome != "pass":
        where = f"{sums.one_name}, {sums.other_name}"
        judged = Verdict(judged.outcome, judged.margin, f"{where}: {judged.reason}")
    return value, uncertainty, judged


def _up(ns: float) -> int:
    """Round up to whole ns; what floats add to a whole one is none."""
    return math.ceil(ns - FLOAT_NOISE_NS)
