# SPDX-License-Identifier: Apache-2.0
"""Figures of timed edges: methods beside the paper's, delays, edges laid over each other, witnesses.

All take nanoseconds; a delay is edge - reference. Axes carry the unit that suits the values. Counts are
logarithmic, so that a single edge far off is seen beside a million near ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from numpy.typing import NDArray

from reports.clock_sync.plots import plain_axes, unit_of
from reports.curves import DASHES, MARKERS, share_axis, time_axis
from reports.errors import ReportError
from reports.record.measurement import Number
from reports.svg import INKS, new_figure, style, to_svg
from reports.timed_edges.trial import Delays
from reports.timed_edges.waveforms import Segment, Trace, Waveforms
from reports.units import format_measured, format_value

Floats: TypeAlias = NDArray[np.float64]

_SIZE_IN = (5.7, 2.9)
_BARS = 110
_POINTS_MAX = 90
_SEGMENTS_DRAWN = 16
_MARGIN_SAMPLES = 10
_FAR_OFF = 4.0
"""Edges so many times the quartiles' distance beyond them are not drawn."""


@dataclass(frozen=True)
class MethodMark:
    """One line of the figure of methods; times in ns.

    Attributes:
        peak_to_peak_ns: Of as many edges as the other lines; None: there are fewer.
        paper: The paper's standard deviation and peak to peak; None: it has none.
    """

    label: str
    deviation_ns: Number
    deviation_u_ns: Number
    peak_to_peak_ns: Number | None
    paper: tuple[Number, Number] | None


def figure_methods(name: str, marks: Sequence[MethodMark], peak_count: int) -> str:
    """Draw standard deviation and peak to peak of each method beside the paper's, on logarithmic axes.

    Args:
        name: Short name, unique on the page.
        marks: Methods, from above to below.
        peak_count: Of how many edges the peak to peak is; 0: none is drawn.
    """
    if not marks or any(mark.deviation_ns <= 0 for mark in marks):
        raise ReportError(f"{name}: need at least one method, whose delays scatter")
    with style(name):
        figure = new_figure(11.6, 1.25 + 0.36 * len(marks))
        left, right = figure.subplots(1, 2, sharey=True)
        for place, mark in enumerate(reversed(marks)):
            low = max(mark.deviation_ns - mark.deviation_u_ns, mark.deviation_ns / 10)
            left.hlines(place, low, mark.deviation_ns + mark.deviation_u_ns, color=INKS["type0"], linewidth=2)
            _mark(left, mark.deviation_ns, place, own=True)
            left.text(
                mark.deviation_ns, place + 0.17, format_measured(mark.deviation_ns, "ns", 3), ha="center",
                va="bottom", fontsize=8,
            )  # fmt: skip
            if mark.peak_to_peak_ns:
                _mark(right, mark.peak_to_peak_ns, place, own=True)
                right.text(
                    mark.peak_to_peak_ns, place + 0.17, format_measured(mark.peak_to_peak_ns, "ns", 3),
                    ha="center", va="bottom", fontsize=8,
                )  # fmt: skip
            if mark.paper is not None:
                _mark(left, mark.paper[0], place, own=False)
                _mark(right, mark.paper[1], place, own=False)
        counted = (
            f" of {_count_text(peak_count)} edges (paper: of 10⁶)" if peak_count else " (paper: of 10⁶ edges)"
        )
        for axes, label in ((left, "standard deviation, with U"), (right, f"peak to peak{counted}")):
            axes.set_xscale("log")
            _whole_decades(axes, *axes.get_xlim())
            time_axis(axes.xaxis, minor=True)
            axes.grid(axis="x")
            axes.set_axisbelow(True)
            axes.set_xlabel(label)
        left.set_yticks(range(len(marks)), [mark.label for mark in reversed(marks)])
        left.set_ylim(-0.5, len(marks) - 0.3)
        figure.legend(handles=_method_handles(), loc="outside upper left", ncols=2, fontsize=8.5)
        said = "; ".join(f"{mark.label} {format_value(mark.deviation_ns, 'ns', 3)}" for mark in marks)
        return to_svg(figure, name, "Scatter of the edges by method", f"Standard deviations: {said}.")


def _whole_decades(axes: Any, low: float, high: float) -> None:
    """Let a logarithmic axis begin and end at a power of ten, around what is drawn."""
    first = math.floor(math.log10(low))
    axes.set_xlim(10.0**first, 10.0 ** max(math.ceil(math.log10(high)), first + 1))


def _mark(axes: Any, value_ns: Number, place: float, *, own: bool) -> None:
    face = INKS["type0"] if own else INKS["page"]
    axes.plot(
        [value_ns], [place], marker="o" if own else "D", markersize=6 if own else 5.5, linestyle="none",
        color=INKS["type0" if own else "type1"], markerfacecolor=face, markeredgewidth=1.4, zorder=4,
    )  # fmt: skip


