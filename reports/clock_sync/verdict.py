# SPDX-License-Identifier: Apache-2.0
"""The verdict on a target's clock, from one trial: the offset farthest from 0 against its limit.

The value comes from filtered reads of the reference (paper on intra-process clock synchronisation,
Listing 2), so that what interrupts the reading program does not look like an error of the clock. U has the
bound that the reference states, the certificate's bound of a card, and half of the widest bracket kept. A
target without timecard is held against two-way time transfer: U is half of the longest round trip kept, and
the bound of the time server's line.

A bench that stalled has fed the servo with packets that were as late as its stall. A packet that is
late by s shifts an offset by s/2 (RFC 5905, 8), so no more than half of the longest stall is put down to
it: an offset beyond limit + U by more than that fails, one beyond by less is inconclusive. So is everything
for which an answer is invalid, or whose stack did not hear its server. None of them is ever a pass.
"""

from __future__ import annotations

from reports.clock_sync.answers import ClockCompare
from reports.clock_sync.server_replies import invalid_causes
from reports.clock_sync.trial import ClockTrial
from reports.clock_sync.two_way_reference import TWO_WAY
from reports.record.context import Context, Sample, build_record
from reports.record.measurement import Limit, Measurement, Uncertainty, UncertaintyPart
from reports.record.verdict import Verdict, judge
from reports.tools.taken_time import TakenTime
from reports.units import format_value

QUANTITY = "sync_offset"
STATISTIC = "max_abs"
WITNESS_QUANTITY = "clock_witness_difference"
"""Reference against two-way transfer: by this the bench checks its own reference."""
DISTURBING_STALL_NS = 2_000_000
"""A shorter stall delays packets no more than load does."""
BENCH_STALLED = "the bench stalled"


