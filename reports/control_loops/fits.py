# SPDX-License-Identifier: Apache-2.0
"""Mean and variance against measured delay: polynomials by weighted least squares, and which the data need.

A point's weight has the U of both its axes: that of the abscissa by the slope of the curve there (York and
others 2004). Parts of U that all points share, such as a clock's, shift a curve and bend none: they do not
belong into a point's.

An F-test of each further coefficient says which degree the data need. Its denominator is the scatter of the
points: as their U say, which hundreds of blocks know well, with infinite degrees of freedom; where U does not
explain it, as it is, with the few degrees that are left. Its chance of a degree too high is CHANCE; that of
AICc is nobody's choice, and depends on the number of points.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from reports.dependence import Floats, mean_variance
from reports.errors import ReportError

CONFIDENCE = 0.95
CHANCE = 0.01
"""How often a coefficient that is none is taken for one, or scatter within U for more."""
DEGREE_MAX = 2
SAMPLES_MIN = 100
"""Fewer tell no variance of a variance."""
_ROUNDS_MAX = 50
_CLOSE = 1e-10


class Estimate(NamedTuple):
    """A mean or a variance; `u`: its standard uncertainty."""

    value: float
    u: float


def mean_of(values: Floats) -> Estimate:
    """Return the mean of a series in the order of time, shape (n,).

    Raises:
        ReportError: Too short, or not numbers alone.
    """
    _require_series(values)
    variance = mean_variance(values, len(values), float(values.std(ddof=1)))
    return Estimate(float(values.mean()), math.sqrt(variance))


def variance_of(values: Floats) -> Estimate:
    """Return the variance of a series in the order of time, shape (n,).

    A sample variance is the mean of squares, which depend on each other as blocks of them tell.

    Raises:
        ReportError: Too short, or not numbers alone.
    """
    _require_series(values)
    n = len(values)
    squares = (values - values.mean()) ** 2 * n / (n - 1)
    return mean_of(squares)


@dataclass(frozen=True, eq=False)
class Points:
    """What a sweep has measured.

    Attributes:
        delay, u_delay: Measured delay and its standard uncertainty, shape (p,).
        value, u_value: Mean or variance likewise, shape (p,).
    """

    delay: Floats
    u_delay: Floats
    value: Floats
    u_value: Floats


@dataclass(frozen=True, eq=False)
class Fit:
    """A polynomial through points.

    Attributes:
        coefficients: Of the powers from 0, shape (degree + 1,).
        u: Standard uncertainty of each, shape (degree + 1,).
        low, high: 95 % interval of each, shape (degree + 1,).
        chi_squared: Of the residuals, by the points' U.
        degrees_of_freedom: Of it.
        p_value: Chance of residuals as large as these; below CHANCE the intervals are wider by them.
    """

    coefficients: Floats
    u: Floats
    low: Floats
    high: Floats
    chi_squared: float
    degrees_of_freedom: int
    p_value: float

    @property
    def explains(self) -> bool:
        """Tell whether the points scatter by no more than their U say."""
        return self.p_value >= CHANCE

    def at(self, delay: Floats) -> Floats:
        """Return the curve, shape of `delay`."""
        return np.vander(delay, len(self.coefficients), increasing=True) @ self.coefficients


@dataclass(frozen=True, eq=False)
class NeededDegree:
    """How many powers of the delay the data need.

    Attributes:
        degree: 0: a constant, 1: a line, 2: a parabola.
        p_values: Of the coefficients of power 1 and 2, each beside the fit without it.
        fits: Of degree 0, 1 and 2.
    """

    degree: int
    p_values: tuple[float, ...]
    fits: tuple[Fit, ...]

    @property
    def fit(self) -> Fit:
        """Return that of the degree."""
        return self.fits[self.degree]


def fitted(points: Points, degree: int) -> Fit:
    """Fit a polynomial of this degree.

    Raises:
        ReportError: Not more points than coefficients; too few different delays; a value without U; what is
            no number, negative U, or not of as many points.
    """
    from scipy.special import chdtrc, stdtrit  # a tenth of a second for whatever lists the sections

    _require_points(points)
    count = len(points.delay)
    freedom = count - degree - 1
    if freedom < 1:
        raise ReportError(f"a fit of degree {degree} needs {degree + 2} delays at least, found {count}")
    if len(np.unique(points.delay)) <= degree:
        raise ReportError(f"a fit of degree {degree} needs more than {degree} different delays")
    scale = float(np.abs(points.delay).max()) or 1.0
    powers = np.vander(points.delay / scale, degree + 1, increasing=True)
    u = points.u_value
    curve = _least_squares(powers, points.value, u)
    for _ in range(_ROUNDS_MAX):
        before = curve
        slope = _slope(curve, points.delay / scale) / scale
        u = np.hypot(points.u_value, slope * points.u_delay)
        curve = _least_squares(powers, points.value, u)
        if np.allclose(before, curve, rtol=_CLOSE, atol=0):
            break
    residuals = (points.value - powers @ curve) / u
    chi_squared = float(residuals @ residuals)
    p_value = float(chdtrc(freedom, chi_squared))
    weighted = powers / u[:, None]
    covariance = np.linalg.inv(np.transpose(weighted) @ weighted)
    widened = 1.0 if p_value >= CHANCE else chi_squared / freedom
    units = scale ** -np.arange(degree + 1.0)
    deviation = np.sqrt(np.diag(covariance) * widened) * units
    quantile = abs(float(stdtrit(10**6 if p_value >= CHANCE else freedom, (1 - CONFIDENCE) / 2)))
    found = curve * units
    return Fit(
        found,
        deviation,
        found - quantile * deviation,
        found + quantile * deviation,
        chi_squared,
        freedom,
        p_value,
    )


def needed_degree(points: Points) -> NeededDegree:
    """Return which degree the data need, up to 2; raises ReportError as `fitted` does."""
    fits = tuple(fitted(points, degree) for degree in range(DEGREE_MAX + 1))
    p_values = tuple(_p_value(*pair) for pair in pairwise(fits))
    needs = [degree for degree, p_value in enumerate(p_values, 1) if p_value < CHANCE]
    return NeededDegree(max(needs, default=0), p_values, fits)


def variance_points(delay: Floats, u_delay: Floats, series: Sequence[Floats]) -> Points:
    """Return the variance of each series against its delay; raises ReportError: as `mean_points`."""
    return _points(delay, u_delay, variance_of, series)


def mean_points(delay: Floats, u_delay: Floats, series: Sequence[Floats]) -> Points:
    """Return the mean of each series against its delay.

    Args:
        delay: Measured, shape (p,).
        u_delay: Standard uncertainty of each, shape (p,).
        series: At each of them, in the order of time.

    Raises:
        ReportError: Not a series for each delay, or one that tells nothing, with its place.
    """
    return _points(delay, u_delay, mean_of, series)


def _points(
    delay: Floats, u_delay: Floats, estimate: Callable[[Floats], Estimate], series: Sequence[Floats]
) -> Points:
    if not len(series) == len(delay) == len(u_delay):
        raise ReportError(
            f"{len(delay)} delays, {len(u_delay)} U of them and {len(series)} series: one of each is needed"
        )
    found: list[Estimate] = []
    for number, each in enumerate(series, 1):
        try:
            found.append(estimate(each))
        except ReportError as error:
            raise ReportError(f"series {number}: {error}") from None
        if not found[-1].u:
            raise ReportError(f"series {number}: its values are all equal, which tells no U")
    value, u = np.array(found).reshape(-1, 2).T
    return Points(delay, u_delay, value, u)


def _require_points(points: Points) -> None:
    columns = points.delay, points.u_delay, points.value, points.u_value
    if len({len(each) for each in columns}) > 1:
        raise ReportError("a fit needs a value and both U for each delay")
    if not all(np.isfinite(each).all() for each in columns):
        raise ReportError("a fit needs delays, values and U that are numbers")
    if min(points.u_delay.min(initial=0), points.u_value.min(initial=0)) < 0:
        raise ReportError("a fit needs U that are not negative")
    if not np.all(points.u_value > 0):
        raise ReportError("a fit needs the U of each value, found 0")


def _p_value(simpler: Fit, fuller: Fit) -> float:
    """Return the chance of so much better a fit, were the further coefficient none."""
    from scipy.special import chdtrc, fdtrc  # likewise

    gained = max(0.0, simpler.chi_squared - fuller.chi_squared)
    if fuller.explains:
        return float(chdtrc(1, gained))
    freedom = fuller.degrees_of_freedom
    return float(fdtrc(1, freedom, gained / (fuller.chi_squared / freedom)))


def _least_squares(powers: Floats, values: Floats, u: Floats) -> Floats:
    return np.asarray(np.linalg.lstsq(powers / u[:, None], values / u, rcond=None)[0], dtype=np.float64)


def _slope(curve: Floats, at: Floats) -> Floats:
    """Return the derivative of a polynomial."""
    powers = np.arange(1, len(curve))
    return np.vander(at, len(powers), increasing=True) @ (curve[1:] * powers)


def _require_series(values: Floats) -> None:
    if len(values) < SAMPLES_MIN:
        raise ReportError(
            f"{len(values)} samples do not tell how they depend on each other: {SAMPLES_MIN} do"
        )
    if not np.isfinite(values).all():
        raise ReportError("samples must be numbers, found NaN or infinity")
