# SPDX-License-Identifier: Apache-2.0
"""A grid that drifts and whose lines are seen one at a time: ramps, and about each wrap values on both lines.

A source's messages scatter against the poll. Within that scatter of a wrap one meets this poll or the next,
so there is no instant at which ramps jump: whatever pattern jumps at one leaves values a whole width off on
either side, which are far news to the noise beside it, and outliers that come again. Values that follow each
other are seldom on different lines, so differences do not tell the width as they do where several lines are
in use all the time; but a ramp that is guessed tells width and slope well enough to number the lines.

Values about a wrap that lie on the other line are moved onto the one that is due, and all else is looked for
in what that leaves. It would confirm any guess at when ramps jump, so width and slope are those of values on
lines of known numbers, which no guess at a jump has a part in. How far lines wobble decides how well they are
known: deviations are by blocks of half a period (Liang and Zeger's, clusters in time), and not by a
fitted noise. That would weigh neighbours on both lines most, and of these a late one is on the lower line
*because* its poll was late.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reports.dependence import Floats
from reports.patterns.finding import Finding, Parameter
from reports.patterns.fit import Fit
from reports.patterns.noise import fit_noise, scale_of, without_slow
from reports.patterns.outlier import Explained
from reports.patterns.ramp import find_ramp
from reports.patterns.regression import BIWEIGHT, distances_of
from reports.patterns.series import PERIODS_MIN, SEARCHED, Series
from reports.patterns.unfolded import unfolded

ROUNDS = 4
WEIGHINGS = 6
SHIFTS = 400
NEAR = 0.1
"""Of a period: how far from a wrap values may lie on the other line."""
OTHER_MAX = 0.1
"""Of the values: on another line than the one that is due, at most."""
OFTENER = 4.0
"""Near wraps, by elsewhere: so much more often, at least; tails put values on a wrong line anywhere."""
BOTH_MIN = 0.5
"""Of the wraps: so many have values that go back to the line before, else ramps jump at an instant."""
BLOCKS = 2
"""In a period."""
SAME = 0.03
"""Of a period: one that differs by less is the same."""
DRAWS = 4000


class Wrapped(NamedTuple):
    """A grid whose lines are seen one at a time, or ramps that are as well told by lines.

    Attributes:
        moved: The series with each value near a wrap on the line that is due.
        is_grid: About wraps values lie on both lines.
        parameters: Width, period and slope.
    """

    moved: Series
    is_grid: bool
    parameters: dict[str, Parameter]

    @property
    def explained(self) -> Explained:
        """Return the period of wraps: values about these scatter more than others."""
        return Explained(self.parameters["period"].value, SAME)

    def renamed(self, finding: Finding) -> Finding:
        """Return the ramp of the moved series as what it is by its lines; any other finding as it is."""
        if finding.kind != "ramp":
            return finding
        period_s = self.parameters["period"].value
        if abs(finding.parameters["period"].value / period_s - 1) > SAME:
            return finding
        if self.is_grid:
            says = "values lie on both lines about each wrap: a grid whose two clocks differ in rate"
            return replace(finding, kind="drifting_grid", parameters=self.parameters, says=says)
        width, period, slope = (self.parameters[each] for each in ("width", "period", "slope"))
        return replace(finding, parameters={"period": period, "height": width, "slope": slope})


class _Straight(NamedTuple):
    """Values by numbers of their lines and time.

    Attributes:
        answer: Width, slope and offset.
        columns: Of numbers, times and ones, shape (3, n).
        pulls: How strongly each value pulls, by what is left of it, shape (n,).
        stiffness: By how much a pull changes with the value, shape (n,).
    """

    answer: Floats
    columns: Floats
    pulls: Floats
    stiffness: Floats


def find_wrapped(series: Series) -> Wrapped | None:
    """Return ramps by their lines, if nearly all values are on the line that is due, or near a wrap not."""
    thin = series.thinned()
    ramp = find_ramp(
        thin,
        Fit(thin.values, fit_noise(without_slow(thin.values)), distances_of(thin.times_s)),
        guess=True,
    )
    if ramp is None:
        return None
    some = series.kept(np.arange(len(series.values)) % -(-len(series.values) // SEARCHED) == 0)
    times_s = some.times_s - series.times_s.mean()
    width, slope = abs(ramp.height.value), ramp.height.value / float(ramp.start[0])
    fit, lines = None, np.zeros(0, np.int64)
    for _ in range(ROUNDS):
        if (on := unfolded(some.times_s, some.values, width, slope)) is None:
            return None
        lines = on.lines
        fit = _straight(np.stack([lines.astype(np.float64), times_s, np.ones(len(lines))]), some.values)
        width, slope = (float(each) for each in fit.answer[:2])
        if width <= 0 or abs(slope) * series.length_s < PERIODS_MIN * width:
            return None
    if fit is None:
        return None
    turns_per_s = slope / width
    shift = _shift(lines, turns_per_s * times_s)
    turns = turns_per_s * times_s + shift
    off, near = _off(lines, turns), _is_near(turns)
    if (off != 0).mean() > OTHER_MAX or (off != 0)[near].mean() < OFTENER * (off != 0)[~near].mean():
        return None
    is_grid = _on_both(off, turns, near)
    if len(some.values) < len(series.values):
        if (on := unfolded(series.times_s, series.values, width, slope)) is None:
            return None
        turns = turns_per_s * (series.times_s - series.times_s.mean()) + shift
        off, near = _off(on.lines, turns), _is_near(turns)
    moved = Series(series.times_s, series.values - width * np.where(near, off, 0), series.remarks)
    return Wrapped(moved, is_grid, _parameters(fit, abs(turns_per_s) * times_s))


def _straight(columns: Floats, values: Floats) -> _Straight:
    """Return the straight line by least squares, its far values without weight (Tukey's biweight)."""
    weights = np.ones(len(values))
    answer, left, turn = np.zeros(len(columns)), values, values
    for _ in range(WEIGHINGS):
        root = np.sqrt(weights)
        answer = np.linalg.lstsq((root * columns).T, root * values, rcond=None)[0]
        left = values - answer @ columns
        turn = np.clip(left / (BIWEIGHT * scale_of(left)), -1, 1) ** 2
        weights = (1 - turn) ** 2
    return _Straight(np.asarray(answer, np.float64), columns, weights * left, (1 - turn) * (1 - 5 * turn))


def _shift(lines: NDArray[np.int64], turns: Floats) -> float:
    """Return what to add to turns so that most values lie on the line that is due.

    Args:
        lines: Numbers of lines, shape (n,).
        turns: By which lines have moved since any instant, shape (n,); falling where lines fall.
    """
    shifts = [float(each) for each in np.arange(SHIFTS) / SHIFTS]
    return min(shifts, key=lambda shift: float((_off(lines, turns + shift) != 0).mean()))


def _off(lines: NDArray[np.int64], turns: Floats) -> NDArray[np.int64]:
    """Return by how many lines each value is off the one that is due, shape (n,)."""
    counted = lines + np.floor(turns).astype(np.int64)
    return counted - int(np.median(counted))


def _is_near(turns: Floats) -> NDArray[np.bool_]:
    return np.abs(turns - np.rint(turns)) < NEAR


def _on_both(off: NDArray[np.int64], turns: Floats, near: NDArray[np.bool_]) -> bool:
    """Tell whether at most wraps values go on to the next line and back."""
    numbers = off - np.floor(turns).astype(np.int64)
    back = np.flatnonzero(np.diff(numbers) * math.copysign(1.0, turns[-1] - turns[0]) > 0) + 1
    wraps = np.unique(np.rint(turns[back[near[back]]]))
    return len(wraps) >= BOTH_MIN * int(abs(turns[-1] - turns[0]))


def _parameters(fit: _Straight, periods: Floats) -> dict[str, Parameter]:
    """Return width, period and slope with their intervals; periods: since any instant, shape (n,)."""
    block = np.floor((periods - periods[0]) * BLOCKS).astype(np.int64)
    pulls = np.array([np.bincount(block, each) for each in fit.pulls * fit.columns])
    count = pulls.shape[1]
    inverse = np.asarray(np.linalg.pinv(fit.stiffness.mean() * (fit.columns @ fit.columns.T)), np.float64)
    covariance = inverse @ (pulls @ pulls.T) @ inverse * count / (count - len(pulls))
    rng = np.random.default_rng(12)
    # Of so few blocks deviations are not known well: Student's t instead of normal draws.
    freedom = count - len(pulls)
    scale = np.sqrt(freedom / rng.chisquare(freedom, DRAWS))
    draws = fit.answer[:2] + scale[:, None] * rng.multivariate_normal(np.zeros(2), covariance[:2, :2], DRAWS)
    widths, slopes = np.asarray(draws.T, np.float64)
    return {
        "width": Parameter.of_draws(widths, "value"),
        "period": Parameter.of_draws(np.abs(widths / slopes), "s"),
        "slope": Parameter.of_draws(slopes, "value/s"),
    }
