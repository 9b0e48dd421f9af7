# SPDX-License-Identifier: Apache-2.0
"""What a dossier says as a whole, by which rule, and what each waiver did to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reports.dossier.model import Conclusion, RequirementRow, Run, Target, Waiver
from reports.dossier.waivers import Waiver as Decided
from reports.dossier.waivers import Waivers
from reports.requirements import RequirementSet

UNCHECKED = "unchecked"
"""Of a seal that was held against no list of benches and no fingerprint."""


def unsealed(runs: Sequence[Run]) -> list[str]:
    """Return what is wrong with the seals of runs, in words: no waiver takes it away."""
    if runs and all(run.seal.remark == UNCHECKED for run in runs):
        return ["seals unchecked: no list of benches and no fingerprint was given that a bench is known by"]
    return [f"run {run.manifest.run_id}: {run.seal.remark}" for run in runs if run.seal.remark]


def conclude(
    targets: Sequence[Target],
    sets: Sequence[RequirementSet],
    absent: Mapping[str, str],
    broken: Sequence[str],
    waivers: Waivers,
) -> Conclusion:
    """Return the conclusion: accepted where every requirement on every target passed on real hardware.

    Args:
        targets: What came of each.
        sets: All requirements files.
        absent: Ids of earlier runs that are not part of the dossier, with the run that repeated each.
        broken: What is wrong with runs themselves or their seals, in words.
        waivers: What persons decided.
    """
    against: list[str] = [*broken]
    if not sets:
        against.append(
            "which requirements there are is not known: no run kept a file of them, none was named"
        )
    if not targets:
        against.append("nothing was tested")
    waived: list[str] = []
    for earlier, later in absent.items():
        words = f"run {later} repeats run {earlier}, which is not part of this dossier"
        waiver = waivers.leaving_out(earlier)
        if waiver is not None:
            waived.append(f"{words}; left out by waiver {waiver.id}")
        else:
            against.append(f"{words}: name it, or waive it")
    for target in targets:
        where = f"{target.name} on {target.bench}"
        if len(target.configurations) > 1:
            against.append(
                f"{where}: the runs speak of {len(target.configurations)} different configurations"
            )
        if not target.requirements:
            against.append(f"{where}: no requirement")
        elif not any(row.status == "pass" for row in target.requirements):
            against.append(f"{where}: nothing passed on hardware")
        for row in target.requirements:
            words = f"{where}: {row.id}: {row_words(row)}"
            if row.waived:
                waived.append(f"{words}; accepted by waiver {row.waived}")
            elif row.status != "pass":
                against.append(words)
            for result in row.results:
                if result.contradicted:
                    against.append(
                        f"{where}: {row.id}: passed first; a later attempt did not pass and is not waived"
                    )
                waived += [
                    f"{where}: {row.id}: attempt {attempt.number} set aside by {attempt.why}"
                    for attempt in result.attempts
                    if attempt.role == "waived"
                ]
    against = list(dict.fromkeys(against))
    if against:
        return Conclusion("not accepted", tuple(against))
    return Conclusion("accepted with waivers" if waived else "accepted", tuple(dict.fromkeys(waived)))


def row_words(row: RequirementRow) -> str:
    """Return a row's status, and why it is no pass."""
    if row.skipped:
        return f"{row.status}: {row.skipped}"
    if row.missing and row.status == "untested":
        return f"untested: {', '.join(row.missing)}"
    reason = next(
        (result.reason for result in row.results if result.status == row.status and result.reason), ""
    )
    return f"{row.status}: {reason}" if reason else row.status


def effects(waivers: Waivers, targets: Sequence[Target], absent: Mapping[str, str]) -> tuple[Waiver, ...]:
    """Return the waivers, each with what it did; `absent` as `conclude` takes it."""
    return tuple(
        Waiver(
            id=each.id,
            requirement=each.requirement,
            target=each.target,
            stack=each.stack,
            run=each.run,
            attempt=each.attempt,
            reason=each.reason,
            approver=each.approver,
            date=each.date.isoformat(),
            expires=each.expires.isoformat() if each.expires else None,
            effect="left out of the dossier" if each.run in absent else _effect(each, targets),
        )
        for each in waivers.all
    )


def _effect(waiver: Decided, targets: Sequence[Target]) -> str:
    rows = [(target, row) for target in targets for row in target.requirements]
    if waiver.concedes:
        said = [
            f"accepted on {target.name} on {target.bench} although {row.status}"
            if waiver.id == row.waived or waiver.id in row.waived.split(", ")
            else f"no effect on {target.name} on {target.bench}: {row.status}"
            for target, row in rows
            if (row.id, f"{target.name} on {target.bench}") == (waiver.requirement, waiver.target)
        ]
        return "; ".join(said)
    aside = sum(
        attempt.why == f"waiver {waiver.id}"
        for _target, row in rows
        for result in row.results
        for attempt in result.attempts
    )
    return f"{aside} attempt{'' if aside == 1 else 's'} set aside" if aside else "no effect: no such attempt"


RULE = """\
Each value carries an expanded uncertainty U: the sum of its hard bounds, and twice the root of the sum of its
squared standard deviations (coverage factor 2; JCGM 100:2008, 6.2).

Guard band U: a value passes at or inside its limit narrowed by U, with enough samples and no more loss than
allowed. It fails beyond the limit by more than U, or with more loss than allowed. Between the two it is
inconclusive. No sample: unset. Where U takes up the whole limit, no value could pass: bench not capable.

Of several attempts at one thing the first valid one decides. A fail is always valid. Unset, and inconclusive
because the value lies within U of its limit, are valid and are no pass. Inconclusive for a reason on the
bench's side, and error, are not valid. A pass, or a value within U, is not valid where a check of the bench
by itself did not pass in that run, an instrument was out of calibration, a file of its evidence has changed,
or it was judged by less than the requirement asks (limit, loss, samples, subject).

What was measured on a simulated bench decides nothing: the requirement is untested on hardware. A requirement
is met where everything measured for it passed and all parts of it were measured.

Accepted: every requirement on every target is met, each target in one configuration, no later valid attempt
failed, each run has the seal of a bench that is known, and nothing broke off in a run that no other of the
dossier repeats. Accepted with waivers: the same,
but for what a named person accepted or set aside. What is untested on hardware cannot be waived, nor can a
target of which nothing passed on hardware."""
"""The decision rule, one paragraph each."""


def rule_text() -> tuple[str, ...]:
    """Return the decision rule, one paragraph each, without line breaks."""
    return tuple(" ".join(paragraph.split()) for paragraph in RULE.split("\n\n"))
