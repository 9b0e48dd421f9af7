# SPDX-License-Identifier: Apache-2.0
"""The dossier's figures of evidence: distributions of latencies, clocks, edges, readings of clocks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from reports.daq_replay.plots import MAX_PANELS, StreamFigures, figure_distributions
from reports.daq_replay.record_replays import RecordReplays, replay_folder
from reports.daq_replay.section import stream_figures, type_names
from reports.daq_replay.stream_groups import StreamRow, stream_row
from reports.dossier.figure import LATENCY, UPRIGHT_IN, printed, shown_attempt
from reports.dossier.model import Attempt, Target
from reports.errors import ReportError
from reports.run.folder import EVIDENCE
from reports.section import PrintFigure, Section, TargetData
from reports.sections import SECTIONS


def distributions(target: Target, folders: Mapping[str, Path], name: str) -> list[PrintFigure]:
    """Draw the distributions of the attempts that are shown, from the runs' evidence."""
    replays = {run_id: RecordReplays(folder) for run_id, folder in folders.items()}
    groups: dict[tuple[str, str], list[StreamRow]] = {}
    for row in target.requirements:
        for result in row.results:
            attempt = shown_attempt(result)
            folder = folders[attempt.run_id]
            place = replay_folder(folder, attempt.record)
            if result.quantity == LATENCY and place is not None:
                key = (attempt.run_id, place.relative_to(folder / EVIDENCE).as_posix())
                groups.setdefault(key, []).append(stream_row(attempt.record, replays[attempt.run_id]))
    figures: list[PrintFigure] = []
    for number, (key, rows) in enumerate(groups.items()):
        streams = [stream for each in rows if (stream := stream_figures(each)) is not None]
        if not streams:
            continue
        svg = figure_distributions(f"{name}-latencies{number}", streams, type_names(rows), UPRIGHT_IN)
        more = " Of the producers those nearest to a budget." if _producers(streams) > MAX_PANELS else ""
        caption = f"Distribution of the latencies, {key[1]} of run {key[0]}: share of messages above a time."
        figures.append(PrintFigure(printed(svg, ""), caption + more, "whole"))
    return figures


def late_messages(folders: Mapping[str, Path]) -> Callable[[Attempt], int | None]:
    """Return what counts the messages of an attempt that came later than their budget.

    Args:
        folders: Run folders by run id.
    """
    replays = {run_id: RecordReplays(folder) for run_id, folder in folders.items()}

    def count(attempt: Attempt) -> int | None:
        stream = replays[attempt.run_id].stream_of(attempt.record)
        return stream.misses if stream else None

    return count


def _producers(streams: Sequence[StreamFigures]) -> int:
    return len({stream.producer for stream in streams})


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
