# SPDX-License-Identifier: Apache-2.0
"""The verdict on a target's clock by a mask: one record for each quantity that the mask limits.

Single values come from all samples of a trial; curves (MTIE, TDEV) from the means of its series, so through
an average of one interval, and never across a gap or a step. Of a curve that tau is recorded at which least
is left to the mask (reports/clock_sync/mask_curve.py).

U comes from the bound B of one offset (reports/clock_sync/verdict.py). Offsets that are each off by at most
B move a mean, an extreme and what a low-pass makes of them by B, a peak to peak by 2 B, and TDEV, the root
mean square of (x3 - 2 x2 + x1) / sqrt(6), by 4 B / sqrt(6) (Minkowski's inequality).

A mask asks for a range of tau. Where a series is too short for it, nothing passes: what was judged is said.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import cast

from reports.clock_sync.answers import series_of
from reports.clock_sync.mask import VALUES, CurveQuantity, Mask, Quantity
from reports.clock_sync.mask_curve import MTIES, curve_of, limited_series, mask_points, worst_point
from reports.clock_sync.series import ClockSeries
from reports.clock_sync.stability import TERMS_MIN
from reports.clock_sync.time_error import CTE_WINDOW_NS, TimeError, time_error
from reports.clock_sync.trial import ClockTrial
from reports.clock_sync.verdict import sync_uncertainty, tempered
from reports.record.context import Context, Sample, build_record
from reports.record.measurement import Limit, Measurement, Number, Uncertainty, UncertaintyPart
from reports.record.verdict import Verdict, judge
from reports.units import NS_PER_S

RECORDED: dict[Quantity, tuple[str, str]] = {
    "max_abs_te": ("te", "max_abs"),
    "max_abs_tel": ("te_l", "max_abs"),
    "cte": ("cte", "mean"),
    "mtie": ("mtie", "max"),
    "tdev": ("tdev", "deviation"),
    "dte_l_mtie": ("dte_l_mtie", "max"),
    "dte_l_tdev": ("dte_l_tdev", "deviation"),
}
"""Quantity and statistic of the record, by the quantity of the mask."""
MASK_QUANTITIES = frozenset(quantity for quantity, _statistic in RECORDED.values())
MASKED_KINDS = frozenset({"sync", "interval", "load"})
"""Kinds of trials that masks are for: a clock that is locked to a server whose packets nothing impairs."""
TAU_TOLERANCE = 1.01
"""The interval of a series is what it was: 0.1 s may be 0.1002 s."""
_TDEV_GAIN = 4 / math.sqrt(6)


@dataclass(frozen=True)
class MaskRange:
    """A mask, and the taus that it must be judged at; None: those at which the mask begins and ends."""

    mask: Mask
    from_tau_s: float | None = None
    to_tau_s: float | None = None

    def wanted_s(self, quantity: Quantity) -> tuple[float, float]:
        """Return the least and largest tau; of a mask without end, that from which on it does not change."""
        segments = self.mask.of(quantity)
        first, last = segments[0], segments[-1]
        end_s = last.tau_above_s if math.isinf(last.tau_to_s) else last.tau_to_s
        low_s = first.tau_above_s if self.from_tau_s is None else self.from_tau_s
        return low_s, end_s if self.to_tau_s is None else self.to_tau_s


@dataclass(frozen=True)
class _Finding:
    """What a trial gives for one quantity: value and limit where least is left, and what is missing."""

    value: Number | None
    limit_ns: float
    n: int
    n_required: int
    where: str
    missing: str


def is_masked(trial: ClockTrial) -> bool:
    """Say whether a mask applies to a trial."""
    return trial.facts.kind in MASKED_KINDS and trial.facts.impairment == "none"


def mask_measurements(
    trial: ClockTrial, wanted: MaskRange, requirement: str, n_required: int, context: Context
) -> list[Measurement]:
    """Judge a trial by everything that a mask limits, in the order of the file.

    Args:
        trial: Its evidence.
        wanted: The mask, and from which tau to which.
        requirement: Id of the requirement that names the mask.
        n_required: Samples that the profile asks for; curves need two windows instead.
        context: Of which run, test and subject.
    """
    series = series_of(trial.filtered)
    return [
        _measurement(trial, series, wanted, quantity, requirement, n_required, context)
        for quantity in wanted.mask.quantities
    ]


def unset_mask_measurements(
    wanted: MaskRange, requirement: str, n_required: int, reason: str, context: Context
) -> list[Measurement]:
    """Return the records of a clock that could not be measured."""
    nothing = Uncertainty.from_parts([])
    verdict = Verdict("unset", None, reason)
    records: list[Measurement] = []
    for quantity in wanted.mask.quantities:
        name, statistic = RECORDED[quantity]
        sample = Sample(name, statistic, None, 0, n_required if quantity in VALUES else TERMS_MIN)
        limit = _limit(wanted.mask, quantity, _first_limit_ns(wanted.mask, quantity), "")
        records.append(build_record(requirement, sample, limit, nothing, verdict, context))
    return records


def _measurement(
    trial: ClockTrial,
    series: ClockSeries | None,
    wanted: MaskRange,
    quantity: Quantity,
    requirement: str,
    n_required: int,
    context: Context,
) -> Measurement:
    name, statistic = RECORDED[quantity]
    if quantity in VALUES:
        found = _value(trial, series, wanted, quantity, n_required)
    else:
        found = _worst_of_curve(series, wanted, cast(CurveQuantity, quantity))
    limit = _limit(wanted.mask, quantity, found.limit_ns, found.where)
    uncertainty = _uncertainty(trial, quantity)
    sample = Sample(name, statistic, found.value, found.n, found.n_required)
    if found.value is None:
        verdict = Verdict("unset" if not trial.filtered.offset.n else "inconclusive", None, found.missing)
        return build_record(requirement, sample, limit, uncertainty, verdict, context)
    verdict = judge(
        found.value,
        limit,
        uncertainty,
        n=found.n,
        n_required=found.n_required,
        statistic=statistic,
        unit="ns",
    )
    if found.missing and verdict.outcome in ("pass", "inconclusive"):
        reasons = [text for text in (verdict.reason, found.missing) if text]
        verdict = replace(verdict, outcome="inconclusive", reason="; ".join(reasons))
    return build_record(
        requirement, sample, limit, uncertainty, tempered(verdict, trial, uncertainty), context
    )


def _value(
    trial: ClockTrial, series: ClockSeries | None, wanted: MaskRange, quantity: Quantity, n_required: int
) -> _Finding:
    """Return a single value: max|TE| of all samples with its sign, max|TE_L| or cTE of the series."""
    limit_ns = _first_limit_ns(wanted.mask, quantity)
    n = trial.filtered.offset.n
    if quantity == "max_abs_te":
        missing = "" if n else "no sample"
        return _Finding(trial.filtered.extreme_ns, limit_ns, n, n_required, "", missing)
    figures = time_error(series) if series is not None else None
    if figures is None or series is None:
        return _Finding(None, limit_ns, n, n_required, "", "no series of offsets")
    if quantity == "max_abs_tel":
        value = figures.max_abs_tel_ns
        return _Finding(value, limit_ns, n, n_required, "", "" if value is not None else _unfiltered(figures))
    return _constant(figures, series, wanted, limit_ns, n_required)


def _constant(
    figures: TimeError, series: ClockSeries, wanted: MaskRange, limit_ns: float, n_required: int
) -> _Finding:
    """Return cTE: the largest mean of a window of 1000 s; of a shorter series its mean, which lacks time."""
    worst_ns = figures.max_abs_cte_window_ns
    if worst_ns is not None:
        outside = figures.outside_windows
        missing = f"{outside} of {figures.n} samples lie in no whole window of 1000 s" if outside else ""
        return _Finding(worst_ns, limit_ns, figures.n, n_required, "worst window of 1000 s", missing)
    measured_s = series.n * series.tau0_ns / NS_PER_S
    wanted_s = wanted.to_tau_s if wanted.to_tau_s is not None else CTE_WINDOW_NS / NS_PER_S
    missing = f"averaged over {measured_s:.3g} s; the mask asks for {wanted_s:.4g} s"
    where = f"mean over {measured_s:.3g} s"
    return _Finding(
        figures.cte_ns, limit_ns, figures.n, n_required, where, missing if measured_s < wanted_s else ""
    )


def _worst_of_curve(series: ClockSeries | None, wanted: MaskRange, quantity: CurveQuantity) -> _Finding:
    """Return a curve's value at the tau at which least is left to the mask, and which taus are missing."""
    nothing = _first_limit_ns(wanted.mask, quantity)
    if series is None or not series.n:
        return _Finding(None, nothing, 0, TERMS_MIN, "", "no series of offsets")
    limited = limited_series(series, quantity)
    if limited is None:
        return _Finding(None, nothing, 0, TERMS_MIN, "", "too few samples a second for the low-pass")
    points = mask_points(limited, curve_of(limited, quantity), wanted.mask, quantity)
    worst = worst_point(points)
    low_s, high_s = wanted.wanted_s(quantity)
    asked = f"the mask asks for {low_s:.4g} s to {high_s:.4g} s"
    measured = f"{series.n * series.tau0_ns / NS_PER_S:.3g} s, every {series.tau0_ns / NS_PER_S:.3g} s"
    if worst is None:
        return _Finding(None, nothing, 0, TERMS_MIN, "", f"no tau can be judged from {measured}; {asked}")
    first_s, last_s = points[0].tau_ns / NS_PER_S, points[-1].tau_ns / NS_PER_S
    judged = f"judged at {len(points)} octaves of tau from {first_s:.3g} s to {last_s:.3g} s"
    missing = ""
    too_late = low_s > 0 and first_s / 2 > low_s * TAU_TOLERANCE
    if too_late or last_s * 2 <= high_s:
        missing = f"{judged}, from {measured}; {asked}"
    where = f"tau = {worst.tau_ns / NS_PER_S:.3g} s, {judged}"
    return _Finding(worst.value_ns, worst.limit_ns, worst.windows, TERMS_MIN, where, missing)


