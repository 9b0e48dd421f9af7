# SPDX-License-Identifier: Apache-2.0
"""All patterns of a series, one after the other: what is found is taken out before the next is looked for.

First what needs no other to be taken out: gaps, by the times alone; outliers, which are left out; the
warm-up, which is, too; the lines of a grid, by differences. Then what follows gaps, ramps and changes of
level: of the latter always that which explains more. At last the parameters of each, with all others taken
out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from reports.dependence import Floats
from reports.patterns.burst import find_bursts
from reports.patterns.drifting_grid import drifting_finding
from reports.patterns.finding import Finding
from reports.patterns.fit import Fit
from reports.patterns.gap import Gaps, find_gaps
from reports.patterns.grid import (
    Drift,
    Lines,
    drifts,
    find_drift,
    find_lines,
    fitted,
    grid_finding,
    sharpness,
)
from reports.patterns.late_first import find_late_first
from reports.patterns.level import Level, find_level, level_finding
from reports.patterns.lines_shared import find_change_of_lines, of_width
from reports.patterns.noise import fit_noise, without_slow
from reports.patterns.outlier import Explained, find_outliers, same_period
from reports.patterns.ramp import PHASES, Ramp, find_ramp, gains_of, ramp_finding
from reports.patterns.ramp_on_lines import ramp_on_lines
from reports.patterns.recovery import find_recovery
from reports.patterns.regression import distances_of
from reports.patterns.series import Series
from reports.patterns.two_levels import find_two_levels
from reports.patterns.unfolded import Unfolded, unfolded
from reports.patterns.warm_up import find_warm_up, news_both_ways
from reports.patterns.wrapped import Wrapped, find_wrapped

SHAPES_MAX = 4
"""Ramps and changes of level of one series, together."""
REFITS = 2
"""Of the noise without a pattern."""
GAIN_MIN = 12.0
"""Of the log-likelihood, by tails as of Laplace's, with the noise fitted with and without the pattern."""
GAIN_OF_WALK = 30.0
"""Where values with the pattern are a random walk: without it they are a noise that comes back, which fits by
itself better. Of 160 walks of 500 to 4000 values 9 gain more than GAIN_MIN, none more than this."""
CHANGES = ("level_change", "two_levels")
RAMPS = ("ramp", "drifting_grid")
FOLLOWS = 0.25
"""Of a ramp's gain: what ramps of the gaps' period have of it, if it is what follows gaps."""
SHARPER = 1.1
"""A ramp beside a grid leaves its lines sharper by so much than one drift of all lines does."""


@dataclass(frozen=True, slots=True)
class Detection:
    """What was found in a series.

    Attributes:
        findings: In the order in which they were found.
        remarks: What was left out, and what a series of this length cannot show.
    """

    findings: tuple[Finding, ...]
    remarks: tuple[str, ...]


def detect(series: Series) -> Detection:
    """Find the patterns of a series."""
    wrapped = find_wrapped(series)
    found = None if wrapped is not None and wrapped.is_grid else _searched(series)
    if wrapped is None and found is not None:
        wrapped = _beside_others(series, found)
    elif found is not None and any(each.kind in RAMPS for each in found.findings):
        return found
    if wrapped is not None:
        by_lines = _searched(wrapped.moved, wrapped.explained)
        named = tuple(wrapped.renamed(each) for each in by_lines.findings)
        if named != by_lines.findings:
            return replace(by_lines, findings=named)
    return found or _searched(series)


def _beside_others(series: Series, found: Detection) -> Wrapped | None:
    """Return a grid whose lines are seen one at a time beside outliers and a warm-up, which stay."""
    kept = np.ones(len(series.values), np.bool_)
    kinds = {each.kind: each.parameters for each in found.findings}
    if "periodic_outlier" in kinds:
        explained = [Explained(kinds["gap"]["period"].value)] if "gap" in kinds else []
        outliers = find_bursts(series, explained) or find_outliers(series, explained)
        if outliers is not None:
            kept &= ~outliers.mask
    if "warm_up" in kinds:
        kept &= series.times_s > kinds["warm_up"]["end"].high
    if kept.all():
        return None
    part = series.kept(kept)
    wrapped = find_wrapped(Series(part.times_s - part.times_s[0], part.values))
    if wrapped is None or not wrapped.is_grid:
        return None
    values = series.values.copy()
    values[kept] = wrapped.moved.values
    return wrapped._replace(moved=Series(series.times_s, values, series.remarks))


