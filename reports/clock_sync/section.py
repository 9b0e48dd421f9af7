# SPDX-License-Identifier: Apache-2.0
"""The section of the page on clocks: every trial of a run with its verdict, three witnesses and figures."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from reports.clock_sync.answers import read_clock_compare, series_of
from reports.clock_sync.capability import STATED_BOUND_STATISTICS as TOLD_QUANTITIES
from reports.clock_sync.disturbance_section import DISTURBANCE_KINDS, DisturbanceRow, gather_disturbances
from reports.clock_sync.holdover import measured_holdover
from reports.clock_sync.log_formats import KERNEL_STAMPS, LOG_READERS, USER_STAMPS
from reports.clock_sync.logs import ClockLog, ServoSeries
from reports.clock_sync.mask import load_mask
from reports.clock_sync.mask_curve import curve_of, limited_series, mask_points, worst_point
from reports.clock_sync.mask_verdict import MASK_QUANTITIES
from reports.clock_sync.phc_read_table import PhcReadRow, phc_read_rows
from reports.clock_sync.plots import (
    figure_corrections,
    figure_distribution,
    figure_holdover,
    figure_offset_delay,
    figure_stability,
    figure_time_error,
)
from reports.clock_sync.series import ClockSeries, Stretch
from reports.clock_sync.spread import SpreadRatio, spread_ratio
from reports.clock_sync.stability import Curve, mtie, tdev
from reports.clock_sync.table import SyncComparison, SyncRow, paper_rows, side_by_side
from reports.clock_sync.tai_utc import TaiUtc, load_tai_utc
from reports.clock_sync.trial import FILTERED, MASK, TRIAL, ClockTrial, load_trial
from reports.clock_sync.two_way_reference import TWO_WAY
from reports.clock_sync.usage import UsageRow, usage_row
from reports.clock_sync.verdict import QUANTITY, sync_uncertainty, witness_difference_ns
from reports.errors import RecordError, ReportError
from reports.record.measurement import Measurement
from reports.section import PrintFigure, SampleReader, Samples, Section, TargetData, TargetView

FOLDER = "clock_sync"
CURVES_MAX = 4
_TIME_ERROR = (
    "Time error over time of the trials in steady state, from the first sample of each. Positive: the target "
    "is ahead. Gaps are open."
)
_HOLDOVER = "Extremes of the time error since the target was cut off from its server."
KINDS = {
    "sync": "steady state",
    "interval": "sync interval",
    "holdover": "holdover",
    "load": "under load",
    "asymmetry": "asymmetric path",
    "known error": "known to be wrong",
    **DISTURBANCE_KINDS,
}


@dataclass(frozen=True)
class ClockRow:
    """One trial, with the record that was judged from it where there is one."""

    place: str
    trial: ClockTrial
    record: Measurement | None
    expanded_ns: float
    witness_difference: tuple[int, float] | None
    """Reference - two-way transfer, and what their bounds allow, in ns."""
    masks: tuple[Measurement, ...] = ()
    """What a mask made of it: one record for each quantity that the mask limits."""
    told: tuple[Measurement, ...] = ()
    """What was made of the bound that its clock tells, and of its drift in holdover."""

    @property
    def phc_reads(self) -> tuple[PhcReadRow, ...]:
        """Return the offsets by each way of reading the PHC that the clock follows; none without one."""
        return phc_read_rows(self.trial, servo_of(self.trial)) if self.trial.phc_reads else ()

    @property
    def title(self) -> str:
        """Return the stack and what the trial was for."""
        facts = self.trial.facts
        words = [facts.clock, KINDS.get(facts.kind, facts.kind)]
        if facts.interval_s is not None and facts.kind == "interval":
            words.append(f"{facts.interval_s:g} s")
        words += [text for text in (facts.load, facts.impairment) if text not in ("idle", "none")]
        return ", ".join(words)


@dataclass(frozen=True)
class StampComparison:
    """Spread of an NTP client that stamps in user space over that of one for which the kernel stamps."""

    user: str
    kernel: str
    spread: SpreadRatio


@dataclass(frozen=True)
class ClockFigures:
    """Drawn figures as SVG; a figure that the data cannot give is an empty text."""

    time_error: str
    distribution: str
    mtie: str
    tdev: str
    holdover: str
    corrections: tuple[tuple[str, str, str], ...]
    """Of each stack: title, its corrections, its offsets over path delay."""
    masks: tuple[tuple[str, str], ...]
    """MTIE and TDEV of each trial against its mask: caption, figure."""


@dataclass(frozen=True)
class ClockSection(TargetView):
    """All that the page says of clocks."""

    rows: tuple[ClockRow, ...]
    kernel_stamps: StampComparison | None
    table: tuple[SyncComparison, ...]
    disturbances: tuple[DisturbanceRow, ...]
    problems: tuple[str, ...]
    figures: ClockFigures
    tai_utc: TaiUtc | None
    """What the kernels of the nodes said of TAI - UTC before anything was measured."""
    usages: tuple[UsageRow, ...] = ()
    """Stacks that were measured side by side: what each costs its target."""
    logs: tuple[tuple[str, str], ...] = ()
    """Trials whose servo's log has lines that are in no figure: title, and which."""

    @property
    def records(self) -> tuple[Measurement, ...]:
        """Return the records of all trials, and of their masks."""
        found = [record for row in self.rows for record in (row.record, *row.masks, *row.told)]
        return tuple(record for record in found if record is not None)

    @property
    def print_figures(self) -> Iterator[PrintFigure]:
        """Return the figures."""
        drawn = self.figures
        yield PrintFigure(drawn.time_error, _TIME_ERROR, "wide")
        yield PrintFigure(drawn.mtie, "MTIE of the steady trials.", "half")
        yield PrintFigure(drawn.tdev, "TDEV of the steady trials.", "half")
        yield PrintFigure(drawn.holdover, _HOLDOVER, "half")
        yield PrintFigure(
            drawn.distribution, "All samples of the first trial, read one clock after the other.", "half"
        )
        for caption, svg in drawn.masks:
            yield PrintFigure(svg, caption, "half")

    @property
    def by_two_way(self) -> bool:
        """Tell whether the target has no timecard: two-way time transfer alone is the reference."""
        return bool(self.rows) and all(row.trial.facts.timecard.clock == TWO_WAY for row in self.rows)


