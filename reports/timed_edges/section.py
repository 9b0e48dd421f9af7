# SPDX-License-Identifier: Apache-2.0
"""The section of the page on timed edges: methods beside the paper's, clocks by their edges, witnesses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from reports.errors import RecordError, ReportError
from reports.record.measurement import Measurement, Number, UncertaintyPart
from reports.section import PrintFigure, SampleReader, Samples, Section, TargetData, TargetView
from reports.timed_edges.capability import (
    DEVIATION,
    MEAN,
    METHODS,
    OFFSET_QUANTITY,
    ORDER_QUANTITY,
    PEAK_TO_PEAK,
    QUANTITY,
    SHIFT_QUANTITY,
    WITNESS_QUANTITY,
)
from reports.timed_edges.plots import (
    MethodMark,
    figure_delays,
    figure_distances,
    figure_methods,
    figure_overlay,
    figure_witnesses,
)
from reports.timed_edges.table import (
    PaperEdge,
    Ratio,
    Share,
    best_of,
    common_count,
    paper_edges,
    ratios_to,
    shares_of,
)
from reports.timed_edges.trial import (
    CAPTURE,
    CLOCK_EDGE,
    FOLDER,
    OSCILLOSCOPE,
    TRIAL,
    WITNESSES,
    Delays,
    EdgeTrial,
    Witnesses,
    load_edge_trial,
    load_witnesses,
)
from reports.timed_edges.verdict import edge_offset_ns, edge_parts, uncertainty_of, witness_en, witness_pairs
from reports.timed_edges.waveforms import load_waveforms
from reports.tools.answers import last_result

SOFTWARE_KEYS = ("programmed", "late", "reads", "reads_discarded")


@dataclass(frozen=True)
class EdgeRow:
    """One trial, with what was judged of it and what the paper has of the like.

    Attributes:
        place: Its folder in the run folder.
        software: Of the software's own counts those that it answered, by name.
        witnessed: Whether other witnesses saw the same edges.
        overlay: Its edges laid over each other, as SVG; empty: none.
        histogram: Its delays as SVG; empty: none.
    """

    place: str
    trial: EdgeTrial
    records: tuple[Measurement, ...]
    paper: PaperEdge | None
    software: dict[str, int]
    witnessed: bool
    overlay: str
    histogram: str
    note: str = ""
    """What it is there for, where that is not its own figures."""

    @property
    def title(self) -> str:
        """Return method or clock, and how it was seen where that is no oscilloscope."""
        trial = self.trial
        words = [trial.clock if trial.method == CLOCK_EDGE else trial.method]
        if trial.seen_by == CAPTURE:
            words.append("latched time")
        words += [self.note] if self.note else []
        if self.witnessed:
            words.append("witnessed")
        if trial.correlation_error_ns:
            words.append(f"{trial.correlation_error_ns:+d} ns put in")
        return ", ".join(words)

    def expanded_ns(self, statistic: str) -> Number | None:
        """Return U of a statistic; None where it is not known."""
        parts = edge_parts(self.trial, statistic)
        return None if parts is None else uncertainty_of(parts).expanded

    def facts(self, named: bool) -> tuple[str, ...]:
        """Return the settings as a reader wants them, with the instrument's name before them where asked."""
        settings = [f"{key} {text}" for key, text in self.trial.settings.items()]
        return (*([self.trial.oscilloscope] if named and self.trial.oscilloscope else []), *settings)

    @property
    def mean_ns(self) -> Number | None:
        """Return the mean delay, corrected; None without any."""
        delays = self.trial.delays
        return None if delays is None else delays.mean_ns - self.trial.correction_ns

    @property
    def offset_ns(self) -> Number | None:
        """Return the mean offset of the clock that makes the edges; None without any."""
        return edge_offset_ns(self.trial, MEAN)

    def peak_to_peak_ns(self, count: int) -> Number | None:
        """Return the peak to peak of the first so many delays; None where it was not kept."""
        return self.trial.delays.peak_to_peak_of(count) if self.trial.delays else None

    @property
    def budgets(self) -> tuple[tuple[str, tuple[Share, ...]], ...]:
        """Return, by statistic, what U is made of, the largest part first; without those not known."""
        shown = (("mean", MEAN), ("standard deviation", DEVIATION), ("peak to peak", PEAK_TO_PEAK))
        found = [(title, shares_of(edge_parts(self.trial, statistic))) for title, statistic in shown]
        return tuple((title, shares) for title, shares in found if shares)


