# SPDX-License-Identifier: Apache-2.0
"""A change of level along a line from one to the other; both at once is two_levels.py's."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reports.dependence import Floats
from reports.patterns.finding import CHANCE, Finding, Parameter
from reports.patterns.fit import Fit, Height, Shape, climb, posterior
from reports.patterns.noise import scale_of
from reports.patterns.series import Series
from reports.patterns.surrogate import false_alarms

EDGE_SHARE = 0.03
"""Of a series, at both ends: too few values for a level."""
COURSE_SHARE = 0.2
"""Of a series: a change that takes longer is a trend."""
FINER = 1.25
"""Between courses that are tried."""
COURSES = 20
CLIP = 5.0
"""By the scatter."""


class Level(NamedTuple):
    """A change that was found.

    Attributes:
        start: When it begins, and how long its course is, in s.
        height: From the level before to that after.
        false_alarms: As of a finding.
        pattern: What it adds to the values, shape (n,).
    """

    start: Floats
    height: Height
    false_alarms: float
    pattern: Floats


def shape_of(times_s: Floats) -> Shape:
    """Return changes by 1, by begin and length."""
    length_s = float(times_s[-1])

    def shape(of: Floats) -> Floats | None:
        begin_s, course_s = of
        if not (
            begin_s >= 0 and begin_s + course_s <= length_s and 0 <= course_s <= COURSE_SHARE * length_s * 1.2
        ):
            return None
        return np.clip((times_s - begin_s) / max(course_s, 1e-12), 0.0, 1.0)

    return shape


def clipped(news: Floats) -> Floats:
    """Return news, shape (n,), without far tails: one alone of a random walk tells no change."""
    scatter = scale_of(news)
    return np.clip(news, -CLIP * scatter, CLIP * scatter)


class _Scan:
    """The gain of a change at each value, for several courses."""

    def __init__(self, fit: Fit) -> None:
        count = len(fit.news)
        self.fit, self.count = fit, count
        self.edge = max(8, round(EDGE_SHARE * count))
        longest = round(COURSE_SHARE * count)
        self.courses = sorted({1, *(round(longest * FINER**-step) for step in range(COURSES))})
        self.norms: list[tuple[Floats, Floats]] = []
        level = fit.noise.news(np.ones(count))
        steady = float(level[-1])
        square = max(float(level @ level), 1e-300)
        for course in self.courses:
            step = np.minimum(np.arange(1, count + 1) / course, 1.0)
            white = fit.noise.backwards(step[::-1])[::-1]  # with nothing before it
            # Shapes that begin later are the beginnings of this one.
            norm = np.cumsum(white**2)[::-1]
            beside = steady * np.cumsum(white)[::-1]
            self.norms.append((np.maximum(norm - beside**2 / square, 1e-12 * norm + 1e-300), beside))

    def gains(self, news: Floats) -> tuple[float, int, int]:
        """Return the largest gain by the variance of the news, where, and with which course."""
        suffix = np.cumsum(self.fit.noise.backwards(self.fit.weights * news)[::-1])[::-1]
        running = np.concatenate(([0.0], np.cumsum(suffix)))
        best = (0.0, 0, 1)
        for course, (norm, _) in zip(self.courses, self.norms, strict=True):
            last = self.count - self.edge - course
            if last <= self.edge:
                continue
            rise = running[self.edge + course : last + course] - running[self.edge : last]
            gain = (rise / course) ** 2 / norm[self.edge : last]
            index = int(np.argmax(gain))
            if gain[index] > best[0]:
                best = (float(gain[index]), self.edge + index, course)
        return best[0] / max(float(news @ news) / self.count, 1e-300), best[1], best[2]


def find_level(series: Series, fit: Fit, guess: bool = False) -> Level | None:
    """Return the largest change of level of a series, if there is one.

    Args:
        series: The values.
        fit: Of them, in their noise.
        guess: What chance hardly shows is enough.
    """
    times_s = series.times_s
    scan = _Scan(fit)
    shape = shape_of(times_s)
    seen, at, course = scan.gains(clipped(fit.news))
    begin_s = float(times_s[at])
    course_s = max(float(times_s[min(at + course, len(times_s) - 1)]) - begin_s, series.step_s)
    best = climb(fit, shape, (begin_s, course_s), (0.3 * course_s, 0.3 * course_s))
    made = shape(best)
    if made is None:
        return None
    height = fit.height(made)
    left = fit.news - height.value * fit.whitened(made)
    # The scan goes by values, the shape by time: where values are missing after each gap they differ.
    seen = min(seen, height.gain / max(height.left / len(left), 1e-300))
    chance = false_alarms(seen, lambda news: scan.gains(news)[0], clipped(left), guess)
    if chance > CHANCE:
        return None
    return Level(best, height, chance, height.value * made)


def level_finding(series: Series, fit: Fit, values: Floats, level: Level) -> tuple[Finding, Floats]:
    """Return the parameters of a change with their intervals, and what it adds to the values, shape (n,).

    Args:
        series: For the times.
        fit: Of the values, once all else is taken out.
        values: These.
        level: The change.
    """
    shape = shape_of(series.times_s)
    step_s = series.step_s
    start = np.array([level.start[0], max(level.start[1], 0.5 * step_s)])
    course_s = start[1]
    found = posterior(fit, shape, start, (0.05 * course_s + step_s, 0.05 * course_s + step_s))
    begin_s, long_s, height = (float(each) for each in found.best)
    ends = found.draws[:, 0] + found.draws[:, 1]
    begins, ends, heights = (
        np.quantile(each, (0.025, 0.975)) for each in (found.draws[:, 0], ends, found.draws[:, 2])
    )
    made = shape(found.best[:2])
    pattern = height * (made if made is not None else np.zeros(len(values)))
    finding = Finding(
        "level_change",
        {
            "start": Parameter(begin_s, float(begins[0]), float(begins[1]), "s"),
            "end": Parameter(begin_s + long_s, float(ends[0]), float(ends[1]), "s"),
            "height": Parameter(height, float(heights[0]), float(heights[1]), "value"),
        },
        level.false_alarms,
    )
    return finding, pattern
