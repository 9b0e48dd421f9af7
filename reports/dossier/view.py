# SPDX-License-Identifier: Apache-2.0
"""The dossier arranged for its pages: who used what, what is open, tables of uncertainty parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TypeVar, get_args

from reports.dossier.conclusion import UNCHECKED
from reports.dossier.earlier import CLOCK, EARLIER_RUN
from reports.dossier.figure import LATENCY, shown_attempt
from reports.dossier.model import (
    Attempt,
    Dossier,
    FactTable,
    Impairment,
    Instrument,
    Pair,
    Provisioning,
    RequirementRow,
    Result,
    Run,
    Status,
    Target,
)
from reports.dossier.published import NOT_PUBLISHED, deviates
from reports.dossier.tables import (
    PartsTable,
    ResultTable,
    checks_of,
    id_ranges,
    parts_tables,
    result_tables,
    results_of,
)
from reports.units import NO_VALUE

STATUSES: tuple[Status, ...] = get_args(Status)
_GAP = "\x00"
_OF_TESTS = ("test skipped", "test failed")
_FOLDER_DEPTH = 3

T = TypeVar("T")
Late = Callable[[Attempt], int | None]


def unknown(_attempt: Attempt) -> int | None:
    """Return that nothing is known of an attempt's messages."""
    return None


@dataclass(frozen=True, slots=True)
class UsedInstrument:
    """An instrument and the runs that used it, by number."""

    instrument: Instrument
    runs: str


@dataclass(frozen=True, slots=True)
class UsedPair:
    """A line of wiring and the runs that it holds for, by number."""

    pair: Pair
    runs: str


@dataclass(frozen=True, slots=True)
class UsedImpairment:
    """An impairment and the runs that had it, by number."""

    impairment: Impairment
    runs: str


@dataclass(frozen=True, slots=True)
class UsedFacts:
    """Tables of facts and the runs that they hold for, by number."""

    tables: tuple[FactTable, ...]
    runs: str


@dataclass(frozen=True, slots=True)
class Notes:
    """A test that was skipped or failed: on which targets, in which runs, and what was said."""

    test: str
    targets: str
    runs: str
    text: str | None


@dataclass(frozen=True, slots=True)
class FolderRow:
    """A folder of a run, with how many files of how many bytes lie in and below it."""

    path: str
    files: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class AttemptRow:
    """One attempt, with what it was an attempt at."""

    requirement: str
    result: Result
    attempt: Attempt