def _searched(series: Series, *explained: Explained) -> Detection:
    """Find the patterns of a series; explained: periods of which no outliers are looked for."""
    findings: list[Finding] = []
    gaps = find_gaps(series)
    if gaps is not None:
        findings.append(gaps.finding)
        explained = *explained, Explained(gaps.finding.parameters["period"].value)
    outliers = find_bursts(series, explained) or find_outliers(series, explained)
    if outliers is not None:
        findings.append(outliers.finding)
        series = series.kept(~outliers.mask)
    state = _behind(series, gaps, _first_of(series))
    raw = state
    if (two := find_two_levels(state.series)) is not None:
        state = state.less(two.pattern)
    lines = find_lines(state.full.values)
    on_lines = None if lines is None else _on_lines(state, series, gaps, lines)
    if on_lines is not None:
        state, two = on_lines, None
    if state.first is not None:
        findings.append(state.first)
    found, left = _shapes(state)
    if two is not None:
        if found:
            # What was found beside it, as a ramp, has moved its levels.
            now = Series(state.series.times_s, left + two.pattern)
            two = find_two_levels(now) or two
            state = raw.less(two.pattern)
            found, left = _shapes(state)
        findings.append(_later(two.finding, state.shift_s))
    findings += found
    if lines is not None:
        findings += _grid_findings(
            state, state.lines or lines, left, any(each.kind in CHANGES for each in findings)
        )
    return Detection(tuple(findings), series.remarks)


class _State(NamedTuple):
    """What is searched: the part after a warm-up, its times from 0.

    Attributes:
        full: All values; series: the same, thinned where they are many.
        gaps: Their ends by these times.
        first: The warm-up that was cut.
        shift_s: Its length.
        on: Lines of the full values, and what the grid has added to them; None: no grid that could be undone.
        drift: How its lines move; lines: their width, once that is known better.
    """

    full: Series
    series: Series
    gaps: Gaps | None
    first: Finding | None
    shift_s: float
    on: Unfolded | None = None
    drift: Drift | None = None
    lines: Lines | None = None

    def less(self, pattern: Floats) -> _State:
        """Return it without a pattern of the thinned series, shape (n,)."""
        of_all = np.interp(self.full.times_s, self.series.times_s, pattern) if self.is_thinned else pattern
        full = Series(self.full.times_s, self.full.values - of_all, self.full.remarks)
        return self._replace(full=full, series=full.thinned())

    @property
    def is_thinned(self) -> bool:
        """Tell whether it is searched as medians of blocks."""
        return len(self.full.values) > len(self.series.values)


