# SPDX-License-Identifier: Apache-2.0
"""Which period comes again in a train of news: the power at a period and its harmonics, over all periods.

The train is summed into slots of equal length, so unequal distances and missing values do no harm; its
transform is sampled far finer than its length, so that the highest harmonic is not missed between samples.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from reports.dependence import Floats
from reports.patterns.series import PERIODS_MIN

HARMONICS = 12
FINER = 8
"""Samples of the transform for each of the series' length."""
PERIOD_MIN_SLOTS = 8
"""A shorter period has no shape that could be told."""
SAME = 0.75
"""Of the largest power: a longer period that has as much is the period, others its parts."""


@dataclass(frozen=True, slots=True)
class Comb:
    """Periods and what a train has of them.

    Attributes:
        periods: In slots, falling.
        powers: Means over harmonics, weighed, by the train's mean power; 1 for noise without order.
    """

    periods: Floats
    powers: Floats


def slots(times_s: Floats, train: Floats, slot_s: float) -> Floats:
    """Return the sums of a train, its mean removed, in slots of one length."""
    which = np.rint((times_s - times_s[0]) / slot_s).astype(np.int64)
    return np.asarray(np.bincount(which, train - train.mean()), np.float64)


def comb(slotted: Floats, weigh: Callable[[Floats], Floats] | None = None, finer: int = FINER) -> Comb:
    """Return the power of each period.

    Args:
        slotted: Shape (n,).
        weigh: Weights of harmonics by the frequency of the harmonic in cycles a slot, shape (k, periods);
        equal
            ones where it is None.
        finer: Samples of the transform for each of the series' length.
    """
    count = len(slotted)
    size = 1 << (count * finer - 1).bit_length()
    power = np.abs(np.fft.rfft(slotted, size)) ** 2 / max(float(slotted @ slotted), 1e-300)
    first = -(-PERIODS_MIN * size // count)
    base = np.arange(first, size // PERIOD_MIN_SLOTS)
    total = np.zeros(len(base))
    weights = np.zeros(len(base))
    for harmonic, weight in enumerate(_weights(weigh, size, first), start=1):
        of = power[first * harmonic :: harmonic][: len(weight)]
        total[: len(weight)] += weight * of
        weights[: len(weight)] += weight
    # Few harmonics scatter more: the power of k is held against what k of noise reach.
    many = np.minimum(HARMONICS, size // 2 // base)
    flat = 1.0 if weigh is not None else np.sqrt(many / HARMONICS)
    return Comb(size / base, 1 + (total / weights - 1) * flat)


@lru_cache(maxsize=8)
def _weights(weigh: Callable[[Floats], Floats] | None, size: int, first: int) -> list[Floats]:
    """Return of each harmonic the weights at its frequencies: surrogate series have the same."""
    base = np.arange(first, size // PERIOD_MIN_SLOTS)
    found: list[Floats] = []
    for harmonic in range(1, HARMONICS + 1):
        of = base[: np.searchsorted(base, size // 2 // harmonic)] * (harmonic / size)
        of = of.astype(np.float64)
        found.append(np.ones(len(of)) if weigh is None else weigh(of) / harmonic**2)
    return found


def longest(found: Comb) -> float:
    """Return the longest period that has nearly the largest power: a train of a period has its parts, too."""
    best = int(np.argmax(found.powers))
    at = best
    for multiple in range(2, HARMONICS + 1):
        longer = found.periods[best] * multiple
        if longer > found.periods[0]:
            break
        near = np.flatnonzero(np.abs(found.periods / longer - 1) < 0.02)
        if len(near):
            candidate = int(near[np.argmax(found.powers[near])])
            if found.powers[candidate] > SAME * found.powers[best]:
                at = candidate
    return float(found.periods[at])