def gather_clocks(measured: TargetData) -> ClockSection | None:
    """Read all clock trials of a run folder; None where it has none."""
    folder, records, evidence = measured.folder, measured.records, measured.evidence(FOLDER)
    rows: list[ClockRow] = []
    problems: list[str] = []
    judged = {
        file.path: record for record in records if record.quantity == QUANTITY for file in record.evidence
    }
    masked: dict[str, list[Measurement]] = {}
    told: dict[str, list[Measurement]] = {}
    for record in records:
        by_file = masked if record.quantity in MASK_QUANTITIES else told
        if by_file is masked or record.quantity in TOLD_QUANTITIES:
            for file in record.evidence:
                by_file.setdefault(file.path, []).append(record)
    usages: list[UsageRow] = []
    for path in sorted(evidence.glob(f"**/{TRIAL}")):
        place = path.parent.relative_to(folder).as_posix()
        try:
            trial = load_trial(path.parent)
        except (RecordError, OSError) as error:
            problems.append(f"{place}: {error}")
            continue
        difference = witness_difference_ns(trial)
        try:
            usages += [usage for usage in (usage_row(trial),) if usage is not None]
        except (RecordError, OSError) as error:
            problems.append(f"{place}: {error}")
        rows.append(
            ClockRow(
                place=place,
                trial=trial,
                record=judged.get(f"{place}/{TRIAL}"),
                expanded_ns=float(sync_uncertainty(trial).expanded),
                witness_difference=(difference[0], float(difference[2].expanded)) if difference else None,
                masks=tuple(masked.get(f"{place}/{TRIAL}", ())),
                told=tuple(told.get(f"{place}/{TRIAL}", ())),
            )
        )
    tai_utc = None
    try:
        tai_utc = load_tai_utc(evidence)
    except RecordError as error:
        problems.append(str(error))
    disturbances, damaged = gather_disturbances(folder, evidence)
    problems += [text for text in damaged if text not in problems]
    if not rows and not problems and not disturbances:
        return None
    return ClockSection(
        rows=tuple(rows),
        kernel_stamps=_kernel_stamps(rows),
        table=_table(rows),
        disturbances=tuple(disturbances),
        problems=tuple(problems),
        figures=_figures(rows),
        tai_utc=tai_utc,
        logs=tuple(_left_out(rows)),
        usages=tuple(usages),
    )