def _first_of(full: Series, on_lines: bool = False) -> Finding | None:
    """Return the warm-up; on_lines: a grid is out, which leaves no level: only of one that scatters."""
    series = full.thinned()
    settled = fit_noise(series.values[len(series.values) // 2 :])
    distances = distances_of(series.times_s)
    first = None if on_lines else find_late_first(series, settled, distances)
    return first or find_warm_up(series, news_both_ways(series.values, settled, distances))


def _behind(full: Series, gaps: Gaps | None, first: Finding | None) -> _State:
    """Return what follows the warm-up, or all where there is none."""
    if first is None:
        return _State(full, full.thinned(), gaps, None, 0.0)
    full = full.kept(full.times_s > first.parameters["end"].high)
    shift_s = float(full.times_s[0])
    full = Series(full.times_s - shift_s, full.values, full.remarks)
    if gaps is not None:
        gaps = Gaps(gaps.finding, gaps.ends_s - shift_s)
    return _State(full, full.thinned(), gaps, first, shift_s)


def _on_lines(state: _State, whole: Series, gaps: Gaps | None, lines: Lines) -> _State | None:
    """Return the whole series less its grid, its warm-up looked for anew; None: its lines are not told apart.

    Ramps beside a grid, and what follows gaps, are taken out while lines are told, by what they seem to be.
    """
    drift = find_drift(state.full, lines.width)
    known = np.zeros(len(state.full.values))
    if not drifts(state.full, lines, drift):
        drift = Drift(0.0, drift.together)
    elif not state.is_thinned and (ramp := _ramp_beside(state.full, lines, drift)) is not None:
        known, drift = _beside_lines(state.full, lines, ramp), Drift(0.0, drift.together)
    solved = fitted(Series(state.full.times_s, state.full.values - known), lines.width, drift.slope)
    if solved is None:
        return None
    width, slope = (float(each) for each in solved[0][:2])
    # The same of the whole series: a ramp's pattern goes on before the first value.
    missing = len(whole.values) - len(known)
    known = np.concatenate((np.zeros(missing), known))
    if gaps is not None and not state.is_thinned:
        drifted = _sawtooth(whole, width, slope) if slope else np.zeros(len(known))
        base = whole.values - known - drifted
        fit = Fit(base, fit_noise(without_slow(base)), distances_of(whole.times_s))
        recovery = find_recovery(whole, fit, gaps, guess=True)
        if recovery is not None:
            known = known + recovery.pattern
            solved = fitted(Series(whole.times_s, whole.values - known), width, slope) or solved
            width, slope = (float(each) for each in solved[0][:2])
    on = unfolded(whole.times_s, whole.values - known, width, slope)
    if on is None:
        return None
    level = Series(whole.times_s, whole.values - on.grid, whole.remarks)
    is_late = state.first is not None and "height" in state.first.parameters
    flat = _behind(level, gaps, state.first if is_late else _first_of(level, on_lines=True))
    kept = slice(len(whole.values) - len(flat.full.values), None)
    on = Unfolded(on.lines[kept], on.grid[kept])
    return flat._replace(on=on, drift=Drift(slope, drift.together), lines=lines._replace(width=width))


def _beside_lines(series: Series, lines: Lines, ramp: Ramp) -> Floats:
    """Return the pattern of ramps beside a grid, shape (n,), by where values come to lie on its lines."""
    start, height = ramp_on_lines(series, lines.width, ramp.start, ramp.height.value)
    turns = (series.times_s - start[1]) / start[0]
    return height * (turns - np.floor(turns))


def _sawtooth(series: Series, width: float, slope: float) -> Floats:
    """Return what a grid that drifts adds to values, but for the number of their line, shape (n,)."""
    line = slope * (series.times_s - series.times_s.mean()) / width
    return width * (line - np.floor(line))


def _shapes(state: _State) -> tuple[list[Finding], Floats]:
    """Return what follows gaps, ramps and changes of level, and what is left without them, shape (n,)."""
    findings: list[Finding] = []
    series, gaps, shift_s = state.series, state.gaps, state.shift_s
    base = series.values
    if gaps is not None:
        distances = distances_of(series.times_s)
        recovery = find_recovery(
            series, Fit(base, fit_noise(without_slow(base)), distances), gaps, guess=True
        )
        if recovery is not None:
            recovery = find_recovery(series, Fit(base, fit_noise(base - recovery.pattern), distances), gaps)
        if recovery is not None:
            findings.append(recovery.finding)
            base = base - recovery.pattern
    two = find_two_levels(Series(series.times_s, base))
    if two is not None:
        findings.append(_later(two.finding, shift_s))
        base = base - two.pattern
    shapes = Series(series.times_s, base)
    found = _judged(shapes, _guessed(shapes, gaps), gaps)
    refined, left = _refined(series, base, found, shift_s)
    return findings + refined, left


def _grid_findings(state: _State, lines: Lines, left: Floats, has_change: bool) -> list[Finding]:
    """Return the grid, and what changes lines by whole widths; left: of the thinned series, all else out."""
    full = state.full
    taken = state.series.values - left
    if state.is_thinned:
        taken = np.interp(full.times_s, state.series.times_s, taken)
    values = full.values - taken
    if state.on is None or state.drift is None:
        stands = grid_finding(Series(full.times_s, values), lines)
        return [] if stands is None else [stands]
    tested = Series(full.times_s, values + state.on.grid)
    numbers = state.on.lines
    if not state.drift.slope:
        grid = grid_finding(tested, lines, numbers)
        counted = numbers
    else:
        drifting = drifting_finding(tested, lines, state.drift, numbers)
        if drifting is None:
            return []
        grid, counted = drifting
    if grid is None or state.is_thinned or has_change:
        return [] if grid is None else [grid]
    change = find_change_of_lines(full.times_s, counted, grid.parameters["width"])
    if change is None:
        return [grid]
    if state.drift.slope:
        # Its lines are counted anew without the change, which may have been taken for a wrap.
        middle_s = (change.parameters["start"].value + change.parameters["end"].value) / 2
        by = round(change.parameters["height"].value / lines.width) * (full.times_s > middle_s)
        tested = Series(full.times_s, tested.values - lines.width * by)
        again = drifting_finding(tested, lines, state.drift, numbers - by)
        grid = again.finding if again else grid
        change = of_width(change, grid.parameters["width"])
    return [grid, _later(change, state.shift_s)]


def _guessed(series: Series, gaps: Gaps | None) -> list[Ramp | Level]:
    """Return ramps and changes of level that may be there, in a noise that is taken to be no slow one.

    A pattern makes noise seem to wander, and hides in it. So guesses are made in noise without its slow part,
    in which anything may be found, each after those before it were taken out.
    """
    found: list[Ramp | Level] = []
    left, distances = series.values, distances_of(series.times_s)
    for _ in range(SHAPES_MAX):
        fit = Fit(left, fit_noise(without_slow(left)), distances)
        now = Series(series.times_s, left)
        candidates: list[Ramp | Level | None] = [find_level(now, fit, guess=True)]
        if not any(isinstance(each, Ramp) for each in found):
            ramp = find_ramp(now, fit, guess=True)
            candidates.append(None if ramp is None or _follows_gaps(ramp, fit, now, gaps) else ramp)
        here = [each for each in candidates if each is not None]
        if not here:
            break
        found.append(max(here, key=lambda each: each.height.gain))
        left = left - found[-1].pattern
    return found


def _judged(series: Series, guesses: list[Ramp | Level], gaps: Gaps | None) -> list[Ramp | Level]:
    """Return what of the guesses noise does not show, the noise fitted without all that is still believed."""
    kept = _joined(series, guesses)
    left: Floats = series.values - sum((each.pattern for each in kept), np.zeros(len(series.values)))
    distances = distances_of(series.times_s)
    for refit in range(REFITS):
        noise = fit_noise(left)
        for guess in list(kept):
            others = [each for each in kept if each is not guess]
            values = left + guess.pattern
            now = Series(series.times_s, values)
            seek = find_ramp if isinstance(guess, Ramp) else find_level
            fit = Fit(values, noise, distances)
            again: Ramp | Level | None = seek(now, fit, guess=refit < REFITS - 1)
            if isinstance(again, Ramp) and _follows_gaps(again, fit, now, gaps):
                again = None
            if again is not None and not _gains(values, values - again.pattern):
                again = None
            kept = others if again is None else [*others, again]
            left = values if again is None else values - again.pattern
    return kept


def _joined(series: Series, guesses: list[Ramp | Level]) -> list[Ramp | Level]:
    """Return the guesses, but one change of level where several explain little more than it does."""
    kept = list(guesses)
    levels = sorted((each for each in kept if isinstance(each, Level)), key=lambda each: each.height.gain)
    for small in levels[:-1]:
        others = [each for each in kept if each is not small]
        rest = series.values - sum((each.pattern for each in others), np.zeros(len(series.values)))
        noise = fit_noise(rest - small.pattern)
        for other in [each for each in others if isinstance(each, Level)]:
            values = rest + other.pattern
            one = find_level(
                Series(series.times_s, values), Fit(values, noise, distances_of(series.times_s)), guess=True
            )
            if one is not None and not _gains(values - one.pattern, rest - small.pattern):
                kept = [one if each is other else each for each in others]
                break
    return kept


def _gains(values: Floats, left: Floats) -> bool:
    """Tell whether values without a pattern are enough more likely, by Laplace's tails."""
    noises = fit_noise(values), fit_noise(left)
    losses = [
        float(np.abs(noise.news(each - np.median(each))).mean())
        for noise, each in zip(noises, (values, left), strict=True)
    ]
    before, after = (max(each, 1e-300) for each in losses)
    least = GAIN_OF_WALK if noises[0].wanders else GAIN_MIN
    return len(values) * float(np.log(before / after)) > least


def _follows_gaps(ramp: Ramp, fit: Fit, series: Series, gaps: Gaps | None) -> bool:
    """Tell whether a ramp is what follows gaps: it has their period, or is that of some of them by chance.

    What follows each gap alike is explained by ramps of the gaps' period, too.
    """
    if gaps is None:
        return False
    period_s = gaps.finding.parameters["period"].value
    if not same_period(float(ramp.start[0]), period_s):
        return False
    starts = np.array([(period_s, phase * period_s / PHASES) for phase in range(PHASES)])
    return float(gains_of(series.times_s, fit, starts).max()) > FOLLOWS * ramp.height.gain


def _refined(
    series: Series, base: Floats, found: list[Ramp | Level], shift_s: float
) -> tuple[list[Finding], Floats]:
    """Return what was found with its parameters, each with all others taken out, and what is left."""
    findings: list[Finding] = []
    patterns = [each.pattern for each in found]
    for index, each in enumerate(found):
        others: Floats = sum((p for i, p in enumerate(patterns) if i != index), np.zeros(len(base)))
        values = base - others
        fit = Fit(values, fit_noise(values - patterns[index]), distances_of(series.times_s))
        if isinstance(each, Ramp):
            finding = ramp_finding(series, fit, each)
        else:
            finding, patterns[index] = level_finding(series, fit, values, each)
            finding = _later(finding, shift_s)
        findings.append(finding)
    return findings, base - sum(patterns, np.zeros(len(base)))


def _later(finding: Finding, shift_s: float) -> Finding:
    """Return a finding whose instants count from the first value of the series."""
    if not shift_s:
        return finding
    instants = {
        name: replace(p, value=p.value + shift_s, low=p.low + shift_s, high=p.high + shift_s)
        for name, p in finding.parameters.items()
        if name in ("start", "end")
    }
    return replace(finding, parameters={**finding.parameters, **instants})


def _ramp_beside(series: Series, lines: Lines, drift: Drift) -> Ramp | None:
    """Return a ramp that explains the lines better than that all of them drift."""
    ramp = find_ramp(series, Fit(series.values, fit_noise(without_slow(series.values))), guess=True)
    if ramp is not None and sharpness(series.values - ramp.pattern, lines.width) > SHARPER * drift.together:
        return ramp
    return None
