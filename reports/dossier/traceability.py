# SPDX-License-Identifier: Apache-2.0
"""From requirement to test, measurement, limit and verdict: the matrix of one target."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from reports.dossier.attempts import Candidate, decide
from reports.dossier.model import Attempt, Distribution, RequirementRow, Result, Status
from reports.dossier.published import published_sets, published_words
from reports.dossier.waivers import Waivers
from reports.record.measurement import Measurement
from reports.requirements import Requirement, RequirementSet
from reports.run.tally import key_of

WORST_FIRST: tuple[Status, ...] = (
    "fail",
    "inconclusive",
    "untested on hardware",
    "untested",
    "skipped",
    "pass",
)
"""Statuses, the worst first."""
UNTESTED_ON_HARDWARE: Status = "untested on hardware"
"""No waiver takes it away."""
STACK = "stack"
"""Before the name of a network stack that a requirement was asked with, among what is missing."""


@dataclass(frozen=True, slots=True)
class TargetTrials:
    """Everything that a target's runs measured.

    Attributes:
        target: Its name and bench, as a waiver has them.
        candidates: Its records, by time.
        distribution_of: What the evidence of an attempt says of its samples.
    """

    target: str
    candidates: Sequence[Candidate]
    waivers: Waivers
    distribution_of: Callable[[Attempt], Distribution | None]

    @property
    def simulated(self) -> bool:
        """Say whether all that was measured was on a simulated bench."""
        return bool(self.candidates) and all(each.simulated for each in self.candidates)

    def results(self, chosen: Callable[[Measurement], bool]) -> tuple[Result, ...]:
        """Return what came of each thing that chosen records measured, in the order of first attempts."""
        things: dict[tuple[object, ...], list[Candidate]] = {}
        for each in self.candidates:
            if chosen(each.record):
                things.setdefault(key_of(each.record), []).append(each)
        return tuple(self._result(same) for same in things.values())

    def _result(self, same: Sequence[Candidate]) -> Result:
        decision = decide(same, self.waivers)
        record = same[0].record
        return Result(
            quantity=record.quantity,
            statistic=record.statistic,
            subject=subject_words(record),
            conditions=condition_words(record),
            status=decision.status,
            reason=decision.reason,
            shown=decision.shown,
            contradicted=decision.contradicted,
            distribution=self.distribution_of(decision.attempts[decision.shown - 1]),
            attempts=decision.attempts,
        )


def subject_words(record: Measurement) -> str:
    """Return what was measured, in words; empty where it is the target as such."""
    s = record.subject
    named = dict(s.of)
    ordered = [(name, named.pop(name)) for name in ("stream",) if name in named]
    ordered += [("stack", s.stack)] if s.stack is not None else []
    return ", ".join(f"{name} {value}" for name, value in [*ordered, *named.items()])


def condition_words(record: Measurement) -> str:
    """Return under what it was measured, in words."""
    c = record.conditions
    words = [f"profile {c.profile}"]
    words += [f"phase {c.phase}"] if c.phase else []
    words += [f"load {c.load}"] if c.load != "idle" else []
    words += [f"impairment {c.impairment}"] if c.impairment != "none" else []
    words += [c.numbers_text] if c.numbers else []
    return ", ".join(words)


def matrix(
    asked: Iterable[tuple[RequirementSet, Requirement]],
    skipped: Mapping[str, str],
    tried: TargetTrials,
    checks: frozenset[str],
    stacks: Mapping[str, Sequence[str]] | None = None,
) -> tuple[RequirementRow, ...]:
    """Return the rows of a target: the requirements of the files in their order, then those of records alone.

    Args:
        asked: What the files ask for, each with its file.
        skipped: Why requirements were skipped, by their ids.
        tried: What was measured.
        checks: Quantities by which the bench checks itself: no requirements on the target.
        stacks: Network stacks that requirements are asked with, by their ids: each needs a value.
    """
    rows: list[RequirementRow] = []
    for file, requirement in asked:
        results = tried.results(
            lambda record, wanted=requirement.id: (
                record.requirement == wanted and record.quantity not in checks
            )
        )
        records = [attempt.record for result in results for attempt in result.attempts]
        measured = {record.subject.stack for record in records}
        missing = [each for each in (stacks or {}).get(requirement.id, ()) if each not in measured]
        reason = "" if results and not missing else skipped.get(requirement.id, "")
        row = _row(requirement, file.path, results, tried, reason, missing if results else ())
        words = published_words(requirement, file.name, simulated=tried.simulated, published=published_sets())
        rows.append(replace(row, published=words))
    known = {row.id for row in rows}
    judged = [each.record for each in tried.candidates if each.record.quantity not in checks]
    for name in dict.fromkeys(record.requirement for record in judged if record.requirement not in known):
        results = tried.results(lambda record, wanted=name: record.requirement == wanted)
        record = results[0].attempts[0].record
        alone = Requirement(name, record.quantity, record.statistic, record.limit, record.unit)
        rows.append(replace(_row(alone, "", results, tried, ""), text=""))
    return tuple(rows)


def _row(
    requirement: Requirement,
    file: str,
    results: tuple[Result, ...],
    tried: TargetTrials,
    skipped: str,
    stacks: Sequence[str] = (),
) -> RequirementRow:
    """Return the row of a requirement; `stacks`: with which it was asked, and has no value."""
    records = [attempt.record for result in results for attempt in result.attempts]
    parts = tuple(
        part.name for part in requirement.parts if not any(part.covers(record) for record in records)
    )
    missing = (*parts, *(f"{STACK} {each}" for each in stacks))
    found = {result.status for result in results}
    if missing or not results:
        found.add("skipped" if skipped else "untested")
    status: Status = next(each for each in WORST_FIRST if each in found)
    unmet = [result for result in results if result.status != "pass"]
    stackless = [None] if parts or not results else []
    unmet_stacks = [*(result.attempts[0].record.subject.stack for result in unmet), *stacks, *stackless]
    return RequirementRow(
        id=requirement.id,
        text=requirement.text,
        source=requirement.limit.source,
        file=file,
        status=status,
        skipped=skipped if status == "skipped" else "",
        missing=missing,
        waived="" if UNTESTED_ON_HARDWARE in found else _waived(requirement.id, unmet_stacks, tried),
        tests=tuple(dict.fromkeys(record.test for record in records)),
        results=results,
    )


def _waived(requirement: str, stacks: Iterable[str | None], tried: TargetTrials) -> str:
    """Return the ids of the waivers that accept a requirement with each stack that it did not pass with."""
    found = [tried.waivers.conceding(requirement, tried.target, stack) for stack in stacks]
    ids = [waiver.id for waiver in found if waiver is not None]
    return ", ".join(dict.fromkeys(ids)) if len(ids) == len(found) else ""


def requirement_doubt(record: Measurement, asked: Requirement | None, kept: Requirement | None) -> str:
    """Return why a record was judged by less than its requirement asks; empty: it was not.

    Args:
        record: The record.
        asked: The requirement of its id; None: none asks for it.
        kept: As the run of the record has kept it; None: it has kept none.
    """
    if asked is None:
        return ""
    discrepancies = (part.discrepancy(record) for part in asked.parts if part.covers(record))
    return next(filter(None, discrepancies), "") or (asked.discrepancy_with(kept) if kept is not None else "")
