# SPDX-License-Identifier: Apache-2.0
"""The figures of one-way latencies. All times come in int64 nanoseconds; axes are logarithmic.

A message type is told by its marker and its line as well as by its colour, an outcome by a word.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.lines import Line2D

from reports.curves import DASHES, MARKERS, curve_of, share_axis, time_axis
from reports.record.histogram import Summary
from reports.record.measurement import Outcome
from reports.svg import INKS, new_figure, style, to_svg
from reports.tools.answers import ClockResult
from reports.units import MINUS, NS_PER_MS, NS_PER_S, NS_PER_US

MAX_LABELLED_STREAMS = 96
MAX_PANELS = 12
_SHORT: dict[Outcome, str] = {"fail": "FAIL", "inconclusive": "INC.", "unset": "UNSET", "error": "ERROR"}


@dataclass(frozen=True, slots=True)
class StreamFigures:
    """What the figures show of a stream; times in ns."""

    id: int
    producer: int
    message_type: int
    budget_ns: int
    latency: Summary
    lateness: Summary
    expanded_ns: float
    outcome: Outcome


def _kind(message_type: int) -> int:
    return message_type % len(MARKERS)


def _type_handles(kinds: Sequence[int], names: Sequence[str]) -> list[Any]:
    return [
        Line2D(
            [],
            [],
            color=INKS[f"type{k}"],
            marker=MARKERS[k],
            linestyle=DASHES[k],
            markersize=5,
            label=names[k],
        )
        for k in kinds
    ]


def figure_maxima(name: str, streams: Sequence[StreamFigures], type_names: Sequence[str]) -> str:
    """Draw the maximum of each stream against its budget by Producer ID (DAQ paper, Fig. 4)."""
    with style(name):
        figure = new_figure(11.6, 4.7)
        axes = figure.add_subplot()
        places = _places(streams)
        _producer_bands(axes, streams, places)
        for place, stream in zip(places, streams, strict=True):
            _draw_maximum(axes, place, stream)
        axes.set_yscale("log")
        axes.set_ylim(*_range(streams))
        time_axis(axes.yaxis, minor=True)
        axes.grid(axis="y")
        axes.set_axisbelow(True)
        axes.set_xlim(places[0] - 1, places[-1] + 1)
        labelled = len(streams) <= MAX_LABELLED_STREAMS
        axes.set_xticks(places if labelled else [], [str(s.id) for s in streams] if labelled else [])
        axes.tick_params(axis="x", labelrotation=90, labelsize=7.5, length=2)
        axes.set_xlabel("Producer ID (producer number, then message type)")
        axes.set_ylabel(f"latency, received {MINUS} scheduled")
        handles = _type_handles(sorted({_kind(s.message_type) for s in streams}), type_names)
        for handle in handles:
            handle.set_linestyle("-")
        handles.append(Line2D([], [], color=INKS["ink"], linewidth=2.2, label="budget"))
        handles.append(Line2D([], [], color=INKS["muted"], linewidth=1.0, label="median to maximum"))
        figure.legend(handles=handles, loc="outside upper left", ncols=6, fontsize=8.5)
        worst = max(streams, key=lambda s: (s.latency.max_ns or 0) / s.budget_ns)
        share = 100 * (worst.latency.max_ns or 0) / worst.budget_ns
        return to_svg(
            figure,
            name,
            "Maximum latency of each stream against its budget",
            f"{len(streams)} streams; the largest share of a budget is {share:.1f} %, stream {worst.id}. "
            "The numbers are in the table of streams.",
        )


def _places(streams: Sequence[StreamFigures]) -> list[float]:
    """Return the place of each stream on the axis, with a gap between producers."""
    places: list[float] = []
    place, before = 0.0, None
    for stream in streams:
        place += 1.0 if before in (None, stream.producer) else 1.7
        places.append(place)
        before = stream.producer
    return places


def _producer_bands(axes: Any, streams: Sequence[StreamFigures], places: Sequence[float]) -> None:
    for index, producer in enumerate(sorted({s.producer for s in streams})):
        own = [place for place, s in zip(places, streams, strict=True) if s.producer == producer]
        if index % 2 == 0:
            axes.axvspan(own[0] - 0.85, own[-1] + 0.85, color=INKS["band"], linewidth=0, zorder=0)


def _range(streams: Sequence[StreamFigures]) -> tuple[float, float]:
    lows = [q.value_ns for s in streams if (q := s.latency.quantile(0.5)) and q.value_ns > 0]
    highs = [max(s.budget_ns, s.latency.max_ns or 0) for s in streams]
    return max(min([*lows, min(highs)]) * 0.5, 1.0), max(highs) * 2.4


def _draw_maximum(axes: Any, place: float, stream: StreamFigures) -> None:
    kind = _kind(stream.message_type)
    colour = INKS[f"type{kind}"]
    axes.hlines(stream.budget_ns, place - 0.42, place + 0.42, color=INKS["ink"], linewidth=2.2, zorder=4)
    maximum = stream.latency.max_ns
    median = stream.latency.quantile(0.5)
    if maximum is None or maximum <= 0 or median is None:
        axes.text(place, stream.budget_ns * 1.3, "no data", rotation=90, ha="center", va="bottom", fontsize=7)
        return
    axes.vlines(place, max(median.value_ns, 1), maximum, color=INKS["muted"], linewidth=1.0, zorder=2)
    axes.hlines(
        max(median.value_ns, 1), place - 0.22, place + 0.22, color=INKS["muted"], linewidth=1.0, zorder=2
    )
    passed = stream.outcome == "pass"
    edge = colour if passed else INKS["fail" if stream.outcome == "fail" else "inconclusive"]
    face = colour if passed else INKS["page"]
    axes.plot(
        [place], [maximum], marker=MARKERS[kind], markersize=5, color=edge, markerfacecolor=face,
        markeredgewidth=1.0 if passed else 1.8, zorder=5,
    )  # fmt: skip
    if not passed:
        crowded = maximum < stream.budget_ns < 2.6 * maximum
        top = (stream.budget_ns if crowded else maximum) * 1.25
        word = _SHORT.get(stream.outcome, "")
        axes.text(
            place, top, word, rotation=90, ha="center", va="bottom", fontsize=7, color=edge, weight="bold"
        )


def figure_distributions(
    name: str, streams: Sequence[StreamFigures], type_names: Sequence[str], width_in: float = 11.6
) -> str:
    """Draw the share of messages above a latency, one panel a producer, one curve a stream."""
    producers = _shown_producers(streams)
    with style(name):
        columns = min(4, len(producers))
        rows = math.ceil(len(producers) / columns)
        figure = new_figure(width_in, width_in * 0.177 * rows + 0.5)
        panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
        flat = [panel for row in panels for panel in row]
        low, high = _range([s for s in streams if s.producer in producers])
        floor = min((1.0 / s.latency.n for s in streams if s.latency.n), default=0.01)
        for panel, producer in zip(flat, producers, strict=False):
            _draw_panel(panel, [s for s in streams if s.producer == producer])
            panel.set_title(f"producer {producer}", fontsize=9, loc="left", pad=3)
        flat[0].set_xscale("log")
        flat[0].set_yscale("log")
        flat[0].set_xlim(low * 0.8, high)
        flat[0].set_ylim(floor * 0.6, 1.4)
        for panel in flat:
            panel.grid()
            time_axis(panel.xaxis)
            share_axis(panel.yaxis, floor)
        for panel in flat[len(producers) :]:
            panel.set_visible(False)
        figure.supylabel("share of messages above it", fontsize=9)
        figure.supxlabel(f"latency, received {MINUS} scheduled (thin upright line: budget)", fontsize=9)
        handles = _type_handles(sorted({_kind(s.message_type) for s in streams}), type_names)
        figure.legend(handles=handles, loc="outside upper left", ncols=4, fontsize=8.5, handlelength=3.2)
        return to_svg(
            figure,
            name,
            "Latency distributions by producer",
            "Share of messages whose latency is above the value on the axis, one curve a stream.",
        )


def _shown_producers(streams: Sequence[StreamFigures]) -> list[int]:
    """Return the producers that get a panel: all, or those that come closest to a budget."""
    closeness: dict[int, float] = {}
    for stream in streams:
        share = (stream.latency.max_ns or 0) / stream.budget_ns
        closeness[stream.producer] = max(share, closeness.get(stream.producer, 0.0))
    return sorted(sorted(closeness, key=lambda producer: -closeness[producer])[:MAX_PANELS])


def _draw_panel(panel: Any, streams: Sequence[StreamFigures]) -> None:
    for stream in streams:
        kind = _kind(stream.message_type)
        colour = INKS[f"type{kind}"]
        panel.axvline(stream.budget_ns, color=colour, linewidth=0.8, linestyle=DASHES[kind])
        if stream.latency.n:
            xs, ys = curve_of(stream.latency)
            panel.plot(xs, ys, color=colour, linestyle=DASHES[kind], linewidth=1.3, drawstyle="steps-post")
            panel.plot(xs[-1:], ys[-1:], color=colour, marker=MARKERS[kind], markersize=4)


def figure_lateness(name: str, rows: Sequence[tuple[str, Summary]], bound_ns: float) -> str:
    """Draw the generator's own lateness by producer: median, 99 % and maximum; and U of the clocks."""
    with style(name):
        figure = new_figure(5.7, 3.1)
        axes = figure.add_subplot()
        drawn = [(label, summary) for label, summary in rows if summary.n and (summary.max_ns or 0) > 0]
        for place, (_, summary) in enumerate(drawn):
            median, p99 = summary.quantile(0.5), summary.quantile(0.99)
            if median is None or p99 is None or summary.max_ns is None:
                continue
            low = max(median.value_ns, 1)
            axes.vlines(place, low, summary.max_ns, color=INKS["muted"], linewidth=1.2)
            axes.plot([place], [low], marker="_", color=INKS["ink"], markersize=9)
            axes.plot([place], [max(p99.value_ns, 1)], marker="o", color=INKS["type0"], markersize=4)
            axes.plot([place], [summary.max_ns], marker="v", color=INKS["type1"], markersize=5)
        axes.set_yscale("log")
        lows = [max(q.value_ns, 1) for _, s in drawn if (q := s.quantile(0.5))]
        highs = [s.max_ns or 1 for _, s in drawn]
        axes.set_ylim(min([*lows, NS_PER_US]) * 0.5, max([*highs, bound_ns, NS_PER_MS]) * 2)
        time_axis(axes.yaxis)
        if bound_ns > 0:
            axes.axhline(bound_ns, color=INKS["ink"], linewidth=1.0, linestyle=(0, (4, 2)))
        axes.set_xticks(range(len(drawn)), [label for label, _ in drawn])
        axes.set_xlabel("producer")
        axes.set_ylabel(f"sent {MINUS} scheduled")
        axes.grid(axis="y")
        figure.legend(handles=_lateness_handles(), loc="outside upper left", ncols=4, fontsize=8.5)
        return to_svg(
            figure,
            name,
            "Lateness of the generator by producer",
            "Median, 99 % and maximum of sent - scheduled.",
        )


