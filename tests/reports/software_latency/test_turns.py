# SPDX-License-Identifier: Apache-2.0
"""Pairs that take turns: what changes meanwhile cancels in sums that have to agree, and stays in U of S."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from reports.errors import ReportError
from reports.software_latency.closure import closures
from reports.software_latency.estimate import PARTNERS, STRETCHES, Estimate, estimate, undecided
from reports.software_latency.injection import Change, changes
from reports.software_latency.plan import Device, Pair
from reports.software_latency.trips import PairTrips
from tests.reports.software_latency.simulator import Floats, Truth, random_truths

TRIPS = 15
"""Of a turn."""


@dataclass(frozen=True)
class Wander:
    """How every device's S changes together from turn to turn: a first-order autoregressive series, in ns."""

    spread_ns: float
    memory: float

    def of_turns(self, turns: int, rng: np.random.Generator) -> Floats:
        """Return how far S is moved in each turn."""
        values = np.empty(turns)
        values[0] = rng.standard_normal()
        for turn in range(1, turns):
            step = rng.standard_normal() * np.sqrt(1 - self.memory**2)
            values[turn] = self.memory * values[turn - 1] + step
        return values * self.spread_ns


def in_turns(
    truths: list[Truth], pairs: list[Pair], turns: int, wander: Wander, rng: np.random.Generator
) -> list[PairTrips]:
    own = {truth.device.name: truth for truth in truths}
    moved = {name: wander.of_turns(turns, rng) for name in own}
    common = wander.of_turns(turns, rng)
    turn = np.repeat(np.arange(turns), TRIPS)
    made: list[PairTrips] = []
    for asker, reflector in pairs:
        both = sum(own[name].trips(turns * TRIPS, rng) for name in (asker, reflector))
        both = both + np.repeat(moved[asker] + moved[reflector] + 2 * common, TRIPS)
        made.append(PairTrips(asker, reflector, np.rint(both).astype(np.int64), None, None, turn))
    return made


def every_pair(truths: list[Truth]) -> list[Pair]:
    names = [truth.device.name for truth in truths]
    pairs = [(one, other) for place, one in enumerate(names) for other in names[place + 1 :]]
    return [*pairs, *((other, one) for one, other in pairs[:3])]


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


def test_a_known_delay_is_found_at_its_device_alone():
    right: list[bool] = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        truths = random_truths(3, rng)
        twin = replace(truths[0], device=Device("d0-delayed", "board0", "delayed"))
        pairs = [*every_pair(truths), ("d1", "d0-delayed"), ("d2", "d0-delayed")]
        trips = in_turns([*truths, twin], pairs, 80, Wander(0, 0), rng)
        trips[-2:] = [replace(each, rtt_ns=each.rtt_ns + 500_000) for each in trips[-2:]]
        devices = [truth.device for truth in [*truths, twin]]
        found = changes(
            estimate(devices, trips, resamples=300), devices, trips, "d0-delayed", "d0", 500_000, 500_000
        )
        assert [each.devices for each in found] == [("d0-delayed",), ("d1",), ("d2",)]
        assert [each.put_ns for each in found] == pytest.approx([500_000, 0, 0])
        right += [each.is_right for each in found]
        leaked = [*trips[:-1], replace(trips[-1], rtt_ns=trips[-1].rtt_ns + 60_000)]
        wrong = changes(
            estimate(devices, leaked, resamples=300), devices, leaked, "d0-delayed", "d0", 500_000, 500_000
        )
        assert not all(each.is_right for each in wrong), "60 us went to another device"
    assert np.mean(right) >= 0.9


def test_what_a_partner_or_a_role_takes_is_not_taken_for_the_delay() -> None:
    """d1 and the device, or its twin, take 200 us more together; the device 300 us more where it asks."""
    rng = np.random.default_rng(8)
    truths = random_truths(4, rng)
    twin = replace(truths[0], device=Device("d0-delayed", "board0", "delayed"))
    devices = [truth.device for truth in [*truths, twin]]
    asked = [(asker, name) for name in ("d0", "d0-delayed") for asker in ("d1", "d2", "d3")]
    pairs = [*every_pair(truths), *asked]
    trips = in_turns([*truths, twin], pairs, 80, Wander(0, 0), rng)
    plain = changes(estimate(devices, trips), devices, trips, "d0-delayed", "d0", 0, 0)
    longer = {pair: 300_000 for pair in pairs if pair[0] == "d0"} | dict.fromkeys(
        [("d1", "d0"), ("d1", "d0-delayed")], 200_000
    )
    uneven = [
        replace(each, rtt_ns=each.rtt_ns + longer.get((each.asker, each.reflector), 0)) for each in trips
    ]
    found = changes(estimate(devices, uneven), devices, uneven, "d0-delayed", "d0", 0, 0)
    for one, other in zip(plain, found, strict=True):
        assert other.error_ns == pytest.approx(one.error_ns, abs=1)
        assert other.expanded_ns == pytest.approx(one.expanded_ns, rel=0.1)


