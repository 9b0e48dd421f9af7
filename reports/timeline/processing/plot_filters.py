# SPDX-License-Identifier: Apache-2.0
"""The filter that draws: a histogram, or values over time with their U, as SVG."""

from __future__ import annotations

from typing import Any

import numpy as np

from reports.durable import write_error
from reports.svg import INKS, new_figure, style, to_svg
from reports.timeline.clock_record import Times
from reports.timeline.global_time import Reals
from reports.timeline.processing.data import Histogram, Values
from reports.timeline.processing.filters import Context, named_filter
from reports.units import NS_PER_MS, NS_PER_US

WIDTH_IN, HEIGHT_IN = 5.0, 2.6
POINTS_MAX = 2000
"""More values are drawn as a band from the least to the greatest of each part of the time."""
PARTS = 500
_COLOURS = {
    "ink": "#17212b",
    "muted": "#566270",
    "line": "#d8dee5",
    "band": "#f3f5f8",
    "page": "#ffffff",
    "type0": "#1768ac",
    "type1": "#c1530b",
}
"""Of a picture by itself: those of the page in print."""


@named_filter("plot")
def plot(context: Context, found: Histogram | Values, *, title: str = "") -> None:
    """Draw a histogram, or values over time, as SVG.

    Args:
        context: Of the step.
        found: What is drawn.
        title: Above it; left out: the name of its step.
    """
    name, said = context.step, title or context.inputs[0]
    with style(name):
        figure = new_figure(WIDTH_IN, HEIGHT_IN)
        axes = figure.add_subplot()
        axes.set_title(said)
        about = _draw_values(axes, found) if isinstance(found, Values) else _draw_histogram(axes, found)
        text = to_svg(figure, name, said, about)
    colours = "; ".join(f"--{ink}: {colour}" for ink, colour in _COLOURS.items())
    head = f'<svg xmlns="http://www.w3.org/2000/svg" style="{colours}; font-family: sans-serif"'
    path = context.folder / f"{name}.svg"
    try:
        path.write_text(text.replace("<svg", head, 1) + "\n", encoding="utf-8")
    except OSError as error:
        raise write_error(path, error) from error


def _readable(unit: str, largest: float) -> tuple[str, float]:
    """Return the unit to draw in, and how much of the other one it is."""
    if unit != "ns" or largest < NS_PER_US:
        return unit, 1.0
    return ("ms", float(NS_PER_MS)) if largest >= NS_PER_MS else ("µs", float(NS_PER_US))


def _draw_histogram(axes: Any, found: Histogram) -> str:
    unit, per = _readable(found.unit, float(np.abs(found.edges).max()))
    axes.stairs(found.counts, found.edges / per, fill=True, color=INKS["type0"])
    axes.set_ylim(bottom=0)
    axes.yaxis.get_major_locator().set_params(integer=True)
    axes.set_xlabel(unit)
    axes.set_ylabel("count")
    return f"{int(found.counts.sum())} values; {found.below} below, {found.above} above."


def _draw_values(axes: Any, found: Values) -> str:
    axes.set_xlabel("ms from the first")
    unit, per = _readable(found.unit, float(np.abs(found.value).max(initial=0)))
    axes.set_ylabel(unit)
    if not len(found):
        return "No value."
    order = np.argsort(found.at_ns, kind="stable")
    at_ms: Reals = (found.at_ns[order] - found.at_ns.min()) / NS_PER_MS
    value: Reals = found.value[order] / per
    u: Reals = found.u[order] / per
    if len(found) <= POINTS_MAX:
        if u.any():
            axes.errorbar(at_ms, value, yerr=u, fmt="none", ecolor=INKS["type1"], elinewidth=0.6)
        axes.plot(at_ms, value, ".", markersize=2, color=INKS["type0"])
        return f"{len(found)} values, each with its U."
    parts: Reals = np.linspace(0, float(at_ms[-1]), PARTS, endpoint=False)
    begin: Times = np.unique(np.searchsorted(at_ms, parts))
    least, greatest = np.minimum.reduceat(value, begin), np.maximum.reduceat(value, begin)
    axes.vlines(at_ms[begin], least, greatest, color=INKS["type0"], linewidth=0.8)
    axes.plot(at_ms[begin], greatest, ",", color=INKS["type0"])  # also where both are one
    return f"{len(found)} values, from the least to the greatest of each of {begin.size} parts of the time."
