# SPDX-License-Identifier: Apache-2.0
"""Normal scores and splits: against scipy, against every permutation, and where nothing can be said."""

from __future__ import annotations

import itertools
import math
import statistics
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from dashboards.regressions.split import Split, normal_scores, splits, strongest

special: Any = import_module("scipy.special")  # has no types
stats: Any = import_module("scipy.stats")


@pytest.mark.parametrize("ties", [False, True])
def test_scores_are_those_of_scipy(ties: bool) -> None:
    values = np.random.default_rng(1).normal(100, 5, 43)
    values = np.round(values / 4) if ties else values
    expected = special.ndtri((stats.rankdata(values) - 0.5) / len(values))
    assert normal_scores(values) == pytest.approx(expected, abs=1e-12)
    assert len(set(values)) == 43 or ties


def test_z_is_the_difference_of_mean_scores() -> None:
    values = np.random.default_rng(2).exponential(1, 30)
    scores = normal_scores(values)
    for split in splits(values, range(1, 30)):
        before, after = scores[: 30 - split.after], scores[30 - split.after :]
        deviation = math.sqrt(scores.var(ddof=1) * (1 / len(before) + 1 / len(after)))
        assert split.z == pytest.approx((after.mean() - before.mean()) / deviation)


def test_z_has_standard_deviation_1_over_all_orders() -> None:
    z = [splits(order, range(2, 3))[0].z for order in itertools.permutations((1.0, 2.0, 4.0, 8.0, 9.0, 9.5))]
    assert statistics.fmean(z) == pytest.approx(0, abs=1e-12)
    assert statistics.pstdev(z) == pytest.approx(1)


def test_equal_values_make_z_smaller_never_larger() -> None:
    tied = (1.0, 2.0, 2.0, 8.0, 8.0, 8.0)
    z = [splits(order, range(2, 3))[0].z for order in itertools.permutations(tied)]
    assert statistics.fmean(z) == pytest.approx(0, abs=1e-12)
    assert 0.8 < statistics.pstdev(z) < 1


def test_only_the_order_of_values_counts() -> None:
    values = np.random.default_rng(3).lognormal(3, 1, 25)
    assert splits(values, range(1, 20)) == splits(np.log(values), range(1, 20))
    values[4] = 1e9 if values[4] == values.max() else values[4]
    largest = int(values.argmax())
    wild = values.copy()
    wild[largest] *= 1e6
    assert splits(wild, range(1, 20)) == splits(values, range(1, 20))


def test_values_that_do_not_differ_say_nothing() -> None:
    assert splits([5.0] * 20, range(4, 7)) == [Split(4, 0.0), Split(5, 0.0), Split(6, 0.0)]
    assert normal_scores([7.0]).tolist() == [0.0]


@pytest.mark.parametrize("values", [[], [1.0, math.nan], [math.inf, 1.0]])
def test_refuses_values_without_an_order(values: list[float]) -> None:
    with pytest.raises(ValueError, match="finite"):
        normal_scores(values)


@pytest.mark.parametrize("after", [range(3), range(1, 6), range(5, 6)])
def test_refuses_a_split_with_nothing_on_one_side(after: range) -> None:
    with pytest.raises(ValueError, match=r"1 \.\. 4 are possible"):
        splits([1.0, 2.0, 3.0, 4.0, 5.0], after)


def test_the_strongest_may_go_either_way() -> None:
    assert strongest([Split(1, 1.0), Split(2, -2.9), Split(3, -3.5), Split(4, 3.4)]) == Split(3, -3.5)
    assert strongest([Split(4, 3.5), Split(5, -3.5)]) == Split(4, 3.5)
