# SPDX-License-Identifier: Apache-2.0
"""The dossier's figures of evidence: distributions of latencies, clocks, edges, readings of clocks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from reports.dossier.figure import LATENCY, UPRIGHT_IN, printed, shown_attempt
from reports.dossier.model import Attempt, Target
from reports.errors import ReportError
from reports.latency.evidence import ReplayEvidence, load_replay
from reports.latency.plots import MAX_PANELS, StreamFigures, figure_distributions
from reports.latency.stream_groups import replay_folder
from reports.record.measurement import Measurement
from reports.run.folder import EVIDENCE
from reports.section import PrintFigure, Section, TargetData
from reports.sections import SECTIONS
from reports.tools.answers import StreamResult


def distributions(target: Target, folders: Mapping[str, Path], name: str) -> list[PrintFigure]:
    """Draw the distributions of the attempts that are shown, from the runs' evidence."""
    replays: dict[Path, ReplayEvidence] = {}
    groups: dict[tuple[str, str], list[StreamFigures]] = {}
    kinds: dict[tuple[str, str], dict[int, set[str]]] = {}
    for row in target.requirements:
        for result in row.results:
            attempt = shown_attempt(result)
            record = attempt.record
            place = replay_folder(folders[attempt.run_id], record)
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
    figures: list[PrintFigure] = []
    for number, (key, streams) in enumerate(groups.items()):
        names = [f"type {n}: {' / '.join(sorted(kinds[key].get(n, ())))}" for n in range(4)]
        svg = figure_distributions(f"{name}-latencies{number}", streams, names, UPRIGHT_IN)
        more = " Of the producers those nearest to a budget." if _producers(streams) > MAX_PANELS else ""
        caption = f"Distribution of the latencies, {key[1]} of run {key[0]}: share of messages above a time."
        figures.append(PrintFigure(printed(svg, ""), caption + more, "whole"))
    return figures


def late_messages(folders: Mapping[str, Path]) -> Callable[[Attempt], int | None]:
    """Return what counts the messages of an attempt that came later than their budget.

    Args:
        folders: Run folders by run id.
    """
    replays: dict[Path, ReplayEvidence] = {}

    def count(attempt: Attempt) -> int | None:
        place = replay_folder(folders[attempt.run_id], attempt.record)
        if place is None:
            return None
        if place not in replays:
            replays[place] = load_replay(place)
        stream = _stream_of(replays[place], attempt.record)
        return stream.misses if stream else None

    return count


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


def _stream_of(evidence: ReplayEvidence, record: Measurement) -> StreamResult | None:
    streams = evidence.recv.streams if evidence.recv is not None else ()
    return next((stream for stream in streams if str(stream.id) == record.subject.stream), None)


def evidence_figures(measured: TargetData, prefix: str) -> list[PrintFigure]:
    """Draw what the sections of the report have for print, where the dossier shows a value of theirs."""
    found = [each for section in SECTIONS for each in _prints(section, measured)]
    return [PrintFigure(printed(each.svg, prefix), each.caption, each.size) for each in found if each.svg]


def _prints(section: Section, measured: TargetData) -> list[PrintFigure]:
    """Return a section's figures; none where the evidence cannot be read: the records stand without them."""
    try:
        shown = section.gather(measured)
        return list(shown.print_figures) if shown is not None and shown.records else []
    except ReportError:
        return []
