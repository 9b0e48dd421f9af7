# SPDX-License-Identifier: Apache-2.0
"""The section of the page on one-way latency: streams, distributions, the instrument's own errors."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from reports.daq_replay.capability import STREAM_QUANTITY
from reports.daq_replay.excerpt_plots import figure_excerpt
from reports.daq_replay.excerpts import excerpts_of, narrated
from reports.daq_replay.late_message_plots import figure_late_messages
from reports.daq_replay.late_messages import latest_messages, worst_messages
from reports.daq_replay.over_time import replay_over_time
from reports.daq_replay.over_time_plots import MAX_PANELS, figure_over_time
from reports.daq_replay.plots import (
    StreamFigures,
    figure_clocks,
    figure_distributions,
    figure_lateness,
    figure_maxima,
)
from reports.daq_replay.record_replays import RecordReplays
from reports.daq_replay.software_parts import SoftwareParts, software_parts
from reports.daq_replay.stack_comparison import StackComparison, compare_stacks
from reports.daq_replay.stream_groups import Instrument, StreamGroup, StreamRow, stream_groups
from reports.errors import RecordError, ReportError
from reports.record.measurement import Measurement
from reports.run.tally import WORST_FIRST, relative_margin
from reports.section import SampleReader, Samples, Section, TargetData, TargetView
from reports.software_latency.evidence import (
    FOLDER,
    SoftwareLatencies,
    folders_of_sizes,
    load_software_latencies,
)
from reports.tools.answers import recv_progress

EXCERPTS_ON_PAGE = 4
"""Of each replay."""
ROUND_TRIP_STACK = "kernel"
"""Network stack by which round trips are made: of streams by another one they tell nothing."""


@dataclass(frozen=True, slots=True)
class LatencySection(TargetView):
    """The streams of a target, grouped by subject and conditions, with the instruments of their replays.

    Attributes:
        groups: Those streams.
        round_trips: Of the same target, one a size; empty: the run has none.
    """

    groups: tuple[StreamGroup, ...]
    round_trips: tuple[SoftwareLatencies, ...] = ()

    @property
    def records(self) -> tuple[Measurement, ...]:
        """Return the records of all streams."""
        return tuple(row.record for group in self.groups for row in group.rows)

    @property
    def instruments(self) -> tuple[Instrument, ...]:
        """Return the instruments of all its replays, each replay once."""
        return tuple({each.attempt: each for group in self.groups for each in group.instruments}.values())

    @property
    def evidence_problems(self) -> list[str]:
        """Return what of the evidence of each replay is not as it has to be."""
        every = (each for group in self.groups for each in group.instruments)
        return [f"{each.attempt}: {problem}" for each in every for problem in each.evidence.problems]

    @property
    def comparisons(self) -> tuple[StackComparison, ...]:
        """Return the streams by network stack, where the target was measured with several."""
        return compare_stacks(self.groups)

    @property
    def software(self) -> list[SoftwareParts | None]:
        """Return of each group what software takes of its latencies; None: not told."""
        return [
            software_parts(each.rows, self.round_trips) if _is_of_round_trips(each) else None
            for each in self.groups
        ]

    def cause(self, record: Measurement) -> str:
        """Return in which stage the worst message of a stream spent most of its time."""
        instruments = (each for group in self.groups for each in group.instruments)
        instrument = next((each for each in instruments if record in [row.record for row in each.rows]), None)
        if instrument is None or instrument.evidence.recv is None:
            return ""
        worst = worst_messages(instrument.evidence.replay(), int(record.subject.stream or 0))
        return worst[0].cause if worst else ""

    @property
    def figures(self) -> list[dict[str, object]]:
        """Draw the figures of each group as SVG, those of its instruments by attempt."""
        return [_figures_of(group, index) for index, group in enumerate(self.groups)]


def gather_latency(found: TargetData) -> LatencySection | None:
    """Return the section of a target; None: no stream was measured."""
    streams = [m for m in found.records if m.quantity == STREAM_QUANTITY and m.subject.stream is not None]
    groups = stream_groups(found.folder, streams, found.attempts)
    if not groups:
        return None
    return LatencySection(tuple(groups), _round_trips(found) if any(map(_is_of_round_trips, groups)) else ())


def _is_of_round_trips(group: StreamGroup) -> bool:
    """Say whether round trips of the target tell something of a group: it received by the same stack."""
    return group.role is None and group.rows[0].record.subject.stack == ROUND_TRIP_STACK


def _round_trips(found: TargetData) -> tuple[SoftwareLatencies, ...]:
    """Read the round trips of a target; what cannot be read the section on software latency says."""
    told: list[SoftwareLatencies] = []
    for folder in folders_of_sizes(found.evidence(FOLDER)):
        with suppress(ReportError):
            told.append(found.once(load_software_latencies, folder))
    return tuple(told)


def latency_samples(run: Path) -> SampleReader:
    """Return the reader of the latencies of single streams; each replay is read once."""
    replays = RecordReplays(run)

    def read(record: Measurement) -> Samples | None:
        stream = replays.stream_of(record) if record.quantity == STREAM_QUANTITY else None
        if stream is None:
            return None
        return Samples.of_summary("received - scheduled", stream.received_minus_scheduled)

    return read


def _figures_of(group: StreamGroup, index: int) -> dict[str, object]:
    """Return the figures of a group of streams as SVG, those of its instruments by attempt."""
    drawn = [stream_figures(row) for row in group.rows]
    streams = [stream for stream in drawn if stream is not None]
    instruments: list[dict[str, object]] = []
    figures: dict[str, object] = {"maxima": "", "distributions": "", "instruments": instruments}
    if streams:
        names = type_names(group.rows)
        figures["maxima"] = figure_maxima(f"maxima{index}", streams, names)
        figures["distributions"] = figure_distributions(f"distributions{index}", streams, names)
    for number, instrument in enumerate(group.instruments):
        lateness = [
            (f"{producer}\ntarget" if producer == instrument.target_producer else str(producer), summary)
            for producer, summary, _ in instrument.lateness
        ]
        clocks = instrument.evidence.recv.clocks if instrument.evidence.recv else ()
        drawn_clocks = [clock for clock in clocks if len(clock.series) >= 3]
        suffix = f"{index}-{number}"
        largest = float(instrument.largest_u_ns)
        evidence = instrument.evidence
        replay = evidence.replay() if evidence.recv else None
        late = latest_messages(replay, evidence.emulation.around) if replay else []
        instruments.append(
            {
                "lateness": figure_lateness(f"lateness{suffix}", lateness, largest) if lateness else "",
                "clocks": figure_clocks(f"clocks{suffix}", drawn_clocks) if drawn_clocks else "",
                "late": figure_late_messages(f"late{suffix}", late) if late else "",
                "over_time": _over_time(f"overtime{suffix}", instrument),
                "worst": worst_messages(replay) if replay else [],
                "excerpts": _excerpts(f"excerpt{suffix}", instrument),
            }
        )
    return figures


def _excerpts(name: str, instrument: Instrument) -> list[tuple[str, str]]:
    """Return picture and words of what happened around the worst message of each stream, the worst first."""
    found = excerpts_of(instrument.folder, instrument.attempt, instrument.evidence).worst
    worst = sorted(found, key=lambda each: -each.over_share)[:EXCERPTS_ON_PAGE]
    return [
        (figure_excerpt(f"{name}-{number}", each), "\n".join(narrated(each)))
        for number, each in enumerate(worst)
    ]


def _over_time(name: str, instrument: Instrument) -> str:
    """Draw the streams of a replay that did not pass over its time, the worst; empty: all passed."""
    known = [row.record for row in instrument.rows if row.stream is not None]
    missed = [record for record in known if record.outcome != "pass" and record.limit.upper]
    if not missed:
        return ""
    missed.sort(key=lambda record: (WORST_FIRST.index(record.outcome), relative_margin(record) or 0.0))
    shown = missed[:MAX_PANELS]
    streams = [int(record.subject.stream or 0) for record in shown]
    try:
        progress = recv_progress(instrument.folder / "recv.ndjson", streams)
    except (OSError, RecordError):
        progress = ()  # what is told meanwhile decides nothing; misses and stalls are drawn without it
    return figure_over_time(name, replay_over_time(instrument.evidence.replay(), progress, streams), shown)


def stream_figures(row: StreamRow) -> StreamFigures | None:
    """Return what is drawn of a stream; None: no evidence or no budget."""
    stream, upper = row.stream, row.record.limit.upper
    if stream is None or upper is None or upper <= 0:
        return None
    return StreamFigures(
        id=stream.id,
        producer=stream.producer,
        message_type=stream.message_type,
        budget_ns=int(upper),
        latency=stream.received_minus_scheduled,
        lateness=stream.sent_minus_scheduled,
        expanded_ns=float(row.record.uncertainty.expanded),
        outcome=row.record.outcome,
    )


def type_names(rows: Sequence[StreamRow]) -> list[str]:
    """Return what the legend says of each message type: its number and its transports."""
    names: dict[int, list[str]] = {}
    for row in rows:
        if row.stream is not None:
            kinds = names.setdefault(row.stream.message_type % 4, [])
            if row.kind not in kinds:
                kinds.append(row.kind)
    return [f"type {number}: {' / '.join(names.get(number, []))}" for number in range(4)]


SECTION = Section(
    (("streams", "Latency by stream"), ("distributions", "Distributions"), ("instrument", "Instrument")),
    "daq_replay/section.html.j2",
    gather_latency,
    latency_samples,
)
