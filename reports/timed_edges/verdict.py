# SPDX-License-Identifier: Apache-2.0
"""Verdicts on timed edges: delays of a method, the offset of a clock by its edges, order, and witnesses.

Values are ns. U and its parts come from the trial's budget. Beside the rule of `verdict.py`:

- too few delays for a budget, or no delay: unset, but for edges that are missing, more than allowed: fail;
- a doubt (an expired calibration, lost lock) or a trial that ended early: inconclusive, never a pass or fail;
- a reference edge without an edge beside it, or with a runt, counts as lost;
- so many edges may lie outside the record that, lost, they would be more than allowed: inconclusive, as the
  worst of them were not seen; only a scatter that is too large without them fails.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

from reports.normalised_error import normalised_error
from reports.record.context import Context, Sample, build_record
from reports.record.measurement import Limit, Measurement, Number, Uncertainty, UncertaintyPart
from reports.record.verdict import Verdict, judge
from reports.timed_edges.capability import (
    DEVIATION,
    MEAN,
    OFFSET_QUANTITY,
    ORDER_QUANTITY,
    PEAK_TO_PEAK,
    SHIFT_QUANTITY,
    WITNESS_QUANTITY,
)
from reports.timed_edges.trial import BudgetPart, EdgeTrial, Witness, Witnesses
from reports.units import format_value

_AVERAGED = ("noise", "clock_jitter", "jitter")
"""Parts of a mean that come from single edges: an extreme has its own in their place."""


def edge_value(trial: EdgeTrial, statistic: str, n_required: int) -> tuple[Number | None, int]:
    """Return a statistic of a trial's delays in ns and of how many; a peak to peak of n_required if known."""
    delays = trial.delays
    if delays is None:
        return None, 0
    if statistic == MEAN:
        return delays.mean_ns - trial.correction_ns, delays.count
    if statistic == DEVIATION:
        return delays.deviation_ns, delays.count
    first = delays.peak_to_peak_of(n_required)
    if first is not None:
        return first, n_required
    return delays.maximum_ns - delays.minimum_ns, delays.count


def edge_parts(trial: EdgeTrial, statistic: str) -> tuple[BudgetPart, ...] | None:
    """Return what a statistic of a trial is uncertain by; None where its delays are too few to tell."""
    budgets = trial.budgets
    if statistic == MEAN:
        return budgets.mean
    if statistic == DEVIATION:
        return budgets.deviation
    if statistic == PEAK_TO_PEAK:
        return budgets.peak_to_peak
    if budgets.mean is None or budgets.peak_to_peak is None:
        return None
    # Farthest from 0: what all edges share, and one of the two extremes' own.
    shared = [part for part in budgets.mean if part.name not in _AVERAGED and part.name != "time_base"]
    own = [replace(part, value_ns=part.value_ns / 2) for part in budgets.peak_to_peak]
    own = [part for part in own if part.name != "time_base"]
    bases = [part for part in (*budgets.mean, *budgets.peak_to_peak) if part.name == "time_base"]
    base = [BudgetPart("time_base", "bound", math.fsum(part.value_ns for part in bases))] if bases else []
    return (*own, *shared, *base)


def uncertainty_of(parts: Sequence[BudgetPart] | None) -> Uncertainty:
    """Return U of the parts of a budget; without any, of nothing."""
    found = parts or ()
    return Uncertainty.from_parts(UncertaintyPart(part.name, part.kind, part.value_ns) for part in found)


def edge_limit(statistic: str, limit_ns: Number, source: str) -> Limit:
    """Return the limit on a statistic: a mean may be as far to either side."""
    return Limit(limit_ns, -limit_ns if statistic == MEAN else None, source)


def edge_offset_ns(trial: EdgeTrial, statistic: str) -> Number | None:
    """Return a clock's offset by its edges: the mean, or that farthest from 0 (`max_abs`, without sign)."""
    delays = trial.delays
    if delays is None:
        return None
    if statistic == MEAN:
        return trial.correction_ns - delays.mean_ns
    ends = (delays.minimum_ns - trial.correction_ns, delays.maximum_ns - trial.correction_ns)
    return max(abs(end) for end in ends)


def edge_measurement(
    trial: EdgeTrial,
    quantity: str,
    statistic: str,
    requirement: str,
    limit: Limit,
    n_required: int,
    context: Context,
    *,
    allowed_lost: int = 0,
) -> Measurement:
    """Judge a statistic of a trial and return the record.

    Args:
        trial: The trial.
        quantity: QUANTITY, delays of a method; or OFFSET_QUANTITY, of its clock, positive: ahead.
        statistic: One of STATISTICS, or of OFFSET_STATISTICS.
        requirement: Id of the requirement.
        limit: Its limit.
        n_required: Edges that it asks for.
        context: Of the run.
        allowed_lost: Edges that may be missing.
    """
    if quantity == OFFSET_QUANTITY:
        value, n = edge_offset_ns(trial, statistic), 0 if trial.delays is None else trial.delays.count
    else:
        value, n = edge_value(trial, statistic, n_required)
    sample = Sample(quantity, statistic, value, n, n_required, trial.counts.lost, allowed_lost)
    return _judged(trial, edge_parts(trial, statistic), requirement, sample, limit, context)


