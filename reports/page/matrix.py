# SPDX-License-Identifier: Apache-2.0
"""Requirements x targets: what became of each requirement on each target of a run, and by what margin."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from reports.errors import RequirementsError
from reports.natural_order import natural
from reports.page.model import Report
from reports.quantities import family_of
from reports.record.measurement import Measurement
from reports.requirement_forms import sets_of_run
from reports.requirements import Requirement, RequirementSet
from reports.run.selected import NOT_SELECTED, STATES, Standing, State
from reports.run.tally import relative_margin


@dataclass(frozen=True, slots=True)
class Cell:
    """What became of a requirement on a target.

    Attributes:
        state: As reports/run/selected.py defines it.
        share: The least margin of its values, as a share of the limit; None: there is none.
        values: How many values it rests on.
        reason: Why it was skipped; empty: it was not.
    """

    state: State
    share: float | None = None
    values: int = 0
    reason: str = ""


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
    """The matrix; `problems`: why the run does not say what its requirements ask."""

    targets: tuple[str, ...]
    groups: tuple[MatrixGroup, ...]
    feet: tuple[Foot, ...]
    problems: tuple[str, ...]


def matrix_of(run: Path, run_id: str, reports: Sequence[Report]) -> Matrix:
    """Return the matrix of a run with several targets.

    Args:
        run: The run folder.
        run_id: Its id.
        reports: The report of each target.
    """
    problems: list[str] = []
    sets: list[RequirementSet] = []
    try:
        sets = sets_of_run(run, run_id)
    except RequirementsError as error:
        problems.append(f"What the requirements ask cannot be told: {error}")
    defined = {(Path(each.path).name, one.id): one for each in sets for one in each.requirements}
    grouped: dict[str, list[MatrixRow]] = {}
    for name in sorted({name for report in reports for name in report.requirements}, key=natural):
        found = [report.requirements.get(name, Standing(NOT_SELECTED)) for report in reports]
        keys = [(each.file, each.requirement) for each in found]
        known = [defined[key] for key in keys if key in defined]
        records = [record for standing in found for record in standing.records]
        words = " / ".join(dict.fromkeys(each.text for each in known))
        row = MatrixRow(name, words or (_words(records[0]) if records else ""), tuple(map(_cell, found)))
        grouped.setdefault(_group(next(iter(known), None), records), []).append(row)
    groups = tuple(MatrixGroup(title, tuple(rows)) for title, rows in grouped.items())
    feet = tuple(_foot(groups, place) for place in range(len(reports)))
    return Matrix(tuple(report.target for report in reports), groups, feet, tuple(problems))


def _cell(standing: Standing) -> Cell:
    shares = [share for record in standing.records if (share := relative_margin(record)) is not None]
    return Cell(standing.state, min(shares, default=None), len(standing.records), standing.reason)


def _words(record: Measurement) -> str:
    words = [record.quantity.replace("_", " "), record.statistic.replace("_", " ")]
    of = record.subject.words
    return ", ".join([*words, *(of[:1] if record.subject.stream else of)])


def _group(known: Requirement | None, records: Sequence[Measurement]) -> str:
    """Return the title of the group that a requirement belongs to: of a quantity, of some things of it."""
    if known is not None:
        quantity, subject = known.quantity, known.subject
    elif records:
        quantity, subject = records[0].quantity, next(iter(records[0].subject.of), None)
    else:
        return "Of no requirements file that the run kept"
    family = family_of(*subject) if subject else ""
    title = ": ".join(part for part in (quantity.replace("_", " ").capitalize(), family) if part)
    return f"{title}, the target in its place" if known is not None and known.of_sender else title


def _foot(groups: Sequence[MatrixGroup], place: int) -> Foot:
    cells = [(row.id, row.cells[place]) for group in groups for row in group.rows]
    counts = Counter(cell.state for _id, cell in cells)
    rated = [(cell.share, name) for name, cell in cells if cell.share is not None]
    share, requirement = min(rated, key=lambda pair: pair[0], default=(None, ""))
    return Foot(tuple((state, counts[state]) for state in STATES if counts[state]), share, requirement)
