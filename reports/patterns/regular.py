# SPDX-License-Identifier: Apache-2.0
"""Events at equal distances: their period, by a line through their times, and which are missing."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from reports.dependence import Floats
from reports.patterns.finding import Parameter

SHARE_MIN = 0.5
"""Of the events that a period lets expect: fewer are no period."""
ROUNDS = 4
MULTIPLES = 12
ONLY = 0.85
"""Of the events: so many at each second, third … period mean that the period is twice, thrice … as long."""


class Regular(NamedTuple):
    """Events of a period.

    Attributes:
        which: Indices of the events, one for each period at most.
        turn: The number of the period of each.
        first_s: Where period 0 is.
        period: In s.
    """

    which: np.ndarray
    turn: np.ndarray
    first_s: float
    period: Parameter


def regular(times_s: Floats, period_s: float, weights: Floats, near_s: float) -> Regular | None:
    """Return the events that come again with about a period; None: less than half of them are there.

    Args:
        times_s: Of events, some of which belong to it, shape (n,).
        period_s: About.
        weights: Of events in the search for where the period begins, and which of two that are near is it.
        near_s: How far from its place an event may be.
    """
    phase = np.mod(times_s, period_s)
    order = np.argsort(phase)
    window = max(near_s, period_s / 50)
    ahead = np.concatenate((phase[order], phase[order] + period_s))
    sums = np.concatenate(([0.0], np.cumsum(np.tile(weights[order], 2))))
    until = np.searchsorted(ahead, ahead[: len(order)] + window)
    held = sums[until] - sums[: len(order)]
    start = int(np.argmax(held))
    first_s = float(
        np.average(ahead[start : until[start]], weights=np.tile(weights[order], 2)[start : until[start]])
    )
    which, turn = np.empty(0, np.int64), np.empty(0, np.int64)
    slope_s, deviation_s = period_s, math.inf
    for round_ in range(ROUNDS):
        turn_of = np.rint((times_s - first_s) / slope_s).astype(np.int64)
        reach_s = max(near_s, window if round_ == 0 else 0.0)
        is_near = np.flatnonzero(np.abs(times_s - first_s - turn_of * slope_s) <= reach_s)
        if not len(is_near):
            return None
        heaviest = is_near[np.lexsort((-weights[is_near], turn_of[is_near]))]
        turn, first = np.unique(turn_of[heaviest], return_index=True)
        which = heaviest[first]
        if len(which) < 4:
            return None
        middle = turn - turn.mean()
        spread = float(middle @ middle)
        slope_s = float(middle @ times_s[which]) / spread
        first_s = float(times_s[which].mean() - slope_s * turn.mean())
        off = times_s[which] - first_s - slope_s * turn
        deviation_s = math.sqrt(float(off @ off) / (len(which) - 2) / spread)
    for multiple in range(MULTIPLES, 1, -1):
        counts = np.bincount(np.mod(turn, multiple))
        if counts.max() >= ONLY * len(turn) and counts.max() >= 4:
            return regular(times_s, slope_s * multiple, weights, near_s)
    if len(which) < SHARE_MIN * (turn[-1] - turn[0] + 1):
        return None
    return Regular(which, turn, first_s, Parameter.about(slope_s, deviation_s, "s"))