def test_a_delay_that_one_partner_sees_alone_is_not_told_from_it() -> None:
    """The farthest of the triangles adds to U."""
    rng = np.random.default_rng(8)
    truths = random_truths(4, rng)
    twin = replace(truths[0], device=Device("d0-delayed", "board0", "delayed"))
    devices = [truth.device for truth in [*truths, twin]]
    pairs = [*every_pair(truths), *((each, "d0-delayed") for each in ("d1", "d2", "d3"))]
    trips = in_turns([*truths, twin], pairs, 80, Wander(0, 0), rng)
    trips[-1] = replace(trips[-1], rtt_ns=trips[-1].rtt_ns + 300_000)
    (first, *_) = changes(estimate(devices, trips), devices, trips, "d0-delayed", "d0", 0, 0)
    assert abs(first.error_ns) > 50_000
    assert first.is_right


def test_what_both_twins_have_in_common_wanders_in_neither_change() -> None:
    """d1's partners get 2 ms slower together, so that every mean wanders; the twin's change does not."""
    rng = np.random.default_rng(8)
    truths = random_truths(3, rng)
    twin = replace(truths[0], device=Device("d0-delayed", "board0", "delayed"))
    devices = [truth.device for truth in [*truths, twin]]
    pairs = [*every_pair(truths), ("d1", "d0"), ("d1", "d0-delayed"), ("d2", "d0"), ("d2", "d0-delayed")]
    trips = in_turns([*truths, twin], pairs, 80, Wander(0, 0), rng)
    still = changes(estimate(devices, trips), devices, trips, "d0-delayed", "d0", 0, 0)
    moved = [
        replace(each, rtt_ns=each.rtt_ns + 25_000 * each.turn)
        for each in trips
        if "d1" in (each.asker, each.reflector) and each.turn is not None
    ]
    moved += [each for each in trips if "d1" not in (each.asker, each.reflector)]
    found = estimate(devices, moved)
    assert found.wanders
    wandered = changes(found, devices, moved, "d0-delayed", "d0", 0, 0)
    for one, other in zip(still, wandered, strict=True):
        assert other.expanded_ns < 3 * one.expanded_ns + 1000
    apart = [
        replace(each, rtt_ns=each.rtt_ns + 25_000 * each.turn) if each.reflector == twin.device.name else each
        for each in trips
        if each.turn is not None
    ]
    alone = changes(estimate(devices, apart), devices, apart, "d0-delayed", "d0", 0, 0)
    assert alone[0].expanded_ns > 500_000, "the twin alone got slower"


def test_waits_of_trips_that_do_not_count_are_not_what_was_put_in() -> None:
    """A tenth of the waits took 300 us more, in pauses: by the mean of all 30 us too little were seen."""
    rng = np.random.default_rng(8)
    truths = random_truths(3, rng)
    twin = replace(truths[0], device=Device("d0-delayed", "board0", "delayed"))
    devices = [truth.device for truth in [*truths, twin]]
    pairs = [*every_pair(truths), ("d1", "d0-delayed"), ("d2", "d0-delayed")]
    trips = in_turns([*truths, twin], pairs, 80, Wander(0, 0), rng)
    paused = rng.random(len(trips[0].rtt_ns)) < 0.1
    waits_ns = rng.integers(500_000, 520_000, len(paused)) + 300_000 * paused
    none = [replace(each, excluded=paused, known_delay_ns=np.zeros_like(waits_ns)) for each in trips]
    waited = [replace(each, rtt_ns=each.rtt_ns + waits_ns, known_delay_ns=waits_ns) for each in none[-2:]]
    told = [*none[:-2], *waited]
    mean_ns = float(waits_ns.mean())
    found = estimate(devices, told)
    (change, *others) = changes(found, devices, told, "d0-delayed", "d0", mean_ns, 500_000)
    assert change.put_ns == pytest.approx(waits_ns[~paused].mean(), abs=1)
    assert change.put_ns < mean_ns - 20_000
    plain = changes(estimate(devices, none), devices, none, "d0-delayed", "d0", 0, 0)
    for one, other in zip([change, *others], plain, strict=True):
        assert one.error_ns == pytest.approx(other.error_ns, abs=1), "each trip less its own wait"
    unsaid = [replace(each, known_delay_ns=None) for each in told]
    (before, *_) = changes(found, devices, unsaid, "d0-delayed", "d0", mean_ns, 500_000)
    assert before.error_ns == pytest.approx(change.error_ns + change.put_ns - mean_ns, abs=1)
    assert before.expanded_ns > change.expanded_ns + 20_000


