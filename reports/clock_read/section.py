# SPDX-License-Identifier: Apache-2.0
"""The section of the page on what reading a clock costs, beside Table I of the paper that measured it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from reports.clock_read.capability import QUANTITY
from reports.clock_read.readings import (
    FOLDER,
    HOST,
    READINGS,
    TARGET,
    ReadCost,
    Reading,
    load_cost,
    load_readings,
    read_cost,
)
from reports.curves import figure_exceedance
from reports.errors import RecordError, ReportError
from reports.paper_table import table_rows
from reports.record.histogram import Summary
from reports.record.measurement import Measurement, Number
from reports.section import PrintFigure, SampleReader, Samples, Section, TargetData, TargetView
from reports.tools.answers import last_result

TABLE = Path(__file__).with_name("intra-process-table1.csv")
SERVICE = "timeservice"
SYNC_FOLDER = "clock_sync"
"""Of the evidence, where the time service's own suite has measured what a reading of it costs."""
DRAWN = ("tsc", "realtime-coarse", "realtime", SERVICE, "timecard")
"""Clocks whose distribution is drawn: those of the paper's Fig. 2, the time service and the timecard."""

_COLUMNS = ["clock", "method", "n", "mean_ns", "max_ns"]


@dataclass(frozen=True, slots=True)
class PaperRead:
    """One line of the paper's Table I.

    Attributes:
        clock: What we call the clock.
        method: What the paper calls it.
    """

    clock: str
    method: str
    n: int
    mean_ns: float
    max_ns: float


@dataclass(frozen=True)
class ReadRow:
    """One clock of host or target, with what was judged of it and what the paper has of the like."""

    reading: Reading
    cost: ReadCost | None
    records: tuple[Measurement, ...]
    paper: PaperRead | None

    @property
    def fewer(self) -> bool:
        """Say whether the time was over before all readings that were asked for."""
        return self.cost is not None and self.cost.latency.n < self.reading.reads


@dataclass(frozen=True)
class ReadPlace:
    """What holds for all readings on host or target, and their distributions as SVG.

    Attributes:
        title: The machine in words.
        pair_ns: What two readings of the processor's counter cost: smallest and largest median.
        clocksource: What the kernel keeps its own time with; empty: it does not say.
        not_told_apart: Why interrupted readings could not be told apart; empty: they were.
        figure: Empty where nothing can be drawn.
    """

    title: str
    rows: tuple[ReadRow, ...]
    pair_ns: tuple[Number, Number] | None
    clocksource: str
    not_told_apart: str
    figure: str


@dataclass(frozen=True)
class ReadLatencySection(TargetView):
    """All that the page says of what reading a clock costs."""

    load: str
    places: tuple[ReadPlace, ...]
    problems: tuple[str, ...]

    @property
    def rows(self) -> tuple[ReadRow, ...]:
        """Return all clocks, the host's first."""
        return tuple(row for place in self.places for row in place.rows)

    @property
    def told_apart(self) -> bool:
        """Say whether interrupted readings were told apart anywhere."""
        return any(row.cost is not None and row.cost.interrupted is not None for row in self.rows)

    @property
    def records(self) -> tuple[Measurement, ...]:
        """Return the records that this section shows."""
        return tuple(record for row in self.rows for record in row.records)

    @property
    def print_figures(self) -> tuple[PrintFigure, ...]:
        """Return the distributions of host and target."""
        words = "share of readings of a clock that take longer."
        return tuple(PrintFigure(place.figure, f"{place.title}: {words}", "half") for place in self.places)


def paper_reads(path: Path = TABLE) -> dict[str, PaperRead]:
    """Return the paper's rows by clock.

    Raises:
        RecordError: The file is wrong; the message says file, line and field.
    """
    return {row.clock: row for row in (_row(*found) for found in table_rows(path, _COLUMNS))}


