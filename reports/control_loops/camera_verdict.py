# SPDX-License-Identifier: Apache-2.0
"""The verdicts on a loop of camera and tracker, and by which the bench checks itself.

The pictures are the second witness: when was the target where a command says to look? It has to agree with
what the programs' points say of the same commands, by E_n at most 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from reports.control_loops import stretch_verdict
from reports.control_loops.camera_loop import CameraLoop
from reports.control_loops.capability import (
    OUT_OF_PICTURE,
    SLOPE_ERROR,
    UNACCOUNTED,
    WITNESSES,
)
from reports.control_loops.stretch_verdict import WholeCheck, count_measurement, stretch_uncertainty
from reports.normalised_error import normalised_error
from reports.record.context import Context, Sample, build_record
from reports.record.measurement import Limit, Measurement, Uncertainty, UncertaintyPart
from reports.record.verdict import Verdict, judge
from reports.requirements import Requirement
from reports.timeline.leg import quantile_ns

SLOPE_CHECK = "BENCH-CAMERA-SLOPE"
ORDER_CHECK = "BENCH-CAMERA-ORDER"
OUTSIDE_CHECK, U_CHECK = "BENCH-CAMERA-BOUND", "BENCH-CAMERA-U"
ACCOUNT_CHECK = "BENCH-CAMERA-ACCOUNT"
WITNESS_CHECK = "BENCH-CAMERA-WITNESSES"
NS_PER_MS = 1_000_000
WITNESS_U_MAX_NS = 10 * NS_PER_MS
"""Beyond that two witnesses agree whatever they say."""
COMMANDS_MIN = 20
ORDER_LIMIT = Limit(0, None, "nothing is read before it was written")
OUTSIDE_LIMIT = Limit(0, None, "the camera's own counter has measured the same pictures")
U_LIMIT = Limit(5, None, "U is made for 95 % of the pictures")
ACCOUNT_LIMIT = Limit(0, None, "each picture has one loop delay, or one reason why it has none")
SLOPE_LIMIT = Limit(0.1, -0.1, "pictures and commands each have the path's delay once: a slope of 2")
WITNESS_LIMIT = Limit(1, None, "events and pictures tell one delay, within U of both")


def in_picture_measurement(found: CameraLoop, requirement: Requirement, context: Context) -> Measurement:
    """Judge in which share of the pictures the target's centre is not, in percent."""
    n = int(found.in_picture.size)
    value = 100 * found.out_of_picture if n else None
    nothing = Uncertainty.from_parts([])
    judged = judge(
        value, requirement.limit, nothing, n=n, n_required=requirement.samples, statistic="share", unit="%"
    )
    if not found.complete and judged.outcome in ("pass", "fail"):
        judged = Verdict("inconclusive", judged.margin, "the camera's truth file is not whole")
    sample = Sample(OUT_OF_PICTURE, "share", value, n, requirement.samples)
    return build_record(requirement.id, sample, requirement.limit, nothing, judged, context)


def order_measurement(found: CameraLoop, context: Context) -> Measurement:
    """Judge how many pictures and commands came before they were sent, for certain."""
    n = len(found.pictures) + len(found.commands)
    return stretch_verdict.order_measurement(ORDER_CHECK, ORDER_LIMIT, found.causality, n, context)


def account_measurement(found: CameraLoop, context: Context) -> Measurement:
    """Judge how many pictures have neither one loop delay nor one reason why they have none."""
    n = int(found.truth.captured_ns.size)
    return count_measurement(ACCOUNT_CHECK, UNACCOUNTED, ACCOUNT_LIMIT, found.unaccounted, n, "", context)


def sum_measurements(found: CameraLoop, context: Context) -> tuple[Measurement, Measurement]:
    """Judge the sum of the three parts, by the timeline, against the whole by the camera's own counter."""
    has = found.whole_u_ns >= 0
    check = WholeCheck(OUTSIDE_CHECK, OUTSIDE_LIMIT, U_CHECK, U_LIMIT)
    return check.measurements(
        found.whole_on_timeline_ns[has],
        found.whole.time_ns[has],
        found.whole_bound_ns[has],
        found.whole_u_ns[has],
        context,
    )


