# SPDX-License-Identifier: Apache-2.0
"""Small figures of series: a mark a run, oldest first, with the change or the baseline drawn in.

Runs before are round and hollow, those after filled squares: the figure does not need its colours. A run far
from the others is a triangle at the edge with its value, so that it does not flatten them.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from reports.history.advice import AdvisedLevel, BeyondBaseline, SeriesChange
from reports.record.measurement import Number
from reports.units import format_value

_WIDTH, _HEIGHT = 320.0, 118.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 66.0, 312.0, 8.0, 94.0
_PAD = 0.06
_HALF_MARK = 2.3
_NEIGHBOURS = 5
_FAR_RANGES = 5
"""As the axes of trends (dashboards/trends/web/scale.js)."""


@dataclass(frozen=True, slots=True)
class _Frame:
    """Where runs and values lie in a figure."""

    runs: int
    low: float
    high: float

    def x(self, run: float) -> float:
        """Return the place of a run, 0 the oldest."""
        return _LEFT + 6 + (run / max(1, self.runs - 1)) * (_RIGHT - _LEFT - 12)

    def y(self, value: float) -> float:
        """Return the place of a value."""
        return _BOTTOM - (value - self.low) / (self.high - self.low) * (_BOTTOM - _TOP)


def figure_change(name: str, change: SeriesChange) -> str:
    """Return the runs before and after a change, their medians, and the range in which it lies, as SVG."""
    count = len(change.values)
    begin = max(0, count - change.after.runs)
    frame = _frame(change.values, (change.before.median, change.after.median))
    earliest = max(0, count - change.after_most) - 0.5
    latest = max(0, count - change.after_least) - 0.5
    ink = "type1" if change.kind == "regression" else "type2"
    if latest > earliest:
        parts = [_box(frame, earliest, latest, frame.low, frame.high, 'fill="var(--line)" opacity="0.55"')]
    else:
        parts = []
    parts += _level(frame, change.before, -0.5, begin - 0.5, "muted", dashed=True)
    parts += _level(frame, change.after, begin - 0.5, count - 0.5, ink, dashed=False)
    parts.append(_rule(frame, begin - 0.5))
    for run, value in enumerate(change.values):
        if not frame.low <= value <= frame.high:
            parts.append(_beyond(frame, run, value, change.unit))
        else:
            parts.append(_round(frame, run, value) if run < begin else _square(frame, run, value, ink))
    levels = f"{_text(change.before.median, change)} before, {_text(change.after.median, change)} after"
    description = f"Medians: {levels}. The change is most likely {change.after.runs} runs from the right."
    return _svg(name, frame, change.unit, f"{change.kind}: {change.series}", description, parts)


def figure_beyond(name: str, value: BeyondBaseline) -> str:
    """Return the runs of a baseline and the one that lies beyond all of them, as SVG."""
    frame = _frame(value.values, (value.baseline.median, value.value))
    last = len(value.values) - 1
    ink = "type1" if value.side == "worse" else "type2"
    parts = _level(frame, value.baseline, -0.5, last - 0.5, "muted", dashed=True)
    for run, one in enumerate(value.values[:last]):
        inside = frame.low <= one <= frame.high
        parts.append(_round(frame, run, one) if inside else _beyond(frame, run, one, value.unit))
    parts.append(_square(frame, last, value.value, ink))
    description = (
        f"Baseline: median {_text(value.baseline.median, value)}; this run: {_text(value.value, value)}."
    )
    return _svg(name, frame, value.unit, f"{value.side}: {value.series}", description, parts)


def _frame(values: Sequence[Number], shown: Sequence[Number]) -> _Frame:
    """Return where values lie; a frame need not have those far from medians of neighbours and `shown`."""
    core = [*_medians(values), *map(float, shown)]
    far = (max(core) - min(core)) * _FAR_RANGES
    near = [float(value) for value in values if not far or min(core) - far <= value <= max(core) + far]
    low, high = min(*near, *core), max(*near, *core)
    pad = (high - low) * _PAD or abs(high) * _PAD or 1.0
    return _Frame(len(values), low - pad, high + pad)


def _medians(values: Sequence[Number]) -> list[float]:
    """Return the median of each value and its neighbours; the values where they are too few."""
    if len(values) < _NEIGHBOURS:
        return [float(value) for value in values]
    firsts = range(len(values) - _NEIGHBOURS + 1)
    return [float(median(values[first : first + _NEIGHBOURS])) for first in firsts]


def _level(
    frame: _Frame, level: AdvisedLevel, first: float, last: float, ink: str, *, dashed: bool
) -> list[str]:
    """Return a median, and the box of its quartiles as far as it is within the frame."""
    low = min(max(float(level.lower_quartile), frame.low), frame.high)
    high = max(min(float(level.upper_quartile), frame.high), frame.low)
    box = _box(frame, first, last, low, high, f'fill="var(--{ink})" opacity="0.14"')
    y = frame.y(min(max(float(level.median), frame.low), frame.high))
    dash = ' stroke-dasharray="5 3"' if dashed else ""
    line = (
        f'<line x1="{frame.x(first):.1f}" x2="{frame.x(last):.1f}" y1="{y:.1f}" y2="{y:.1f}"'
        f' stroke="var(--{ink})" stroke-width="1.4"{dash}/>'
    )
    return [box, line]


def _box(frame: _Frame, first: float, last: float, low: float, high: float, style: str) -> str:
    x, y = frame.x(first), frame.y(high)
    width, height = frame.x(last) - x, max(0.0, frame.y(low) - y)
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" {style}/>'


def _rule(frame: _Frame, run: float) -> str:
    x = frame.x(run)
    return (
        f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{_BOTTOM}" stroke="var(--ink)" stroke-width="1"/>'
    )


def _round(frame: _Frame, run: int, value: Number) -> str:
    centre = f'cx="{frame.x(run):.1f}" cy="{frame.y(value):.1f}"'
    return f'<circle {centre} r="1.7" fill="none" stroke="var(--ink)" stroke-width="0.9"/>'


def _square(frame: _Frame, run: int, value: Number, ink: str) -> str:
    place = f'x="{frame.x(run) - _HALF_MARK:.1f}" y="{frame.y(value) - _HALF_MARK:.1f}"'
    return f'<rect {place} width="{2 * _HALF_MARK}" height="{2 * _HALF_MARK}" fill="var(--{ink})"/>'


def _beyond(frame: _Frame, run: int, value: Number, unit: str) -> str:
    """Return a triangle at the edge, and the value beside it, towards the middle."""
    x, low = frame.x(run), value < frame.low
    edge, base = (_BOTTOM - 1, _BOTTOM - 7) if low else (_TOP + 1, _TOP + 7)
    left = x < (_LEFT + _RIGHT) / 2
    place = f'x="{x + 6 if left else x - 6:.1f}" y="{_BOTTOM - 2 if low else _TOP + 8}"'
    text = html.escape(format_value(value, unit, 4))
    return (
        f'<path d="M{x:.1f} {edge}L{x - 4:.1f} {base}H{x + 4:.1f}Z" fill="var(--ink)"/>'
        f'<text {place} text-anchor="{"start" if left else "end"}">{text}</text>'
    )


def _text(value: Number, what: SeriesChange | BeyondBaseline) -> str:
    return format_value(value, what.unit)


def _svg(name: str, frame: _Frame, unit: str, title: str, description: str, parts: Sequence[str]) -> str:
    """Return the figure: axes of runs and values with labels, and its parts over them."""
    axes = (
        f'<path d="M{_LEFT} {_TOP}V{_BOTTOM}H{_RIGHT}" fill="none" stroke="var(--muted)" stroke-width="0.7"/>'
    )
    pad = (frame.high - frame.low) * _PAD / (1 + 2 * _PAD)
    ends = sorted({frame.low + pad, frame.high - pad})
    labels = [
        f'<text x="{_LEFT - 5}" y="{frame.y(end) + 3.4:.1f}" text-anchor="end">'
        f"{html.escape(format_value(end, unit, 4))}</text>"
        for end in ends
    ]
    middle = (_LEFT + _RIGHT) / 2
    runs = f'<text x="{middle}" y="{_HEIGHT - 8}" text-anchor="middle">{frame.runs} runs, oldest first</text>'
    head = (
        f'<svg viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}" font-size="10.5" fill="var(--ink)" role="img"'
        f' aria-labelledby="{name}-title {name}-desc"><title id="{name}-title">{html.escape(title)}</title>'
        f'<desc id="{name}-desc">{html.escape(description)}</desc>'
    )
    return "".join([head, *parts, axes, *labels, runs, "</svg>"])
