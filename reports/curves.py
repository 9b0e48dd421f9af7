# SPDX-License-Identifier: Apache-2.0
"""What figures of distributions share: axes of times and of shares, marks of series, curves of exceedance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator

from reports.errors import ReportError
from reports.record.histogram import Summary
from reports.svg import INKS, new_figure, style, to_svg
from reports.units import format_value

MARKERS = ("o", "s", "^", "D")
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (2, 1.2)), (0, (6, 1.5, 1, 1.5)))
_MAX_CURVE_POINTS = 90


def time_axis(axis: Any, *, minor: bool = False) -> None:
    """Label a logarithmic axis with times (1 ms, not 10^6) at the powers of ten."""
    low, high = axis.get_view_interval()
    decades = range(math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9) + 1)
    axis.set_major_locator(FixedLocator([10.0**decade for decade in decades]))
    axis.set_major_formatter(FuncFormatter(time_label))
    ticks = [
        step * 10.0**decade for decade in range(min(decades) - 1, max(decades) + 1) for step in range(2, 10)
    ]
    axis.set_minor_locator(FixedLocator(ticks) if minor else NullLocator())
    axis.set_minor_formatter(NullFormatter())


def share_axis(axis: Any, floor: float) -> None:
    """Label a logarithmic axis with shares (0.1 %) at the powers of ten, from the smallest share on."""
    decades = range(math.floor(math.log10(floor)), 1)
    axis.set_major_locator(FixedLocator([10.0**decade for decade in decades]))
    axis.set_major_formatter(FuncFormatter(share_label))
    axis.set_minor_locator(NullLocator())


def figure_exceedance(name: str, curves: Sequence[tuple[str, Summary]], x_label: str) -> str:
    """Draw the share of samples above a time, one curve a distribution, at most four.

    Args:
        name: Short name, unique on the page.
        curves: Label and distribution; each has samples.
        x_label: What the times are.
    """
    if not curves or len(curves) > len(MARKERS) or not all(summary.n for _, summary in curves):
        raise ReportError(f"{name}: need 1 to {len(MARKERS)} distributions with samples")
    with style(name):
        figure = new_figure(5.7, 3.1)
        axes = figure.add_subplot()
        for kind, (label, summary) in enumerate(curves):
            values, shares = curve_of(summary)
            axes.plot(
                values, shares, color=INKS[f"type{kind}"], linestyle=DASHES[kind], linewidth=1.3,
                drawstyle="steps-post", marker=MARKERS[kind], markevery=[-1], markersize=4, label=label,
            )  # fmt: skip
        axes.set_xscale("log")
        axes.set_yscale("log")
        floor = min(1.0 / summary.n for _, summary in curves)
        axes.set_ylim(floor * 0.6, 1.4)
        low_ns = min(max(summary.min_ns or 1, 1) for _, summary in curves)
        high_ns = max(summary.max_ns or 1 for _, summary in curves)
        axes.set_xlim(10.0 ** math.floor(math.log10(low_ns)), 10.0 ** (math.floor(math.log10(high_ns)) + 1))
        axes.grid()
        axes.set_axisbelow(True)
        time_axis(axes.xaxis)
        share_axis(axes.yaxis, floor)
        axes.set_xlabel(x_label)
        axes.set_ylabel("share of samples above it")
        figure.legend(loc="outside upper left", ncols=4, fontsize=8.5, handlelength=3.2)
        return to_svg(
            figure, name, f"Distribution: {x_label}",
            f"{', '.join(label for label, _ in curves)}: share of samples above the value on the axis.",
        )  # fmt: skip


def curve_of(summary: Summary) -> tuple[list[float], list[float]]:
    """Return a distribution as points (ns, share of samples above), thinned evenly along the curve.

    The last point is the exact maximum, drawn at the share that one sample is.
    """
    points = [(float(ns), share) for ns, share in summary.exceedance() if ns > 0 and share > 0]
    if len(points) > _MAX_CURVE_POINTS:
        step = (len(points) - 1) / (_MAX_CURVE_POINTS - 1)
        points = [points[round(i * step)] for i in range(_MAX_CURVE_POINTS)]
    if summary.min_ns is not None and summary.min_ns > 0:
        points.insert(0, (float(summary.min_ns), 1.0))
    if summary.max_ns is not None and summary.max_ns > 0:
        points.append((float(summary.max_ns), 1.0 / summary.n))
    points.sort()
    return [x for x, _ in points], [y for _, y in points]


def time_label(value_ns: float, _place: object) -> str:
    """Return the label of a tick at a time in ns: in the unit that suits it."""
    return format_value(float(f"{value_ns:.6g}"), "ns")


def share_label(share: float, _place: object = None) -> str:
    """Return the label of a tick at a share, in percent."""
    return f"{format_value(100 * share, '')} %"
