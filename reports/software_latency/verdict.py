# SPDX-License-Identifier: Apache-2.0
"""The verdict on a device's software latency, and on the sums by which the bench proves itself.

A device is judged by the mean of S, send and receive of one trip together, with its U. Where the trips are
not what the model says (they wander, devices are not independent) nothing passes: inconclusive, with what was
found. Sums that have to agree (roles swapped, four devices) are a check of the bench: the largest E_n of
their means is held against 1.5, three standard deviations, because several are looked at.
"""

from __future__ import annotations

import math

from reports.record.context import Context, Sample, build_record
from reports.record.measurement import Limit, Measurement, Uncertainty, UncertaintyPart
from reports.record.verdict import Verdict, judge
from reports.software_latency.evidence import SoftwareLatencies

QUANTITY = "software_latency"
CLOSURE = "software_latency_en"
STATISTIC = "mean"
EN_MAX = 1.5
CLOSURE_LIMIT = Limit(EN_MAX, None, "E_n of sums that have to agree; 1.5 is three standard deviations")


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
        verdict = Verdict("unset", None, f"no device {device} was measured")
        return build_record(requirement, sample, limit, Uncertainty.from_parts([]), verdict, context)
    own = [each for each in found.estimate.measured if {each.asker, each.reflector} & set(latency.devices)]
    n = min(each.n for each in own)
    half = math.ceil(latency.mean_expanded_ns / 2)
    uncertainty = Uncertainty.from_parts([UncertaintyPart("round_trips", "standard", half)])
    value = round(latency.mean_ns)
    judged = judge(value, limit, uncertainty, n=n, n_required=n_required, statistic=STATISTIC, unit="ns")
    if found.estimate.doubts and judged.outcome in ("pass", "fail"):
        judged = Verdict("inconclusive", judged.margin, "; ".join(found.estimate.doubts))
    sample = Sample(QUANTITY, STATISTIC, value, n, n_required)
    return build_record(requirement, sample, limit, uncertainty, judged, context)


def closure_measurement(found: SoftwareLatencies, requirement: str, context: Context) -> Measurement:
    """Judge how well sums of means agree that have to, and return the record."""
    means = [each for each in found.closures if each.order == 1]
    worst = max(means, key=lambda each: each.en, default=None)
    value = worst.en if worst else None
    nothing = Uncertainty.from_parts([])
    judged = judge(value, CLOSURE_LIMIT, nothing, n=len(means), n_required=1, statistic="en")
    if judged.outcome == "fail" and worst:
        judged = Verdict("fail", judged.margin, f"{worst.one_name} and {worst.other_name}: {judged.reason}")
    sample = Sample(CLOSURE, "en", value, len(means), 1)
    return build_record(requirement, sample, CLOSURE_LIMIT, nothing, judged, context)
