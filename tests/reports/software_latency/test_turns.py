# SPDX-License-Identifier: Apache-2.0
"""Pairs that take turns: what changes meanwhile cancels in sums that have to agree, and stays in U of S."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from reports.errors import ReportError
from reports.software_latency.closure import closures
from reports.software_latency.estimate import PARTNERS, STRETCHES, Estimate, estimate, undecided
from tests.reports.software_latency.in_turns import Wander, every_pair, in_turns
from tests.reports.software_latency.simulator import Truth, random_truths


def found_of(seed: int, wander: Wander, turns: int = 80, devices: int = 4) -> tuple[list[Truth], Estimate]:
    rng = np.random.default_rng(seed)
    truths = random_truths(devices, rng)
    trips = in_turns(truths, every_pair(truths), turns, wander, rng)
    return truths, estimate([truth.device for truth in truths], trips, resamples=300, seed=seed)


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
        assert bound.name == PARTNERS
        assert abs(latency.mean_ns - truth.mean_ns) <= latency.mean_u_ns
        assert not undecided(found, latency)


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
    assert [bound.name for bound in first.bounds] == [STRETCHES]
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
