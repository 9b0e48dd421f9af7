# SPDX-License-Identifier: Apache-2.0
"""Figures of clocks: time error, distribution, stability against a mask, holdover, delay, corrections.

All take nanoseconds, positive: the device or target is ahead. Axes carry the unit that suits the values.
Where samples are missing the line is open. What is thinned out for the eye keeps its extremes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator
from numpy.typing import NDArray

from reports.clock_sync.holdover import HoldoverEnvelope
from reports.clock_sync.logs import ServoSeries
from reports.clock_sync.mask import CurveQuantity, Mask
from reports.clock_sync.mask_curve import MaskPoint
from reports.clock_sync.series import ClockSeries, Stretch
from reports.clock_sync.stability import Curve
from reports.curves import DASHES, MARKERS, time_label
from reports.errors import ReportError
from reports.record.histogram import Summary
from reports.svg import INKS, new_figure, style, to_svg
from reports.units import NS_PER_MS, NS_PER_S, NS_PER_US, format_measured, format_value

Floats: TypeAlias = NDArray[np.float64]

_UNITS = ((NS_PER_S, "s"), (NS_PER_MS, "ms"), (NS_PER_US, "µs"), (1, "ns"))
_COLUMNS_MAX = 600
_STRETCHES_MAX = 200
"""Stretches that are drawn one by one, and steps: of more, columns are."""
_POINTS_MAX = 1500
_BARS = 120
_MARKED_POINTS_MAX = 300
_SIZE_IN = (5.7, 3.1)
_WIDE_IN = (11.6, 3.6)
_MASK_TAU_S_MAX = 1e5
_SLOPE_POINTS = 24


def unit_of(largest_ns: float) -> tuple[int, str]:
    """Return the unit, as ns and by name, in which a value reads best."""
    return next((unit for unit in _UNITS if abs(largest_ns) >= unit[0]), _UNITS[-1])


def plain_axes(axes: Any, x_label: str, y_label: str) -> None:
    """Label linear axes, with a grid behind what is drawn and no offset at their ends."""
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    axes.grid()
    axes.set_axisbelow(True)
    for axis in (axes.xaxis, axes.yaxis):
        axis.get_major_formatter().set_useOffset(False)


def _thinned(stretch: Stretch, columns: int) -> tuple[NDArray[np.int64], Floats]:
    """Return times and offsets of a stretch, of each of so many columns the smallest and the largest."""
    size = len(stretch)
    if size <= 2 * columns:
        return stretch.time_ns, stretch.offset_ns.astype(np.float64)
    edges = np.linspace(0, size, columns + 1).astype(np.intp)
    kept: set[int] = {0, size - 1}
    for start, end in itertools.pairwise(edges.tolist()):
        part = stretch.offset_ns[start:end]
        kept |= {int(start + part.argmin()), int(start + part.argmax())}
    places = np.array(sorted(kept))
    return stretch.time_ns[places], stretch.offset_ns[places].astype(np.float64)


def _upright(series: ClockSeries) -> tuple[Floats, Floats]:
    """Return a line for each column of the figure that has samples, from the smallest to the largest."""
    times, offsets = series.times(), series.offsets().astype(np.float64)
    length_ns = max(1, int(times[-1] - times[0]))
    columns = (times - times[0]) * (_COLUMNS_MAX - 1) // length_ns
    starts = np.flatnonzero(np.diff(columns, prepend=-1))
    low, high = np.minimum.reduceat(offsets, starts), np.maximum.reduceat(offsets, starts)
    opened = np.full(len(starts), np.nan)
    middles = times[starts].astype(np.float64)
    return (
        np.column_stack((middles, middles, opened)).ravel(),
        np.column_stack((low, high, opened)).ravel(),
    )


def _one_a_column(moments_ns: Sequence[int]) -> list[int]:
    """Return of moments so many as a figure can show beside each other."""
    if len(moments_ns) <= _STRETCHES_MAX:
        return list(moments_ns)
    first, length_ns = min(moments_ns), max(1, max(moments_ns) - min(moments_ns))
    chosen = {(moment - first) * _STRETCHES_MAX // length_ns: moment for moment in sorted(moments_ns)}
    return list(chosen.values())


def figure_time_error(
    name: str,
    series: Sequence[tuple[str, ClockSeries]],
    *,
    limit_ns: float | None = None,
    steps_ns: Sequence[int] = (),
) -> str:
    """Draw time error over time, one line for each series; gaps are open, steps upright lines.

    Args:
        name: Short name, unique on the page.
        series: Label and series; at most four. Times are of one clock.
        limit_ns: A limit on both sides, if there is one.
        steps_ns: Times at which a clock was stepped.
    """
    shown = [(label, one) for label, one in series if one.n]
    if not shown or len(shown) > len(MARKERS):
        raise ReportError(f"{name}: {len(shown)} series with samples; a figure shows 1 to {len(MARKERS)}")
    start_ns = min(int(one.times()[0]) for _, one in shown)
    unit_ns, unit = unit_of(max(float(np.abs(one.offsets()).max()) for _, one in shown))
    with style(name):
        figure = new_figure(*_WIDE_IN)
        axes = figure.add_subplot()
        for kind, (label, one) in enumerate(shown):
            if len(one.stretches) > _STRETCHES_MAX:
                times, offsets = _upright(one)
                axes.plot(
                    (times - start_ns) / NS_PER_S, offsets / unit_ns, color=INKS[f"type{kind}"],
                    linewidth=0.9, solid_capstyle="projecting", label=label,
                )  # fmt: skip
                continue
            for place, stretch in enumerate(one.stretches):
                times, offsets = _thinned(stretch, max(1, _COLUMNS_MAX * len(stretch) // one.n))
                pointed = one.n <= _MARKED_POINTS_MAX or len(stretch) == 1
                axes.plot(
                    (times - start_ns) / NS_PER_S, offsets / unit_ns, color=INKS[f"type{kind}"],
                    linewidth=0.9, linestyle=DASHES[kind], marker=MARKERS[kind] if pointed else None,
                    markersize=3, label=label if place == 0 else None,
                )  # fmt: skip
        axes.axhline(0, color=INKS["muted"], linewidth=0.6)
        if limit_ns is not None:
            for side in (-limit_ns, limit_ns):
                axes.axhline(side / unit_ns, color=INKS["fail"], linewidth=1.0, linestyle=(0, (5, 2)))
        for moment in _one_a_column(steps_ns):
            axes.axvline((moment - start_ns) / NS_PER_S, color=INKS["inconclusive"], linewidth=0.9)
        plain_axes(axes, "time in s", f"time error in {unit}")
        figure.legend(loc="outside upper left", ncols=4, fontsize=8.5)
        gaps = sum(len(one.gaps) for _, one in shown)
        return to_svg(
            figure,
            name,
            "Time error over time",
            f"{', '.join(label for label, _ in shown)}; {sum(one.n for _, one in shown)} samples, "
            f"{gaps} gaps, {len(steps_ns)} steps. Positive: the device is ahead of the reference.",
        )


def figure_distribution(name: str, summary: Summary, title: str = "Distribution of the time error") -> str:
    """Draw a distribution as the DAQ paper's Fig. 5: bars, dashed lines at the smallest and largest value.

    Args:
        name: Short name, unique on the page.
        summary: Of bw-clock, or of `time_error.distribution`. Narrow buckets are put together.
        title: What it is the distribution of.
    """
    if not summary.n or summary.min_ns is None or summary.max_ns is None:
        raise ReportError(f"{name}: no sample to draw")
    edges, counts = bars_of(summary)
    unit_ns, unit = unit_of(max(abs(summary.min_ns), abs(summary.max_ns)))
    with style(name):
        figure = new_figure(*_SIZE_IN)
        axes = figure.add_subplot()
        axes.stairs(counts, edges / unit_ns, fill=True, color=INKS["type0"])
        for value in (summary.min_ns, summary.max_ns):
            axes.axvline(value / unit_ns, color=INKS["type1"], linestyle=(0, (5, 2)), linewidth=1.2)
        plain_axes(axes, f"time error in {unit} (dashed: smallest, largest)", "samples")
        axes.grid(visible=False, axis="x")
        beyond = f"; {summary.overflow} samples beyond the buckets are not drawn" if summary.overflow else ""
        return to_svg(
            figure,
            name,
            title,
            f"{summary.n} samples from {format_value(summary.min_ns, 'ns')} to "
            f"{format_value(summary.max_ns, 'ns')}{beyond}.",
        )


def bars_of(summary: Summary) -> tuple[Floats, NDArray[np.int64]]:
    """Return edges in ns and counts of bars of one width; a bucket counts whole where its middle lies.

    Bars are whole multiples of the widest bucket: buckets of one width fall into them evenly.
    """
    assert summary.min_ns is not None
    assert summary.max_ns is not None
    widest = max((width for _, width, _ in summary.buckets), default=1)
    width_ns = widest * max(1, -(-(summary.max_ns - summary.min_ns) // (widest * _BARS)))
    first = summary.min_ns // width_ns
    bars = summary.max_ns // width_ns - first + 1
    counts = np.zeros(bars, np.int64)
    for low, width, count in summary.buckets:
        place = (2 * low + width) // (2 * width_ns) - first
        counts[min(max(place, 0), bars - 1)] += count
    return (first + np.arange(bars + 1, dtype=np.float64)) * width_ns, counts


def figure_stability(
    name: str,
    quantity: CurveQuantity,
    curves: Sequence[tuple[str, Curve]],
    mask: Mask | None = None,
    worst: MaskPoint | None = None,
) -> str:
    """Draw MTIE or TDEV over tau, both logarithmic, against a mask; the tau at which least is left is ringed.

    Args:
        name: Short name, unique on the page.
        quantity: What the curves are, in the words of the mask.
        curves: Label and curve; at most four.
        mask: Limits; None: none are drawn.
        worst: Where least is left to them; None: at no tau can be judged.
    """
    if not curves or len(curves) > len(MARKERS):
        raise ReportError(f"{name}: {len(curves)} curves; a figure shows 1 to {len(MARKERS)}")
    said = "No mask applies."
    with style(name):
        figure = new_figure(*_SIZE_IN)
        axes = figure.add_subplot()
        for kind, (label, curve) in enumerate(curves):
            drawn = curve.value > 0
            axes.plot(
                curve.tau_ns[drawn] / NS_PER_S, curve.value[drawn], color=INKS[f"type{kind}"],
                marker=MARKERS[kind], linestyle=DASHES[kind], markersize=4, linewidth=1.2, label=label,
            )  # fmt: skip
        axes.set_xscale("log")
        axes.set_yscale("log")
        if mask is not None:
            _draw_mask(axes, mask, quantity, max(float(curve.tau_ns[-1]) for _, curve in curves) / NS_PER_S)
            said = "No tau can be judged."
        if worst is not None:
            said = _left_words(worst)
            if worst.value_ns > 0:
                axes.plot(
                    [worst.tau_ns / NS_PER_S], [worst.value_ns], marker="o", markersize=10, linestyle="none",
                    markerfacecolor="none", markeredgecolor=INKS["ink" if worst.left_ns >= 0 else "fail"],
                )  # fmt: skip
        _log_axis(axes.xaxis, (1.0,), _plain_number)
        _log_axis(axes.yaxis, (1.0, 2.0, 5.0), time_label)
        axes.set_xlabel("tau in s")
        axes.set_ylabel(quantity.rsplit("_", maxsplit=1)[-1].upper())
        axes.grid()
        figure.legend(loc="outside upper left", ncols=3, fontsize=8.5)
        return to_svg(
            figure,
            name,
            f"{quantity.upper().replace('_', ' ')} over tau",
            said,
        )


def _log_axis(axis: Any, steps: tuple[float, ...], label: Callable[[float, object], str]) -> None:
    """Label a logarithmic axis at the powers of ten and at some steps between them."""
    axis.set_major_locator(LogLocator(subs=steps, numticks=12))
    axis.set_major_formatter(FuncFormatter(label))
    axis.set_minor_locator(NullLocator())


def _plain_number(value: float, _place: object) -> str:
    return f"{value:g}"


def _zero_line(axes: Any, values: Floats | NDArray[np.int64]) -> None:
    """Draw the line of no error where the values lie on both sides of it."""
    if len(values) and values.min() <= 0 <= values.max():
        axes.axhline(0, color=INKS["muted"], linewidth=0.6)


def _left_words(worst: MaskPoint) -> str:
    return (
        f"{format_measured(worst.value_ns, 'ns')} of {format_value(worst.limit_ns, 'ns')} allowed "
        f"at tau = {worst.tau_ns / NS_PER_S:.3g} s, where least is left."
    )


def _draw_mask(axes: Any, mask: Mask, quantity: CurveQuantity, longest_s: float) -> None:
    """Draw the limits; an open end goes on to that of the curves, at least to a hundred times its start."""
    label: str | None = mask.name
    for segment in mask.of(quantity):
        start = segment.tau_above_s or min(1e-3, segment.tau_to_s / 10)
        end = min(segment.tau_to_s, max(longest_s, min(100 * start, _MASK_TAU_S_MAX)))
        if end <= start:
            continue
        taus = np.geomspace(start, end, _SLOPE_POINTS if segment.slope_ns_per_s else 2)
        limits = segment.limit_ns + segment.slope_ns_per_s * taus
        axes.plot(taus, limits, color=INKS["fail"], linewidth=1.6, label=label)
        label = None


def figure_holdover(
    name: str,
    envelope: HoldoverEnvelope,
    limits_ns: Sequence[float] = (),
) -> str:
    """Draw the extremes of the time error since the reference was lost, and limits."""
    largest = max(float(np.abs(envelope.low_ns).max()), float(np.abs(envelope.high_ns).max()))
    unit_ns, unit = unit_of(max([largest, *limits_ns]))
    places = np.unique(np.linspace(0, len(envelope.elapsed_ns) - 1, _POINTS_MAX).round().astype(np.intp))
    times = envelope.elapsed_ns[places] / NS_PER_S
    with style(name):
        figure = new_figure(*_SIZE_IN)
        axes = figure.add_subplot()
        for values, label in ((envelope.high_ns, "measured extremes"), (envelope.low_ns, None)):
            axes.plot(
                times,
                values[places] / unit_ns,
                color=INKS["type0"],
                linewidth=1.3,
                label=label,
                drawstyle="steps-post",
            )
        for limit in limits_ns:
            for side in (-limit, limit):
                axes.axhline(side / unit_ns, color=INKS["fail"], linewidth=1.0, linestyle=(0, (5, 2)))
        axes.axhline(0, color=INKS["muted"], linewidth=0.6)
        plain_axes(axes, "time since the reference was lost, in s", f"time error in {unit}")
        figure.legend(loc="outside upper left", ncols=3, fontsize=8.5)
        return to_svg(
            figure,
            name,
            "Holdover",
            f"{envelope.trials} trials, {envelope.gaps} gaps; "
            f"largest time error {format_value(largest, 'ns')}.",
        )


def figure_offset_delay(name: str, servo: ServoSeries) -> str:
    """Draw each offset over the path delay that was measured with it: asymmetric queues make a slope."""
    known = np.flatnonzero(np.isfinite(servo.path_delay_ns))
    if not len(known):
        raise ReportError(f"{name}: {servo.program} says nothing of path delays")
    places = _spread(known, servo.offset_ns)
    delays, offsets = servo.path_delay_ns[places], servo.offset_ns[places].astype(np.float64)
    (x_ns, x_unit), (y_ns, y_unit) = (
        unit_of(float(np.abs(delays).max())),
        unit_of(float(np.abs(offsets).max())),
    )
    with style(name):
        figure = new_figure(*_SIZE_IN)
        axes = figure.add_subplot()
        axes.plot(
            delays / x_ns, offsets / y_ns, linestyle="none", marker="o", markersize=2.5, color=INKS["type0"]
        )
        _zero_line(axes, offsets)
        plain_axes(axes, f"path delay in {x_unit}", f"offset in {y_unit}")
        return to_svg(
            figure,
            name,
            "Offset against path delay",
            f"{servo.program} against {servo.source}: {len(known)} measurements, {len(places)} drawn.",
        )


def figure_corrections(name: str, servo: ServoSeries) -> str:
    """Draw a servo's corrections as the control-loop paper's Fig. 4.2.1: offsets points, frequency a line."""
    if not len(servo.time_ns):
        raise ReportError(f"{name}: no sample to draw")
    places = _spread(np.arange(len(servo.time_ns)), servo.offset_ns)
    times = (servo.time_ns[places] - servo.time_ns[0]) / NS_PER_S
    unit_ns, unit = unit_of(float(np.abs(servo.offset_ns).max()))
    with style(name):
        figure = new_figure(*_WIDE_IN)
        axes = figure.add_subplot()
        axes.plot(
            times, servo.offset_ns[places] / unit_ns, linestyle="none", marker=MARKERS[0], markersize=2.8,
            color=INKS["type0"],
        )  # fmt: skip
        _zero_line(axes, servo.offset_ns)
        plain_axes(axes, "time in s", f"offset in {unit} (points)")
        handles = [
            Line2D(
                [], [], linestyle="none", marker=MARKERS[0], markersize=4, color=INKS["type0"], label="offset"
            )
        ]
        if np.isfinite(servo.freq_ppb).any():
            right = axes.twinx()
            right.spines["right"].set_visible(True)
            right.plot(*_opened(servo, places), color=INKS["type1"], linewidth=1.2, linestyle=DASHES[1])
            right.set_ylabel("frequency in ppb (line)")
            right.get_yaxis().get_major_formatter().set_useOffset(False)
            handles.append(Line2D([], [], color=INKS["type1"], linestyle=DASHES[1], label="frequency"))
        figure.legend(handles=handles, loc="outside upper left", ncols=2, fontsize=8.5)
        return to_svg(
            figure,
            name,
            "Clock corrections",
            f"{servo.program} against {servo.source}: {len(servo.time_ns)} measurements, "
            f"{len(places)} drawn. Offset positive: the target is ahead; frequency positive: it is fast.",
        )


def _opened(servo: ServoSeries, places: NDArray[np.intp]) -> tuple[Floats, Floats]:
    """Return times in s and frequencies in ppb of some samples, with a break where the log has a gap."""
    start_ns = int(servo.time_ns[0])
    times = (servo.time_ns[places] - start_ns) / NS_PER_S
    ends = np.array([end for end, _ in servo.clock_series().gaps], np.int64)
    breaks = np.searchsorted(times, (ends - start_ns) / NS_PER_S, side="right")
    return np.insert(times, breaks, np.nan), np.insert(servo.freq_ppb[places], breaks, np.nan)


def _spread(places: NDArray[np.intp], values: NDArray[np.int64]) -> NDArray[np.intp]:
    """Return at most so many of the places, evenly chosen; the extremes of the values are among them."""
    if len(places) <= _POINTS_MAX:
        return places
    chosen = np.linspace(0, len(places) - 1, _POINTS_MAX).round().astype(np.intp)
    extremes = [int(values[places].argmin()), int(values[places].argmax())]
    return places[np.union1d(chosen, extremes)]