def _lateness_handles() -> list[Any]:
    shown = (("_", "ink", "median"), ("o", "type0", "99 %"), ("v", "type1", "maximum"))
    return [
        Line2D([], [], color=INKS[ink], marker=m, linestyle="none", label=label) for m, ink, label in shown
    ]


def figure_clocks(name: str, clocks: Sequence[ClockResult]) -> str:
    """Draw each clock's offset against its straight line over the run, with the bound of each point."""
    with style(name):
        figure = new_figure(5.7, 3.1)
        axes = figure.add_subplot()
        for index, clock in enumerate(clocks):
            if len(clock.series) < 3:
                continue
            times, residuals, bounds = _residuals(clock)
            kind = index % len(MARKERS)
            colour = INKS[f"type{kind}"]
            low = [r - b for r, b in zip(residuals, bounds, strict=True)]
            high = [r + b for r, b in zip(residuals, bounds, strict=True)]
            axes.fill_between(times, low, high, color=colour, alpha=0.14, linewidth=0)
            axes.plot(times, residuals, color=colour, linestyle=DASHES[kind], linewidth=1.2, label=clock.name)
        axes.axhline(0, color=INKS["muted"], linewidth=0.6)
        axes.set_xlabel("time of the run in s")
        axes.set_ylabel(f"offset {MINUS} its line, in µs")
        axes.grid(axis="y")
        figure.legend(loc="outside upper left", ncols=4, fontsize=8.5)
        return to_svg(
            figure,
            name,
            "Clocks against their lines",
            "What the measured offsets leave over a straight line; the band is the bound of each exchange.",
        )


def _residuals(clock: ClockResult) -> tuple[list[float], list[float], list[float]]:
    """Return times in s, and residuals and bounds in µs, of a clock against its least-squares line."""
    start = clock.series[0][0]
    first = clock.series[0][1]
    step = max(1, len(clock.series) // 400)
    points = clock.series[::step]
    times = [(t - start) / NS_PER_S for t, _, _ in points]
    offsets = [(o - first) / NS_PER_US for _, o, _ in points]
    n = len(points)
    mean_t, mean_o = sum(times) / n, sum(offsets) / n
    spread = sum((t - mean_t) ** 2 for t in times)
    slope = sum((t - mean_t) * (o - mean_o) for t, o in zip(times, offsets, strict=True)) / (spread or 1.0)
    residuals = [o - mean_o - slope * (t - mean_t) for t, o in zip(times, offsets, strict=True)]
    return times, residuals, [b / NS_PER_US for _, _, b in points]
