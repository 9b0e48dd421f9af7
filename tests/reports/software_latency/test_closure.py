# SPDX-License-Identifier: Apache-2.0
"""Closures: they hold for every topology, and tell a role or a pair that is biased."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from reports.normalised_error import normalised_error
from reports.software_latency.closure import Closure, closures
from reports.software_latency.plan import Pair
from reports.software_latency.spread import independent
from reports.software_latency.trips import PairTrips, measure
from tests.reports.software_latency.simulator import random_truths, simulate

FOUR: list[Pair] = [("d0", "d1"), ("d2", "d3"), ("d0", "d2"), ("d1", "d3")]
BIAS_NS = 50_000


def trips_of(pairs: list[Pair], seed: int = 1, devices: int = 4) -> list[PairTrips]:
    rng = np.random.default_rng(seed)
    return simulate(random_truths(devices, rng), pairs, 3000, rng).trips


def closed(trips: list[PairTrips]) -> tuple[Closure, ...]:
    measured = [measure(each, resamples=200) for each in trips]
    return closures(measured, independent(measured))


def biased(trips: PairTrips) -> PairTrips:
    return replace(trips, rtt_ns=trips.rtt_ns + BIAS_NS)


def test_swapped_roles_agree():
    mean, variance = closed(trips_of([("d0", "d1"), ("d1", "d0")]))
    assert (mean.kind, mean.order, mean.unit) == ("swapped roles", 1, "ns")
    assert (variance.order, variance.unit) == (2, "ns²")
    assert (mean.one_name, mean.other_name) == ("d0/d1", "d1/d0")
    assert mean.agrees
    assert variance.agrees


def test_a_bias_in_one_role_is_told_in_the_mean_alone():
    one, other = trips_of([("d0", "d1"), ("d1", "d0")])
    mean, variance = closed([one, biased(other)])
    assert mean.en > 1
    assert not mean.agrees
    assert mean.other - mean.one == pytest.approx(BIAS_NS, abs=mean.expanded)
    assert variance.agrees


def test_four_devices_agree_in_mean_and_variance():
    found = closed(trips_of(FOUR))
    assert [(each.kind, each.order) for each in found] == [("four devices", 1), ("four devices", 2)]
    assert found[0].one_name == "d0/d1 + d2/d3"
    assert found[0].other_name == "d0/d2 + d1/d3"
    assert all(each.agrees for each in found)


def test_a_bias_in_one_pair_of_four_is_told():
    trips = trips_of(FOUR)
    assert closed([biased(trips[0]), *trips[1:]])[0].en > 1


def test_a_disturbance_that_both_devices_of_a_pair_wait_for_is_told_in_the_variance():
    trips = trips_of(FOUR)
    rng = np.random.default_rng(2)
    together = rng.random(3000) < 0.3
    slow = replace(trips[0], rtt_ns=trips[0].rtt_ns + 120_000 * together - 36_000)
    assert closed([slow, *trips[1:]])[1].en > 1


@pytest.mark.parametrize(("devices", "count"), [(3, 0), (4, 3), (5, 15), (6, 45)])
def test_every_closure_of_all_pairs_is_found(devices: int, count: int):
    pairs = [(f"d{one}", f"d{other}") for one in range(devices) for other in range(one + 1, devices)]
    assert len(closed(trips_of(pairs, devices=devices))) == 2 * count


def test_e_n_is_above_one_as_often_as_u_says():
    found = [
        each for seed in range(40) for each in closed(trips_of([*FOUR, ("d1", "d0"), ("d3", "d2")], seed))
    ]
    means = [each.en for each in found if each.order == 1]
    assert len(means) == 120
    assert np.mean(np.array(means) > 1) <= 0.1  # 4.55 % expected
    assert np.mean(np.array(means) > 0.5) > 0.15  # nor is U far too large: 32 % expected


def test_repeats_and_both_roles_go_in_as_their_mean():
    trips = trips_of([*FOUR, ("d1", "d0"), ("d0", "d1")])
    swapped, _, four, _ = closed(trips)
    repeats = (trips[0].rtt_ns.mean() + trips[5].rtt_ns.mean()) / 2
    assert swapped.one == pytest.approx(repeats)
    assert four.one == pytest.approx((repeats + trips[4].rtt_ns.mean()) / 2 + trips[1].rtt_ns.mean())


def test_pairs_of_a_device_that_is_left_out_are_in_no_sum():
    trips = trips_of([*FOUR, ("d1", "d0"), ("d3", "d2")])
    measured = [measure(each, resamples=50) for each in trips]
    found = closures(measured, independent(measured), {"d3"})
    assert {name for each in found for name in (each.one_name, each.other_name)} == {"d0/d1", "d1/d0"}


def test_nothing_is_told_of_nothing():
    assert closures([], independent([])) == ()


@pytest.mark.parametrize(
    ("one", "other", "u", "expected"), [(1, 1, 0, 0), (1, 2, 0, math.inf), (0, 5, 3, 5 / math.hypot(3, 3))]
)
def test_normalised_error(one: float, other: float, u: float, expected: float):
    assert normalised_error(one, other, u, u) == pytest.approx(expected)
