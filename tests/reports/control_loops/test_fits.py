# SPDX-License-Identifier: Apache-2.0
"""Fits of sweeps whose truth is known, at the paper's sizes: 20 minutes of 25 pictures/s at each delay."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import signal as _signal

from reports.control_loops.fits import (
    NeededDegree,
    Points,
    fitted,
    mean_of,
    mean_points,
    needed_degree,
    variance_of,
    variance_points,
)
from reports.errors import ReportError

signal: Any = _signal  # its types are incomplete
DELAYS_MS = np.arange(0, 301, 50.0)
PICTURES = 20 * 60 * 25
MEMORY = 0.5
SKEW = 0.4
"""Of a lognormal distribution: delays have a tail."""
U_DELAY_MS = 0.1
MEAN = (60.0, 2.0)
VARIANCES = ((400.0, 2.0), (400.0, 0.0, 0.02))
SWEEPS, SWEEPS_GATE = 500, 40


def delays(rng: np.random.Generator, mean: float, variance: float, n: int = PICTURES) -> np.ndarray:
    """Return a series of delays that remember those before them, with a tail."""
    steps = rng.standard_normal(n + 100)
    normal = signal.lfilter([np.sqrt(1 - MEMORY**2)], [1, -MEMORY], steps)[100:]
    tailed = np.exp(SKEW * normal)
    tailed -= np.exp(SKEW**2 / 2)
    tailed /= np.sqrt(np.exp(SKEW**2) * (np.exp(SKEW**2) - 1))
    return mean + np.sqrt(variance) * tailed


def polynomial(coefficients: tuple[float, ...], at: float) -> float:
    """Return its value."""
    return sum(each * at**power for power, each in enumerate(coefficients))


def sweep(seed: list[int], variance: tuple[float, ...]) -> tuple[NeededDegree, NeededDegree]:
    """Return what is found of the mean and the variance of a sweep whose delays are measured, too."""
    rng = np.random.default_rng(seed)
    measured = DELAYS_MS + U_DELAY_MS * rng.standard_normal(len(DELAYS_MS))
    series = [delays(rng, polynomial(MEAN, each), polynomial(variance, each)) for each in DELAYS_MS]
    u = np.full(len(measured), U_DELAY_MS)
    return needed_degree(mean_points(measured, u, series)), needed_degree(
        variance_points(measured, u, series)
    )


def shares(count: int, variance: tuple[float, ...], seed: int) -> list[tuple[float, float]]:
    """Return of mean and variance how often intervals have the truth, and how often the degree is right."""
    found = [sweep([seed, number], variance) for number in range(count)]
    answers: list[tuple[float, float]] = []
    for which, truth in enumerate((MEAN, variance)):
        fits = [each[which].fits[len(truth) - 1] for each in found]
        inside = [(fit.low <= truth) & (truth <= fit.high) for fit in fits]
        degrees = [each[which].degree == len(truth) - 1 for each in found]
        answers.append((float(np.mean(inside)), float(np.mean(degrees))))
    return answers


@pytest.mark.parametrize("variance", VARIANCES, ids=["linear", "quadratic"])
def test_a_few_generated_sweeps(variance: tuple[float, ...]) -> None:
    """Limits that one in some thousand honest sets of so few sweeps breaks; U by a third too small does."""
    for inside, right in shares(SWEEPS_GATE, variance, 66):
        assert inside >= 0.85
        assert right >= 0.9


@pytest.mark.slow
@pytest.mark.parametrize("variance", VARIANCES, ids=["linear", "quadratic"])
def test_generated_sweeps(variance: tuple[float, ...]) -> None:
    for inside, right in shares(SWEEPS, variance, 66):
        assert 0.93 <= inside <= 0.97
        assert right >= 0.95


def points(value: np.ndarray, u: float = 1.0, u_delay: float = 0.0) -> Points:
    """Return points at the delays of a sweep."""
    ones = np.ones(len(value))
    return Points(DELAYS_MS[: len(value)], u_delay * ones, value, u * ones)


def test_exact_polynomials_are_found() -> None:
    for degree, truth in enumerate(((7.0,), (7.0, 2.0), (7.0, -1.0, 0.02))):
        values = np.array([polynomial(truth, each) for each in DELAYS_MS])
        found = needed_degree(points(values))
        assert found.degree == degree
        np.testing.assert_allclose(found.fit.coefficients, truth, atol=1e-9)
        np.testing.assert_allclose(found.fit.at(DELAYS_MS), values)
        assert found.fit.chi_squared < 1e-9


def test_a_line_as_numpy_fits_it() -> None:
    rng = np.random.default_rng(1)
    u = rng.uniform(0.5, 3, 7)
    values = 5 + 2 * DELAYS_MS + u * rng.standard_normal(7)
    found = fitted(Points(DELAYS_MS, np.zeros(7), values, u), 1)
    polyfit: Any = np.polyfit  # its types are incomplete
    other, covariance = polyfit(DELAYS_MS, values, 1, w=1 / u, cov="unscaled")
    np.testing.assert_allclose(found.coefficients, other[::-1])
    np.testing.assert_allclose(found.u, np.sqrt([covariance[1, 1], covariance[0, 0]]))
    np.testing.assert_allclose(found.high - found.coefficients, 1.96 * found.u, rtol=1e-4)


def test_u_of_the_delay_counts_by_the_slope() -> None:
    values = 5 + 2 * DELAYS_MS
    assert fitted(points(values, 1.0, 1.0), 1).u[1] == pytest.approx(
        fitted(points(values, np.sqrt(1 + 2**2)), 1).u[1], rel=1e-6
    )
    flat = np.full(7, 5.0)
    assert fitted(points(flat, 1.0, 9.0), 1).u[1] == pytest.approx(fitted(points(flat), 1).u[1])


def test_scatter_beyond_u_widens_the_intervals() -> None:
    values = 5 + 2 * DELAYS_MS + 10 * np.array([1, -1, 1, -1, 1, -1, 1])
    found = fitted(points(values), 1)
    assert not found.explains
    by_u = fitted(points(values, u=10.0), 1)
    assert by_u.explains
    assert found.high[1] - found.low[1] > by_u.high[1] - by_u.low[1]
    # That it scatters is no reason to take a parabola.
    assert needed_degree(points(values)).degree == 1


def test_the_u_of_a_mean_and_a_variance_of_values_that_depend() -> None:
    """Against the scatter of many series."""
    rng = np.random.default_rng(2)
    series = [delays(rng, 100, 25, 5000) for _ in range(300)]
    for estimate, truth in ((mean_of, 100), (variance_of, 25)):
        found = [estimate(each) for each in series]
        values, u = (np.array([each[which] for each in found]) for which in (0, 1))
        assert values.mean() == pytest.approx(truth, abs=4 * values.std() / np.sqrt(300))
        assert np.sqrt(np.mean(u**2)) == pytest.approx(values.std(), rel=0.15)


def test_what_tells_nothing_is_refused() -> None:
    with pytest.raises(ReportError, match="a fit of degree 2 needs 4 delays at least, found 3"):
        fitted(points(np.arange(3.0)), 2)
    with pytest.raises(ReportError, match="needs more than 1 different delays"):
        fitted(Points(np.ones(5), np.zeros(5), np.arange(5.0), np.ones(5)), 1)
    with pytest.raises(ReportError, match="needs the U of each value"):
        fitted(points(np.arange(7.0), u=0.0), 1)
    with pytest.raises(ReportError, match="99 samples do not tell"):
        variance_of(np.arange(99.0))


NOISE = np.random.default_rng(4).standard_normal(200)


@pytest.mark.parametrize("make", [mean_points, variance_points])
@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (np.where(np.arange(200) == 7, np.nan, NOISE), "series 3: samples must be numbers"),
        (np.where(np.arange(200) == 7, np.inf, NOISE), "series 3: samples must be numbers"),
        (np.full(200, 5.0), "series 3: its values are all equal, which tells no U"),
        (NOISE[:99], "series 3: 99 samples do not tell"),
    ],
    ids=["nan", "infinity", "constant", "short"],
)
def test_a_series_that_tells_nothing_is_named(
    make: Callable[..., Points], wrong: np.ndarray, reason: str
) -> None:
    series = [NOISE] * 7
    series[2] = wrong
    with pytest.raises(ReportError, match=reason):
        make(DELAYS_MS, np.ones(7), series)


@pytest.mark.parametrize("make", [mean_points, variance_points])
def test_a_sweep_needs_a_series_for_each_delay(make: Callable[..., Points]) -> None:
    with pytest.raises(ReportError, match="7 delays, 7 U of them and 5 series: one of each is needed"):
        make(DELAYS_MS, np.ones(7), [NOISE] * 5)
    with pytest.raises(ReportError, match="7 delays, 6 U of them and 7 series"):
        make(DELAYS_MS, np.ones(6), [NOISE] * 7)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"u_delay": np.full(7, -1.0)}, "needs U that are not negative"),
        ({"u_value": np.array([1, 1, 1, -1.0, 1, 1, 1])}, "needs U that are not negative"),
        ({"value": np.full(7, np.nan)}, "needs delays, values and U that are numbers"),
        ({"delay": np.full(7, np.inf)}, "needs delays, values and U that are numbers"),
        ({"u_delay": np.full(7, np.nan)}, "needs delays, values and U that are numbers"),
        ({"value": np.arange(5.0)}, "needs a value and both U for each delay"),
    ],
)
def test_points_that_are_none_are_refused(changed: dict[str, np.ndarray], reason: str) -> None:
    with pytest.raises(ReportError, match=reason):
        fitted(replace(points(np.arange(7.0)), **changed), 1)
