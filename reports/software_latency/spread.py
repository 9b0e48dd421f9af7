# SPDX-License-Identifier: Apache-2.0
"""How uncertain the cumulants of pairs are, each and together, and what follows for sums of them.

Pairs that were measured one after the other vary by themselves: their uncertainties are independent. Pairs
whose turns alternate share what changes meanwhile: it stands in the covariance, so that it cancels in a
difference and counts twice in a sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reports.software_latency.trips import Floats, PairResult, PairTrips

COVERAGE = 0.9545
"""Of an expanded uncertainty: that of k = 2 in a normal distribution."""


@dataclass(frozen=True, eq=False, slots=True)
class Spread:
    """Covariance of the pairs' cumulants.

    Attributes:
        covariance: Of order 1, 2 and 3, in the units of their squares, shape (3, pairs, pairs).
        freedom: Degrees of freedom of each pair's variance, shape (pairs,).
        is_joint: All of it is of the same turns, and has the degrees of freedom of one variance.
        hardware_ns: By how much each cable and switch may be off in what was taken off each pair, shape
            (pairs, cables and switches); a column is off in one direction, so that it may cancel.
    """

    covariance: Floats
    freedom: Floats
    is_joint: bool
    hardware_ns: Floats

    def expanded(self, weights: Floats, order: int) -> Floats:
        """Return the expanded uncertainty of weighted sums over the pairs, shape (rows,).

        Args:
            weights: Shape (rows, pairs).
            order: 1 mean, 2 variance, 3 third cumulant.
        """
        covariance = self.covariance[order - 1]
        if not self.is_joint:
            return expand(np.abs(weights) * np.sqrt(np.diag(covariance)), self.freedom)
        variance = np.einsum("rp,pq,rq->r", weights, covariance, weights)
        return _factors(np.full(len(weights), self.freedom.min())) * np.sqrt(np.maximum(variance, 0))

    def hardware(self, weights: Floats) -> Floats:
        """Return by how much sums of means may be off by the hardware's latency, in ns, shape (rows,).

        Args:
            weights: Shape (rows, pairs).
        """
        return np.asarray(np.abs(weights @ self.hardware_ns).sum(axis=1), np.float64)

    def chance(self, contrasts: Floats, values: Floats, order: int) -> tuple[float, float]:
        """Return T² of sums that have to be zero, and how often they are so far from it by chance.

        Chi-squared where the uncertainties are independent and well known, else Hotelling's. That tells
        little where there are nearly as many sums as degrees of freedom, and nothing beyond; so what is left
        over of each pair is held by itself, too (Student's t, for as many as there are).

        Args:
            contrasts: Independent weighted sums of length one, shape (rows, pairs).
            values: Of the pairs, shape (pairs,).
            order: Of both.
        """
        count = len(contrasts)
        if not count:
            return 0.0, 1.0
        covariance: Floats = self.covariance[order - 1]
        floor = (1e-9 * max(float(np.sqrt(covariance.max())), 1.0)) ** 2
        sums: Floats = contrasts @ values
        variance: Floats = contrasts @ (covariance + np.diag(np.full(len(values), floor))) @ contrasts.T
        squared = float(sums @ np.linalg.pinv(variance) @ sums)
        if not self.is_joint:
            return squared, self._chance(squared, count)
        each = contrasts.T @ sums / np.sqrt(np.maximum(np.diag(contrasts.T @ variance @ contrasts), floor))
        return squared, min(1.0, 2 * min(self._chance(squared, count), self._chance_of_one(each)))

    def _chance_of_one(self, scores: Floats) -> float:
        from scipy.special import stdtr  # likewise

        farthest = float(np.abs(scores).max())
        return 2 * len(scores) * float(stdtr(float(self.freedom.min()), -farthest))

    def _chance(self, squared: float, count: int) -> float:
        from scipy.special import chdtrc, fdtrc  # a tenth of a second for whatever lists the sections

        if not self.is_joint:
            return float(chdtrc(count, squared))
        freedom = float(self.freedom.min())
        left = freedom - count + 1
        return float(fdtrc(count, left, squared * left / (freedom * count))) if left > 0 else 1.0


def hardware_of(trips: Sequence[PairTrips]) -> Floats:
    """Return the bounds of each pair by cable and switch, in ns, shape (pairs, cables and switches)."""
    names = sorted({name for each in trips for name in each.hardware_bounds_ns})
    bounds = [[each.hardware_bounds_ns.get(name, 0.0) for name in names] for each in trips]
    return np.array(bounds, np.float64).reshape(len(trips), len(names))


def independent(measured: Sequence[PairResult], hardware_ns: Floats | None = None) -> Spread:
    """Return the spread of pairs that were measured one after the other.

    Args:
        measured: One a pair.
        hardware_ns: As in Spread; None: nothing was taken off.
    """
    standard = np.array([each.standard for each in measured]).reshape(-1, 3).T
    freedom = np.array([each.freedom for each in measured])
    bounds = np.zeros((len(measured), 0)) if hardware_ns is None else hardware_ns
    return Spread(np.array([np.diag(each**2) for each in standard]), freedom, False, bounds)


def expand(standard: Floats, freedom: Floats) -> Floats:
    """Return expanded uncertainties, shape (rows,): Student's t at the effective degrees of freedom.

    Args:
        standard: Independent contributions to each, shape (rows, contributions).
        freedom: Degrees of freedom of each contribution, shape (contributions,).

    Source: GUM (JCGM 100), G.4, Welch-Satterthwaite.
    """
    squares = standard**2
    total = squares.sum(axis=1)
    fourth = (squares**2 / freedom).sum(axis=1)
    effective = np.divide(total**2, fourth, out=np.full(len(total), np.inf), where=fourth > 0)
    return _factors(np.minimum(effective, 1e6)) * np.sqrt(total)


def student(freedom: Floats, share: float) -> Floats:
    """Return the quantile of Student's t at degrees of freedom; of their shape."""
    from scipy.special import stdtrit  # likewise

    return np.asarray(stdtrit(freedom, share), np.float64)


def _factors(freedom: Floats) -> Floats:
    """Return the factor of an expanded uncertainty; of the shape of `freedom`."""
    return student(freedom, (1 + COVERAGE) / 2)