@dataclass(frozen=True)
class ShiftRow:
    """A mistake that was put into the software, and how far it moved the edges; in ns.

    Attributes:
        wrong: The trial with the mistake.
        plain: That without it; None: there is none.
        shift_ns: From the one's mean to the other's.
    """

    wrong: EdgeRow
    plain: EdgeRow | None
    shift_ns: Number | None
    record: Measurement | None


@dataclass(frozen=True)
class WitnessGroup:
    """What several witnesses said of a clock; pairs: names, E_n and the record that was judged."""

    witnesses: Witnesses
    expanded_ns: tuple[Number, ...]
    pairs: tuple[tuple[str, str, float | None, Measurement | None], ...]
    figure: str


@dataclass(frozen=True)
class TimedEdgesSection(TargetView):
    """All that the page says of timed edges.

    Attributes:
        methods: The paper's methods, those that an oscilloscope saw first.
        best: Of these that whose edges scatter least.
        ratios: How many times more the others' scatter.
        orders: Records on which method scatters less.
        peak_count: Of how many edges the peak to peak of all methods is known; 0: of no common number.
        figure_methods: Methods beside the paper's, as SVG.
        figure_distances: Distances from the mean, as SVG.
    """

    methods: tuple[EdgeRow, ...]
    best: EdgeRow | None
    ratios: tuple[Ratio, ...]
    orders: tuple[Measurement, ...]
    shifts: tuple[ShiftRow, ...]
    clocks: tuple[EdgeRow, ...]
    witnesses: tuple[WitnessGroup, ...]
    peak_count: int
    figure_methods: str
    figure_distances: str
    problems: tuple[str, ...]

    @property
    def rows(self) -> tuple[EdgeRow, ...]:
        """Return all trials."""
        shifts = [row for shift in self.shifts for row in (shift.plain, shift.wrong) if row is not None]
        return (*self.methods, *(row for row in shifts if row not in self.methods), *self.clocks)

    @property
    def lost(self) -> int:
        """Return how many reference edges have no edge beside them, or a runt, in all trials."""
        return sum(row.trial.counts.lost for row in self.rows)

    @property
    def outside(self) -> int:
        """Return of how many the edge may lie outside the record."""
        return sum(row.trial.counts.at_border for row in self.rows)

    @property
    def pairs(self) -> int:
        """Return how many delays there are in all trials."""
        return sum(row.trial.delays.count for row in self.rows if row.trial.delays is not None)

    @property
    def peak_of_all(self) -> bool:
        """Say whether a method has more edges than those whose peak to peak is compared."""
        delays = [row.trial.delays for row in self.methods if row.trial.delays is not None]
        return any(one.count != self.peak_count for one in delays)

    @property
    def parts(self) -> Iterator[tuple[str, UncertaintyPart]]:
        """Return the parts of all uncertainties that are shown but stand in no record."""
        found = [witness.parts for group in self.witnesses for witness in group.witnesses.witnesses]
        for row in self.rows:
            judged = {record.statistic for record in row.records}
            shown = [name for name in (MEAN, DEVIATION, PEAK_TO_PEAK) if name not in judged]
            found += [edge_parts(row.trial, name) or () for name in shown]
        for part in (part for parts in found for part in parts):
            yield "ns", UncertaintyPart(part.name, part.kind, part.value_ns)

    @property
    def print_figures(self) -> Iterator[PrintFigure]:
        """Return the figures."""
        yield PrintFigure(
            self.figure_methods, "Scatter of the edges by method, beside the paper's Table II (open).", "wide"
        )
        yield PrintFigure(
            self.figure_distances, "Share of edges that lie farther from their mean than a time.", "wide"
        )
        for group in self.witnesses:
            yield PrintFigure(group.figure, "Offset of the clock by each witness, with U.", "half")

    @property
    def oscilloscopes(self) -> tuple[str, ...]:
        """Return the instruments as they name themselves."""
        return tuple(dict.fromkeys(row.trial.oscilloscope for row in self.rows if row.trial.oscilloscope))

    @property
    def records(self) -> tuple[Measurement, ...]:
        """Return the records that this section shows."""
        shifts = [shift.record for shift in self.shifts if shift.record is not None]
        pairs = [pair[3] for group in self.witnesses for pair in group.pairs if pair[3] is not None]
        rows = [record for row in self.rows for record in row.records]
        return (*rows, *self.orders, *shifts, *pairs)