def clock_samples(run: Path) -> SampleReader:
    """Return the reader of the offsets of clocks."""

    def read(record: Measurement) -> Samples | None:
        place = next((run / e.path for e in record.evidence if e.path.endswith(f"/{FILTERED}")), None)
        if record.quantity != QUANTITY or place is None:
            return None
        return Samples.of_summary("offset, filtered reads", read_clock_compare(place).offset, has_sign=True)

    return read


def _kernel_stamps(rows: Sequence[ClockRow]) -> StampComparison | None:
    """Compare the last trial in steady state of either kind; None: one of them is not there."""
    user, kernel = (_last_steady(rows, formats) for formats in (USER_STAMPS, KERNEL_STAMPS))
    if user is None or kernel is None:
        return None
    series = [series_of(trial.filtered) for trial in (user, kernel)]
    if series[0] is None or series[1] is None:
        return None
    spread = spread_ratio(series[0], series[1])
    return StampComparison(user.facts.clock, kernel.facts.clock, spread) if spread is not None else None


def _last_steady(rows: Sequence[ClockRow], formats: Collection[str]) -> ClockTrial | None:
    """Return the last trial in steady state of a stack whose log has one of the formats."""
    trials = [row.trial for row in rows if row.trial.facts.kind == "sync"]
    return next((trial for trial in reversed(trials) if trial.facts.servo_format in formats), None)


def _table(rows: Sequence[ClockRow]) -> tuple[SyncComparison, ...]:
    """Return Table 2 of the DAQ paper beside the trials at sync intervals and in holdover."""
    measured: list[SyncRow] = []
    for row in rows:
        facts = row.trial.facts
        if facts.kind not in ("interval", "holdover"):
            continue
        for reading, compare in (("sequential", row.trial.sequential), ("bracketed", row.trial.filtered)):
            offset = compare.offset if compare else None
            if (
                offset
                and offset.min_ns is not None
                and offset.max_ns is not None
                and offset.mean_ns is not None
            ):
                interval_s = float(facts.interval_s) if facts.interval_s is not None else None
                label = f"{facts.clock}, {reading}"
                measured.append(
                    SyncRow(interval_s, label, offset.n, offset.min_ns, offset.max_ns, offset.mean_ns)
                )
    return side_by_side(measured, paper_rows()) if measured else ()


def log_of(trial: ClockTrial) -> ClockLog | None:
    """Return the log of the servo; None without one."""
    facts = trial.facts
    path = trial.folder / facts.servo_log
    if not facts.servo_log or facts.servo_format not in LOG_READERS or not path.is_file():
        return None
    text = path.read_text(encoding="utf-8", errors="replace")
    return LOG_READERS[facts.servo_format](text, trial.tai_utc_s)


def servo_of(trial: ClockTrial) -> ServoSeries | None:
    """Return what the servo said of itself; None without a log that can be read."""
    log = log_of(trial)
    return max(log.series, key=lambda series: len(series.time_ns), default=None) if log else None


