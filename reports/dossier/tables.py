# SPDX-License-Identifier: Apache-2.0
"""Results in tables: what all rows of a table have in common is said once, above it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from reports.dossier.figure import shown_attempt
from reports.dossier.model import Result, Target
from reports.record.measurement import Measurement

RANGE_MIN = 3
"""So many ids that follow each other are told by the first and the last."""
Named = tuple[str, Result]
"""A result after the id of its requirement."""


@dataclass(frozen=True, slots=True)
class ResultRow:
    """A result, and what is said of it alone: subject and conditions that others do not share."""

    requirement: str
    own: str
    result: Result


@dataclass(frozen=True, slots=True)
class ResultTable:
    """Results of one quantity and statistic.

    Attributes:
        what: Quantity and statistic, as the records name them.
        common: Subject and conditions that all rows share, in words.
        shares: The quantiles that at least half of their distributions have.
        spread: What the distributions are of, in words; empty: there are none.
    """

    what: tuple[str, str]
    common: str
    shares: tuple[float, ...]
    spread: str
    rows: tuple[ResultRow, ...]


@dataclass(frozen=True, slots=True)
class PartsRow:
    """Results of the same U, made of the same parts, and the record of one of them."""

    requirements: str
    own: str
    record: Measurement


@dataclass(frozen=True, slots=True)
class PartsTable:
    """The uncertainties of results that are made of the same parts; names with their kinds."""

    quantity: str
    common: str
    parts: tuple[tuple[str, str], ...]
    rows: tuple[PartsRow, ...]


def results_of(target: Target) -> list[Named]:
    """Return what was measured of a target, in the order of its requirements."""
    return [(row.id, result) for row in target.requirements for result in row.results]


def checks_of(target: Target) -> list[Named]:
    """Return the bench's checks of itself while a target was measured."""
    return [(shown_attempt(result).record.requirement, result) for result in target.checks]


def result_tables(found: Iterable[Named]) -> list[ResultTable]:
    """Return results in tables, one for each quantity and statistic, in the order of the first ones."""
    grouped: dict[tuple[str, str], list[Named]] = {}
    for name, result in found:
        grouped.setdefault((result.quantity, result.statistic), []).append((name, result))
    tables: list[ResultTable] = []
    for what, named in grouped.items():
        common, own = _divided([result for _name, result in named])
        known = [result.distribution for _name, result in named if result.distribution]
        having = Counter(one.share for each in known for one in each.percentiles)
        shares = sorted(share for share, number in having.items() if 2 * number >= len(known))
        rows = (ResultRow(name, words, result) for (name, result), words in zip(named, own, strict=True))
        spread = ", ".join(dict.fromkeys(each.what for each in known)) if shares else ""
        tables.append(ResultTable(what, common, tuple(shares), spread, tuple(rows)))
    return tables


def parts_tables(target: Target) -> list[PartsTable]:
    """Return U of every result that is shown, by its parts; a row for all that have the same of both."""
    order = [row.id for row in target.requirements]
    grouped: dict[tuple[str, tuple[tuple[str, str], ...]], list[tuple[Named, Measurement]]] = {}
    for name, result in results_of(target):
        record = shown_attempt(result).record
        names = tuple((part.name, part.kind) for part in record.uncertainty.parts)
        if names:
            grouped.setdefault((result.quantity, names), []).append(((name, result), record))
    tables: list[PartsTable] = []
    for (quantity, names), found in grouped.items():
        common, _own = _divided([result for (_name, result), _record in found])
        alike: dict[object, list[tuple[Named, Measurement]]] = {}
        for each in found:
            alike.setdefault((each[1].uncertainty, each[1].unit), []).append(each)
        rows: list[PartsRow] = []
        for some in alike.values():
            shared = _divided([result for (_name, result), _record in some])[0].split(", ")
            own = ", ".join(word for word in shared if word not in common.split(", "))
            rows.append(PartsRow(id_ranges([name for (name, _), _ in some], order), own, some[0][1]))
        tables.append(PartsTable(quantity, common, names, tuple(rows)))
    return tables


def id_ranges(names: Iterable[str], order: Sequence[str]) -> str:
    """Return ids in words; `RANGE_MIN` and more that follow each other in `order`: the first and the last."""
    wanted = set(names)
    runs: list[list[str]] = [[]]
    for name in order:
        if name in wanted:
            runs[-1].append(name)
        elif runs[-1]:
            runs.append([])
    words: list[str] = []
    for run in runs:
        words += run if len(run) < RANGE_MIN else [f"{run[0]} to {run[-1]}"]
    words += sorted(wanted - {*order})
    return ", ".join(words)


def _divided(results: Sequence[Result]) -> tuple[str, list[str]]:
    """Return the words on subject and conditions that all results share, and those that each has besides."""
    words = [
        [word for text in (result.subject, result.conditions) for word in text.split(", ") if word]
        for result in results
    ]
    common = [word for word in words[0] if all(word in others for others in words)]
    own = [", ".join(word for word in each if word not in common) for each in words]
    return ", ".join(common), own