def _uncertainty(trial: ClockTrial, quantity: Quantity) -> Uncertainty:
    """Return U of a quantity in ns; see the module."""
    gain: float = 1
    if quantity not in VALUES:
        gain = 2 if quantity in MTIES else _TDEV_GAIN
    return Uncertainty.from_parts(
        UncertaintyPart(part.name, part.kind, part.value * gain) for part in sync_uncertainty(trial).parts
    )


def _limit(mask: Mask, quantity: Quantity, limit_ns: float, where: str) -> Limit:
    """Return the limit in ns with its source: mask, quantity, tau and the standard or paper."""
    upper: Number = int(limit_ns) if limit_ns == int(limit_ns) else limit_ns
    lower = -upper if quantity in VALUES else None
    place = f", {where}" if where else ""
    return Limit(upper, lower, f"mask {mask.name}, {quantity}{place}: {mask.source}")


def _first_limit_ns(mask: Mask, quantity: Quantity) -> float:
    """Return the limit of a single value; of a curve that of its first row's end, for want of a tau."""
    segment = mask.of(quantity)[0]
    if quantity in VALUES:
        return segment.limit_ns
    end_s = segment.tau_to_s if math.isfinite(segment.tau_to_s) else segment.tau_above_s
    return segment.limit_ns + segment.slope_ns_per_s * end_s


def _unfiltered(figures: TimeError) -> str:
    return figures.unfiltered_reason or "no figures of the filtered offsets"