class View:
    """What the templates ask of a dossier."""

    def __init__(self, dossier: Dossier, late: Late = unknown) -> None:
        """Number the runs in their order: R1, R2 and so on.

        Args:
            dossier: The dossier.
            late: How many messages of an attempt were over budget; None: not known.
        """
        self._dossier = dossier
        self._late = late
        self._numbers = {run.manifest.run_id: f"R{n}" for n, run in enumerate(dossier.runs, start=1)}
        self._sources = self.sources()
        self._ids = {row.id for target in dossier.targets for row in target.requirements}

    def run(self, run_id: str) -> str:
        """Return the short name of a run; empty for none."""
        return self._numbers.get(run_id, run_id)

    def run_names(self, run_ids: Iterable[str]) -> str:
        """Return the short names of runs; `all` of every run where there are several."""
        names = [self.run(run_id) for run_id in run_ids]
        return "all" if len(names) == len(self._numbers) > 1 else ", ".join(names)

    def seals(self) -> list[tuple[str, str]]:
        """Return the keys that sealed the runs, each with what is known of it, in words."""
        wrong = "NOT OF A BENCH THAT IS KNOWN"
        found = [(run.seal, run.seal.bench or "a bench named by its key") for run in self._dossier.runs]
        said = [
            (
                seal.fingerprint,
                {"": known, UNCHECKED: "UNCHECKED"}.get(seal.remark, wrong),
            )
            for seal, known in found
        ]
        return list(dict.fromkeys(said))

    @property
    def start_utc(self) -> str | None:
        """Return when the first run began."""
        return min((run.manifest.start_utc for run in self._dossier.runs), default=None)

    @property
    def end_utc(self) -> str | None:
        """Return when the last run ended; None where one did not."""
        ends = [run.manifest.end_utc for run in self._dossier.runs]
        known = [end for end in ends if end is not None]
        return max(known, default=None) if len(known) == len(ends) else None

    def counts(self, target: Target) -> dict[Status, int]:
        """Return the requirements of a target by status, every status named."""
        return {status: sum(row.status == status for row in target.requirements) for status in STATUSES}

    def waived(self, target: Target) -> int:
        """Return how many requirements of a target a waiver accepts."""
        return sum(bool(row.waived) for row in target.requirements)

    def moved(self, target: Target) -> list[RequirementRow]:
        """Return the requirements on a target that are not as they are published."""
        return [row for row in target.requirements if deviates(row.published)]

    def unpublished(self, target: Target) -> list[RequirementRow]:
        """Return the requirements on a target whose ids stand in no published file."""
        return [row for row in target.requirements if row.published == NOT_PUBLISHED]

    def history(self) -> list[str]:
        """Return what there is to say of earlier runs and of clocks that were set back."""
        return [each.text for each in self._dossier.deviations if each.kind in (EARLIER_RUN, CLOCK)]

    def measured(self, target: Target) -> dict[str, int]:
        """Return the results of a target by the outcome of the attempt that is shown."""
        counts: dict[str, int] = {}
        for row in target.requirements:
            for result in row.results:
                outcome = shown_attempt(result).record.outcome
                counts[outcome] = counts.get(outcome, 0) + 1
        return counts

    def rows(self, target: Target, *statuses: Status) -> list[RequirementRow]:
        """Return the requirements of a target that have one of these statuses."""
        return [row for row in target.requirements if row.status in statuses]

    def partly_untested(self, target: Target) -> list[RequirementRow]:
        """Return requirements that were measured, but not in all their parts."""
        return [row for row in target.requirements if row.missing and row.results]

    def shown(self, result: Result) -> Attempt:
        """Return the attempt whose value is shown."""
        return shown_attempt(result)

    def reason(self, row: RequirementRow) -> str:
        """Return why a requirement did not pass: the reasons of its worst results, and what is missing."""
        reasons = [result.reason for result in row.results if result.status == row.status and result.reason]
        reasons += [f"not measured: {part}" for part in row.missing if row.results]
        return "; ".join(dict.fromkeys(reasons))

    def instruments(self) -> list[UsedInstrument]:
        """Return every instrument once."""
        return [UsedInstrument(thing, runs) for thing, runs in self._used(lambda run: run.instruments)]

    def wiring(self) -> list[UsedPair]:
        """Return every connection once."""
        return [UsedPair(thing, runs) for thing, runs in self._used(lambda run: run.wiring)]

    def impairments(self) -> list[UsedImpairment]:
        """Return every impairment once."""
        return [UsedImpairment(thing, runs) for thing, runs in self._used(lambda run: run.impairments)]

    def _used(self, things: Callable[[Run], Iterable[T] | None]) -> list[tuple[T, str]]:
        """Return what runs have, each thing once, with the runs that have it."""
        found: dict[T, list[str]] = {}
        for run in self._dossier.runs:
            for thing in dict.fromkeys(things(run) or ()):
                found.setdefault(thing, []).append(run.manifest.run_id)
        return [(thing, self.run_names(runs)) for thing, runs in found.items()]

    def without(self, name: str) -> str:
        """Return the runs that have not recorded their instruments or wiring, in words; empty: all have."""
        names = [self.run(run.manifest.run_id) for run in self._dossier.runs if getattr(run, name) is None]
        if len(names) == len(self._numbers) > 1:
            return "any run"
        return f"run{'s' if len(names) > 1 else ''} {', '.join(names)}" if names else ""

    def why(self, attempt: Attempt) -> str:
        """Return why an attempt does not decide, and the record's own reason where that is another."""
        reason = attempt.record.reason
        return attempt.why if not reason or reason in attempt.why else f"{attempt.why}; {reason}"

    def reasons(self) -> list[str]:
        """Return what keeps the dossier from being accepted; what holds of many requirements in one line."""
        return [
            text for text, _ in self._gathered((reason, "") for reason in self._dossier.conclusion.reasons)
        ]

    def deviations(self) -> list[tuple[str, str, str]]:
        """Return runs, kind and text of what did not go as planned; what holds of many in one line.

        Tests that were skipped or failed are left out: `notes` has them.
        """
        found: dict[tuple[str, str], list[str]] = {}
        kinds = dict.fromkeys(deviation.kind for deviation in self._dossier.deviations)
        for kind in (kind for kind in kinds if kind not in _OF_TESTS):
            some = [(each.text, each.run_id) for each in self._dossier.deviations if each.kind == kind]
            for text, run_id in self._gathered(some):
                runs = found.setdefault((kind, text), [])
                runs += [run_id] if run_id not in runs else []
        return [
            ("all" if runs == [""] else self.run_names(run for run in runs if run), kind, text)
            for (kind, text), runs in found.items()
        ]

    def _gathered(self, texts: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
        """Return texts with their runs; those that differ only in a requirement's id become one."""
        found: dict[tuple[str, str], list[str]] = {}
        for text, run_id in texts:
            named = next((word for word in _words(text) if word in self._ids), "")
            key = (text.replace(named, _GAP, 1) if named else text, run_id)
            found.setdefault(key, []).append(named)
        return [
            (text.replace(_GAP, self._ids_in(text, names)), run_id) for (text, run_id), names in found.items()
        ]

    def _ids_in(self, text: str, names: list[str]) -> str:
        """Return ids in words, in the order of the target that a text is on."""
        on = (target for target in self._dossier.targets if f"{target.name} on {target.bench}" in text)
        rows = next((target.requirements for target in on), ())
        return id_ranges(names, [row.id for row in rows])

    def notes(self, name: str) -> list[Notes]:
        """Return the tests of all runs that were skipped or failed; the same on several targets in one line.

        Args:
            name: `tests_skipped` or `tests_failed`.
        """
        targets = dict.fromkeys(target.name for target in self._dossier.targets)
        found: dict[tuple[str, str | None], tuple[dict[str, None], dict[str, None]]] = {}
        for run in self._dossier.runs:
            pairs: tuple[Pair, ...] = getattr(run, name)
            for pair in pairs:
                own = next((each for each in targets if f".{each}." in pair.name), "")
                test = pair.name.replace(f".{own}.", ".", 1) if own else pair.name
                on, runs = found.setdefault((test, pair.value), ({}, {}))
                on[own] = None
                runs[run.manifest.run_id] = None
        return [
            Notes(test, ", ".join(each for each in on if each), self.run_names(runs), text)
            for (test, text), (on, runs) in found.items()
        ]

    def sources(self) -> dict[tuple[str, str], str]:
        """Return short names of the sources of limits, S1 and so on, by source and requirements file."""
        rows = [row for target in self._dossier.targets for row in target.requirements]
        every = dict.fromkeys((_divided(row.source)[0], row.file) for row in rows)
        return {each: f"S{number}" for number, each in enumerate(every, start=1)}

    def source(self, row: RequirementRow) -> str:
        """Return the source of a limit by its short name, with the place in it."""
        head, place = _divided(row.source)
        return f"{self._sources[head, row.file]}{': ' if place else ''}{place}"

    def provisioning(self, target: Target) -> list[tuple[Provisioning, str]]:
        """Return what provisioning did to a target, what it did alike once, with the runs."""
        found: dict[Provisioning, list[str]] = {}
        for done in target.provisioning:
            found.setdefault(replace(done, run_id=""), []).append(done.run_id)
        return [(done, self.run_names(runs)) for done, runs in found.items()]

    def hosts(self) -> list[UsedFacts]:
        """Return the facts of hosts and the tools' versions, the same ones once."""
        found: dict[tuple[FactTable, ...], list[str]] = {}
        for run in self._dossier.runs:
            tables = (*run.host, FactTable("Tools", run.tools))
            found.setdefault(tables, []).append(run.manifest.run_id)
        return [UsedFacts(tables, self.run_names(runs)) for tables, runs in found.items()]

    def results(self, target: Target) -> list[ResultTable]:
        """Return what was measured of a target."""
        return result_tables(results_of(target))

    def checks(self, target: Target) -> list[ResultTable]:
        """Return the bench's checks of itself while a target was measured."""
        return result_tables(checks_of(target))

    def parts(self, target: Target) -> list[PartsTable]:
        """Return U of what was measured of a target, by its parts."""
        return parts_tables(target)

    def part_names(self) -> list[str]:
        """Return the names of all parts of uncertainties, each once."""
        tables = (table for target in self._dossier.targets for table in parts_tables(target))
        return list(dict.fromkeys(name for table in tables for name, _ in table.parts))

    def is_latency(self, table: ResultTable) -> bool:
        """Say whether a table is of latencies, whose messages have budgets."""
        return table.what[0] == LATENCY

    def over_budget(self, attempt: Attempt) -> str:
        """Return how many of the messages of an attempt came later than their budget, in words."""
        record = attempt.record
        if record.value is None or record.limit.upper is None:
            return NO_VALUE
        late = 0 if record.value <= record.limit.upper else self._late(attempt)
        return NO_VALUE if late is None else f"{late} of {record.n}"

    def ids(self, rows: Iterable[RequirementRow], target: Target) -> str:
        """Return the ids of some requirements of a target, in words."""
        return id_ranges([row.id for row in rows], [row.id for row in target.requirements])

    def attempts(self, target: Target) -> list[AttemptRow]:
        """Return the attempts at what was tried again or waived, by requirement; those of checks last."""
        return [
            AttemptRow(requirement, result, attempt)
            for requirement, result in (*results_of(target), *checks_of(target))
            if len(result.attempts) > 1 or any(each.role == "waived" for each in result.attempts)
            for attempt in result.attempts
        ]

    def files(self, run: Run) -> list[FolderRow]:
        """Return what a run folder holds, by folders so many levels deep as `_FOLDER_DEPTH`."""
        found: dict[str, list[int]] = {}
        for file in run.files:
            parts = file.path.split("/")[:-1][:_FOLDER_DEPTH]
            found.setdefault("/".join(parts), []).append(file.size_bytes)
        return [FolderRow(path, len(sizes), sum(sizes)) for path, sizes in sorted(found.items())]


def _divided(source: str) -> tuple[str, str]:
    """Return a source, and the place in it that stands behind its first colon."""
    head, _, place = source.partition(": ")
    return head, place


def _words(text: str) -> list[str]:
    """Return the words of a text, without the marks behind them."""
    return [word.rstrip(":;,") for word in text.split()]