def _left_out(rows: Sequence[ClockRow]) -> Iterator[tuple[str, str]]:
    """Yield what of the servos' logs is in no figure."""
    for row in rows:
        log = log_of(row.trial)
        if log is not None and (left_out := log.left_out()):
            yield row.title, f"{row.trial.facts.servo_log}: {left_out}"


def _figures(rows: Sequence[ClockRow]) -> ClockFigures:
    steady = [row for row in rows if row.trial.facts.kind == "sync"][:CURVES_MAX]
    found = [(row.title, series_of(row.trial.filtered)) for row in steady]
    series = [(title, each) for title, each in found if each is not None]
    sequential = [
        row.trial.sequential for row in rows if row.trial.sequential and row.trial.sequential.offset.n
    ]
    return ClockFigures(
        time_error=_drawn(
            figure_time_error, "clock-te", [(title, from_zero(each)) for title, each in series]
        ),
        distribution=_drawn(figure_distribution, "clock-histogram", sequential[0].offset)
        if sequential
        else "",
        mtie=_drawn(figure_stability, "clock-mtie", "mtie", _curves(mtie, series)),
        tdev=_drawn(figure_stability, "clock-tdev", "tdev", _curves(tdev, series)),
        holdover=_holdover(rows),
        corrections=tuple(
            (row.title, _drawn(figure_corrections, f"clock-servo{number}", servo), _delays(number, servo))
            for number, row in enumerate(steady)
            if (servo := servo_of(row.trial)) is not None
        ),
        masks=_mask_figures(rows),
    )


def _mask_figures(rows: Sequence[ClockRow]) -> tuple[tuple[str, str], ...]:
    """Draw the curves of each trial that a mask limits; a mask that cannot be read draws nothing."""
    drawn: list[tuple[str, str]] = []
    for number, row in enumerate(rows):
        series = series_of(row.trial.filtered)
        if not row.masks or series is None:
            continue
        try:
            mask = load_mask(row.trial.folder / MASK)
        except RecordError:
            continue
        for quantity in mask.curves:
            limited = limited_series(series, quantity)
            if limited is None or (curve := curve_of(limited, quantity)) is None:
                continue
            worst = worst_point(mask_points(limited, curve, mask, quantity))
            name = f"clock-mask{number}-{quantity}"
            figure = _drawn(figure_stability, name, quantity, [(row.title, curve)], mask, worst)
            words = quantity.upper().replace("_", " ")
            drawn.append((f"{row.title}: {words} against the mask {mask.name}.", figure))
    return tuple(drawn)


def _curves(
    statistic: Callable[[ClockSeries], Curve | None], series: Sequence[tuple[str, ClockSeries]]
) -> list[tuple[str, Curve]]:
    curves = [(title, statistic(each)) for title, each in series]
    return [(title, curve) for title, curve in curves if curve is not None]


def _delays(number: int, servo: ServoSeries) -> str:
    return _drawn(figure_offset_delay, f"clock-delay{number}", servo)


def _holdover(rows: Sequence[ClockRow]) -> str:
    trials = [
        (series, row.trial.filtered.start_tai_ns)
        for row in rows
        if row.trial.facts.kind == "holdover" and (series := series_of(row.trial.filtered)) is not None
    ]
    envelope = measured_holdover(trials) if trials else None
    return _drawn(figure_holdover, "clock-holdover", envelope) if envelope is not None else ""


def from_zero(series: ClockSeries) -> ClockSeries:
    """Return the series with times that count from its first sample, so that trials can be drawn together."""
    first_ns = int(series.stretches[0].time_ns[0])
    return ClockSeries(
        series.tau0_ns,
        tuple(Stretch(stretch.time_ns - first_ns, stretch.offset_ns) for stretch in series.stretches),
    )


def _drawn(draw: Callable[..., str], *arguments: object) -> str:
    """Draw a figure; an empty text where the data cannot give it."""
    try:
        return draw(*arguments)
    except ReportError:
        return ""


SECTION = Section((("clocks", "Clocks"),), "clock_sync/section.html.j2", gather_clocks, clock_samples)
