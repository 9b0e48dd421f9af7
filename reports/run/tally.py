# SPDX-License-Identifier: Apache-2.0
"""From many measurements to one outcome: which attempt counts, and how a run as a whole came out."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from reports.quantities import INSTRUMENT_CHECKS
from reports.record.measurement import Measurement, Outcome

WORST_FIRST: tuple[Outcome, ...] = ("fail", "error", "inconclusive", "unset", "pass")
"""Outcomes, the worst first."""

Key = tuple[object, ...]


def key_of(measurement: Measurement) -> Key:
    """Return what makes two measurements attempts at the same thing."""
    m = measurement
    return (m.requirement, m.quantity, m.statistic, m.subject, m.conditions)


def effective(measurements: Iterable[Measurement]) -> list[Measurement]:
    """Return the measurement that counts of each thing that was measured, in the order of first attempts.

    The last attempt counts; but a fail stands, because only an inconclusive attempt may be repeated.
    """
    chosen: dict[Key, Measurement] = {}
    for measurement in measurements:
        earlier = chosen.get(key_of(measurement))
        if earlier is None or earlier.outcome != "fail":
            chosen[key_of(measurement)] = measurement
    return list(chosen.values())


def worst_outcome(outcomes: Collection[Outcome]) -> Outcome:
    """Return the worst of some outcomes; of none `unset`: nothing was shown."""
    found: list[Outcome] = [outcome for outcome in WORST_FIRST if outcome in outcomes]
    return found[0] if found else "unset"


def overall(measurements: Sequence[Measurement]) -> Outcome:
    """Return the worst outcome; without measurements of a target `unset`: nothing was shown.

    A bench that does not pass its own check leaves the run inconclusive at best.
    """
    outcomes: set[Outcome] = {m.outcome for m in measurements if m.quantity not in INSTRUMENT_CHECKS}
    checks = {m.outcome for m in measurements if m.quantity in INSTRUMENT_CHECKS}
    if outcomes and checks - {"pass"}:
        outcomes.add("inconclusive")
    return worst_outcome(outcomes)


def relative_margin(measurement: Measurement) -> float | None:
    """Return the margin as a share of the nearer limit's size, None where there is none."""
    if measurement.margin is None or measurement.value is None:
        return None
    limit = measurement.limit
    sizes = [abs(edge) for edge in (limit.upper, limit.lower) if edge]
    return measurement.margin / min(sizes) if sizes else None


def worst(measurements: Iterable[Measurement]) -> Measurement | None:
    """Return the measurement of a target with the least margin as a share of its limit."""
    found = [m for m in measurements if m.quantity not in INSTRUMENT_CHECKS]
    rated = [(share, m) for m in found if (share := relative_margin(m)) is not None]
    return min(rated, key=lambda pair: pair[0])[1] if rated else None