def test_waits_in_pauses_of_the_machine_make_u_larger() -> None:
    """Of runs whose trips do not say what each waited: the mean of all is 30 us more than was asked for."""
    rng = np.random.default_rng(8)
    truths = random_truths(3, rng)
    twin = replace(truths[0], device=Device("d0-delayed", "board0", "delayed"))
    devices = [truth.device for truth in [*truths, twin]]
    pairs = [*every_pair(truths), ("d1", "d0-delayed"), ("d2", "d0-delayed")]
    trips = in_turns([*truths, twin], pairs, 80, Wander(0, 0), rng)
    found = estimate(devices, trips)
    exact = changes(found, devices, trips, "d0-delayed", "d0", 530_000, 530_000)
    longer = changes(found, devices, trips, "d0-delayed", "d0", 530_000, 500_000)
    grown = [two.expanded_ns - one.expanded_ns for one, two in zip(exact, longer, strict=True)]
    assert grown == pytest.approx([30_000, 0, 0])


def test_a_twin_without_a_partner_that_asks_its_device_too_tells_nothing() -> None:
    rng = np.random.default_rng(8)
    truths = random_truths(4, rng)
    twin = replace(truths[0], device=Device("d0-delayed", "board0", "delayed"))
    devices = [truth.device for truth in [*truths, twin]]
    pairs = [pair for pair in every_pair(truths) if set(pair) != {"d0", "d3"}] + [("d3", "d0-delayed")]
    trips = in_turns([*truths, twin], [*pairs, ("d1", "d2")], 80, Wander(0, 0), rng)
    assert changes(estimate(devices, trips), devices, trips, "d0-delayed", "d0", 0, 0) == ()


def test_a_known_delay_among_trips_that_wander_has_a_part_for_it_in_its_u():
    """The last pair's trips are 60 us longer in the last quarter: d2's change is 7.5 us off, d1's as much."""
    rng = np.random.default_rng(1)
    truths = random_truths(3, rng)
    twin = replace(truths[0], device=Device("d0-delayed", "board0", "delayed"))
    devices = [truth.device for truth in [*truths, twin]]
    pairs = [*every_pair(truths), ("d1", "d0-delayed"), ("d2", "d0-delayed")]
    trips = in_turns([*truths, twin], pairs, 400, Wander(0, 0), rng)
    last = trips[-1]
    assert last.turn is not None
    wandered = [*trips[:-1], replace(last, rtt_ns=last.rtt_ns + np.where(last.turn >= 300, 60_000, 0))]
    before = changes(estimate(devices, trips), devices, trips, "d0-delayed", "d0", 0, 0)
    found = estimate(devices, wandered)
    after = changes(found, devices, wandered, "d0-delayed", "d0", 0, 0)
    assert found.wanders
    for one, other in zip(before, after, strict=True):
        assert 6_000 < abs(other.error_ns - one.error_ns) < 16_000
        assert other.expanded_ns - one.expanded_ns > 15_000, "a quarter is 22.5 us off the mean of all"


def test_a_known_delay_below_u_is_not_told() -> None:
    assert Change(("a",), 500_000, 10_000, 20_000).is_told
    assert not Change(("a",), 500_000, 260_000, 650_000).is_told
    assert Change(("b",), 0, 260_000, 650_000).is_told, "nothing was put in"


def test_too_few_turns_are_refused():
    rng = np.random.default_rng(1)
    truths = random_truths(3, rng)
    trips = in_turns(truths, every_pair(truths), 20, Wander(0, 0), rng)
    with pytest.raises(ReportError, match="20 turns, need 30"):
        estimate([truth.device for truth in truths], trips)
