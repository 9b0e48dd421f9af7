# SPDX-License-Identifier: Apache-2.0
"""What the qualification page shows, gathered from a run folder and from nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from reports.history.section import AdviceSection, gather_advice
from reports.natural_order import natural
from reports.page.patterns import PagePatterns, SectionPatterns
from reports.quantities import INSTRUMENT_CHECKS
from reports.record.measurement import Measurement, Outcome, UncertaintyPart
from reports.rejudge.simulated import signs_of_emulation
from reports.run.folder import Records, RunFolder
from reports.run.left_out import LeftOut, left_out_of
from reports.run.manifest import Attempt, Manifest
from reports.run.outcome import RunOutcome, run_outcome
from reports.run.raw_data import HashRow, hash_rows, rows_of_target
from reports.run.selected import SkippedTest, Standing, State, skipped_tests
from reports.run.selected_before import selected_in
from reports.run.tally import effective, relative_margin, worst
from reports.run.targets import targets_of
from reports.section import Section, TargetData, TargetView
from reports.sections import FOLDERS, OF_SECTIONS, SECTIONS


@dataclass(frozen=True, slots=True)
class PartRow:
    """One uncertainty part over all measurements: its largest and smallest value."""

    name: str
    kind: str
    low: float
    high: float
    unit: str
    count: int


@dataclass(frozen=True, slots=True)
class Report:
    """Everything on the page.

    Attributes:
        target: Which of several targets it is on; empty: the run has one, or it is on all of them.
        outcome: Verdict on the target, or on the run: reports/run/outcome.py.
        counts: Measurements of the target that count, by outcome.
        records: The same measurements.
        sections: What its capabilities show, of each target that it is on; those that have nothing left out.
        others: Measurements that no section shows, by quantity.
        checks: Measurements by which the bench checked itself.
        requirements: What became of each requirement of a target by its id.
        states: How many requirements have each state, over all targets that it is on.
        skipped: Tests that were skipped, each once.
        left_out: What the profile leaves out of the suites that it, or each of its targets, takes part in.
        attempts: Attempts of suites, as the manifest lists them.
        attempts_total: Measurements of the target in all attempts.
        patterns: Of the series of a section, by its name.
    """

    folder: str
    manifest: Manifest
    target: str
    outcome: Outcome
    counts: dict[str, int]
    records: tuple[Measurement, ...]
    worst: Measurement | None
    worst_share: float | None
    simulated: bool
    sections: tuple[tuple[Section, tuple[TargetView, ...]], ...]
    others: tuple[tuple[str, tuple[Measurement, ...]], ...]
    advice: AdviceSection | None
    checks: tuple[Measurement, ...]
    requirements: dict[str, Standing]
    states: dict[State, int]
    skipped: tuple[SkippedTest, ...]
    left_out: tuple[LeftOut, ...]
    attempts: tuple[Attempt, ...]
    attempts_total: int
    parts: tuple[PartRow, ...]
    hashes: tuple[HashRow, ...]
    problems: tuple[str, ...]
    patterns: Mapping[str, SectionPatterns] = field(default_factory=dict[str, SectionPatterns])

    def shown_in(self, name: str) -> TargetView | None:
        """Return what the section of a name shows of the one target of this report; None: nothing."""
        return next((found[0] for section, found in self.sections if section.name == name), None)

    @property
    def has_stacks(self) -> bool:
        """Say whether it has values of several network stacks."""
        return len({record.subject.stack for record in self.records} - {None}) > 1

    @property
    def unmeasured(self) -> list[tuple[str, Standing]]:
        """Return the requirements that were asked and have no value, in natural order, and what they are."""
        found = [(name, each) for name, each in self.requirements.items() if not each.records]
        return sorted(found, key=lambda pair: natural(pair[0]))

    @property
    def tests_left_out(self) -> int:
        """Return how many tests the profile leaves out."""
        return sum(len(each.tests) for each in self.left_out)


@dataclass(frozen=True, slots=True)
class RunReport:
    """The report of a run; of several targets also that of each.

    Attributes:
        whole: All targets together.
        targets: The report of each of several targets, in the run's order; empty: the run has one at most.
    """

    whole: Report
    targets: tuple[Report, ...]


def gather(path: Path, added: Mapping[str, bytes] | None = None) -> Report:
    """Gather the report of a run folder over all its targets.

    Args:
        path: The run folder.
        added: Files that are about to be added to it, by their name.

    Raises:
        RunFolderError: The folder is none, or a whole line of its measurements is no record.
    """
    return gather_run(path, added).whole


def gather_run(path: Path, added: Mapping[str, bytes] | None = None, *, as_it_is: bool = False) -> RunReport:
    """Gather the report of a run folder, and that of each of several targets.

    Args:
        path: The run folder.
        added: Files that are about to be added to it, by their name.
        as_it_is: That its sums are missing counts; else the page is the one it has, or gets, with its sums.

    Raises:
        RunFolderError: The folder is none, or a whole line of its measurements is no record.
    """
    run = RunFolder.open(path)
    found = run.records()
    names = targets_of(run.path, run.manifest, found.measurements)
    hashes = hash_rows(run.path, found.measurements, added or {})
    advice = gather_advice(run.path, added or {}, run.run_id)
    asked = selected_in(run.path, run.manifest)
    changed = [row.path for row in hashes if row.changed]
    finalised = run.finalised or not as_it_is
    came_out = run_outcome(run.manifest, found, changed, names, asked, finalised=finalised)
    if len(names) <= 1:
        return RunReport(_report(run, found, came_out, hashes, advice, next(iter(names), ""), names), ())
    each = tuple(
        _report(
            run,
            Records(own, found.torn),
            came_out.targets[name],
            rows_of_target(hashes, name, names, own),
            None,
            name,
            names,
        )
        for name in names
        for own in [tuple(record for record in found.measurements if record.subject.target == name)]
    )
    return RunReport(_whole(run, found, came_out, hashes, advice, each), each)


def _report(
    run: RunFolder,
    found: Records,
    came_out: RunOutcome,
    hashes: Sequence[HashRow],
    advice: AdviceSection | None,
    target: str,
    targets: Sequence[str],
) -> Report:
    """Return the report of one target, from its records alone."""
    counting = effective(found.measurements)
    checks = came_out.checks
    measured = TargetData(run.path, counting, found.measurements, target, targets)
    each = [(section, shown) for section in SECTIONS if (shown := section.gather(measured)) is not None]
    listed = {record for _section, shown in each for record in shown.records}
    rest = [m for m in counting if m not in listed and not (m in checks and m.quantity in OF_SECTIONS)]
    sections = tuple((section, (shown,)) for section, shown in each)
    several = len(targets) > 1
    bare = _bare(run, found, came_out, hashes, sections)
    return replace(
        bare,
        target=target if several else "",
        skipped=skipped_tests(run.manifest.asked or (), target if several else ""),
        left_out=left_out_of(run.manifest.left_out or (), target if several else ""),
        attempts=tuple(each for each in run.manifest.attempts if not several or _is_of(each, target)),
        others=tuple(_by_quantity(rest)),
        advice=advice,
        patterns=_patterns(run.path, sections, target if several else ""),
        parts=tuple(_parts(counting, [part for _section, shown in each for part in shown.parts])),
    )


def _patterns(
    run: Path, sections: Iterable[tuple[Section, tuple[TargetView, ...]]], target: str
) -> dict[str, SectionPatterns]:
    kept = PagePatterns(run)
    each = {section.name: kept.of(FOLDERS[section.name], target) for section, _shown in sections}
    return {name: found for name, found in each.items() if found is not None}


def _whole(
    run: RunFolder,
    found: Records,
    came_out: RunOutcome,
    hashes: Sequence[HashRow],
    advice: AdviceSection | None,
    each: Sequence[Report],
) -> Report:
    """Return the report over several targets: it passes only where each of them does."""
    sections: list[tuple[Section, tuple[TargetView, ...]]] = []
    for section in SECTIONS:
        shown = tuple(own for report in each if (own := report.shown_in(section.name)) is not None)
        sections += [(section, shown)] if shown else []
    return replace(_bare(run, found, came_out, hashes, sections), advice=advice)


def _bare(
    run: RunFolder,
    found: Records,
    came_out: RunOutcome,
    hashes: Sequence[HashRow],
    sections: Sequence[tuple[Section, tuple[TargetView, ...]]],
) -> Report:
    """Return a report of what a run, or a target of it, has in common with any other."""
    poorest = worst(came_out.judged)
    marked = any(m.simulated for m in found.measurements)
    every = [shown for _section, targets in sections for shown in targets]
    in_evidence = [problem for each in every for problem in each.evidence_problems]
    return Report(
        folder=run.path.name,
        manifest=run.manifest,
        target="",
        outcome=came_out.outcome,
        counts=came_out.counts,
        records=came_out.judged,
        worst=poorest,
        worst_share=relative_margin(poorest) if poorest else None,
        simulated=bool(run.manifest.simulated) or marked or _is_emulated(run),
        sections=tuple(sections),
        others=(),
        advice=None,
        checks=came_out.checks,
        requirements=came_out.requirements,
        states=came_out.states,
        skipped=skipped_tests(run.manifest.asked or (), ""),
        left_out=run.manifest.left_out or (),
        attempts=run.manifest.attempts,
        attempts_total=sum(m.quantity not in INSTRUMENT_CHECKS for m in found.measurements),
        parts=(),
        hashes=tuple(hashes),
        problems=(*came_out.reasons, *in_evidence),
    )


def _is_emulated(run: RunFolder) -> bool:
    """Say whether facts of a run name an emulator: its flags alone make no page one of real hardware."""
    facts = {"host": run.manifest.host, "target": run.manifest.target}
    return next(signs_of_emulation(run.path, facts), None) is not None


def _is_of(attempt: Attempt, target: str) -> bool:
    """Say whether an attempt is of a target: its suite is `SUITE/TARGET`, or `SUITE/TARGET/STACK`."""
    return attempt.suite.split("/")[1:2] == [target]


def _by_quantity(records: Iterable[Measurement]) -> list[tuple[str, tuple[Measurement, ...]]]:
    grouped: dict[str, list[Measurement]] = {}
    for record in records:
        grouped.setdefault(record.quantity, []).append(record)
    return [(quantity, tuple(rows)) for quantity, rows in grouped.items()]


def _parts(records: Iterable[Measurement], others: Iterable[tuple[str, UncertaintyPart]]) -> list[PartRow]:
    """Return the parts of the records' uncertainties, and of others, each after its unit."""
    of_records = ((record.unit, part) for record in records for part in record.uncertainty.parts)
    values: dict[tuple[str, str, str], list[float]] = {}
    for unit, part in (*others, *of_records):
        values.setdefault((part.name, part.kind, unit), []).append(part.value)
    return [
        PartRow(name, kind, min(found), max(found), unit, len(found))
        for (name, kind, unit), found in sorted(values.items())
    ]
