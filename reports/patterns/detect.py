# SPDX-License-Identifier: Apache-2.0
"""All patterns of a series, one after the other: what is found is taken out before the next is looked for.

First what needs no other to be taken out: gaps, by the times alone; outliers, which are left out; the
warm-up, which is, too; the lines of a grid, by differences. Then what follows gaps, ramps and changes of
level: of the latter always that which explains more. At last the parameters of each, with all others taken
out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reports.dependence import Floats
from reports.patterns.finding import Finding
from reports.patterns.fit import Fit
from reports.patterns.gap import Gaps, find_gaps
from reports.patterns.grid import (
    Drift,
    Lines,
    drifting_finding,
    drifts,
    find_drift,
    find_lines,
    grid_finding,
    sharpness,
)
from reports.patterns.level import Level, find_level, level_finding
from reports.patterns.noise import fit_noise, without_slow
from reports.patterns.outlier import find_outliers, same_period
from reports.patterns.ramp import Ramp, find_ramp, ramp_finding
from reports.patterns.recovery import find_recovery
from reports.patterns.series import Series
from reports.patterns.two_levels import find_two_levels
from reports.patterns.warm_up import find_warm_up

SHAPES_MAX = 4
"""Ramps and changes of level of one series, together."""
REFITS = 2
"""Of the noise without a pattern."""
GAIN_MIN = 12.0
"""Of the log-likelihood, by tails as of Laplace's, with the noise fitted with and without the pattern."""
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
    findings: list[Finding] = []
    gaps = find_gaps(series)
    if gaps is not None:
        findings.append(gaps.finding)
    outliers = find_outliers(series, gaps.finding.parameters["period"].value if gaps else None)
    if outliers is not None:
        findings.append(outliers.finding)
        series = series.kept(~outliers.mask)
    full, series = series, series.thinned()
    two = find_two_levels(series)
    if two is not None:
        findings.append(two.finding)
        series = Series(series.times_s, series.values - two.pattern, series.remarks)
        if len(full.values) == len(series.values):
            full = series
    settled = fit_noise(series.values[len(series.values) // 2 :])
    first = find_warm_up(series, Fit(series.values, settled, after_gaps(series)).news)
    if first is not None:
        findings.append(first)
        end_s = first.parameters["end"].high
        series = series.kept(series.times_s > end_s)
        full = full.kept(full.times_s > end_s)
        shift_s = float(series.times_s[0])
        series = Series(series.times_s - shift_s, series.values, series.remarks)
        full = Series(full.times_s - float(full.times_s[0]), full.values, full.remarks)
        if gaps is not None:
            gaps = Gaps(gaps.finding, gaps.ends_s - shift_s)
    else:
        shift_s = 0.0
    findings += _shapes(full, series, gaps, shift_s)
    return Detection(tuple(findings), series.remarks)


def _shapes(full: Series, series: Series, gaps: Gaps | None, shift_s: float) -> list[Finding]:
    findings: list[Finding] = []
    lines = find_lines(full.values)
    is_thinned = len(full.values) > len(series.values)
    base = series.values
    if lines is not None:
        drifting = _drifting(series if not is_thinned else full, lines)
        if drifting is not None:
            finding, pattern = drifting
            findings.append(finding)
            if is_thinned:
                pattern = np.interp(series.times_s, full.times_s, pattern)
            base = base - pattern
            lines = None
    if gaps is not None:
        after_gap = after_gaps(series)
        recovery = find_recovery(
            series, Fit(base, fit_noise(without_slow(base)), after_gap), gaps, guess=True
        )
        if recovery is not None:
            recovery = find_recovery(series, Fit(base, fit_noise(base - recovery.pattern), after_gap), gaps)
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
    findings += refined
    if lines is not None:
        # Of a long series the lines of its first values: means of blocks have none.
        tested = (
            Series(series.times_s, left)
            if not is_thinned
            else full.kept(np.arange(len(full.values)) < len(left))
        )
        stands = grid_finding(tested, lines)
        if stands is not None:
            findings.append(stands)
    return findings


def _guessed(series: Series, gaps: Gaps | None) -> list[Ramp | Level]:
    """Return ramps and changes of level that may be there, in a noise that is taken to be no slow one.

    A pattern makes noise seem to wander, and hides in it. So guesses are made in noise without its slow part,
    in which anything may be found, each after those before it were taken out.
    """
    found: list[Ramp | Level] = []
    left, after_gap = series.values, after_gaps(series)
    for _ in range(SHAPES_MAX):
        fit = Fit(left, fit_noise(without_slow(left)), after_gap)
        now = Series(series.times_s, left)
        candidates: list[Ramp | Level | None] = [find_level(now, fit, guess=True)]
        if not any(isinstance(each, Ramp) for each in found):
            ramp = find_ramp(now, fit, guess=True)
            candidates.append(None if ramp is None or _follows_gaps(ramp, gaps) else ramp)
        here = [each for each in candidates if each is not None]
        if not here:
            break
        found.append(max(here, key=lambda each: each.height.gain))
        left = left - found[-1].pattern
    return found


def _judged(series: Series, guesses: list[Ramp | Level], gaps: Gaps | None) -> list[Ramp | Level]:
    """Return what of the guesses noise does not show, the noise fitted without all that is still believed."""
    kept = list(guesses)
    left: Floats = series.values - sum((each.pattern for each in kept), np.zeros(len(series.values)))
    after_gap = after_gaps(series)
    for refit in range(REFITS):
        noise = fit_noise(left)
        for guess in list(kept):
            others = [each for each in kept if each is not guess]
            values = left + guess.pattern
            now = Series(series.times_s, values)
            seek = find_ramp if isinstance(guess, Ramp) else find_level
            fit = Fit(values, noise, after_gap)
            again: Ramp | Level | None = seek(now, fit, guess=refit < REFITS - 1)
            if isinstance(again, Ramp) and _follows_gaps(again, gaps):
                again = None
            if again is not None and _gain(values, values - again.pattern) <= GAIN_MIN:
                again = None
            kept = others if again is None else [*others, again]
            left = values if again is None else values - again.pattern
    return kept


def _gain(values: Floats, left: Floats) -> float:
    """Return the gain in log-likelihood, by Laplace's tails, of values without a pattern."""
    losses = [float(np.abs(fit_noise(each).news(each - np.median(each))).mean()) for each in (values, left)]
    return len(values) * float(np.log(losses[0] / losses[1]))


def _follows_gaps(ramp: Ramp, gaps: Gaps | None) -> bool:
    """Tell whether a ramp has the period of gaps: it is what follows them."""
    if gaps is None:
        return False
    return same_period(float(ramp.start[0]), gaps.finding.parameters["period"].value)


def after_gaps(series: Series) -> np.ndarray:
    """Return which values follow missing ones, shape (n,)."""
    return np.concatenate(([False], np.diff(series.times_s) > 1.5 * series.step_s))


def _refined(
    series: Series, base: Floats, found: list[Ramp | Level], shift_s: float
) -> tuple[list[Finding], Floats]:
    """Return what was found with its parameters, each with all others taken out, and what is left."""
    findings: list[Finding] = []
    patterns = [each.pattern for each in found]
    for index, each in enumerate(found):
        others: Floats = sum((p for i, p in enumerate(patterns) if i != index), np.zeros(len(base)))
        values = base - others
        fit = Fit(values, fit_noise(values - patterns[index]), after_gaps(series))
        if isinstance(each, Ramp):
            finding, _ = ramp_finding(series, fit, each)
        else:
            finding, patterns[index] = level_finding(series, fit, values, each)
            finding = _later(finding, shift_s)
        findings.append(finding)
    return findings, base - sum(patterns, np.zeros(len(base)))


def _later(finding: Finding, shift_s: float) -> Finding:
    """Return a finding whose instants count from the first value of the series."""
    if not shift_s:
        return finding
    from dataclasses import replace

    instants = {
        name: replace(p, value=p.value + shift_s, low=p.low + shift_s, high=p.high + shift_s)
        for name, p in finding.parameters.items()
        if name in ("start", "end")
    }
    return replace(finding, parameters={**finding.parameters, **instants})


def _drifting(series: Series, lines: Lines) -> tuple[Finding, Floats] | None:
    """Return a grid that drifts; None: it stays, or a ramp beside it explains the lines better."""
    drift: Drift = find_drift(series, lines.width)
    if not drifts(series, lines, drift):
        return None
    if len(series.values) <= len(series.thinned().values):
        ramp = find_ramp(series, Fit(series.values, fit_noise(without_slow(series.values))), guess=True)
        if (
            ramp is not None
            and sharpness(series.values - ramp.pattern, lines.width) > SHARPER * drift.together
        ):
            return None
    return drifting_finding(series, lines, drift)