def edge_samples(run: Path) -> SampleReader:
    """Return the reader of the delays of edges."""

    def read(record: Measurement) -> Samples | None:
        place = next((run / e.path for e in record.evidence if e.path.endswith(f"/{TRIAL}")), None)
        if record.quantity not in (QUANTITY, OFFSET_QUANTITY) or place is None:
            return None
        d = load_edge_trial(place.parent).delays
        if d is None:
            return None
        extremes = (d.minimum_ns, d.mean_ns, d.maximum_ns)
        return Samples("edge - reference, as measured", d.count, *extremes, d.buckets, has_sign=True)

    return read


def gather_timed_edges(measured: TargetData) -> TimedEdgesSection | None:
    """Read what a run folder has on timed edges; None where it has nothing."""
    folder, records, place = measured.folder, measured.records, measured.evidence(FOLDER)
    problems: list[str] = []
    rows = _last_attempts(_rows(folder, sorted(place.glob(f"**/{TRIAL}")), records, problems))
    groups: list[WitnessGroup] = []
    for number, path in enumerate(sorted(place.glob(f"**/{WITNESSES}"))):
        where = path.relative_to(folder).as_posix()
        try:
            groups.append(_witness_group(number, load_witnesses(path.parent), where, records))
        except RecordError as error:
            problems.append(f"{path.parent.relative_to(folder).as_posix()}: {error}")
    if not rows and not groups and not problems:
        return None
    shifts = [_shift(row, rows, records) for row in rows if row.trial.correlation_error_ns]
    compared = [shift.plain for shift in shifts if _only_compared(shift.plain, rows)]
    shifts = [
        replace(shift, plain=replace(shift.plain, note="to compare"))
        if shift.plain is not None and shift.plain in compared
        else shift
        for shift in shifts
    ]
    plain = [row for row in rows if not row.trial.correlation_error_ns and row not in compared]
    methods = sorted(
        (row for row in plain if row.trial.method in METHODS),
        key=lambda row: (row.trial.seen_by != OSCILLOSCOPE, METHODS.index(row.trial.method)),
    )
    trials = [row.trial for row in methods]
    best = best_of(trials)
    peak_count = common_count(trials)
    return TimedEdgesSection(
        methods=tuple(methods),
        best=next((row for row in methods if row.trial is best), None),
        ratios=ratios_to(best, trials) if best is not None else (),
        orders=tuple(record for record in records if record.quantity == ORDER_QUANTITY),
        shifts=tuple(shifts),
        clocks=tuple(row for row in plain if row.trial.method == CLOCK_EDGE),
        witnesses=tuple(groups),
        peak_count=peak_count,
        figure_methods=_drawn(figure_methods, "edge-methods", _marks(methods, peak_count), peak_count),
        figure_distances=_drawn(figure_distances, "edge-distances", _curves(methods)),
        problems=tuple(problems),
    )


def _rows(
    folder: Path, paths: Iterable[Path], records: Sequence[Measurement], problems: list[str]
) -> list[EdgeRow]:
    paper = paper_edges()
    rows: list[EdgeRow] = []
    for number, path in enumerate(paths):
        where = path.parent.relative_to(folder).as_posix()
        try:
            trial = load_edge_trial(path.parent)
        except RecordError as error:
            problems.append(f"{where}: {error}")
            continue
        row = EdgeRow(
            place=where,
            trial=trial,
            records=tuple(_judged(f"{where}/{TRIAL}", (QUANTITY, OFFSET_QUANTITY), records)),
            paper=paper.get(trial.method),
            software=_software(path.parent, trial, where, problems),
            witnessed=(path.parent / WITNESSES).exists(),
            overlay=_overlay(number, path.parent, trial, where, problems),
            histogram=_drawn(figure_delays, f"edge-delays{number}", trial.delays, trial.name)
            if trial.delays is not None
            else "",
        )
        rows.append(row)
    return rows


def _last_attempts(rows: Sequence[EdgeRow]) -> list[EdgeRow]:
    """Return, of trials of one name, that whose records count, else the last."""
    chosen: dict[tuple[str, str], EdgeRow] = {}
    for row in rows:
        key = (row.trial.name, row.trial.oscilloscope)
        earlier = chosen.get(key)
        if earlier is None or row.records or not earlier.records:
            chosen[key] = row
    return list(chosen.values())


def _judged(path: str, quantities: Sequence[str], records: Sequence[Measurement]) -> list[Measurement]:
    return [
        record
        for record in records
        if record.quantity in quantities and any(evidence.path == path for evidence in record.evidence)
    ]


