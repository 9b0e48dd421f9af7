# SPDX-License-Identifier: Apache-2.0
"""The dossier arranged for its pages: who used what, what is open, tables of uncertainty parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TypeVar, get_args

from reports.dossier.figure import shown_attempt
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
from reports.record.measurement import Measurement

STATUSES: tuple[Status, ...] = get_args(Status)
_GAP = "\x00"

T = TypeVar("T")


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
class PartsRow:
    """One result with the record that is shown of it."""

    requirement: str
    result: Result
    record: Measurement


@dataclass(frozen=True, slots=True)
class PartsTable:
    """The uncertainties of results that are made of the same parts; names with their kinds."""

    quantity: str
    parts: tuple[tuple[str, str], ...]
    rows: tuple[PartsRow, ...]


@dataclass(frozen=True, slots=True)
class Spread:
    """Distributions of one quantity: the quantiles that they have; requirement and result of each line."""

    what: str
    shares: tuple[float, ...]
    rows: tuple[tuple[str, Result], ...]


@dataclass(frozen=True, slots=True)
class AttemptRow:
    """One attempt, with what it was an attempt at."""

    requirement: str
    result: Result
    attempt: Attempt
    first: bool


class View:
    """What the templates ask of a dossier."""

    def __init__(self, dossier: Dossier) -> None:
        """Number the runs in their order: R1, R2 and so on."""
        self._dossier = dossier
        self._numbers = {run.manifest.run_id: f"R{n}" for n, run in enumerate(dossier.runs, start=1)}
        self._ids = {row.id for target in dossier.targets for row in target.requirements}

    def run(self, run_id: str) -> str:
        """Return the short name of a run; empty for none."""
        return self._numbers.get(run_id, run_id)

    def run_names(self, run_ids: Iterable[str]) -> str:
        """Return the short names of runs; `all` of every run where there are several."""
        names = [self.run(run_id) for run_id in run_ids]
        return "all" if len(names) == len(self._numbers) > 1 else ", ".join(names)

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
        """Return why a requirement did not pass: the reasons of its gravest results, and what is missing."""
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
        """Return runs, kind and text of what did not go as planned; what holds of many in one line."""
        found: dict[tuple[str, str], list[str]] = {}
        for kind in dict.fromkeys(deviation.kind for deviation in self._dossier.deviations):
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
        return [(text.replace(_GAP, ", ".join(names)), run_id) for (text, run_id), names in found.items()]

    def provisioning(self, target: Target) -> list[tuple[Provisioning, str]]:
        """Return what provisioning did to a target, what it did alike once, with the runs."""
        found: dict[Provisioning, list[str]] = {}
        for done in target.provisioning:
            found.setdefault(replace(done, run_id=""), []).append(done.run_id)
        return [(done, self.run_names(runs)) for done, runs in found.items()]

    def spreads(self, target: Target) -> list[Spread]:
        """Return the results that have a distribution; a table for each quantity."""
        rows: dict[str, list[tuple[str, Result]]] = {}
        shares: dict[str, set[float]] = {}
        for row in target.requirements:
            for result in row.results:
                found = result.distribution
                if found is not None:
                    rows.setdefault(found.what, []).append((row.id, result))
                    shares.setdefault(found.what, set()).update(one.share for one in found.percentiles)
        return [Spread(what, tuple(sorted(shares[what])), tuple(some)) for what, some in rows.items()]

    def hosts(self) -> list[UsedFacts]:
        """Return the facts of hosts and the tools' versions, the same ones once."""
        found: dict[tuple[FactTable, ...], list[str]] = {}
        for run in self._dossier.runs:
            tables = (*run.host, FactTable("Tools", run.tools))
            found.setdefault(tables, []).append(run.manifest.run_id)
        return [UsedFacts(tables, self.run_names(runs)) for tables, runs in found.items()]

    def parts_tables(self, target: Target) -> list[PartsTable]:
        """Return U of every result that is shown, by its parts; a table for each set of parts."""
        groups: dict[tuple[str, tuple[tuple[str, str], ...]], list[PartsRow]] = {}
        for row in target.requirements:
            for result in row.results:
                record = shown_attempt(result).record
                names = tuple((part.name, part.kind) for part in record.uncertainty.parts)
                groups.setdefault((result.quantity, names), []).append(PartsRow(row.id, result, record))
        return [
            PartsTable(quantity, names, tuple(some)) for (quantity, names), some in groups.items() if names
        ]

    def part_names(self, target: Target) -> list[str]:
        """Return the names of all parts of uncertainties, each once."""
        return list(dict.fromkeys(name for table in self.parts_tables(target) for name, _ in table.parts))

    def attempts(self, target: Target) -> list[AttemptRow]:
        """Return every attempt of a target, by requirement; those of the bench's checks last."""
        results = [(row.id, result) for row in target.requirements for result in row.results]
        results += [(shown_attempt(result).record.requirement, result) for result in target.checks]
        return [
            AttemptRow(requirement, result, attempt, attempt is result.attempts[0])
            for requirement, result in results
            for attempt in result.attempts
        ]


def _words(text: str) -> list[str]:
    """Return the words of a text, without the marks behind them."""
    return [word.rstrip(":;,") for word in text.split()]
