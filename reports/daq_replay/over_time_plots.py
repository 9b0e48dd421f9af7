# SPDX-License-Identifier: Apache-2.0
"""The figure of latencies over the time of a replay, a panel a stream that did not pass."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from reports.curves import time_axis
from reports.daq_replay.over_time import Point, ReplayOverTime
from reports.record.measurement import Measurement
from reports.svg import INKS, new_figure, style, to_svg
from reports.units import MINUS, NS_PER_S, format_value

MAX_PANELS = 6
_BELOW_LIMIT = 50
"""The axis begins at this part of the limit: shorter stalls are of no matter to it."""


def figure_over_time(name: str, found: ReplayOverTime, records: Sequence[Measurement]) -> str:
    """Draw latencies, limits with their guard bands, and stalls over the time of a replay.

    Args:
        name: Short name, unique on the page.
        found: The replay.
        records: Of its streams, `MAX_PANELS` at most, each with an upper limit.
    """
    with style(name):
        figure = new_figure(11.6, 1.0 + 1.55 * len(records))
        panels = figure.subplots(len(records), 1, sharex=True, squeeze=False)
        for (axes,), record in zip(panels, records, strict=True):
            _draw(axes, found, record)
        axes = panels[-1][0]
        axes.set_xlim(0, found.length_ns / NS_PER_S)
        axes.set_xlabel("s since the counted time began")
        figure.supylabel(f"latency, received {MINUS} scheduled", fontsize=9)
        figure.legend(handles=_handles(found), loc="outside upper left", ncols=6, fontsize=8.5)
        return to_svg(
            figure, name, "Latency over the time of the replay",
            "; ".join(
                f"stream {r.subject.stream}: at most {format_value(r.value, r.unit)}"
                f" of {format_value(r.limit.upper, r.unit)}"
                for r in records
            ),
        )  # fmt: skip


def _draw(axes: Any, found: ReplayOverTime, record: Measurement) -> None:
    stream = found.streams[int(record.subject.stream or 0)]
    limit_ns, u_ns = float(record.limit.upper or 0), float(record.uncertainty.expanded)
    stalls = [(after, length) for after, length in found.stalls or () if length > limit_ns / _BELOW_LIMIT]
    lengths = [length for _after, length in (*stalls, *stream.late, *stream.largest)]
    low, high = limit_ns / _BELOW_LIMIT, max([limit_ns + u_ns, *lengths]) * 1.7
    xs, ys = _upright(stalls, low)
    axes.plot(xs, ys, color=INKS["muted"], linewidth=2.2, alpha=0.55, solid_capstyle="butt")
    axes.axhspan(
        max(limit_ns - u_ns, low), limit_ns + u_ns, color=INKS["inconclusive"], alpha=0.18, linewidth=0
    )
    axes.axhline(limit_ns, color=INKS["ink"], linewidth=1.6)
    if stream.largest:
        xs, ys = _split(stream.largest)
        axes.plot(xs, ys, color=INKS["type0"], linewidth=1.2, drawstyle="steps-post")
    xs, ys = _split(stream.late)
    axes.plot(xs, ys, color=INKS["fail"], marker="o", markersize=4, linestyle="none")
    xs, ys = _upright([(after, high) for after in stream.lost], low)
    axes.plot(xs, ys, color=INKS["fail"], linewidth=1.0, linestyle=":")
    axes.set_yscale("log")
    axes.set_ylim(low, high)
    time_axis(axes.yaxis, minor=True)
    axes.grid(axis="y")
    axes.set_axisbelow(True)
    axes.set_title(
        f"{record.requirement}, stream {record.subject.stream}: {record.outcome}",
        fontsize=9, loc="left", pad=3,
    )  # fmt: skip


def _split(points: Sequence[Point]) -> tuple[list[float], list[float]]:
    return [after / NS_PER_S for after, _ in points], [float(length) for _, length in points]


def _upright(points: Sequence[tuple[float, float]], low: float) -> tuple[list[float], list[float]]:
    """Return upright lines, each from the lower end of the axis, as one line with gaps."""
    xs = [x for after, _ in points for x in (after / NS_PER_S, after / NS_PER_S, math.nan)]
    return xs, [y for _, length in points for y in (low, length, math.nan)]


def _handles(found: ReplayOverTime) -> list[Any]:
    handles: list[Any] = [
        Line2D(
            [], [], color=INKS["fail"], marker="o", markersize=4, linestyle="none", label="over its budget"
        )
    ]
    if any(stream.largest for stream in found.streams.values()):
        handles.append(Line2D([], [], color=INKS["type0"], linewidth=1.2, label="largest so far"))
    handles.append(Line2D([], [], color=INKS["ink"], linewidth=1.6, label="limit"))
    handles.append(Patch(color=INKS["inconclusive"], alpha=0.18, label="guard band, limit ± U"))
    if found.stalls is not None:
        handles.append(
            Line2D([], [], color=INKS["muted"], linewidth=2.2, alpha=0.55, label="stall, its length")
        )
    if any(stream.lost for stream in found.streams.values()):
        handles.append(Line2D([], [], color=INKS["fail"], linewidth=1.0, linestyle=":", label="lost"))
    return handles
