# SPDX-License-Identifier: Apache-2.0
"""The decision rule: guard band U, enough samples, no more loss than allowed.

`judge` is a pure function. In the order in which they are asked:

1. more messages lost than allowed: fail, whatever the value;
2. no value, a value that is not a number, or no sample: unset;
3. the value lies beyond the limit by more than U: fail (of too few samples only where the statistic is an
   extreme: one sample over the limit proves it, a mean of few samples proves nothing);
4. no value could pass on this bench, because U takes up the whole limit: inconclusive, `bench not capable`;
5. fewer samples than required: inconclusive;
6. the value lies at or inside the limit narrowed by U: pass;
7. otherwise inconclusive.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from reports.record.measurement import Limit, Number, Outcome, Uncertainty, margin_of
from reports.units import digits_to_tell, format_value

EXTREMES = frozenset({"max", "min", "max_abs", "peak_to_peak"})
"""Statistics that one sample alone can carry over a limit."""

NOT_CAPABLE = "bench not capable"


@dataclass(frozen=True, slots=True)
class Verdict:
    """Outcome, margin to the nearer limit after U (in the value's unit), and why it is no pass."""

    outcome: Outcome
    margin: Number | None
    reason: str

    @property
    def message(self) -> str:
        """Return the text that a failing test shows: `FAIL: …`, `INCONCLUSIVE: …`, `UNSET: …`."""
        return f"{self.outcome.upper()}: {self.reason}" if self.reason else self.outcome.upper()


def capable(limit: Limit, uncertainty: Uncertainty) -> bool:
    """Say whether any value at all could pass: the limit has to be wider than U on each side.

    A single upper limit counts from 0, a single negative lower limit likewise; above a positive lower
    limit there is always room. Of what is counted without error (U = 0), none at all can be allowed.
    """
    band = uncertainty.expanded
    if limit.upper is not None and limit.lower is not None:
        return limit.upper - limit.lower > 2 * band
    if limit.upper is not None:
        return limit.upper > band or limit.upper == band == 0
    return limit.lower is None or limit.lower >= 0 or -limit.lower > band


def judge(
    value: Number | None,
    limit: Limit,
    uncertainty: Uncertainty,
    *,
    n: int,
    n_required: int,
    lost: int = 0,
    allowed_lost: int = 0,
    statistic: str = "max",
    unit: str = "",
) -> Verdict:
    """Judge one value against its limit; see the module for the rule.

    Args:
        value: The measured value; None or NaN where there is none.
        limit: The limit, in the unit of the value.
        uncertainty: The expanded uncertainty, in the unit of the value.
        n: Samples that the value was taken from.
        n_required: Samples that the requirement asks for.
        lost: Messages that did not arrive.
        allowed_lost: Messages that may be lost.
        statistic: What the value is of its samples (`max`, `p999`, `mean`, …).
        unit: Unit of the value, for the reason.
    """
    margin = margin_of(value, limit, uncertainty)
    if lost > allowed_lost:
        return Verdict("fail", margin, f"{lost} lost, {allowed_lost} allowed")
    if value is None or math.isnan(value) or n == 0:
        return Verdict("unset", margin, "no sample" if n == 0 else "no value")
    beyond = _beyond(value, limit, uncertainty, unit)
    if beyond and (n >= n_required or statistic in EXTREMES):
        return Verdict("fail", margin, beyond)
    if not capable(limit, uncertainty):
        band = format_value(uncertainty.expanded, unit)
        return Verdict("inconclusive", margin, f"{NOT_CAPABLE}: U = {band} leaves no room under the limit")
    if n < n_required:
        return Verdict("inconclusive", margin, f"too few samples: {n} of {n_required}")
    if margin is not None and margin >= 0:
        return Verdict("pass", margin, "")
    return Verdict("inconclusive", margin, _within(value, limit, uncertainty, unit))


def _beyond(value: Number, limit: Limit, uncertainty: Uncertainty, unit: str) -> str:
    """Say by how much the value lies beyond a limit and U together; empty where it does not."""
    band = uncertainty.expanded
    if limit.upper is not None and value - limit.upper > band:
        return _compared(value, "is over", limit.upper, f"by more than U = {format_value(band, unit)}", unit)
    if limit.lower is not None and limit.lower - value > band:
        return _compared(value, "is under", limit.lower, f"by more than U = {format_value(band, unit)}", unit)
    return ""


def _within(value: Number, limit: Limit, uncertainty: Uncertainty, unit: str) -> str:
    """Say which limit the value is too close to."""
    band = uncertainty.expanded
    edge = limit.upper if limit.upper is not None and value > limit.upper - band else limit.lower
    return _compared(value, f"lies within U = {format_value(band, unit)} of the limit", edge, "", unit)


def _compared(value: Number, words: str, edge: Number | None, more: str, unit: str) -> str:
    """Say how a value lies to a limit, both with as many digits as tell them apart."""
    digits = digits_to_tell(value, [edge], unit)
    return f"{format_value(value, unit, digits)} {words} {format_value(edge, unit, digits)} {more}".rstrip()
