# SPDX-License-Identifier: Apache-2.0
"""Ramps beside a grid: where they jump is told by how far values are from lines, whichever these are.

A value between a jump that is guessed and the true one is taken for one on another line, and so confirms the
guess: a ramp that is fitted to values whose lines are known stays where it was. So period, jumps and height
are those by which values come to lie on lines, of whose place only a slow path is known.
"""

from __future__ import annotations

import numpy as np

from reports.dependence import Floats
from reports.patterns.series import Series
from reports.patterns.unfolded import path_of

STEPS = 240
"""Of the search, each shorter than the last."""
LAST = 0.01
"""Of the first step, the last one."""


def ramp_on_lines(series: Series, width: float, start: Floats, height: float) -> tuple[Floats, float]:
    """Return period and first jump in s, shape (2,), and height of the ramps, from a guess at them.

    Args:
        series: Ramps and grid together.
        width: Of the grid.
        start: Period and first jump, about.
        height: Of a ramp that rises; negative: it falls.
    """
    times_s = series.times_s
    rng = np.random.default_rng(11)

    def loss(of: Floats) -> float:
        turns = (times_s - of[1]) / of[0]
        path = path_of((series.values - of[2] * (turns - np.floor(turns))) / width)
        return float(np.abs(path.off).mean())

    period_s = float(start[0])
    # The jump next to the middle goes with the period less than the first one does.
    middle = round((series.length_s / 2 - float(start[1])) / period_s)
    best = np.array([period_s, float(start[1]) + middle * period_s, height])
    scales = np.array([period_s**2 / series.length_s * 0.01, period_s * 0.01, 0.03 * abs(height)])
    least = loss(best)
    for step in range(STEPS):
        size = LAST ** (step / STEPS)
        moved = rng.standard_normal(3) * (rng.random(3) < 0.6)
        tried = best + moved * scales * size
        if tried[0] > 0 and (found := loss(tried)) < least:
            best, least = tried, found
    return np.array([best[0], best[1] % best[0]]), float(best[2])
