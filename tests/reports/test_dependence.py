# SPDX-License-Identifier: Apache-2.0
"""Blocks of samples that depend on each other: their length, how many remain, and where none fit."""

from __future__ import annotations

import numpy as np
import pytest

from reports.dependence import (
    BLOCKS_MIN,
    autocovariance,
    automatic_length,
    blocks_of,
    depends,
    mean_variance,
)
from reports.rejudge.dependence import variance_of_mean


def remembering(time_constant: float, n: int, seed: int = 1) -> np.ndarray:
    """Return an autoregressive series of order one, of deviation 1."""
    rng = np.random.default_rng(seed)
    memory = np.exp(-1 / time_constant)
    values = rng.standard_normal(n)
    for index in range(1, n):
        values[index] = memory * values[index - 1] + np.sqrt(1 - memory**2) * values[index]
    return values


def test_independent_samples_have_the_least_length() -> None:
    found = blocks_of([np.random.default_rng(1).standard_normal(1000)])
    assert (found.length, found.count, found.fits) == (20, 50, True)


@pytest.mark.parametrize(("time_constant", "least"), [(3.0, 20), (10.0, 60), (30.0, 120)])
def test_blocks_are_some_time_constants_long(time_constant: float, least: int) -> None:
    found = blocks_of([remembering(time_constant, 8000)])
    assert found.fits
    assert least <= found.length <= 8000 / BLOCKS_MIN
    assert found.count == 8000 // found.length >= BLOCKS_MIN


def test_the_series_that_depends_for_longest_decides() -> None:
    white, slow = np.random.default_rng(1).standard_normal(2000), remembering(20.0, 2000)
    assert blocks_of([white, slow]) == blocks_of([slow, white]) == blocks_of([slow])


def test_a_ramp_does_not_fit_and_keeps_the_least_number_of_blocks() -> None:
    found = blocks_of([np.arange(1000.0)])
    assert (found.length, found.count, found.fits) == (125, BLOCKS_MIN, False)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 12])
def test_a_few_samples_are_blocks_of_their_own(n: int) -> None:
    found = blocks_of([np.random.default_rng(1).standard_normal(n)])
    assert (found.length, found.count) == (1, n)


@pytest.mark.parametrize("n", [4, 9, 17, 100, 1000])
@pytest.mark.parametrize("time_constant", [0.01, 5.0, 20.0, 500.0])
def test_the_second_judge_finds_the_same_variance_of_a_mean(n: int, time_constant: float) -> None:
    for seed in range(5):
        values = remembering(time_constant, n, seed)
        found = variance_of_mean(values.tolist())
        deviation = float(values.std(ddof=1))
        alone = deviation**2 * (n - 1) / (n - 3)
        expected = alone if found is None else max(alone / n, found)
        assert mean_variance(values, n, deviation) == pytest.approx(expected, rel=1e-9)


def test_values_that_do_not_scatter_have_no_variance() -> None:
    assert mean_variance(np.full(100, 3.0), 100, 0.0) == variance_of_mean([3.0] * 100) == 0.0


def test_autocovariance_is_that_of_the_definition() -> None:
    values = remembering(3.0, 50)
    apart = values - values.mean()
    found = [float(apart[: 50 - lag] @ apart[lag:]) / 50 for lag in range(6)]
    assert autocovariance(values, 5) == pytest.approx(found)


@pytest.mark.parametrize("count", [1, 20])
def test_independent_samples_are_seldom_said_to_depend(count: int) -> None:
    rng = np.random.default_rng(2)
    spoken = [depends(list(rng.standard_normal((count, 40))), 0.01).any() for _ in range(1000)]
    assert np.mean(spoken) <= 0.02


def test_series_together_tell_a_dependence_that_none_of_them_shows() -> None:
    series = [remembering(0.6, 40, seed) for seed in range(20)]
    assert depends(series, 0.001).all()
    assert not any(depends([each], 0.001).any() for each in series[:5])


def test_one_series_that_depends_does_not_make_the_others_depend() -> None:
    series = [remembering(0.01, 100, seed) for seed in range(20)]
    assert np.flatnonzero(depends([*series, remembering(10.0, 100)], 0.001)).tolist() == [20]


def test_series_that_repeat_each_other_tell_no_more_than_one() -> None:
    series = remembering(1.0, 40, seed=3)
    others = [remembering(1.0, 40, seed) for seed in range(50)]
    assert depends(others, 0.001).all()
    assert not depends([series] * 50, 0.001).any()


def test_constant_series_do_not_depend() -> None:
    assert not depends([np.ones(40), np.zeros(40)], 0.001).any()


def test_samples_that_are_known_to_depend_have_a_length() -> None:
    white = np.random.default_rng(1).standard_normal(1000)
    assert automatic_length(white) == 0 < automatic_length(white, least_lag=1)
