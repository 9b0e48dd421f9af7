# SPDX-License-Identifier: Apache-2.0
"""Two levels at once that are whole widths of a grid apart: no line moves, but values change to others.

A change along a line cannot do that: between two lines of the grid it would have values on neither.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from reports.dependence import Floats
from reports.patterns.finding import Finding, Parameter
from reports.patterns.fit import Fit
from reports.patterns.level import find_level
from reports.patterns.noise import fit_noise, without_slow
from reports.patterns.series import Series
from reports.patterns.two_levels import change_chain

WHOLE = 0.25
"""Of a width: how far a change may be from a whole one."""
ALIKE = 0.15
"""Of values: how many may lie on other lines, by number, than before."""
AT_ONCE_STEPS = 3.0
"""A course that is shorter, in distances of values, is a step."""


def find_change_of_lines(times_s: Floats, lines: NDArray[np.int64], width: Parameter) -> Finding | None:
    """Return a change by whole widths, if there is one.

    Args:
        times_s: Shape (n,).
        lines: Of each value its line's number, shape (n,).
        width: Of the grid.
    """
    if np.ptp(lines) == 0:
        return None
    # Spread over a line's width, as scales by the median of whole numbers are 0.
    numbers = lines + np.random.default_rng(6).uniform(-0.5, 0.5, len(lines))
    series = Series(times_s, numbers)
    level = find_level(series, Fit(numbers, fit_noise(without_slow(numbers))), guess=True)
    if level is not None:
        level = find_level(series, Fit(numbers, fit_noise(numbers - level.pattern)))
    if level is None:
        return None
    begin_s, course_s = (float(each) for each in level.start)
    is_before, is_after = times_s < begin_s, times_s > begin_s + course_s
    by = round(float(numbers[is_after].mean() - numbers[is_before].mean()))
    if not by or abs(level.height.value - by) > WHOLE:
        return None
    least = int(lines.min()) - abs(by)
    size = int(lines.max()) - least + 1 + abs(by)
    before, after = (
        np.bincount(each - least, minlength=size) / len(each)
        for each in (lines[is_before], lines[is_after] - by)
    )
    if np.abs(before - after).sum() / 2 > ALIKE:
        return None
    usual = (before * is_before.sum() + after * is_after.sum()) / (is_before.sum() + is_after.sum())
    step_s = float(np.median(np.diff(times_s)))
    start = np.array([begin_s, max(course_s, step_s)])
    drawn = change_chain(times_s, usual[lines - least], usual[lines - by - least], start)
    least_s = float(np.quantile(drawn[:, 1], 0.025))
    kind = "two_levels" if least_s > AT_ONCE_STEPS * step_s else "level_change"
    parameters = {
        "start": Parameter.of_draws(drawn[:, 0], "s"),
        "end": Parameter.of_draws(drawn.sum(axis=1), "s"),
        "height": _times(by, width),
    }
    return Finding(kind, parameters, level.false_alarms)


def of_width(change: Finding, width: Parameter) -> Finding:
    """Return a change by whole widths, of a width that is known better."""
    by = round(change.parameters["height"].value / width.value)
    return replace(change, parameters={**change.parameters, "height": _times(by, width)})


def _times(by: int, width: Parameter) -> Parameter:
    low, high = sorted((by * width.low, by * width.high))
    return Parameter(by * width.value, low, high, width.unit)
