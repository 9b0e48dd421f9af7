# SPDX-License-Identifier: Apache-2.0
"""The dossier's figures: limits and what was used of them, and what the runs' evidence has besides.

What is drawn of limits comes from the dossier's own data; distributions, clocks and edges come from the
evidence of the attempts that the dossier shows. All is SVG in the colours of print.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from reports.answers import StreamResult
from reports.clock_section import gather_clocks
from reports.dossier.model import Attempt, Dossier, Result, Target
from reports.errors import ReportError
from reports.plots import MAX_LABELLED_STREAMS, MAX_PANELS, StreamFigures, figure_distributions, time_axis
from reports.read_latency_section import gather_read_latency
from reports.record import Measurement
from reports.replay_evidence import ReplayEvidence, load_replay
from reports.svg import INKS, new_figure, style, to_svg
from reports.timed_edges_section import gather_timed_edges
from reports.units import MINUS

LATENCY = "one_way_latency"
BARS_MAX = 30
_SHARE_MAX = 1.6
_WIDE_IN = 10.6
Size = Literal["whole", "wide", "half"]
_PRINT = {
    "ink": "#17212b",
    "muted": "#4a5560",
    "line": "#d3d9e0",
    "band": "#f0f3f6",
    "page": "#ffffff",
    "type0": "#1768ac",
    "type1": "#c1530b",
    "type2": "#1d7f5c",
    "type3": "#8e3b8a",
    "fail": "#b0211b",
    "inconclusive": "#875400",
}
"""Colours of print by the names of `reports.svg.INKS`."""

_MARKS: dict[str, tuple[str, str]] = {
    "pass": ("o", "type0"),
    "fail": ("X", "fail"),
    "inconclusive": ("D", "inconclusive"),
    "untested on hardware": ("o", "type0"),
    "untested": ("D", "inconclusive"),
}
_TIME_ERROR = (
    "Time error over time of the trials in steady state, from the first sample of each. Positive: the target "
    "is ahead. Gaps are open."
)
_WORDS: dict[str, str] = {"fail": "FAIL", "inconclusive": "INC."}


@dataclass(frozen=True, slots=True)
class Figure:
    """A drawn figure.

    Attributes:
        svg: The figure.
        caption: What it shows and how to read it.
        size: `whole`: a landscape page of its own; `wide`: its width; `half`: half of its width.
    """

    svg: str
    caption: str
    size: Size


@dataclass(frozen=True, slots=True)
class FigureGroup:
    """Figures that belong together under one heading."""

    title: str
    figures: tuple[Figure, ...]


def draw_figures(dossier: Dossier, folders: Mapping[str, Path]) -> tuple[FigureGroup, ...]:
    """Draw all figures of a dossier.

    Args:
        dossier: The dossier.
        folders: Run folders by run id.
    """
    groups: list[FigureGroup] = []
    for number, target in enumerate(dossier.targets):
        figures = [*_limit_figures(target, f"t{number}"), *_distributions(target, folders, f"t{number}")]
        if figures:
            groups.append(
                FigureGroup(f"Limits and latencies: {target.name} on {target.bench}", tuple(figures))
            )
    shown = list(_shown_records(dossier))
    for number, run in enumerate(dossier.runs):
        records = [record for record in shown if record.run_id == run.manifest.run_id]
        figures = _evidence_figures(folders[run.manifest.run_id], records, f"r{number}")
        if figures:
            groups.append(FigureGroup(f"Clocks and edges: run {run.manifest.run_id}", tuple(figures)))
    return tuple(groups)


def shown_attempt(result: Result) -> Attempt:
    """Return the attempt whose value the pages show."""
    return next(attempt for attempt in result.attempts if attempt.number == result.shown)


def _shown_records(dossier: Dossier) -> Iterable[Measurement]:
    for target in dossier.targets:
        for result in _results(target):
            yield shown_attempt(result).record


def _results(target: Target) -> list[Result]:
    return [*(result for row in target.requirements for result in row.results), *target.checks]


def _limit_figures(target: Target, name: str) -> list[Figure]:
    """Draw streams against their budgets, and everything else as a share of its limit."""
    groups: dict[str, list[Result]] = {}
    others: list[tuple[str, Result]] = []
    for row in target.requirements:
        for result in row.results:
            record = shown_attempt(result).record
            upper = record.limit.upper
            if record.value is None or not upper or upper <= 0:
                continue
            if result.quantity == LATENCY and record.subject.stream and record.value > 0:
                words = [record.subject.stack, record.subject.clock, result.conditions]
                groups.setdefault(", ".join(word for word in words if word), []).append(result)
            else:
                others.append((row.id, result))
    figures: list[Figure] = []
    for number, (title, results) in enumerate(groups.items()):
        results.sort(key=_stream_order)
        for part, start in enumerate(range(0, len(results), MAX_LABELLED_STREAMS)):
            some = results[start : start + MAX_LABELLED_STREAMS]
            svg = figure_budgets(f"{name}-budget{number}-{part}", some)
            figures.append(
                Figure(
                    _printed(svg, ""),
                    f"Largest latency (received {MINUS} scheduled) of each stream against its budget; "
                    f"{title}. Below: the share of the budget that the largest latency takes (filled) and "
                    "that its uncertainty U takes besides (open); a stream passes where both end at or under "
                    "100 %.",
                    size="whole",
                )
            )
    for part, start in enumerate(range(0, len(others), BARS_MAX)):
        svg = figure_shares(f"{name}-share{part}", others[start : start + BARS_MAX])
        figures.append(
            Figure(
                _printed(svg, ""),
                "Share of its limit that each value takes (filled) and that its uncertainty U takes besides "
                "(open); a value passes where both end at or under 100 %. Of limits on both sides the value "
                "without its sign is held against the upper one.",
                size="whole",
            )
        )
    return figures


def _stream_order(result: Result) -> tuple[int, str]:
    stream = shown_attempt(result).record.subject.stream or ""
    return (int(stream), "") if stream.isdigit() else (1 << 31, stream)


def figure_budgets(name: str, results: Sequence[Result]) -> str:
    """Draw the largest latency of each stream with its budget, and below both value and U as its shares."""
    with style(name):
        figure = new_figure(_WIDE_IN, 5.5)
        upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
        lows: list[float] = []
        highs: list[float] = []
        for place, result in enumerate(results):
            record = shown_attempt(result).record
            assert record.value is not None
            assert record.limit.upper is not None
            value, u, budget = record.value, record.uncertainty.expanded, record.limit.upper
            marker, ink = _MARKS[result.status]
            upper.hlines(budget, place - 0.42, place + 0.42, color=INKS["ink"], linewidth=2.2, zorder=3)
            upper.vlines(place, value, value + u, color=INKS["ink"], linewidth=1.2, zorder=4)
            upper.plot([place], [value], marker=marker, markersize=5, color=INKS[ink], zorder=5)
            low = _lowest(result, float(value))
            upper.vlines(place, low, value, color=INKS["muted"], linewidth=0.8, zorder=2)
            lows.append(low)
            highs.append(float(max(budget, value + u)))
            _bar(lower, place, float(value) / float(budget), float(u) / float(budget), ink, upright=True)
            if word := _WORDS.get(result.status):
                upper.text(
                    place, max(highs[-1], 1) * 1.2, word, rotation=90, ha="center", va="bottom", fontsize=7,
                    color=INKS[ink], weight="bold",
                )  # fmt: skip
        upper.set_yscale("log")
        upper.set_ylim(min(lows) * 0.6, max(highs) * 3)
        time_axis(upper.yaxis, minor=True)
        upper.set_ylabel("latency")
        upper.grid(axis="y")
        top = max(1.1, *(_ends(result) for result in results))
        lower.set_ylim(0, min(top * 1.05, _SHARE_MAX))
        lower.axhline(1, color=INKS["ink"], linewidth=1.2)
        lower.yaxis.set_major_formatter(_per_cent)
        lower.set_ylabel("share of budget")
        lower.grid(axis="y")
        for axes in (upper, lower):
            axes.set_axisbelow(True)
        streams = [shown_attempt(result).record.subject.stream for result in results]
        lower.set_xlim(-1, len(results))
        lower.set_xticks(range(len(results)), streams)
        lower.tick_params(axis="x", labelrotation=90, labelsize=7.5, length=2)
        lower.set_xlabel("stream (producer number, then message type)")
        figure.legend(handles=_budget_handles(results), loc="outside upper left", ncols=6, fontsize=8.5)
        return to_svg(figure, name, "Largest latency of each stream against its budget", _said(results))


def _lowest(result: Result, value: float) -> float:
    """Return the median where the evidence has one, else the value itself; on a logarithmic axis above 0."""
    found = result.distribution
    medians = [float(one.value) for one in found.percentiles if one.share == 0.5] if found else []
    return max(min([*medians, value]), value / 1e4)


def _ends(result: Result) -> float:
    record = shown_attempt(result).record
    assert record.value is not None
    assert record.limit.upper is not None
    return (abs(float(record.value)) + float(record.uncertainty.expanded)) / float(record.limit.upper)


def _per_cent(share: float, _place: object) -> str:
    return f"{100 * share:.4g} %"


def _bar(axes: Any, place: int, share: float, u_share: float, ink: str, *, upright: bool) -> None:
    """Draw a share and what U adds to it; what lies beyond the axis is cut off by it."""
    draw = axes.bar if upright else axes.barh
    start = "bottom" if upright else "left"
    options: dict[str, Any] = {"color": INKS[ink], "linewidth": 0}
    draw([place], [share], 0.62, **options)
    edge = {"color": INKS["page"], "edgecolor": INKS["ink"], "linewidth": 0.6, start: [share]}
    draw([place], [u_share], 0.62, **edge)


def _budget_handles(results: Sequence[Result]) -> list[Any]:
    statuses = list(dict.fromkeys(result.status for result in results))
    handles: list[Any] = [
        Line2D([], [], linestyle="none", marker=_MARKS[status][0], color=INKS[_MARKS[status][1]],
               label=f"largest latency: {status}")
        for status in statuses
    ]  # fmt: skip
    handles.append(Line2D([], [], color=INKS["ink"], linewidth=2.2, label="budget"))
    if any(result.distribution for result in results):
        handles.append(Line2D([], [], color=INKS["muted"], linewidth=0.8, label="from the median"))
    handles.append(Patch(facecolor=INKS["page"], edgecolor=INKS["ink"], linewidth=0.6, label="U"))
    return handles


def figure_shares(name: str, results: Sequence[tuple[str, Result]]) -> str:
    """Draw values and their U as shares of their limits, one line each; requirement and result."""
    with style(name):
        figure = new_figure(_WIDE_IN, 0.95 + 0.205 * len(results))
        axes = figure.add_subplot()
        for place, (_, result) in enumerate(results):
            record = shown_attempt(result).record
            assert record.value is not None
            assert record.limit.upper is not None
            share = abs(float(record.value)) / float(record.limit.upper)
            u_share = float(record.uncertainty.expanded) / float(record.limit.upper)
            _bar(axes, place, share, u_share, _MARKS[result.status][1], upright=False)
        top = max(1.1, *(_ends(result) for _, result in results))
        axes.set_xlim(0, min(top * 1.05, _SHARE_MAX))
        axes.axvline(1, color=INKS["ink"], linewidth=1.2)
        axes.xaxis.set_major_formatter(_per_cent)
        axes.set_yticks(range(len(results)), [_label(*each) for each in results])
        axes.tick_params(axis="y", labelsize=8, length=0)
        axes.set_ylim(len(results) - 0.4, -0.6)
        axes.set_xlabel("share of the limit")
        axes.grid(axis="x")
        axes.set_axisbelow(True)
        return to_svg(
            figure, name, "Values as shares of their limits", _said([result for _, result in results])
        )


def _label(requirement: str, result: Result) -> str:
    record = shown_attempt(result).record
    subject = [record.subject.stack, record.subject.clock, record.subject.stream, record.subject.method]
    words = [result.quantity.replace("_", " "), *subject, record.conditions.phase]
    mark = f"  {_WORDS[result.status]}" if result.status in _WORDS else ""
    return f"{requirement}: {', '.join(word for word in words if word)}{mark}"


def _said(results: Sequence[Result]) -> str:
    worst = max(results, key=_ends)
    return f"{len(results)} values; the largest share, with U, is {_per_cent(_ends(worst), None)}."


def _distributions(target: Target, folders: Mapping[str, Path], name: str) -> list[Figure]:
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
            key = (attempt.run_id, f"{place.parent.name}/{place.name}")
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
        figures.append(Figure(_printed(svg, ""), caption + more, size="whole"))
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


def _evidence_figures(folder: Path, records: Sequence[Measurement], prefix: str) -> list[Figure]:
    """Draw what the qualification page draws of clocks and edges, where the dossier shows a value of them."""
    figures: list[tuple[str, str, Size]] = []
    paths = {evidence.path for record in records for evidence in record.evidence}
    if any("/clock_sync/" in path for path in paths):
        figures += _tried(lambda: _clock_figures(folder, records))
    if any("/timed_edges/" in path for path in paths):
        figures += _tried(lambda: _edge_figures(folder, records))
    if any(record.quantity == "clock_read_latency" for record in records):
        figures += _tried(lambda: _read_figures(folder, records))
    return [Figure(_printed(svg, prefix), caption, size) for svg, caption, size in figures if svg]


def _tried(draw: Callable[[], list[tuple[str, str, Size]]]) -> list[tuple[str, str, Size]]:
    """Return figures; none where the evidence cannot be read: the records stand without them."""
    try:
        return draw()
    except ReportError:
        return []


def _clock_figures(folder: Path, records: Sequence[Measurement]) -> list[tuple[str, str, Size]]:
    section = gather_clocks(folder, records)
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


def _edge_figures(folder: Path, records: Sequence[Measurement]) -> list[tuple[str, str, Size]]:
    section = gather_timed_edges(folder, records)
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


def _read_figures(folder: Path, records: Sequence[Measurement]) -> list[tuple[str, str, Size]]:
    section = gather_read_latency(folder, records)
    if section is None:
        return []
    return [
        (place.figure, f"{place.title}: share of readings of a clock that take longer.", "half")
        for place in section.places
    ]


def _printed(svg: str, prefix: str) -> str:
    """Return a figure in the colours and the font of print, its ids made unique by a prefix."""
    if not svg:
        return ""
    if prefix:
        svg = re.sub(r'\bid="', f'id="{prefix}-', svg)
        svg = re.sub(r"url\(#", f"url(#{prefix}-", svg)
        svg = re.sub(r'\bhref="#', f'href="#{prefix}-', svg)
        svg = re.sub(
            r'aria-labelledby="([^" ]+) ([^" ]+)"', rf'aria-labelledby="{prefix}-\1 {prefix}-\2"', svg
        )
    svg = re.sub(r"var\(--(\w+)\)", lambda found: _PRINT[found[1]], svg)
    svg = svg.replace("font-family: inherit", "font-family: DejaVu Sans")
    return svg.replace("<svg ", '<svg font-family="DejaVu Sans" ', 1)
