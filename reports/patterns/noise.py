# SPDX-License-Identifier: Apache-2.0
"""Noise of a series: an ARMA(1,1), x(t) = f x(t-1) + e(t) + m e(t-1).

f = m = 0 is white noise, m = 0 an AR(1), f = 1 a random walk with white noise above it. The fit minimises the
mean of |e|, so that tails, however heavy, weigh little; e keeps the tails it has.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from reports.dependence import Floats
from reports.patterns.filters import arma, minimum, running_median

MEMORIES = (0.0, 0.3, 0.6, 0.8, 0.9, 0.95, 0.98, 0.99, 0.997, 1.0)
MIXED = (-0.995, -0.98, -0.95, -0.9, -0.8, -0.6, -0.4, -0.2, 0.0, 0.2)
FITTED = 8192
"""Values that a fit takes: more do not tell more of two parameters."""
FIT_CALLS = 60
START_FITTED = 2048
"""Of them, for where the fit starts."""
WANDERS = 0.98
"""A longer memory is a random walk's: what is left beside a fit always seems to come back to it."""
WALKS = -0.5
"""The mixed part of a random walk, at least."""
SIMPLER = 4.0
"""Of the log-likelihood: white noise explains as much but for that. A memory that cancels fits it at any
length, and would let a slope be anything."""
SLOW = 51
"""Values whose median is what changes slowly."""
MAD_TO_SIGMA = 1.4826
START = 20
"""Values whose mean the past before the first is taken to be."""


@dataclass(frozen=True, slots=True)
class Noise:
    """An ARMA(1,1).

    Attributes:
        memory: f, 0 .. 1.
        mixed: m, above -1.
    """

    memory: float
    mixed: float

    @property
    def wanders(self) -> bool:
        """Tell whether it is a random walk that moves by more from value to value than what is above it.

        Where its news go far off they come back, as after a pattern that is not quite taken out: to leave out
        the first of them, or to weigh it less than the others, would make a trend of these.
        """
        return self.memory == 1 and self.mixed > WALKS

    def news(self, values: Floats) -> Floats:
        """Return e of values about 0, or of each row of a pattern that began long ago; shape as given."""
        before = values[..., :START].mean(axis=-1, keepdims=True)
        past = -self.memory * before
        if not self.mixed:
            return values - self.memory * np.concatenate((before, values[..., :-1]), axis=-1)
        return arma((1.0, -self.memory), (1.0, self.mixed), values, past)

    def deviations_after(self, distances: Floats) -> Floats:
        """Return by how much news scatter more where values are missing; distances: in values, shape (n,)."""
        missing = np.rint(distances) - 1
        squares = missing if self.memory == 1 else (1 - self.memory ** (2 * missing)) / (1 - self.memory**2)
        return np.sqrt(1 + (self.memory + self.mixed) ** 2 * squares)

    def backwards(self, news: Floats) -> Floats:
        """Return g with <g, x> = <news, news(x)> for each x of shape (n,) that is 0 before."""
        return arma((1.0, -self.memory), (1.0, self.mixed), news[::-1])[::-1]

    def power(self, cycles: Floats) -> Floats:
        """Return by how much a pattern's power at frequencies, in cycles by value, is changed in e."""
        turn = np.exp(-2j * np.pi * cycles)
        return np.abs((1 - self.memory * turn) / (1 + self.mixed * turn)) ** 2


def scale_of(values: Floats) -> float:
    """Return a standard deviation that outliers do not change; that of all where most are equal."""
    middle = np.median(values)
    return float(MAD_TO_SIGMA * np.median(np.abs(values - middle)) or values.std() or 1.0)


def fit_noise(values: Floats) -> Noise:
    """Fit the noise of values, shape (n,), about their median."""
    values = values - np.median(values)
    if len(values) > FITTED:
        first = (len(values) - FITTED) // 2
        values = values[first : first + FITTED]

    def loss(of: Any) -> float:
        memory, mixed = float(of[0]), float(of[1])
        if not (0 <= memory <= 1 and -0.999 <= mixed <= 0.9):
            return float("inf")
        return float(np.abs(Noise(memory, mixed).news(values)).mean())

    begin = _begin(values[:START_FITTED])
    inside = (min(max(begin[0], 0.02), 0.999), max(begin[1], -0.99))
    simplex = [inside, (inside[0] - 0.01, inside[1]), (inside[0], inside[1] + 0.02)]
    found, least = minimum(loss, simplex, FIT_CALLS)
    best = found if least < loss(begin) else begin
    white = loss((0.0, 0.0))  # 0 of values that are all equal, as once their grid is taken out
    if white == 0 or len(values) * math.log(white / max(loss(best), 1e-300)) < SIMPLER:
        return Noise(0.0, 0.0)
    memory = float(best[0])
    return Noise(1.0 if memory > WANDERS else memory, float(best[1]))


def _begin(values: Floats) -> tuple[float, float]:
    """Return the memory and the mixed part, of MEMORIES and MIXED, of the least loss.

    News are those of the values less f times those of the values before them: two filters do for all f.
    """
    both = np.stack((values, np.concatenate((values[:1], values[:-1]))))
    both[1, 0] = values[:START].mean()
    losses: dict[tuple[float, float], float] = {}
    for mixed in MIXED:
        now, before = arma((1.0,), (1.0, mixed), both)
        for memory in MEMORIES:
            if memory + mixed >= -0.25 and (memory or not mixed):
                losses[memory, mixed] = float(np.abs(now - memory * before).mean())
    return min(losses, key=losses.__getitem__)


def without_slow(values: Floats) -> Floats:
    """Return values, shape (n,), less their running median, which follows ramps and changes and their jumps.

    Its noise is that of a series whose ramps and levels have not made it seem a random walk; it is what a
    first fit takes, never what is judged.
    """
    return values - running_median(values, SLOW)
