# SPDX-License-Identifier: Apache-2.0
"""Pairs that take turns: what changes meanwhile cancels in sums that have to agree, and stays in U of S."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from reports.errors import ReportError
from reports.software_latency.bounds import residual_bounds
from reports.software_latency.closure import closures
from reports.software_latency.estimate import (
    BLOCK_VARIATION,
    DEVICE_DEPENDENCE,
    Estimate,
    estimate,
    solver,
    undecided,
)
from reports.software_latency.plan import Pair
from tests.reports.software_latency.coverage import PROFILES, in_turns_found
from tests.reports.software_latency.in_turns import STEADY, TRIPS, Wander, every_pair, in_turns
from tests.reports.software_latency.simulator import Truth, random_truths

CI = PROFILES["ci"]


def found_of(seed: int, wander: Wander) -> tuple[list[Truth], Estimate]:
    return in_turns_found(seed, 80, TRIPS, wander=wander)


@pytest.mark.parametrize("wander", [Wander(0, 0), Wander(3_000, 0.5)])
def test_u_holds_the_truth_as_often_as_it_says(wander: Wander):
    off: list[float] = []
    for seed in range(100):
        truths, found = found_of(seed, wander)
        off += [
            abs(each.mean_ns - truth.mean_ns) / each.mean_u_ns
            for each, truth in zip(found.latencies, truths, strict=True)
        ]
    within, half = np.mean(np.array(off) <= 1), np.mean(np.array(off) <= 0.5)
    assert within >= 0.93
    assert 0.5 <= half <= 0.9


@pytest.mark.parametrize("wander", [Wander(0, 0), Wander(5_000, 0.9)])
def test_sums_agree_although_devices_wander(wander: Wander):
    """One pair after the other they would not: every device's S moves by 5 us for seconds."""
    en = [
        each.en
        for seed in range(60)
        for found in [found_of(seed, wander)[1]]
        for each in closures(found.measured, found.spread)
        if each.order == 1
    ]
    assert np.mean(np.array(en) > 1) <= 0.1
    assert np.mean(np.array(en) > 0.5) > 0.15


def test_pairs_that_agree_are_not_said_to_contradict_each_other():
    spoken = [found_of(seed, Wander(5_000, 0.9))[1].fits[0].chance < 0.01 for seed in range(60)]
    assert np.mean(spoken) <= 0.1


@pytest.mark.parametrize("devices", [4, 6])
def test_few_turns_that_do_not_depend_on_each_other_are_not_said_to_be_too_few(devices: int):
    """Of 36 turns a thirtieth is 1.2: by chance an automatic length of one of many pairs is above it."""
    spoken = [in_turns_found(seed, *CI, devices)[1].wanders for seed in range(100)]
    assert np.mean(spoken) <= 0.03  # of 0.8 % expected


@pytest.mark.parametrize(("wander", "share"), [(Wander(5_000, 0.7), 0.5), (Wander(20_000, 0.9), 0.98)])
def test_turns_that_depend_on_each_other_are_told(wander: Wander, share: float):
    spoken = [in_turns_found(seed, *CI, wander=wander)[1].wanders for seed in range(60)]
    assert np.mean(spoken) >= share


def test_one_pair_that_depends_on_itself_alone_is_told():
    rng = np.random.default_rng(3)
    truths = random_truths(4, rng)
    trips = in_turns(truths, every_pair(truths), CI[0], Wander(0, 0), rng, CI[1])
    moved = np.rint(Wander(200_000, 0.9).of_turns(CI[0], rng)).astype(np.int64)
    slow = [replace(trips[0], rtt_ns=trips[0].rtt_ns + np.repeat(moved, CI[1])), *trips[1:]]
    found = estimate([truth.device for truth in truths], slow)
    assert [each.is_long_enough for each in found.measured] == [False] + [True] * (len(trips) - 1)


