# SPDX-License-Identifier: Apache-2.0
"""The dossier's figures of evidence: distributions of latencies, clocks, edges, readings of clocks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from reports.answers import StreamResult
from reports.clock_section import FOLDER as CLOCKS
from reports.clock_section import gather_clocks
from reports.dossier.figure import LATENCY, Figure, Size, printed, shown_attempt
from reports.dossier.model import Target
from reports.errors import ReportError
from reports.plots import MAX_PANELS, StreamFigures, figure_distributions
from reports.read_latency import FOLDER as READS
from reports.read_latency_section import gather_read_latency
from reports.record import Measurement
from reports.replay_evidence import ReplayEvidence, load_replay
from reports.run_folder import EVIDENCE
from reports.targets import evidence_of
from reports.timed_edges import FOLDER as EDGES
from reports.timed_edges_section import gather_timed_edges

_TIME_ERROR = (
    "Time error over time of the trials in steady state, from the first sample of each. Positive: the target "
    "is ahead. Gaps are open."
)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a target of a run has its evidence; `targets`: all of the run."""

    folder: Path
    target: str
    targets: tuple[str, ...]

    def evidence(self, capability: str) -> Path:
        """Return the folder of a capability."""
        return evidence_of(self.folder, capability, self.target, self.targets)


def distributions(target: Target, folders: Mapping[str, Path], name: str) -> list[Figure]:
    """Draw the distributions of the attempts that are shown, from the runs' evidence."""
    replays: dict[Path, ReplayEvidence] = {}
    groups: dict[tuple[str, str], list[StreamFigures]] = {}
    kinds: dict[tuple[str, str], dict[int, set[str]]] = {}
    for row in target.requirements:
        for result in row.results:
            attempt = shown_attempt(result)
            record = attempt.record
            place = _replay_folder(folders[attempt.run_id], record)
            if result.quantity != LATENCY or place is None or not record.limit.upper:
                continue
            if place not in replays:
                replays[place] = load_replay(place)
            stream = _stream_of(replays[place], record)
            if stream is None:
                continue
            key = (attempt.run_id, place.relative_to(folders[attempt.run_id] / EVIDENCE).as_posix())
            low_latency = stream.message_type in replays[place].low_latency_types
            kind = ("low-latency " if low_latency else "") + stream.transport.upper()
            kinds.setdefault(key, {}).setdefault(stream.message_type % 4, set()).add(kind)
            groups.setdefault(key, []).append(_stream_figure(stream, record))
    figures: list[Figure] = []
    for number, (key, streams) in enumerate(groups.items()):
        names = [f"type {n}: {' / '.join(sorted(kinds[key].get(n, ())))}" for n in range(4)]
        svg = figure_distributions(f"{name}-latencies{number}", streams, names)
        more = " Of the producers those nearest to a budget." if _producers(streams) > MAX_PANELS else ""
        caption = f"Distribution of the latencies, {key[1]} of run {key[0]}: share of messages above a time."
        figures.append(Figure(printed(svg, ""), caption + more, size="whole"))
    return figures


def _producers(streams: Sequence[StreamFigures]) -> int:
    return len({stream.producer for stream in streams})


def _stream_figure(stream: StreamResult, record: Measurement) -> StreamFigures:
    assert record.limit.upper is not None
    return StreamFigures(
        id=stream.id,
        producer=stream.producer,
        message_type=stream.message_type,
        budget_ns=int(record.limit.upper),
        latency=stream.received_minus_scheduled,
        lateness=stream.sent_minus_scheduled,
        expanded_ns=float(record.uncertainty.expanded),
        outcome=record.outcome,
    )


def _replay_folder(folder: Path, record: Measurement) -> Path | None:
    for evidence in record.evidence:
        if evidence.path.endswith("/recv.ndjson"):
            return (folder / evidence.path).parent
    return None


def _stream_of(evidence: ReplayEvidence, record: Measurement) -> StreamResult | None:
    streams = evidence.recv.streams if evidence.recv is not None else ()
    return next((stream for stream in streams if str(stream.id) == record.subject.stream), None)


def evidence_figures(place: Place, records: Sequence[Measurement], prefix: str) -> list[Figure]:
    """Draw what the qualification page draws of clocks and edges, where the dossier shows a value of them."""
    figures: list[tuple[str, str, Size]] = []
    paths = {evidence.path for record in records for evidence in record.evidence}
    if any("/clock_sync/" in path for path in paths):
        figures += _tried(lambda: _clock_figures(place, records))
    if any("/timed_edges/" in path for path in paths):
        figures += _tried(lambda: _edge_figures(place, records))
    if any(record.quantity == "clock_read_latency" for record in records):
        figures += _tried(lambda: _read_figures(place, records))
    return [Figure(printed(svg, prefix), caption, size) for svg, caption, size in figures if svg]


def _tried(draw: Callable[[], list[tuple[str, str, Size]]]) -> list[tuple[str, str, Size]]:
    """Return figures; none where the evidence cannot be read: the records stand without them."""
    try:
        return draw()
    except ReportError:
        return []


def _clock_figures(place: Place, records: Sequence[Measurement]) -> list[tuple[str, str, Size]]:
    section = gather_clocks(place.folder, records, place.evidence(CLOCKS))
    if section is None:
        return []
    drawn = section.figures
    return [
        (drawn.time_error, _TIME_ERROR, "wide"),
        (drawn.mtie, "MTIE of the steady trials.", "half"),
        (drawn.tdev, "TDEV of the steady trials.", "half"),
        (drawn.holdover, "Extremes of the time error since the target was cut off from its server.", "half"),
        (drawn.distribution, "All samples of the first trial, read one clock after the other.", "half"),
        *((svg, caption, "half") for caption, svg in drawn.masks),
    ]


def _edge_figures(place: Place, records: Sequence[Measurement]) -> list[tuple[str, str, Size]]:
    section = gather_timed_edges(place.folder, records, place.evidence(EDGES))
    if section is None:
        return []
    return [
        (
            section.figure_methods,
            "Scatter of the edges by method, beside the paper's Table II (open).",
            "wide",
        ),
        (section.figure_distances, "Share of edges that lie farther from their mean than a time.", "wide"),
        *(
            (group.figure, "Offset of the clock by each witness, with U.", "half")
            for group in section.witnesses
        ),
    ]


def _read_figures(place: Place, records: Sequence[Measurement]) -> list[tuple[str, str, Size]]:
    section = gather_read_latency(place.folder, records, place.evidence(READS))
    if section is None:
        return []
    return [
        (machine.figure, f"{machine.title}: share of readings of a clock that take longer.", "half")
        for machine in section.places
    ]