def _method_handles() -> list[Any]:
    shown = (("o", "type0", "type0", "this run"), ("D", "type1", "page", "paper, Table II"))
    return [
        Line2D(
            [], [], linestyle="none", markersize=6, marker=marker, color=INKS[ink],
            markerfacecolor=INKS[face], label=label,
        )
        for marker, ink, face, label in shown
    ]  # fmt: skip


def _count_text(count: int) -> str:
    power = round(math.log10(count)) if count > 0 else 0
    if count >= 10_000 and count == 10**power:
        return f"10{str(power).translate(str.maketrans('0123456789', '⁰¹²³⁴⁵⁶⁷⁸⁹'))}"
    return str(count)


def figure_distances(name: str, curves: Sequence[tuple[str, Delays]]) -> str:
    """Draw the share of edges that lie farther from their mean than a time; at most four distributions."""
    if not curves or len(curves) > len(MARKERS):
        raise ReportError(f"{name}: need 1 to {len(MARKERS)} distributions")
    with style(name):
        figure = new_figure(11.6, 3.4)
        axes = figure.add_subplot()
        highs: list[float] = []
        for kind, (label, delays) in enumerate(curves):
            values, shares = _distances(delays)
            highs.append(values[-1])
            axes.plot(
                values, shares, color=INKS[f"type{kind}"], linestyle=DASHES[kind], linewidth=1.3,
                drawstyle="steps-post", marker=MARKERS[kind], markevery=[-1], markersize=5, label=label,
            )  # fmt: skip
        axes.set_xscale("log")
        axes.set_yscale("log")
        floor = min(1.0 / delays.count for _, delays in curves)
        axes.set_ylim(floor * 0.6, 1.4)
        narrowest_ns = max(min(float(delays.deviation_ns) for _, delays in curves) / 10, 0.01)
        _whole_decades(axes, narrowest_ns, max(highs) * 1.2)
        axes.grid()
        axes.set_axisbelow(True)
        time_axis(axes.xaxis, minor=True)
        share_axis(axes.yaxis, floor)
        axes.set_xlabel("distance from the mean delay")
        axes.set_ylabel("share of edges farther off")
        figure.legend(loc="outside upper left", ncols=4, fontsize=8.5, handlelength=3.2)
        return to_svg(
            figure, name, "How far edges lie from their mean",
            f"{', '.join(label for label, _ in curves)}: share of edges that lie farther from the mean delay "
            "than the value on the axis.",
        )  # fmt: skip


def _distances(delays: Delays) -> tuple[list[float], list[float]]:
    """Return distances from the mean in ns, ascending, and the shares beyond them; last the farthest."""
    lows, widths, counts = (np.array(column, np.float64) for column in zip(*delays.buckets, strict=True))
    width = float(widths.max())
    distance = np.maximum(np.abs(lows + widths / 2 - float(delays.mean_ns)), width / 2)
    order = np.argsort(distance)
    distance, counts = distance[order], counts[order]
    beyond = 1.0 - np.cumsum(counts) / delays.count
    points = [(float(x), float(y)) for x, y in zip(distance, beyond, strict=True) if y > 0.5 / delays.count]
    if len(points) > _POINTS_MAX:
        step = (len(points) - 1) / (_POINTS_MAX - 1)
        points = [points[round(place * step)] for place in range(_POINTS_MAX)]
    farthest = max(abs(float(end) - float(delays.mean_ns)) for end in (delays.minimum_ns, delays.maximum_ns))
    farthest = max(farthest, points[-1][0] if points else width / 2)
    points = [(points[0][0] if points else farthest, 1.0), *points, (farthest, 1.0 / delays.count)]
    return [x for x, _ in points], [y for _, y in points]


