# SPDX-License-Identifier: Apache-2.0
"""Plans: what is missing is named, as few measurements as there are kinds, and small factors."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest

from reports.errors import ReportError
from reports.software_latency.plan import (
    Device,
    Floats,
    Pair,
    PlanError,
    check_identifiable,
    design_matrix,
    kinds_of,
    make_plan,
    missing_pairs,
    rank,
    variance_factors,
)

MS = 1_000_000


def devices(count: int, kinds: int | None = None) -> list[Device]:
    """Return so many devices, in turn of so many kinds; None: each of its own."""
    return [Device(f"d{place}", f"board{place % (kinds or count)}", "linux") for place in range(count)]


def factor_of(found: list[Device], pairs: list[Pair]) -> float:
    return max(variance_factors(found, pairs).values())


def star(count: int) -> list[Pair]:
    return [*(("d0", f"d{leaf}") for leaf in range(1, count)), ("d1", "d2")]


def some(found: list[Device], rng: np.random.Generator, fewest: int, below: int) -> list[Pair]:
    """Return random pairs, each once."""
    every = list(itertools.combinations([device.name for device in found], 2))
    order: list[int] = rng.permutation(len(every)).tolist()
    return [every[place] for place in order[: int(rng.integers(fewest, below))]]


def deficient(rng: np.random.Generator) -> tuple[list[Device], list[Pair]]:
    """Return devices and some pairs of them that do not tell every kind."""
    while True:
        count = int(rng.integers(3, 9))
        found = devices(count, int(rng.integers(2, count + 1)))
        pairs = some(found, rng, 0, count + 1)
        matrix = design_matrix(found, pairs)
        if np.linalg.matrix_rank(matrix) < matrix.shape[1]:
            return found, pairs


@pytest.mark.parametrize("seed", range(100))
def test_a_plan_that_does_not_tell_every_kind_is_refused_and_each_missing_pair_raises_the_rank(seed: int):
    found, pairs = deficient(np.random.default_rng(seed))
    kinds = design_matrix(found, pairs).shape[1]
    with pytest.raises(PlanError, match="measure besides") as refused:
        check_identifiable(found, pairs)
    missing = refused.value.missing
    assert all("/".join(pair) in str(refused.value) for pair in missing)
    for place, pair in enumerate(missing):
        before = np.linalg.matrix_rank(design_matrix(found, pairs + list(missing[:place])))
        after = np.linalg.matrix_rank(design_matrix(found, [*pairs, *missing[:place], pair]))
        assert after == before + 1
    assert rank(found, pairs + list(missing)) == kinds


@pytest.mark.parametrize("seed", range(30))
def test_the_rank_is_that_of_the_matrix(seed: int):
    rng = np.random.default_rng(seed)
    found = devices(8, int(rng.integers(2, 9)))
    pairs = some(found, rng, 0, 12)
    assert rank(found, pairs) == np.linalg.matrix_rank(design_matrix(found, pairs))


@pytest.mark.parametrize("count", [*range(3, 25), 30])
def test_n_devices_need_n_measurements(count: int):
    plan = make_plan(devices(count), 1000, MS, 1000.0)
    assert len(plan.pairs) == count
    assert plan.duration_s == pytest.approx(count)  # linear: equation (9)
    assert max(plan.variance_factors.values()) < factor_of(devices(count), star(count)) + 1e-9
    with pytest.raises(PlanError, match=f"need {count}"):
        make_plan(devices(count), 1000, MS, 1000.0, measurements=count - 1)


@pytest.mark.parametrize("kinds", [1, 2, 3, 7, 20])
def test_m_kinds_need_m_measurements_however_many_devices(kinds: int):
    plan = make_plan(devices(2 * kinds, kinds), 1000, MS, 1000.0)
    assert len(plan.pairs) == kinds
    assert max(plan.variance_factors.values()) == pytest.approx(1 / 4)  # a loop each: S = RTT / 2


@pytest.mark.parametrize(
    ("count", "worst"), [(3, 0.75), (4, 1.75), (5, 1.25), (6, 0.75), (8, 1.25), (10, 1.25), (20, 1.25)]
)
def test_short_odd_cycles_do_not_inherit_a_centre_s_error(count: int, worst: float):
    assert max(make_plan(devices(count), 1, MS, 1.0).variance_factors.values()) == pytest.approx(worst)


@pytest.mark.parametrize("count", [3, 4, 5])
def test_the_fewest_pairs_are_the_best_of_all(count: int):
    found = devices(count)
    every = itertools.combinations(itertools.combinations([device.name for device in found], 2), count)
    best = min(factor_of(found, list(pairs)) for pairs in every if rank(found, list(pairs)) == count)
    assert max(make_plan(found, 1, MS, 1.0).variance_factors.values()) == pytest.approx(best)


def best_factor(found: list[Device], possible: list[Pair], count: int) -> float:
    """Return the worst factor of the best plan of all."""
    chosen = np.array(list(itertools.combinations(range(len(possible)), count)))
    rows = design_matrix(found, possible)[chosen]
    informations: Floats = rows.transpose(0, 2, 1) @ rows
    told: Floats = informations[np.linalg.det(informations) > 0.5]
    return float(np.diagonal(np.linalg.inv(told), axis1=1, axis2=2).max(axis=1).min())


def test_plans_are_hardly_ever_worse_than_the_best_of_all():
    """By every plan that there is, with some pairs that cannot be measured and further measurements."""
    rng = np.random.default_rng(1)
    worse = plans = 0
    while plans < 300:
        count = int(rng.integers(3, 8))
        found = devices(count, int(rng.integers(3, count + 1)))
        possible = some(found, rng, 3, 12)
        kinds = len(kinds_of(found))
        if rank(found, possible) < kinds:
            continue
        measurements = int(rng.integers(kinds, len(possible) + 1))
        plan = make_plan(found, 1, MS, 1.0, possible=possible, measurements=measurements)
        best = best_factor(found, possible, measurements)
        worse += max(plan.variance_factors.values()) > best + 1e-6
        plans += 1
    assert worse <= plans / 100


def test_further_measurements_make_the_worst_factor_smaller():
    worst = [
        max(make_plan(devices(7), 1, MS, 1.0, measurements=count).variance_factors.values())
        for count in range(7, 22)
    ]
    assert worst == sorted(worst, reverse=True)
    assert worst[-1] < worst[0] / 4


def test_expected_u_is_that_of_the_mean():
    plan = make_plan(devices(3), 200, MS, 5000.0)
    expected_ns = 2 * math.sqrt(0.75 * 2 * 5000**2 / 200)
    assert list(plan.mean_expanded_ns.values()) == pytest.approx([expected_ns] * 3)


@pytest.mark.parametrize("seed", range(40))
def test_a_plan_keeps_to_what_can_be_measured(seed: int):
    rng = np.random.default_rng(seed)
    found = devices(9, int(rng.integers(4, 10)))
    possible = some(found, rng, 6, 20)
    matrix = design_matrix(found, possible)
    if np.linalg.matrix_rank(matrix) < matrix.shape[1]:
        with pytest.raises(PlanError, match="no possible pairs"):
            make_plan(found, 1, MS, 1.0, possible=possible)
        return
    plan = make_plan(found, 1, MS, 1.0, possible=possible)
    assert set(plan.pairs) <= set(possible)
    assert len(plan.pairs) == rank(found, plan.pairs) == matrix.shape[1]


def test_what_no_possible_pair_tells_is_named():
    with pytest.raises(PlanError, match="board0 linux; board1 linux") as refused:
        missing_pairs(devices(2), [("d0", "d1")])
    assert refused.value.missing == ()


ACROSS = [(f"d{one}", f"d{other}") for one in range(10) for other in range(10, 20)]


@pytest.mark.parametrize(
    ("plan", "error", "message"),
    [
        (lambda: make_plan(devices(20), 1, MS, 1.0, possible=ACROSS), PlanError, "no possible pairs"),
        (lambda: make_plan([], 1, MS, 1.0), PlanError, "no devices"),
        (lambda: make_plan(devices(3), 0, MS, 1.0), ReportError, "0 trips"),
        (lambda: make_plan(devices(3), 1, MS, 1.0, measurements=4), PlanError, "at most 3"),
        (lambda: variance_factors([], []), PlanError, "no devices"),
        (lambda: design_matrix(devices(3), [("d0", "d0")]), PlanError, "two different devices"),
        (lambda: design_matrix(devices(3), [("d0", "other")]), PlanError, "two different devices"),
        (lambda: rank([Device("a", "x", "y"), Device("a", "z", "y")], []), PlanError, "twice"),
    ],
)
def test_what_cannot_be_planned_is_refused(
    plan: Callable[[], object], error: type[ReportError], message: str
):
    with pytest.raises(error, match=message):
        plan()
