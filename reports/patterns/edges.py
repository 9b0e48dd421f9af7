# SPDX-License-Identifier: Apache-2.0
"""When ramps jump, and with which period: by the values next to each jump, whichever side they are on.

Where a jump lies is known to one distance of values, and the likelihood has a step at each of them. So it is
tabled for each jump by how many values it lies later, in the news of the noise, with tails as heavy as those
of the news; a chain then looks it up. What a line between two jumps tells of the period is far less.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from reports.dependence import Floats
from reports.patterns.fit import draws_of
from reports.patterns.noise import START, Noise

LATER = 40
"""Values by which a jump may lie later, or earlier, than it seems."""
BEHIND = 120
"""Values behind them on which they still have an influence."""
ELSEWHERE = 1e-3
"""By the likeliest place: that other patterns, or far tails, have moved a jump anywhere."""
STEPS = 8000
FREEDOMS = (2.5, 4.0, 8.0, 30.0)
"""Of Student's t, as which news are distributed."""
ROUNDS = 5


class Tails(NamedTuple):
    """Student's t, by which news are distributed: degrees of freedom, and its scale."""

    freedom: float
    scale: float

    def logs(self, news: Floats) -> Floats:
        """Return the logarithm of the density at news, but for a constant, any shape."""
        return -(self.freedom + 1) / 2 * np.log1p((news / self.scale) ** 2 / self.freedom)


def tails_of(news: Floats) -> Tails:
    """Return the distribution of news, shape (n,), by its likelihood."""
    found: list[tuple[float, Tails]] = []
    for freedom in FREEDOMS:
        square = float(np.median(np.abs(news)) * 1.4826) ** 2 or float(news.var()) or 1.0
        for _ in range(ROUNDS):
            square = float(((freedom + 1) * news**2 / (freedom + news**2 / square)).mean()) or square
        tails = Tails(freedom, math.sqrt(square))
        constant = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2) - math.log(freedom) / 2
        likelihood = len(news) * (constant - math.log(tails.scale)) + float(tails.logs(news).sum())
        found.append((likelihood, tails))
    return max(found)[1]


def jump_draws(times_s: Floats, left: Floats, noise: Noise, start: Floats, height: float) -> Floats:
    """Return draws of the period and of the jump next to the middle, in s, shape (draws, 2).

    Args:
        times_s: Shape (n,).
        left: News of the values less the ramps, shape (n,).
        noise: Theirs.
        start: Period and some jump of these ramps.
        height: Of a ramp that rises; negative: it falls.
    """
    period_s = float(start[0])
    middle_s = float(times_s[0] + times_s[-1]) / 2
    jump_s = float(start[1]) + round((middle_s - float(start[1])) / period_s) * period_s
    first = math.ceil(float(times_s[0] - jump_s) / period_s)
    last = math.floor(float(times_s[-1] - jump_s) / period_s)
    turns = np.arange(first, last + 1, dtype=np.int64)
    at = np.searchsorted(times_s, jump_s + turns * period_s)
    apart = int(len(times_s) * period_s / (times_s[-1] - times_s[0]))
    later = max(2, min(LATER, apart // 4))
    places = np.arange(-later - START, later + min(BEHIND, apart // 2))  # nothing is moved at first
    moved = np.arange(-later, later + 1)[:, None]
    # Values between are before the jump instead of behind it, or the other way round.
    between = np.where((places >= 0) & (places < moved), 1.0, 0.0)
    between -= np.where((places < 0) & (places >= moved), 1.0, 0.0)
    change = height * noise.news(between)
    tails = tails_of(left)
    table = np.zeros((len(turns), len(moved)))
    for row, place in zip(table, at, strict=True):
        near = place + places
        known = (near >= 0) & (near < len(left))
        row[:] = tails.logs(left[near[known]] - change[:, known]).sum(axis=1)
    table = np.logaddexp(table - table.max(axis=1, keepdims=True), math.log(ELSEWHERE))
    rows = np.arange(len(turns))

    def chance(of: Floats) -> float:
        by = np.asarray(np.searchsorted(times_s, of[1] + turns * of[0]) - at + later, np.int64)
        if by.min() < 0 or by.max() > 2 * later:
            return -math.inf
        return float(table[rows, by].sum())

    step_s = float(np.median(np.diff(times_s)))
    widths = np.array([step_s * period_s / (times_s[-1] - times_s[0]), step_s]) / 2
    return draws_of(chance, np.array([period_s, jump_s]), widths, STEPS)