def figure_delays(name: str, delays: Delays, label: str) -> str:
    """Draw a histogram of delays with a logarithmic count; dashed: smallest and largest; dotted: mean."""
    edges, counts = bars_of(delays)
    unit_ns, unit = unit_of(max(abs(float(delays.minimum_ns)), abs(float(delays.maximum_ns))))
    with style(name):
        figure = new_figure(*_SIZE_IN)
        axes = figure.add_subplot()
        axes.stairs(counts, edges / unit_ns, fill=True, color=INKS["type0"], baseline=0.5)
        for value in (delays.minimum_ns, delays.maximum_ns):
            axes.axvline(float(value) / unit_ns, color=INKS["type1"], linestyle=(0, (5, 2)), linewidth=1.2)
        axes.axvline(
            float(delays.mean_ns) / unit_ns, color=INKS["ink"], linestyle=(0, (1, 1.5)), linewidth=1.2
        )
        plain_axes(axes, f"delay in {unit} (dashed: smallest, largest; dotted: mean)", "edges")
        axes.set_yscale("log")
        axes.set_ylim(0.5, max(float(counts.max()) * 2, 2))
        axes.grid(visible=False, axis="x")
        decades = range(math.floor(math.log10(max(float(counts.max()), 1))) + 1)
        axes.yaxis.set_major_locator(FixedLocator([10.0**decade for decade in decades]))
        axes.yaxis.set_major_formatter(FuncFormatter(_whole))
        axes.yaxis.set_minor_locator(NullLocator())
        return to_svg(
            figure, name, f"Delays: {label}",
            f"{delays.count} edges from {format_value(float(delays.minimum_ns), 'ns')} to "
            f"{format_value(float(delays.maximum_ns), 'ns')} after the reference, mean "
            f"{format_value(float(delays.mean_ns), 'ns')}.",
        )  # fmt: skip


def _whole(value: float, _place: object) -> str:
    return f"{value:.0f}"


def bars_of(delays: Delays) -> tuple[Floats, Floats]:
    """Return edges in ns and counts of some bars of one width; a bucket counts where its middle lies."""
    lows, widths, counts = (np.array(column, np.float64) for column in zip(*delays.buckets, strict=True))
    widest = float(widths.max())
    span = float(lows[-1] + widths[-1] - lows[0])
    width = widest * max(1, math.ceil(span / (widest * _BARS)))
    first = math.floor(float(lows[0]) / width)
    places = np.floor((lows + widths / 2) / width).astype(np.int64) - first
    bars = np.bincount(np.maximum(places, 0), weights=counts).astype(np.float64)
    return (first + np.arange(len(bars) + 1, dtype=np.float64)) * width, bars


def figure_overlay(name: str, waveforms: Waveforms, label: str) -> str:
    """Lay some segments over each other, each from its reference edge; one without an edge is dashed.

    Where few edges lie far from the others they are counted, not drawn: the rest would not be told apart.
    """
    aligned, found = _aligned(waveforms)
    if not aligned:
        raise ReportError(f"{name}: no segment with a reference edge")
    delays = [edge - cross for edge, (cross, _) in zip(found, aligned, strict=True) if edge is not None]
    low, high = _window(delays, [segment.edge for _, segment in aligned])
    unit_ns, unit = unit_of(max(abs(low), abs(high)))
    with style(name):
        figure = new_figure(*_SIZE_IN)
        axes = figure.add_subplot()
        for edge, (cross, segment) in zip(found, aligned, strict=True):
            _draw_trace(axes, segment.reference, cross, (low, high), unit_ns, "type0")
            ink = "type1" if edge is not None else "fail"
            _draw_trace(axes, segment.edge, cross, (low, high), unit_ns, ink)
        axes.set_xlim(low / unit_ns, high / unit_ns)
        plain_axes(axes, f"time after the reference edge in {unit}", "V")
        missing, beyond = found.count(None), sum(not low <= delay <= high for delay in delays)
        edges = f"{len(delays)} edges (thin)" + (f", {beyond} of them beyond" if beyond else "")
        handles = [
            Line2D([], [], color=INKS["type0"], linewidth=1.8, label="reference (thick)"),
            Line2D([], [], color=INKS["type1"], linewidth=0.9, label=edges),
        ]
        if missing:
            handles.append(
                Line2D([], [], color=INKS["fail"], linestyle=DASHES[2], label=f"{missing} missing")
            )
        figure.legend(handles=handles, loc="outside upper left", ncols=3, fontsize=8.5, handlelength=3.2)
        return to_svg(
            figure, name, f"Edges over each other: {label}",
            f"{len(aligned)} segments, each from its reference edge; {missing} of them without an edge, "
            f"{beyond} with one that lies far off.",
        )  # fmt: skip


