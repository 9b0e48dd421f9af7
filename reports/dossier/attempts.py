# SPDX-License-Identifier: Apache-2.0
"""Which attempt decides: the first valid one, unless a waiver sets it aside.

An attempt is one record of one thing: equal requirement, quantity, statistic, subject and conditions. The
attempts of all runs of a dossier count together, in the order of the runs' starts and of their records.

A **fail** is always valid: no doubt about the bench takes it away, only a waiver does. **Unset** is valid and
decides nothing in favour of the target: that nothing came may be its doing. **Inconclusive** is valid where
the value lies within U of its limit, and for no other reason: repeating would be choosing. Any other reason
is on the bench's side (stall, late generator, too few samples, bench not capable), so the attempt is not
valid; nor is an **error**. A **pass** is valid unless something stands against it:

- its run, or the record, is of a simulated bench;
- a check of the bench by itself did not pass in its run;
- an instrument that it rests on was out of calibration;
- a file that it was judged from has other bytes now;
- it was judged by less than the requirements file asks: a wider limit, more loss, fewer samples, another
  subject.

Nothing that is simulated decides, whatever its outcome.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reports.dossier.model import Attempt, Role, Status
from reports.dossier.waivers import Waivers
from reports.record.measurement import Measurement
from reports.record.verdict import NOT_CAPABLE, judge

SIMULATED = "simulated"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A record, and what is known about it besides.

    Attributes:
        number_in_run: 1 is the first of its run at the same thing.
        simulated: Whether record or run is of a simulated bench.
        doubts: What stands against a pass, in words; empty: nothing.
    """

    run_id: str
    number_in_run: int
    record: Measurement
    simulated: bool
    doubts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Decision:
    """What came of all attempts at one thing.

    Attributes:
        shown: Number of the attempt that decides; else of the one that would, were it not simulated; else
            of the last.
        waivers: Ids of the waivers that set an attempt aside.
        contradicted: Where the deciding attempt passed, a later valid one failed, or the last one of the same
            run did not pass, so that the run's own report says no pass either.
    """

    attempts: tuple[Attempt, ...]
    status: Status
    reason: str
    shown: int
    contradicted: bool
    waivers: tuple[str, ...]


def in_guard_band(record: Measurement) -> bool:
    """Say whether a record is inconclusive for the sole reason that its value lies within U of the limit."""
    judged = judge(
        record.value,
        record.limit,
        record.uncertainty,
        n=record.n,
        n_required=record.n_required,
        lost=record.lost,
        allowed_lost=record.allowed_lost,
        statistic=record.statistic,
        unit=record.unit,
    )
    own = judged.outcome == "inconclusive" and not judged.reason.startswith(NOT_CAPABLE)
    return own and record.n >= record.n_required and record.reason == judged.reason


def discrepancy(candidate: Candidate) -> str:
    """Return why an attempt is not valid, leaving simulation aside; empty: it is."""
    record = candidate.record
    if record.outcome in ("fail", "unset"):
        return ""
    if record.outcome == "pass" or (record.outcome == "inconclusive" and in_guard_band(record)):
        return "; ".join(candidate.doubts)
    return f"{record.outcome}: {record.reason}" if record.reason else record.outcome


def decide(candidates: Sequence[Candidate], waivers: Waivers) -> Decision:
    """Return which attempt at one thing decides, and what follows.

    Args:
        candidates: All attempts, by time; at least one.
        waivers: What persons decided.
    """
    attempts: list[Attempt] = []
    applied: list[str] = []
    would: int | None = None
    deciding: Measurement | None = None
    contradicted = False
    for number, each in enumerate(candidates, start=1):
        waiver = waivers.setting_aside(each.record, each.run_id, each.number_in_run)
        against = discrepancy(each)
        role: Role = "not valid"
        why = against
        if waiver is not None:
            role, why = "waived", f"waiver {waiver.id}"
            applied.append(waiver.id)
        elif each.simulated:
            why = f"{SIMULATED}; {against}" if against else SIMULATED
        elif not against:
            role = "valid" if deciding is not None else "decides"
        if waiver is None and not against and would is None:
            would = number
        if role == "decides":
            deciding, would = each.record, number
        elif role == "valid" and deciding is not None:
            contradicted |= deciding.outcome == "pass" and each.record.outcome == "fail"
        attempts.append(Attempt(number, each.number_in_run, each.run_id, role, why, each.record))
    shown = would or len(attempts)
    if deciding is not None and deciding.outcome == "pass":
        run = attempts[shown - 1].run_id
        last = [each for each in attempts if each.run_id == run and each.role != "waived"][-1]
        contradicted |= last.record.outcome != "pass"
    status, reason = _status(candidates, deciding, attempts[shown - 1])
    return Decision(tuple(attempts), status, reason, shown, contradicted, tuple(dict.fromkeys(applied)))


def _status(
    candidates: Sequence[Candidate], deciding: Measurement | None, shown: Attempt
) -> tuple[Status, str]:
    """Return the status of a thing, and why it is no pass."""
    if deciding is not None:
        if deciding.outcome == "pass":
            return "pass", ""
        status: Status = "fail" if deciding.outcome == "fail" else "inconclusive"
        return status, deciding.reason or deciding.outcome
    record = shown.record
    if all(each.simulated for each in candidates):
        said = f"{record.outcome}: {record.reason}" if record.reason else record.outcome
        return "untested on hardware", f"on a simulated bench: {said}"
    return "inconclusive", f"no valid attempt; the last: {shown.why}"
