# SPDX-License-Identifier: Apache-2.0
"""Requirements x targets: what became of each requirement on each target of a run, and by what margin."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from reports.asked import AskedSuites, files_asked, load_asked
from reports.dossier.errors import DossierError
from reports.dossier.requirements import Requirement, RequirementSet, sets_of_run
from reports.errors import RecordError
from reports.latency import producer_of
from reports.page_model import Report
from reports.record import Measurement, Outcome
from reports.stream_groups import STREAM_QUANTITY
from reports.tally import gravest, relative_margin

State = Outcome | Literal["untested", "not asked"]
UNTESTED: State = "untested"
NOT_ASKED: State = "not asked"


@dataclass(frozen=True, slots=True)
class Cell:
    """What became of a requirement on a target.

    Attributes:
        state: The gravest outcome of its values; `untested`: asked, and nothing recorded; `not asked`: no
            suite of this kind of target asks it.
        share: The least margin of its values, as a share of the limit; None: there is none.
        values: How many values it rests on.
    """

    state: State
    share: float | None = None
    values: int = 0


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """A requirement, what it asks in words, and a cell for each target."""

    id: str
    text: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class MatrixGroup:
    """Requirements that belong together: on one quantity, of streams on one producer."""

    title: str
    rows: tuple[MatrixRow, ...]


@dataclass(frozen=True, slots=True)
class Foot:
    """The end of a target's column: cells by state, the least margin and whose it is."""

    counts: tuple[tuple[State, int], ...]
    share: float | None
    requirement: str


@dataclass(frozen=True, slots=True)
class Matrix:
    """The matrix; `problems`: why the run does not say what was asked."""

    targets: tuple[str, ...]
    groups: tuple[MatrixGroup, ...]
    feet: tuple[Foot, ...]
    problems: tuple[str, ...]

    @property
    def untested(self) -> int:
        """Return how many cells have nothing although it was asked."""
        return sum(dict(foot.counts).get(UNTESTED, 0) for foot in self.feet)


def matrix_of(run: Path, run_id: str, reports: Sequence[Report]) -> Matrix:
    """Return the matrix of a run with several targets.

    Args:
        run: The run folder.
        run_id: Its id.
        reports: The report of each target.
    """
    problems: list[str] = []
    sets: list[RequirementSet] = []
    asked: tuple[AskedSuites, ...] = ()
    try:
        sets = sets_of_run(run, run_id)
        asked = load_asked(run)
    except (DossierError, RecordError) as error:
        problems.append(f"What was asked of each target cannot be told: {error}")
    names = [report.target for report in reports]
    by_file = {Path(each.path).name: {one.id: one for one in each.requirements} for each in sets}
    wanted = {name: _asked_of(name, asked, by_file) for name in names}
    judged = {report.target: _by_requirement(report.records) for report in reports}
    producers = _producers(reports)
    grouped: dict[str, list[MatrixRow]] = {}
    for name in sorted(_ids(wanted, judged), key=natural):
        texts = dict.fromkeys(found[name].text for found in wanted.values() if name in found)
        records = [record for found in judged.values() for record in found.get(name, ())]
        known = next((found[name] for found in wanted.values() if name in found), None)
        somewhere = any(name in found for found in by_file.values())
        cells = tuple(
            _cell(judged[target].get(name, ()), name in wanted[target] or not somewhere) for target in names
        )
        row = MatrixRow(name, " / ".join(texts) or _words(records[0]), cells)
        grouped.setdefault(_group(known, records, producers), []).append(row)
    groups = tuple(MatrixGroup(title, tuple(rows)) for title, rows in grouped.items())
    return Matrix(tuple(names), groups, tuple(_foot(groups, n) for n in range(len(names))), tuple(problems))


def natural(text: str) -> tuple[tuple[int, str], ...]:
    """Return a key that sorts the numbers in a text as numbers."""
    parts = re.split(r"([0-9]+)", text)
    return tuple((int(part), "") if number % 2 else (-1, part) for number, part in enumerate(parts))


def _asked_of(
    target: str, asked: Sequence[AskedSuites], by_file: Mapping[str, Mapping[str, Requirement]]
) -> dict[str, Requirement]:
    """Return the requirements that are asked of a target, by id."""
    found: dict[str, Requirement] = {}
    for name in files_asked(asked, target, by_file):
        found = {**by_file.get(name, {}), **found}
    return found


def _by_requirement(records: Iterable[Measurement]) -> dict[str, list[Measurement]]:
    found: dict[str, list[Measurement]] = {}
    for record in records:
        found.setdefault(record.requirement, []).append(record)
    return found


def _ids(*found: Mapping[str, Mapping[str, object]]) -> set[str]:
    return {name for each in found for of_target in each.values() for name in of_target}


def _cell(records: Sequence[Measurement], asked: bool) -> Cell:
    if not records:
        return Cell(UNTESTED if asked else NOT_ASKED)
    shares = [share for record in records if (share := relative_margin(record)) is not None]
    outcome = gravest({record.outcome for record in records})
    return Cell(outcome, min(shares, default=None), len(records))


def _words(record: Measurement) -> str:
    subject = record.subject
    of = [text for text in (subject.clock, subject.method) if text]
    of = [f"stream {subject.stream}"] if subject.stream else of
    return ", ".join([record.quantity.replace("_", " "), record.statistic.replace("_", " "), *of])


def _producers(reports: Sequence[Report]) -> dict[str, int]:
    """Return the producer of each stream, as the evidence has it."""
    rows = [row for report in reports for group in report.groups for row in group.rows]
    return {str(row.stream.id): row.stream.producer for row in rows if row.stream is not None}


def _group(known: Requirement | None, records: Sequence[Measurement], producers: Mapping[str, int]) -> str:
    """Return the title of the group that a requirement belongs to."""
    stream: str | None = None
    if known is not None:
        quantity = known.parts[0].quantities[0]
        subject = known.parts[0].subject
        stream = subject[1] if subject is not None and subject[0] == "stream" else None
    else:
        quantity, stream = records[0].quantity, records[0].subject.stream
    if quantity != STREAM_QUANTITY:
        return quantity.replace("_", " ").capitalize()
    number = producers.get(stream or "")
    if number is None and stream is not None and stream.isdigit():
        number = producer_of(int(stream))
    title = f"Latency: producer {number}" if number is not None else "Latency"
    return f"{title}, the target in its place" if known is not None and known.of_sender else title


def _foot(groups: Sequence[MatrixGroup], place: int) -> Foot:
    cells = [(row.id, row.cells[place]) for group in groups for row in group.rows]
    order: tuple[State, ...] = ("pass", "fail", "inconclusive", "unset", "error", UNTESTED, NOT_ASKED)
    counts = Counter(cell.state for _id, cell in cells)
    rated = [(cell.share, name) for name, cell in cells if cell.share is not None]
    share, requirement = min(rated, key=lambda pair: pair[0], default=(None, ""))
    return Foot(tuple((state, counts[state]) for state in order if counts[state]), share, requirement)