def sync_uncertainty(trial: ClockTrial) -> Uncertainty:
    """Return U of an offset in ns, with its parts."""
    compare = trial.filtered
    if trial.facts.timecard.clock == TWO_WAY:
        return _two_way_uncertainty(compare)
    parts: list[UncertaintyPart] = []
    if compare.reference_bound_ns is not None:
        parts.append(UncertaintyPart("reference", "bound", compare.reference_bound_ns))
    if trial.facts.timecard.bound_ns:
        parts.append(UncertaintyPart("timecard_certificate", "bound", trial.facts.timecard.bound_ns))
    parts.append(UncertaintyPart("bracket", "bound", (compare.window.max_ns or 0) // 2))
    return Uncertainty.from_parts(parts)


def _two_way_uncertainty(compare: ClockCompare) -> Uncertainty:
    parts = [UncertaintyPart("two_way", "bound", (compare.window.max_ns or 0) // 2)]
    if compare.reference_bound_ns is not None:
        parts.append(UncertaintyPart("two_way_time_server", "bound", compare.reference_bound_ns))
    return Uncertainty.from_parts(parts)


def judge_sync(trial: ClockTrial, limit: Limit, n_required: int) -> tuple[Verdict, Uncertainty]:
    """Judge a trial; see the module for the rule."""
    uncertainty = sync_uncertainty(trial)
    compare = trial.filtered
    judged = judge(
        compare.extreme_ns,
        limit,
        uncertainty,
        n=compare.offset.n,
        n_required=n_required,
        statistic=STATISTIC,
        unit="ns",
    )
    return tempered(judged, trial, uncertainty), uncertainty


def tempered(judged: Verdict, trial: ClockTrial, uncertainty: Uncertainty) -> Verdict:
    """Return a verdict on a trial's clock in the light of all else that is known of the trial.

    Invalid answers, a silent server and steps leave no pass; the former two leave no fail either, and stalls
    none of a value that they can explain.

    Args:
        judged: What the value alone says, with its margin in ns.
        trial: That it was measured in.
        uncertainty: Of the value.
    """
    invalid = invalid_causes(trial)
    steps = [f"the clock stepped by {format_value(step, 'ns')}" for _, step in trial.filtered.steps]
    causes = [*invalid, *steps]
    if causes and judged.outcome in ("pass", "inconclusive"):
        return Verdict("inconclusive", judged.margin, "; ".join(causes))
    if judged.outcome == "fail" and invalid:
        return Verdict("inconclusive", judged.margin, "; ".join(causes))
    stalls_ns = disturbing_stalls_ns(trial)
    beyond_ns = -(judged.margin or 0) - 2 * uncertainty.expanded
    if judged.outcome == "fail" and stalls_ns and beyond_ns <= max(stalls_ns) // 2:
        longest = format_value(max(stalls_ns), "ns")
        reason = f"{judged.reason}; {BENCH_STALLED} {len(stalls_ns)} times, up to {longest}"
        return Verdict("inconclusive", judged.margin, reason)
    return judged


def disturbing_stalls_ns(trial: ClockTrial) -> list[int]:
    """Return how long the bench stalled each time, where it was long enough to disturb a servo, in ns.

    Pauses of all CPUs that follow each other closely are one, as long as they were together.
    """
    if trial.witness is None:
        return []
    machine = TakenTime.of(trial.witness)
    found: list[int] = []
    until_ns: int | None = None
    for start_ns, end_ns in zip(machine.starts_ns, machine.ends_ns, strict=True):
        if until_ns is not None and start_ns <= until_ns + DISTURBING_STALL_NS:
            found[-1] += end_ns - start_ns
        else:
            found.append(end_ns - start_ns)
        until_ns = end_ns
    return [length_ns for length_ns in found if length_ns >= DISTURBING_STALL_NS]


def sync_measurement(
    trial: ClockTrial, requirement: str, limit: Limit, n_required: int, context: Context
) -> Measurement:
    """Judge a trial and return the record: the offset farthest from 0, in ns."""
    verdict, uncertainty = judge_sync(trial, limit, n_required)
    n = trial.filtered.offset.n
    sample = Sample(QUANTITY, STATISTIC, trial.filtered.extreme_ns, n, n_required)
    return build_record(requirement, sample, limit, uncertainty, verdict, context)


def unset_measurement(
    requirement: str, limit: Limit, n_required: int, reason: str, context: Context
) -> Measurement:
    """Return the record of a clock that could not be measured: no lock in time, a daemon that died."""
    sample = Sample(QUANTITY, STATISTIC, None, 0, n_required)
    nothing = Uncertainty.from_parts([])
    return build_record(requirement, sample, limit, nothing, Verdict("unset", None, reason), context)


def witness_difference_ns(trial: ClockTrial) -> tuple[int, int, Uncertainty] | None:
    """Return how far reference and two-way transfer are apart, from how many intervals, and U.

    The reference's offsets are averaged over the time of the two-way exchanges. None without both.
    """
    two_way = trial.facts.two_way
    if two_way is None:
        return None
    begin_ns, end_ns = two_way.from_tai_ns, two_way.to_tai_ns
    points = [point for point in trial.filtered.series if begin_ns <= point.time_tai_ns <= end_ns]
    weight = sum(point.n for point in points)
    if not weight:
        return None
    mean_ns = round(sum(point.mean_ns * point.n for point in points) / weight)
    spread_ns = max(point.max_ns for point in points) - min(point.min_ns for point in points)
    parts = [
        *sync_uncertainty(trial).parts,
        UncertaintyPart("two_way", "bound", two_way.bound_ns),
        UncertaintyPart("clock_wander", "bound", spread_ns),
    ]
    return mean_ns - two_way.offset_ns, len(points), Uncertainty.from_parts(parts)


def witness_measurement(trial: ClockTrial, requirement: str, context: Context) -> Measurement | None:
    """Return the record by which the bench checks its reference; None where two-way transfer saw nothing.

    The difference may be as large as both witnesses' bounds together: U is used up thereby, as in the
    known-delay check.
    """
    found = witness_difference_ns(trial)
    if found is None:
        return None
    difference_ns, n, uncertainty = found
    allowed_ns = uncertainty.expanded
    limit = Limit(allowed_ns, -allowed_ns, "bounds of the reference and of two-way transfer together")
    nothing = Uncertainty.from_parts([])
    verdict = judge(difference_ns, limit, nothing, n=n, n_required=1, statistic="mean", unit="ns")
    if verdict.outcome == "fail":
        # It is the bench that contradicts itself; the target has not failed by that.
        verdict = Verdict(
            "inconclusive", verdict.margin, f"the witnesses contradict each other: {verdict.reason}"
        )
    sample = Sample(WITNESS_QUANTITY, "mean", difference_ns, n, 1)
    return build_record(requirement, sample, limit, nothing, verdict, context)