def _aligned(waveforms: Waveforms) -> tuple[list[tuple[float, Segment]], list[float | None]]:
    """Return segments with their reference edge, and the edge of each that goes in the same direction."""
    references_v = max((_height_v(segment.reference) for segment in waveforms.segments), default=0.0)
    edges_v = max((_height_v(segment.edge) for segment in waveforms.segments), default=0.0)
    reference_v, edge_v = 0.4 * references_v, max(0.4 * edges_v, 0.1 * references_v)
    found: list[tuple[float, Segment]] = []
    edges: list[float | None] = []
    step = -(-len(waveforms.segments) // _SEGMENTS_DRAWN) or 1
    for segment in waveforms.segments[::step]:
        rising = crossing_ns(segment.reference, 0.0, reference_v)
        falling = crossing_ns(segment.reference, 0.0, reference_v, rising=False)
        if rising is None and falling is None:
            continue
        up = falling is None or (rising is not None and abs(rising) <= abs(falling))
        cross = rising if up else falling
        assert cross is not None
        found.append((cross, segment))
        edges.append(crossing_ns(segment.edge, cross, edge_v, rising=up))
    return found, edges


def _height_v(trace: Trace) -> float:
    return float(max(trace.volts)) - float(min(trace.volts))


def crossing_ns(trace: Trace, near_ns: float, least_v: float, *, rising: bool = True) -> float | None:
    """Return when a trace passes the middle of its levels, nearest to a time; None where it has no edge.

    Args:
        trace: One channel of a segment.
        near_ns: Time after the trigger.
        least_v: Less than this between its levels is noise, not an edge.
        rising: Which direction counts.
    """
    times, volts = np.array(trace.time_ns, np.float64), np.array(trace.volts, np.float64)
    low, high = float(volts.min()), float(volts.max())
    if high - low < least_v or high == low:
        return None
    rest = volts - (low + high) / 2 if rising else (low + high) / 2 - volts
    turns = np.flatnonzero((rest[:-1] <= 0) & (rest[1:] > 0))
    if not len(turns):
        return None
    moments = times[turns] - rest[turns] * (times[turns + 1] - times[turns]) / (rest[turns + 1] - rest[turns])
    return float(moments[np.abs(moments - near_ns).argmin()])


def _window(delays: Sequence[float], edges: Sequence[Trace]) -> tuple[float, float]:
    """Return from when to when edges are drawn: the reference, most edges, some samples to both sides."""
    steps = [float(np.diff(np.array(edge.time_ns, np.float64)).min()) for edge in edges]
    step = min(step for step in steps if step > 0)
    shown = [0.0]
    if delays:
        quarter, three_quarters = np.quantile(delays, (0.25, 0.75))
        reach = max(_FAR_OFF * float(three_quarters - quarter), _MARGIN_SAMPLES * step)
        low, high = min(float(quarter), 0.0) - reach, max(float(three_quarters), 0.0) + reach
        shown += [delay for delay in delays if low <= delay <= high]
    margin = max(0.12 * (max(shown) - min(shown)), _MARGIN_SAMPLES * step)
    return min(shown) - margin, max(shown) + margin


def _draw_trace(
    axes: Any, trace: Trace, origin_ns: float, window: tuple[float, float], unit_ns: int, ink: str
) -> None:
    times = np.array(trace.time_ns, np.float64) - origin_ns
    inside = np.flatnonzero((times >= window[0]) & (times <= window[1]))
    first = max(0, int(inside[0]) - 1) if len(inside) else 0
    last = min(len(times), int(inside[-1]) + 2) if len(inside) else len(times)
    axes.plot(
        times[first:last] / unit_ns, np.array(trace.volts[first:last]), color=INKS[ink],
        linewidth=1.8 if ink == "type0" else 0.9, linestyle=DASHES[2] if ink == "fail" else DASHES[0],
    )  # fmt: skip


def figure_witnesses(name: str, marks: Sequence[tuple[str, Number, Number]]) -> str:
    """Draw what each witness says of a clock's offset, with its U; label, offset and U in ns."""
    if not marks:
        raise ReportError(f"{name}: no witness has an offset")
    unit_ns, unit = unit_of(max(abs(float(offset)) + float(u) for _, offset, u in marks))
    with style(name):
        figure = new_figure(5.7, 0.9 + 0.42 * len(marks))
        axes = figure.add_subplot()
        for place, (_, offset, u) in enumerate(reversed(marks)):
            middle, reach = float(offset) / unit_ns, float(u) / unit_ns
            axes.hlines(place, middle - reach, middle + reach, color=INKS["type0"], linewidth=2)
            axes.vlines(
                [middle - reach, middle + reach],
                place - 0.12,
                place + 0.12,
                color=INKS["type0"],
                linewidth=1.4,
            )
            axes.plot([middle], [place], marker="o", markersize=6, color=INKS["type0"], zorder=4)
        axes.axvline(0, color=INKS["muted"], linewidth=0.6)
        plain_axes(axes, f"offset in {unit}, with U", "")
        axes.grid(visible=False, axis="y")
        axes.set_yticks(range(len(marks)), [label for label, _, _ in reversed(marks)])
        axes.set_ylim(-0.5, len(marks) - 0.5)
        said = "; ".join(f"{label} {format_value(float(offset), 'ns')}" for label, offset, _ in marks)
        return to_svg(figure, name, "Offset of the clock by each witness", f"{said}. Positive: it is ahead.")