def _software(folder: Path, trial: EdgeTrial, where: str, problems: list[str]) -> dict[str, int]:
    """Return of the software's own counts those that it answered."""
    if not trial.software_file:
        return {}
    try:
        answer = cast("dict[str, object]", last_result(folder / trial.software_file))
    except (RecordError, OSError) as error:
        problems.append(f"{where}/{trial.software_file}: {error}")
        return {}
    return {key: count for key in SOFTWARE_KEYS if isinstance(count := answer.get(key), int)}


def _overlay(number: int, folder: Path, trial: EdgeTrial, where: str, problems: list[str]) -> str:
    if not trial.waveforms_file:
        return ""
    try:
        waveforms = load_waveforms(folder / trial.waveforms_file)
    except RecordError as error:
        problems.append(f"{where}/{error}")
        return ""
    return _drawn(figure_overlay, f"edge-overlay{number}", waveforms, trial.name)


def _shift(wrong: EdgeRow, rows: Sequence[EdgeRow], records: Sequence[Measurement]) -> ShiftRow:
    """Return how far a mistake moved the edges of a method from where they are without it.

    The trial without it is that which the record was judged from, else another of the method.
    """
    found = _judged(f"{wrong.place}/{TRIAL}", (SHIFT_QUANTITY,), records)
    judged = {evidence.path for evidence in found[-1].evidence} if found else set[str]()
    alike = [row for row in rows if not row.trial.correlation_error_ns and _way(row) == _way(wrong)]
    alike.sort(key=lambda row: f"{row.place}/{TRIAL}" not in judged)
    plain = alike[0] if alike else None
    shift_ns = None
    if plain is not None and plain.mean_ns is not None and wrong.mean_ns is not None:
        shift_ns = wrong.mean_ns - plain.mean_ns
    return ShiftRow(wrong, plain, shift_ns, found[-1] if found else None)


def _way(row: EdgeRow) -> tuple[str, str, str]:
    """Return what trials have to have in common to be compared."""
    return (row.trial.method, row.trial.seen_by, row.trial.oscilloscope)


def _only_compared(row: EdgeRow | None, rows: Sequence[EdgeRow]) -> bool:
    """Say whether a trial is there only to be compared: not judged, beside another of its method."""
    if row is None or row.records:
        return False
    others = [other for other in rows if other is not row and not other.trial.correlation_error_ns]
    return any(_way(other) == _way(row) for other in others)


def _witness_group(
    number: int, witnesses: Witnesses, path: str, records: Sequence[Measurement]
) -> WitnessGroup:
    judged = {record.subject.method: record for record in _judged(path, (WITNESS_QUANTITY,), records)}
    expanded = [uncertainty_of(witness.parts).expanded for witness in witnesses.witnesses]
    marks = [
        (witness.name, witness.offset_ns, u)
        for witness, u in zip(witnesses.witnesses, expanded, strict=True)
        if witness.offset_ns is not None
    ]
    return WitnessGroup(
        witnesses=witnesses,
        expanded_ns=tuple(expanded),
        pairs=tuple(
            (one.name, other.name, witness_en(one, other), judged.get(f"{one.name}/{other.name}"))
            for one, other in witness_pairs(witnesses)
        ),
        figure=_drawn(figure_witnesses, f"edge-witnesses{number}", marks),
    )


def _marks(methods: Sequence[EdgeRow], peak_count: int) -> list[MethodMark]:
    return [
        MethodMark(
            label=row.title,
            deviation_ns=row.trial.delays.deviation_ns,
            deviation_u_ns=row.expanded_ns(DEVIATION) or 0,
            peak_to_peak_ns=row.peak_to_peak_ns(peak_count),
            paper=(row.paper.stddev_ns, row.paper.peak_to_peak_ns) if row.paper else None,
        )
        for row in methods
        if row.trial.delays is not None
    ]


def _curves(methods: Sequence[EdgeRow]) -> list[tuple[str, Delays]]:
    seen = [
        (row.title, row.trial.delays)
        for row in methods
        if row.trial.delays is not None and row.trial.seen_by == OSCILLOSCOPE
    ]
    return seen[:4]


def _drawn(draw: Callable[..., str], *arguments: object) -> str:
    """Draw a figure; an empty text where the data cannot give it."""
    try:
        return draw(*arguments)
    except ReportError:
        return ""


SECTION = Section(
    (("timed-edges", "Timed edges"),), "timed_edges/section.html.j2", gather_timed_edges, edge_samples
)