def unmeasured_edges(
    reason: str,
    quantity: str,
    statistic: str,
    requirement: str,
    limit: Limit,
    n_required: int,
    context: Context,
) -> Measurement:
    """Return the record of edges that could not be measured: `unset`, with the reason."""
    sample = Sample(quantity, statistic, None, 0, n_required)
    return build_record(requirement, sample, limit, uncertainty_of(None), _unset(reason), context)


def order_measurement(
    better: EdgeTrial, worse: EdgeTrial, requirement: str, source: str, n_required: int, context: Context
) -> Measurement:
    """Judge whether one method scatters less than another and return the record.

    The value is the difference of their standard deviations, worse - better: over U it passes, under -U it
    fails, between the order is not decided.
    """
    limit = Limit(None, 0, source)
    both = (better, worse)
    budgets = [trial.budgets.deviation for trial in both]
    n = min(0 if trial.delays is None else trial.delays.count for trial in both)
    parts = _of_both(*budgets)
    value = None
    if better.delays is not None and worse.delays is not None:
        value = worse.delays.deviation_ns - better.delays.deviation_ns
    if value is None or parts is None:
        sample = Sample(ORDER_QUANTITY, DEVIATION, None, n, n_required)
        reason = "; ".join(_too_few(trial) for trial in both if trial.budgets.deviation is None)
        return build_record(requirement, sample, limit, uncertainty_of(None), _unset(reason), context)
    sample = Sample(ORDER_QUANTITY, DEVIATION, value, n, n_required)
    uncertainty = uncertainty_of(parts)
    verdict = judge(value, limit, uncertainty, n=n, n_required=n_required, statistic=DEVIATION, unit="ns")
    causes = [cause for trial in both for cause in _causes(trial)]
    if causes:
        verdict = Verdict("inconclusive", verdict.margin, "; ".join(causes))
    return build_record(requirement, sample, limit, uncertainty, verdict, context)


def shift_measurement(
    plain: EdgeTrial, wrong: EdgeTrial, requirement: str, expected_ns: Number, context: Context
) -> Measurement:
    """Return the record by which the bench checks that it would see a mistake of the software.

    Args:
        plain: Trial without a mistake.
        wrong: The same method with one.
        requirement: The check's id.
        expected_ns: How far the mistake moves an edge; positive: later.
        context: Of the run.

    The value is the shift of the mean less what is expected. It may be as large as U of both means together,
    which is used up thereby.
    """
    parts = _of_both(plain.budgets.mean, wrong.budgets.mean)
    if plain.delays is None or wrong.delays is None or parts is None:
        both = (plain, wrong)
        reason = "; ".join(_too_few(trial) for trial in both if trial.budgets.mean is None)
        sample = Sample(SHIFT_QUANTITY, MEAN, None, 0, 1)
        limit = Limit(0, 0, "no uncertainty is known")
        return build_record(requirement, sample, limit, uncertainty_of(None), _unset(reason), context)
    shift_ns = wrong.delays.mean_ns - plain.delays.mean_ns
    shift_ns -= wrong.correction_ns - plain.correction_ns
    allowed_ns = uncertainty_of(parts).expanded
    source = f"U of both means together, about the {expected_ns:g} ns that were put in"
    limit = Limit(allowed_ns, -allowed_ns, source)
    n = min(plain.delays.count, wrong.delays.count)
    sample = Sample(SHIFT_QUANTITY, MEAN, shift_ns - expected_ns, n, 1)
    causes = [*_causes(plain), *_causes(wrong)]
    if allowed_ns >= abs(expected_ns):
        put, u = format_value(expected_ns, "ns"), format_value(allowed_ns, "ns")
        causes.append(f"{put} put in cannot be told from none: U = {u}")
    return _check_record(
        requirement,
        sample,
        limit,
        "the mistake does not show as it should: the mean is off by",
        causes,
        context,
    )


def witness_en(one: Witness, other: Witness) -> float | None:
    """Return E_n = |x1 - x2| / sqrt(U1^2 + U2^2); None where one of them has no offset."""
    if one.offset_ns is None or other.offset_ns is None:
        return None
    expanded = (uncertainty_of(each.parts).expanded for each in (one, other))
    return normalised_error(one.offset_ns, other.offset_ns, *expanded)


def witness_pairs(witnesses: Witnesses) -> list[tuple[Witness, Witness]]:
    """Return every two of the witnesses."""
    return list(itertools.combinations(witnesses.witnesses, 2))


