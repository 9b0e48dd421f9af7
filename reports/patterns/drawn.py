# SPDX-License-Identifier: Apache-2.0
"""What a plot of a series shows: some of its values, and its patterns as lines, spans and marks over them.

A finding says how long and how high a pattern is, and not where it lies: its phase is fitted here, by values.
A series of many periods is shown in part.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from reports.dependence import Floats
from reports.patterns.finding import Finding
from reports.patterns.series import Series

POINTS_MAX = 700
FAR_MAX = 60
"""Values that are farthest off, beside these: a random choice would lose outliers."""
PERIODS_ALL, PERIODS_SHOWN = 30, 20
"""Of a series with more periods than the first, so many are shown, from its middle."""
LINES_MAX = 60
FINER = 40
"""Of a grid, lines where values lie: more of them would be an area."""
GAPS_TRIED = 200
PHASES = 400
SEARCHED = 4000
BESIDE = 0.08
"""Of the series: so much of both levels is drawn beside a change."""
BURST_LEAST = 0.1
"""Of the height: what of a burst is marked."""
STEPS = 16
"""Of a ramp's line, where its level changes."""
DIGITS = 6
"""Behind the point, of s and of ms."""
ONCE = {"warm_up", "level_change", "two_levels"}
"""They come once: all of the series is shown."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a pattern: from one point to the next."""

    kind: str
    times_s: tuple[float, ...]
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of time of a pattern."""

    kind: str
    begin_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class Drawn:
    """What a plot shows, in the unit of the series; times from its first value on.

    Attributes:
        from_s: Where what is shown begins,
        to_s: and where it ends.
        times_s: Of some values of that, in the order of time.
        values: These.
        lines: Of ramps, grids, levels, and what follows gaps.
        spans: Gaps and the warm-up.
        marked_s: Times of outliers, and of what is late in bursts,
        marked: and their values.
    """

    from_s: float
    to_s: float
    times_s: tuple[float, ...]
    values: tuple[float, ...]
    lines: tuple[Line, ...] = ()
    spans: tuple[Span, ...] = ()
    marked_s: tuple[float, ...] = ()
    marked: tuple[float, ...] = ()


@dataclass(slots=True)
class _Canvas:
    """What is drawn so far, and what of the values no pattern has explained yet."""

    series: Series
    left: Floats
    from_s: float
    to_s: float
    lines: list[Line] = field(default_factory=list[Line])
    spans: list[Span] = field(default_factory=list[Span])
    marks: Floats = field(default_factory=lambda: np.zeros(0, np.float64))
    gaps: tuple[Floats, Floats] | None = None
    """Begin and end of gaps that come again, in s."""
    level: Floats | None = None
    """What changes of level have added to values, shape (n,)."""

    def add_level(self, course: Floats) -> None:
        """Take a change of level out of what is left; ramps are drawn upon it."""
        self.left = self.left - course
        self.level = course if self.level is None else self.level + course

    @property
    def shown(self) -> np.ndarray:
        """Return which values are shown, a mask of shape (n,)."""
        return (self.series.times_s >= self.from_s) & (self.series.times_s <= self.to_s)

    def line(self, kind: str, times_s: Sequence[float] | Floats, values: Sequence[float] | Floats) -> None:
        """Draw a line, cut where what is shown begins and ends."""
        at, of = np.asarray(times_s, np.float64), np.asarray(values, np.float64)
        begin_s, end_s = max(self.from_s, float(at[0])), min(self.to_s, float(at[-1]))
        if end_s > begin_s:
            inner = (at > begin_s) & (at < end_s)
            cut = np.concatenate(([begin_s], at[inner], [end_s]))
            self.lines.append(Line(kind, _rounded(cut), _rounded(np.interp(cut, at, of))))

    def span(self, kind: str, begin_s: float, end_s: float) -> None:
        """Draw a stretch of time, likewise."""
        begin_s, end_s = max(self.from_s, begin_s), min(self.to_s, end_s)
        if end_s > begin_s:
            self.spans.append(Span(kind, round(begin_s, DIGITS), round(end_s, DIGITS)))


def drawn_of(series: Series, findings: Sequence[Finding]) -> Drawn:
    """Return what a plot of a series with its patterns shows.

    Args:
        series: All values.
        findings: Its patterns, by times from its first value on.
    """
    canvas = _Canvas(series, series.values.copy(), *_shown(series, findings))
    period_s = next((each.parameters["period"].value for each in findings if each.kind == "gap"), None)
    if period_s is not None:
        canvas.gaps = _gaps_of(series, period_s)
    order = list(_DRAWN)
    for finding in sorted(findings, key=lambda each: order.index(each.kind)):
        _DRAWN[finding.kind](canvas, {name: each.value for name, each in finding.parameters.items()})
    chosen = _chosen(series, np.flatnonzero(canvas.shown))
    marks = np.flatnonzero(np.isin(series.times_s, canvas.marks) & canvas.shown)
    return Drawn(
        round(canvas.from_s, DIGITS),
        round(canvas.to_s, DIGITS),
        _rounded(series.times_s[chosen]),
        _rounded(series.values[chosen]),
        tuple(canvas.lines[: 4 * LINES_MAX]),
        tuple(canvas.spans),
        _rounded(series.times_s[marks]),
        _rounded(series.values[marks]),
    )


def _shown(series: Series, findings: Sequence[Finding]) -> tuple[float, float]:
    """Return from when to when the series is shown: where periods are many, some from its middle."""
    first_s, last_s = float(series.times_s[0]), float(series.times_s[-1])
    periods_s = [each.parameters["period"].value for each in findings if "period" in each.parameters]
    if not periods_s or any(each.kind in ONCE for each in findings):
        return first_s, last_s
    # The longest period needs some of itself, too.
    width_s = max(PERIODS_SHOWN * min(periods_s), 3 * max(periods_s))
    if (last_s - first_s) / min(periods_s) <= PERIODS_ALL or width_s >= last_s - first_s:
        return first_s, last_s
    middle_s = (first_s + last_s) / 2
    return middle_s - width_s / 2, middle_s + width_s / 2


def _chosen(series: Series, shown: np.ndarray) -> np.ndarray:
    """Return which values are drawn: by chance, as each k-th would make its own patterns; and far ones."""
    if len(shown) <= POINTS_MAX + FAR_MAX:
        return shown
    values = series.values[shown]
    far = np.argsort(-np.abs(values - np.median(values)), kind="stable")[:FAR_MAX]
    drawn = np.random.default_rng(len(shown)).choice(len(shown), POINTS_MAX, replace=False)
    return shown[np.union1d(far, drawn)]


def _rounded(values: Floats) -> tuple[float, ...]:
    return tuple(round(float(each), DIGITS) for each in values)


def _thin(canvas: _Canvas) -> tuple[Floats, Floats]:
    """Return times and what is left, of not too many values."""
    step = -(-len(canvas.left) // SEARCHED)
    return canvas.series.times_s[::step], canvas.left[::step]


def _usual(values: Floats) -> tuple[float, float]:
    """Return where values usually lie: nearly all of them."""
    low, high = np.quantile(values, (0.01, 0.99))
    return float(low), float(high)


def _phase(turns: Floats, weights: Floats | None = None) -> float:
    """Return the mean phase of turns, from -0.5 to 0.5, shape (n,)."""
    every = np.exp(2j * np.pi * turns)
    return float(np.angle(every.sum() if weights is None else (every * weights).sum())) / (2 * math.pi)


def _gaps_of(series: Series, period_s: float) -> tuple[Floats, Floats]:
    """Return begin and end of those gaps that come again, in s."""
    times_s, step_s = series.times_s, series.step_s
    distances = np.diff(times_s)
    long = np.flatnonzero(distances > 1.5 * step_s)
    begin_s, end_s = times_s[long], times_s[long + 1]
    turns = (begin_s + end_s) / 2 / period_s
    # Others may lie between: the phase is that of the gap which most others agree with.
    slack = (2 * step_s + period_s / 50) / period_s
    agree = [np.abs((turns - turn + 0.5) % 1 - 0.5) <= slack for turn in turns[:GAPS_TRIED]]
    kept = max(agree, key=lambda each: int(each.sum()), default=np.zeros(len(turns), np.bool_))
    return begin_s[kept], end_s[kept]


def _warm_up(canvas: _Canvas, of: Mapping[str, float]) -> None:
    canvas.span("warm_up", 0.0, of["end"])


def _gap(canvas: _Canvas, _of: Mapping[str, float]) -> None:
    for begin_s, end_s in zip(*(canvas.gaps or ((), ())), strict=True):
        canvas.span("gap", float(begin_s), float(end_s))


def _outliers(canvas: _Canvas, of: Mapping[str, float]) -> None:
    times_s, sign = canvas.series.times_s, math.copysign(1.0, of["height"])
    off = sign * (canvas.left - np.median(canvas.left))
    least = BURST_LEAST if "length" in of else 0.5
    far = np.flatnonzero((off > abs(of["height"]) * least) & (off < 2 * abs(of["height"])))
    if len(far):
        turns = times_s[far] / of["period"]
        late = (turns - _phase(turns, off[far]) + 0.5) % 1 - 0.5
        reach_s = 1.5 * canvas.series.step_s + of["period"] / 50 + of.get("length", 0.0)
        hit = far[np.abs(late) * of["period"] <= reach_s]
        canvas.marks = times_s[hit]


def _level_change(canvas: _Canvas, of: Mapping[str, float]) -> None:
    start_s, end_s, height = of["start"], max(of["end"], of["start"] + 1e-6), of["height"]
    course = height * np.clip((canvas.series.times_s - start_s) / (end_s - start_s), 0.0, 1.0)
    # By the level beside it: others may change elsewhere.
    near = np.abs(canvas.series.times_s - (start_s + end_s) / 2) < 2 * (end_s - start_s) + BESIDE * (
        canvas.series.length_s
    )
    base = float(np.median((canvas.left - course)[near]))
    canvas.add_level(course)
    reach_s = BESIDE * canvas.series.length_s
    canvas.line(
        "level_change",
        (start_s - reach_s, start_s, end_s, end_s + reach_s),
        (base, base, base + height, base + height),
    )


def _two_levels(canvas: _Canvas, of: Mapping[str, float]) -> None:
    times_s, start_s, end_s, height = canvas.series.times_s, of["start"], of["end"], of["height"]
    share = np.clip((times_s - start_s) / max(end_s - start_s, 1e-6), 0.0, 1.0)
    base = float(np.median(canvas.left - height * np.round(share)))
    is_new = np.abs(canvas.left - base - height) < np.abs(canvas.left - base)
    canvas.add_level(height * np.where((share > 0) & (share < 1), is_new, share))
    canvas.line("two_levels", (canvas.from_s, end_s), (base, base))
    canvas.line("two_levels", (start_s, canvas.to_s), (base + height, base + height))


def _recovery(canvas: _Canvas, of: Mapping[str, float]) -> None:
    begins_s, ends_s = canvas.gaps or (np.zeros(0), np.zeros(0))
    if not len(ends_s):
        return
    times_s = canvas.series.times_s
    turn = np.searchsorted(ends_s, times_s, side="right") - 1
    since_s = np.where(turn >= 0, times_s - ends_s[np.maximum(turn, 0)], np.inf)
    course = of["height"] * np.exp(-since_s / of["decay"])
    base = float(np.median(canvas.left - course))
    canvas.left = canvas.left - course
    for end_s, next_s in zip(ends_s, [*begins_s[1:], canvas.series.times_s[-1]], strict=True):
        after_s = np.linspace(0.0, max(min(4 * of["decay"], float(next_s - end_s)), 1e-6), 12)
        canvas.line("recovery", end_s + after_s, base + of["height"] * np.exp(-after_s / of["decay"]))


def _ramp(canvas: _Canvas, of: Mapping[str, float]) -> None:
    period_s, rise = of["period"], math.copysign(of["height"], of["slope"])
    times_s, left = _thin(canvas)
    best = (math.inf, 0.0, 0.0)
    for first_s in period_s * np.arange(PHASES) / PHASES:
        turns = (times_s - first_s) / period_s
        off = left - rise * (turns - np.floor(turns))
        base = float(np.median(off))
        best = min(best, (float(np.abs(off - base).mean()), float(first_s), base))
    _, first_s, base = best
    turns = (canvas.series.times_s - first_s) / period_s
    canvas.left = canvas.left - rise * (turns - np.floor(turns))
    begin = math.floor((canvas.from_s - first_s) / period_s)
    for number in range(begin, begin + 4 * LINES_MAX):
        begin_s = first_s + number * period_s
        if begin_s >= canvas.to_s:
            break
        at_s, course = np.array([begin_s, begin_s + period_s]), np.array([base, base + rise])
        if canvas.level is not None:
            at_s = begin_s + period_s * np.linspace(0.0, 1.0, STEPS)
            course = np.interp(at_s, canvas.series.times_s, canvas.level) + np.linspace(
                base, base + rise, STEPS
            )
        canvas.line("ramp", at_s, course)


def _grid(canvas: _Canvas, of: Mapping[str, float]) -> None:
    _parallels(canvas, "grid", of["width"], 0.0)


def _drifting_grid(canvas: _Canvas, of: Mapping[str, float]) -> None:
    _parallels(canvas, "drifting_grid", of["width"], of["slope"])


def _parallels(canvas: _Canvas, kind: str, width: float, slope: float) -> None:
    """Draw lines a width apart that all rise by a slope, where values lie; those amid them first."""
    middle_s = (canvas.from_s + canvas.to_s) / 2
    which = canvas.shown
    level = canvas.left[which] - slope * (canvas.series.times_s[which] - middle_s)
    centre = float(np.median(level))
    first = centre + width * _phase((level - centre) / width)
    low, high = _usual(canvas.series.values[which])
    if high - low > FINER * width:
        return
    low, high = low - width / 4, high + width / 4
    half_s = (canvas.to_s - canvas.from_s) / 2
    reach = math.ceil(((high - low) + abs(slope) * half_s) / width) + 1
    numbers = sorted(range(-reach, reach + 1), key=lambda number: (abs(number), number))
    lines = 0
    for number in numbers:
        begin, end = (first + number * width + slope * side for side in (-half_s, half_s))
        at = np.array([canvas.from_s, canvas.to_s])
        if slope:
            at = np.clip(middle_s + (np.array([low, high]) - first - number * width) / slope, *at)
            at.sort()
        elif not low <= begin <= high:
            continue
        if at[1] > at[0]:
            course = (at - canvas.from_s) / (2 * half_s)
            canvas.line(kind, at, begin + (end - begin) * course)
            lines += 1
        if lines >= LINES_MAX:
            break


_DRAWN: dict[str, Callable[[_Canvas, Mapping[str, float]], None]] = {
    "warm_up": _warm_up,
    "gap": _gap,
    "level_change": _level_change,
    "two_levels": _two_levels,
    "recovery": _recovery,
    "ramp": _ramp,
    "grid": _grid,
    "drifting_grid": _drifting_grid,
    "periodic_outlier": _outliers,
}
"""In this order: what lies over all is taken out first, and single values are off by what is left."""