def witnesses_en(found: CameraLoop) -> tuple[float, int, int, int]:
    """Return E_n of both witnesses, their difference in ns (pixels less events), and both U in ns.

    NaN: one of them says nothing.
    """
    pixels = found.pixels
    if pixels is None or not len(found.whole):
        return math.nan, 0, 0, 0
    by_events_ns, by_pixels_ns = quantile_ns(found.whole.time_ns, 0.5), quantile_ns(pixels.delay_ns, 0.5)
    events_u_ns = round(stretch_uncertainty(found.whole, "median").expanded)
    en = normalised_error(by_pixels_ns, by_events_ns, pixels.u_ns, events_u_ns)
    return en, by_pixels_ns - by_events_ns, pixels.u_ns, events_u_ns


def witness_measurement(found: CameraLoop, context: Context) -> Measurement:
    """Judge whether pictures and events tell one delay."""
    en, difference_ns, pixels_u_ns, events_u_ns = witnesses_en(found)
    n = len(found.pixels.delay_ns) if found.pixels else 0
    nothing = Uncertainty.from_parts([])
    value = None if math.isnan(en) else en
    judged = judge(value, WITNESS_LIMIT, nothing, n=n, n_required=COMMANDS_MIN, statistic="en")
    if judged.outcome == "pass" and max(pixels_u_ns, events_u_ns) > WITNESS_U_MAX_NS:
        why = f"U of {max(pixels_u_ns, events_u_ns) / NS_PER_MS:.1f} ms agrees with anything"
        judged = Verdict("inconclusive", judged.margin, why)
    if judged.outcome == "fail":
        judged = Verdict("fail", judged.margin, f"{difference_words(found, difference_ns)} (E_n {en:.2f})")
    sample = Sample(WITNESSES, "en", value, n, COMMANDS_MIN)
    return build_record(WITNESS_CHECK, sample, WITNESS_LIMIT, nothing, judged, context)


def difference_words(found: CameraLoop, difference_ns: int) -> str:
    """Return in words what may be the cause of a difference of both witnesses."""
    said = f"by the pictures the loop takes {difference_ns / NS_PER_MS:+.1f} ms more than by events"
    assert found.pixels is not None
    told = found.pixels.motor_ns[found.pixels.motor_ns >= 0]
    behind_ns = quantile_ns(told, 0.5) if told.size else 0
    if behind_ns > difference_ns / 2 > 0:
        return f"{said}; {behind_ns / NS_PER_MS:.1f} ms lie between a command's arrival and the motor"
    period_ns = found.facts.period_us * 1000
    pictures = round(difference_ns / period_ns)
    if pictures and abs(difference_ns - pictures * period_ns) < period_ns / 4:
        return f"{said}: {abs(pictures)} pictures; are their numbers right?"
    return said


def slope_measurement(loops: Sequence[CameraLoop], context: Context) -> Measurement:
    """Judge by how much the slope of the loop's median against the path's measured delay is off 2.

    From the least delay to the most, the mean of both ways.

    Args:
        loops: Of one bench, each with its measured delay.
        context: Whose subject is the whole.
    """
    points = sorted((found for found in loops if found.facts.delay and len(found.whole)), key=_delay_us)
    value, uncertainty = None, Uncertainty.from_parts([])
    if len(points) > 1 and (range_us := _delay_us(points[-1]) - _delay_us(points[0])) > 0:
        ends = points[0], points[-1]
        medians_us = [quantile_ns(each.whole.time_ns, 0.5) / 1000 for each in ends]
        value = (medians_us[1] - medians_us[0]) / range_us - 2
        by_loop = sum(stretch_uncertainty(each.whole, "median").expanded for each in ends) / 1000 / range_us
        delays = [each.facts.delay for each in ends]
        by_path = 2 * sum(each.u_us for each in delays if each) / range_us
        uncertainty = Uncertainty.from_parts(
            [UncertaintyPart("loop", "bound", by_loop), UncertaintyPart("path", "bound", by_path)]
        )
    n = len(points)
    judged = judge(value, SLOPE_LIMIT, uncertainty, n=n, n_required=2, statistic="slope")
    sample = Sample(SLOPE_ERROR, "slope", value, n, 2)
    return build_record(SLOPE_CHECK, sample, SLOPE_LIMIT, uncertainty, judged, context)


def _delay_us(found: CameraLoop) -> float:
    delay = found.facts.delay
    return (delay.there_us + delay.back_us) / 2 if delay else math.nan
