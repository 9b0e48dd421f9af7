# SPDX-License-Identifier: Apache-2.0
"""How far a device's mean can be off where a check says that the model does not hold.

Where pairs contradict each other, S depends on who the partner is; where trips wandered, on when they were
made. Then S is worked out from every choice that tells it alone (each odd triangle, all pairs but one; each
quarter of the time), and the farthest is a bound that adds to U: a verdict that stands for every choice
stands. Where many pairs contradict each other a little no choice is right: then what least squares leave
over tells how far each pair is off.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reports.software_latency.spread import COVERAGE, student
from reports.software_latency.trips import LAGS_MAX, TRIPS_MIN, Floats, PairTrips, kpss
from reports.software_latency.turns import sums_of_turns, turns_of

FREE_MIN = 1e-9
"""Of a pair: how much of it others do not leave to it; less is what rounding leaves."""
STRETCHES = 4
WANDERS_LIMIT = 0.463
"""What one stationary series in twenty exceeds: a false alarm makes U larger, and no more."""
TREND_TURNS_MIN = 24
"""Fewer do not show a trend: the statistic of a straight line would be below its limit."""


@dataclass(frozen=True, slots=True)
class Bound:
    """What adds to the U of a device's mean.

    Attributes:
        name: Of the part of U.
        ns: The farthest that another choice of trips leads to.
        words: What it is of.
    """

    name: str
    ns: float
    words: str


def partner_bounds(design: Floats, values: Floats, means: Floats) -> Floats:
    """Return how far each kind's mean moves with its partners, in ns, shape (kinds,).

    Args:
        design: How often each kind is in each pair, shape (pairs, kinds).
        values: Mean of each pair, or by how much it changed, shape (pairs,).
        means: Of each kind, by all pairs, shape (kinds,).
    """
    farthest = np.zeros(len(means))
    for rows in _triangles(design):
        part = design[list(rows)]
        kinds = np.flatnonzero(part.any(axis=0))
        found = np.linalg.solve(part[:, kinds], values[list(rows)])
        farthest[kinds] = np.maximum(farthest[kinds], np.abs(found - means[kinds]))
    return farthest


def residual_bounds(design: Floats, weights: Floats, values: Floats) -> Floats:
    """Return how far each kind's mean may be off by what pairs contradict each other, in ns, shape (kinds,).

    The farthest of leaving out each pair in turn, and of Student's t for the scatter of what least squares
    leave over: cycles of every length count, of the pairs that are joined to the kind.

    Args:
        design: How often each kind is in each pair, shape (pairs, kinds).
        weights: By which pairs make kinds, shape (kinds, pairs).
        values: Mean of each pair, shape (pairs,).
    """
    left_over = np.eye(len(values)) - design @ weights
    residuals = left_over @ values
    free = np.diag(left_over)  # 0: nothing but this pair tells its kinds
    without = np.divide(residuals, free, out=np.zeros(len(values)), where=free > FREE_MIN)
    farthest = np.abs(weights * without).max(axis=1)
    joined = np.linalg.matrix_power(design.T @ design, len(weights)) > 0
    for kind, others in enumerate(joined):
        own = design[:, others].any(axis=1)
        freedom = np.count_nonzero(own) - np.count_nonzero(others)
        if freedom > 0:
            squares = np.sum(residuals[own] ** 2) / np.sum(left_over[own] ** 2)
            factor = float(student(np.array(float(freedom)), (1 + COVERAGE) / 2))
            farthest[kind] = max(farthest[kind], factor * np.sqrt(squares * np.sum(weights[kind] ** 2)))
    return farthest


def wander_bounds(weights: Floats, trips: Sequence[PairTrips], means: Floats) -> Floats | None:
    """Return how far each kind's mean moves over the quarters of the time, in ns, shape (kinds,).

    None where a pair has too few trips in one of them, or pairs were not measured by turns.

    Args:
        weights: By which pairs make kinds, shape (kinds, pairs).
        trips: Of each pair.
        means: Of each kind, shape (kinds,).
    """
    if any(each.turn is None for each in trips):
        return None
    last = max(int(each.turn.max()) for each in trips if each.turn is not None)
    farthest = np.zeros(len(means))
    for stretch in range(STRETCHES):
        values: list[float] = []
        for each in trips:
            assert each.turn is not None
            part = (each.turn * STRETCHES // (last + 1) == stretch) & each.counted
            if np.count_nonzero(part) < TRIPS_MIN / STRETCHES:
                return None
            values.append(float(each.rtt_ns[part].mean()))
        farthest = np.maximum(farthest, np.abs(weights @ np.array(values) - means))
    return farthest


def wandering(weights: Floats, trips: Sequence[PairTrips]) -> NDArray[np.bool_]:
    """Return which sums of pairs wander from turn to turn by more than chance, shape (rows,).

    What all pairs of a difference have in common does not. Where too few turns have trips of all its pairs
    nothing speaks against it, and it is taken to wander.

    Args:
        weights: By which pairs make sums, shape (rows, pairs).
        trips: Of each pair, measured by turns.
    """
    means = _means_of_turns(trips)
    found = np.ones(len(weights), np.bool_)
    for place, row in enumerate(weights):
        own = np.flatnonzero(np.abs(row) > np.finfo(np.float64).eps)
        sums = row[own] @ means[own]
        sums = sums[~np.isnan(sums)]
        if len(sums) >= TREND_TURNS_MIN:
            found[place] = kpss(sums, int(LAGS_MAX * len(sums))) > WANDERS_LIMIT
    return found


def _means_of_turns(trips: Sequence[PairTrips]) -> Floats:
    """Return the mean of each pair's trips of each turn, shape (pairs, turns); not a number: it has none."""
    if any(each.turn is None for each in trips):
        return np.zeros((len(trips), 0))
    turns = turns_of(trips)
    sums = np.array([sums_of_turns(each, 0, turns) for each in trips])
    with np.errstate(invalid="ignore"):
        return np.asarray(sums[:, 1] / sums[:, 0])


def _triangles(design: Floats) -> Iterator[tuple[int, ...]]:
    """Yield sets of pairs that tell three kinds, and pairs that tell one by itself."""
    for row, kinds in enumerate(design):
        if np.count_nonzero(kinds) == 1:
            yield (row,)
    two = [row for row, kinds in enumerate(design) if np.count_nonzero(kinds) == 2]
    for rows in itertools.combinations(two, 3):
        part = design[list(rows)]
        if np.count_nonzero(part.any(axis=0)) == 3 and (part.sum(axis=0)[part.any(axis=0)] == 2).all():
            yield rows