def witness_measurements(
    witnesses: Witnesses, requirement: str, n_required: int, context: Context
) -> list[Measurement]:
    """Return a record for every two witnesses of a clock: they agree where E_n is at most 1.

    `subject.method` names the two. Their uncertainties are used up in E_n. Where they contradict each
    other it is the bench that does: inconclusive, not a fail.
    """
    records: list[Measurement] = []
    limit = Limit(1, None, "E_n = |x1 - x2| / sqrt(U1^2 + U2^2) (ISO 13528): both agree within their U")
    for one, other in witness_pairs(witnesses):
        pair = f"{one.name}/{other.name}"
        where = replace(context, subject=replace(context.subject, method=pair))
        value = witness_en(one, other)
        if value is None or not math.isfinite(value):
            reason = "; ".join(f"{each.name}: {each.failed}" for each in (one, other) if each.failed)
            sample = Sample(WITNESS_QUANTITY, "en", None, 0, n_required)
            verdict = _unset(reason or f"{pair}: no uncertainty")
            records.append(build_record(requirement, sample, limit, uncertainty_of(None), verdict, where))
            continue
        sample = Sample(WITNESS_QUANTITY, "en", value, min(one.n, other.n), n_required)
        causes = [f"{each.name}: {doubt}" for each in (one, other) for doubt in each.doubts]
        said = f"{one.name} and {other.name} contradict each other: E_n is"
        records.append(_check_record(requirement, sample, limit, said, causes, where))
    return records


def _judged(
    trial: EdgeTrial,
    parts: tuple[BudgetPart, ...] | None,
    requirement: str,
    sample: Sample,
    limit: Limit,
    context: Context,
) -> Measurement:
    uncertainty = uncertainty_of(parts)
    if sample.value is None or parts is None:
        nothing = replace(sample, value=None)
        verdict = _unset(_too_few(trial))
        if sample.lost > sample.allowed_lost and not _causes(trial):
            verdict = Verdict("fail", None, f"{sample.lost} lost, {sample.allowed_lost} allowed")
        return build_record(requirement, nothing, limit, uncertainty, verdict, context)
    verdict = judge(
        sample.value,
        limit,
        uncertainty,
        n=sample.n,
        n_required=sample.n_required,
        lost=sample.lost,
        allowed_lost=sample.allowed_lost,
        statistic=sample.statistic,
        unit="ns",
    )
    causes = _causes(trial)
    if causes:
        verdict = Verdict("inconclusive", verdict.margin, "; ".join(causes))
    outside = trial.counts.at_border
    undecided = verdict.outcome == "pass" or (verdict.outcome == "fail" and sample.statistic == MEAN)
    if undecided and sample.lost <= sample.allowed_lost < sample.lost + outside:
        reason = f"{outside} edges may lie outside the record: what is farthest off was not seen"
        verdict = Verdict("inconclusive", verdict.margin, reason)
    return build_record(requirement, sample, limit, uncertainty, verdict, context)


def _check_record(
    requirement: str, sample: Sample, limit: Limit, said: str, causes: Sequence[str], context: Context
) -> Measurement:
    """Return the record of the bench's check of itself, whose uncertainty is used up in value or limit."""
    nothing = uncertainty_of(None)
    verdict = judge(
        sample.value,
        limit,
        nothing,
        n=sample.n,
        n_required=sample.n_required,
        statistic=sample.statistic,
        unit=sample.unit,
    )
    if verdict.outcome == "fail":
        # It is the bench that contradicts itself; the target has not failed by that.
        found = format_value(sample.value, sample.unit)
        allowed = format_value(limit.upper, sample.unit)
        reason = f"{said} {found}; at most {allowed} is allowed"
        verdict = Verdict("inconclusive", verdict.margin, reason)
    elif causes and verdict.outcome == "pass":
        verdict = Verdict("inconclusive", verdict.margin, "; ".join(causes))
    return build_record(requirement, sample, limit, nothing, verdict, context)


def _of_both(*budgets: tuple[BudgetPart, ...] | None) -> tuple[BudgetPart, ...] | None:
    """Return the parts of all budgets together; None: one is not known."""
    found: list[BudgetPart] = []
    for parts in budgets:
        if parts is None:
            return None
        found += parts
    return tuple(found)


def _causes(trial: EdgeTrial) -> list[str]:
    ended = [f"{trial.name}: ended early: {trial.failed}"] if trial.failed else []
    return [*ended, *(f"{trial.name}: {doubt}" for doubt in trial.doubts)]


def _too_few(trial: EdgeTrial) -> str:
    """Say why a trial has no value or no uncertainty."""
    if trial.failed:
        return f"{trial.name}: {trial.failed}"
    if trial.delays is None:
        return f"{trial.name}: no pair of edges in {trial.counts.segments} segments"
    return f"{trial.name}: {trial.delays.count} pairs: too few to tell their uncertainty"


def _unset(reason: str) -> Verdict:
    return Verdict("unset", None, reason)