def test_a_pair_without_trips_in_some_turns_is_as_long_as_the_others():
    rng = np.random.default_rng(4)
    truths = random_truths(3, rng)
    trips = in_turns(truths, every_pair(truths), 80, Wander(0, 0), rng)
    lost = np.isin(np.arange(80 * TRIPS) // TRIPS, [3, 4, 40])
    found = estimate([truth.device for truth in truths], [replace(trips[0], excluded=lost), *trips[1:]])
    assert not found.wanders


def test_a_pair_that_two_devices_are_slow_in_together_makes_u_larger():
    rng = np.random.default_rng(5)
    truths = random_truths(4, rng)
    trips = in_turns(truths, every_pair(truths), 80, Wander(0, 0), rng)
    slow = [replace(trips[0], rtt_ns=trips[0].rtt_ns + 100_000), *trips[1:]]
    devices = [truth.device for truth in truths]
    plain, found = estimate(devices, trips), estimate(devices, slow)
    assert not any(each.bounds for each in plain.latencies)
    for latency, truth in zip(found.latencies, truths, strict=True):
        (bound,) = latency.bounds
        assert bound.name == DEVICE_DEPENDENCE
        assert abs(latency.mean_ns - truth.mean_ns) <= latency.mean_u_ns
        assert not undecided(found, latency)


RING = [(f"d{place}", f"d{(place + 1) % 5}") for place in range(5)]
"""The planner's own plan for five kinds: no triangle."""


@pytest.mark.parametrize(
    ("devices", "pairs"),
    [
        (5, [*RING, *((other, one) for one, other in RING)]),
        (6, [*RING, *((other, one) for one, other in RING), ("d0", "d5")]),
        (6, list(itertools.permutations([f"d{place}" for place in range(6)], 2))),
    ],
    ids=["ring", "ring and leaf", "more sums than degrees of freedom"],
)
def test_contradictions_in_cycles_of_every_length_are_told_and_in_u(devices: int, pairs: list[Pair]):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        truths = random_truths(devices, rng)
        trips = in_turns(truths, pairs, CI[0], STEADY, rng, CI[1])
        place = int(rng.integers(10))
        trips[place] = replace(trips[place], rtt_ns=trips[place].rtt_ns + 150_000)
        found = estimate([truth.device for truth in truths], trips, resamples=300)
        assert any("contradict each other in the mean" in doubt for doubt in found.doubts)
        for latency, truth in zip(found.latencies, truths, strict=True):
            assert abs(latency.mean_ns - truth.mean_ns) <= latency.mean_u_ns


def test_what_is_joined_to_no_contradiction_has_no_part_for_it():
    first = [("d0", "d1"), ("d1", "d2"), ("d2", "d0"), ("d1", "d0")]
    other = [("d3", "d4"), ("d4", "d5"), ("d5", "d3")]
    design = np.array([[float(f"d{kind}" in pair) for kind in range(6)] for pair in (*first, *other)])
    values = np.array([60.0, 0, 0, 0, 0, 0, 0])
    found = residual_bounds(design, solver(design, np.ones(7)), values)
    assert found[3:] == pytest.approx([0, 0, 0], abs=1e-9)
    assert np.all(found[:3] >= 15)  # of both roles' mean half


def test_a_device_that_gets_slower_makes_u_larger():
    """By 40 us over the measurement: each quarter's own lies within U of the mean of all."""
    rng = np.random.default_rng(6)
    truths = random_truths(3, rng)
    trips = in_turns(truths, every_pair(truths), 80, Wander(0, 0), rng)
    moved = [
        replace(each, rtt_ns=each.rtt_ns + 500 * each.turn) if "d0" in (each.asker, each.reflector) else each
        for each in trips
        if each.turn is not None
    ]
    found = estimate([truth.device for truth in truths], moved)
    first = found.latencies[0]
    assert any("wandered" in doubt for doubt in found.doubts)
    assert [bound.name for bound in first.bounds] == [BLOCK_VARIATION]
    assert 10_000 < first.bounds[0].ns < 25_000
    assert not undecided(found, first)
    without = [replace(each, turn=None) for each in moved]
    found = estimate([truth.device for truth in truths], without)
    assert undecided(found, found.latencies[0]), "no turns: no quarters to look at"


def test_too_few_turns_are_refused():
    rng = np.random.default_rng(1)
    truths = random_truths(3, rng)
    trips = in_turns(truths, every_pair(truths), 20, Wander(0, 0), rng)
    with pytest.raises(ReportError, match="20 turns, need 30"):
        estimate([truth.device for truth in truths], trips)


def test_turns_of_some_pairs_alone_are_refused():
    rng = np.random.default_rng(1)
    truths = random_truths(3, rng)
    trips = in_turns(truths, every_pair(truths), 40, Wander(0, 0), rng)
    without = [replace(trips[0], turn=None), *trips[1:]]
    with pytest.raises(ReportError, match=f"not {trips[0].name}: give all of them, or none"):
        estimate([truth.device for truth in truths], without)