def _row(where: str, fields: list[str]) -> PaperRead:
    try:
        row = PaperRead(fields[0], fields[1], int(fields[2]), float(fields[3]), float(fields[4]))
    except ValueError as error:
        raise RecordError(f"{where}: {error}; need a whole n, mean_ns and max_ns in ns") from error
    if not (row.n >= 1 and 0 < row.mean_ns <= row.max_ns < math.inf):
        raise RecordError(f"{where}: need n >= 1 and 0 < mean_ns <= max_ns")
    return row


def gather_read_latency(measured: TargetData) -> ReadLatencySection | None:
    """Read what a run folder has on what reading clocks costs; None where it has nothing."""
    place = measured.evidence(FOLDER)
    if not (place / READINGS).exists():
        return None
    try:
        found = load_readings(place)
    except RecordError as error:
        return ReadLatencySection("", (), (str(error),))
    paper = paper_reads()
    rows: list[ReadRow] = []
    problems: list[str] = []
    for reading in found.readings:
        try:
            cost = load_cost(place, reading)
        except RecordError as error:
            cost = None
            problems.append(f"{place.relative_to(measured.folder).as_posix()}/{error}")
        rows.append(ReadRow(reading, cost, _judged(reading, measured.records), paper.get(reading.clock)))
    try:
        rows += _service_rows(measured)
    except (RecordError, OSError) as error:
        problems.append(f"{SERVICE}: {error}")
    places = tuple(
        _place(title, at, [row for row in rows if row.reading.place == at])
        for at, title in ((HOST, "Host"), (TARGET, f"Target {found.target}"))
    )
    return ReadLatencySection(found.load, places, tuple(problems))


def _service_rows(measured: TargetData) -> list[ReadRow]:
    """Return what a reading of the time service cost, as its own suite has measured it.

    Raises:
        RecordError: The answer is damaged; names the key.
    """
    found = sorted(measured.evidence(SYNC_FOLDER).glob(f"**/read-{SERVICE}.ndjson"))[:1]
    costs = [(path.name, read_cost(last_result(path))) for path in found]
    return [
        ReadRow(Reading(TARGET, SERVICE, SERVICE, cost.latency.n, file=name), cost, (), None)
        for name, cost in costs
    ]


def read_latency_samples(run: Path) -> SampleReader:
    """Return the reader of what readings of the target's clocks cost."""

    def read(record: Measurement) -> Samples | None:
        place = next((run / e.path for e in record.evidence if e.path.endswith(f"/{READINGS}")), None)
        if record.quantity != QUANTITY or place is None:
            return None
        for reading in load_readings(place.parent).readings:
            if reading.place == TARGET and reading.clock == record.subject.clock:
                cost = load_cost(place.parent, reading)
                return None if cost is None else Samples.of_summary("cost of a reading", cost.undisturbed)
        return None

    return read


def _place(title: str, place: str, rows: Sequence[ReadRow]) -> ReadPlace:
    costs = [row.cost for row in rows if row.cost is not None]
    pairs_ns = [cost.pair_cost_ns for cost in costs]
    return ReadPlace(
        title=title,
        rows=tuple(rows),
        pair_ns=(min(pairs_ns), max(pairs_ns)) if pairs_ns else None,
        clocksource=next((cost.clocksource for cost in costs), ""),
        not_told_apart=next((cost.interrupted_reason for cost in costs if cost.interrupted_reason), ""),
        figure=_figure(place, rows),
    )


def _judged(reading: Reading, records: Sequence[Measurement]) -> tuple[Measurement, ...]:
    return tuple(
        record
        for record in records
        if record.quantity == QUANTITY and record.subject.clock == reading.clock and reading.place == TARGET
    )


def _figure(place: str, rows: Sequence[ReadRow]) -> str:
    shown: list[tuple[str, Summary]] = [
        (row.reading.clock, row.cost.undisturbed)
        for name in DRAWN
        for row in rows
        if row.reading.clock == name and row.cost is not None and row.cost.undisturbed.n
    ]
    try:
        return figure_exceedance(f"read-latency-{place}", shown, "time of one reading") if shown else ""
    except ReportError:
        return ""


SECTION = Section(
    (("read-latency", "Reading a clock"),),
    "clock_read/section.html.j2",
    gather_read_latency,
    read_latency_samples,
)
