# SPDX-License-Identifier: Apache-2.0
"""A known delay is found at its device, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.typing import NDArray

from reports.software_latency.estimate import Estimate, estimate
from reports.software_latency.injection import Change, changes
from reports.software_latency.plan import Device, Pair
from reports.software_latency.trips import PairTrips
from tests.reports.software_latency.in_turns import Wander, every_pair, in_turns
from tests.reports.software_latency.simulator import Truth, random_truths

Ints = NDArray[np.int64]
PLAIN, TWIN = "d0", "d0-delayed"
PUT_NS = 500_000


@dataclass
class Lab:
    """Devices d0, d1, ..., and the delayed twin of d0."""

    rng: np.random.Generator
    truths: list[Truth]

    @classmethod
    def of(cls, devices: int, seed: int = 8) -> Lab:
        """Return so many, and the twin."""
        rng = np.random.default_rng(seed)
        truths = random_truths(devices, rng)
        return cls(rng, [*truths, replace(truths[0], device=Device(TWIN, "board0", "delayed"))])

    @property
    def devices(self) -> list[Device]:
        """Return all of them."""
        return [truth.device for truth in self.truths]

    def pairs(self) -> list[Pair]:
        """Return every pair without the twin."""
        return every_pair(self.truths[:-1])

    def trips(self, pairs: list[Pair], turns: int = 80) -> list[PairTrips]:
        """Return trips of pairs in turns, of devices that do not wander."""
        return in_turns(self.truths, pairs, turns, Wander(0, 0), self.rng)

    def changes(
        self, trips: list[PairTrips], found: Estimate | None = None, put_ns: float = 0, asked_ns: float = 0
    ) -> tuple[Change, ...]:
        """Return what changes where the twin takes the device's place."""
        found = estimate(self.devices, trips) if found is None else found
        return changes(found, self.devices, trips, TWIN, PLAIN, put_ns, asked_ns)


def asked_by(*askers: str, of: str = TWIN) -> list[Pair]:
    return [(asker, of) for asker in askers]


def longer(trips: list[PairTrips], by_ns: Callable[[PairTrips], int | Ints]) -> list[PairTrips]:
    return [replace(each, rtt_ns=each.rtt_ns + by_ns(each)) for each in trips]


def slower_each_turn(each: PairTrips) -> Ints:
    assert each.turn is not None
    return 25_000 * each.turn


def test_it_is_found_at_its_device_alone():
    right: list[bool] = []
    for seed in range(30):
        lab = Lab.of(3, seed)
        trips = lab.trips([*lab.pairs(), *asked_by("d1", "d2")])
        trips[-2:] = longer(trips[-2:], lambda _: PUT_NS)
        found = lab.changes(trips, estimate(lab.devices, trips, resamples=300), PUT_NS, PUT_NS)
        assert [each.devices for each in found] == [(TWIN,), ("d1",), ("d2",)]
        assert [each.put_ns for each in found] == pytest.approx([PUT_NS, 0, 0])
        right += [each.is_right for each in found]
        leaked = [*trips[:-1], *longer(trips[-1:], lambda _: 60_000)]
        wrong = lab.changes(leaked, estimate(lab.devices, leaked, resamples=300), PUT_NS, PUT_NS)
        assert not all(each.is_right for each in wrong), "60 us went to another device"
    assert np.mean(right) >= 0.9


def test_what_a_partner_or_a_role_takes_is_not_taken_for_the_delay() -> None:
    """d1 and the device, or its twin, take 200 us more together; the device 300 us more where it asks."""
    lab = Lab.of(4)
    pairs = [*lab.pairs(), *asked_by("d1", "d2", "d3", of=PLAIN), *asked_by("d1", "d2", "d3")]
    trips = lab.trips(pairs)
    more_ns = {pair: 300_000 for pair in pairs if pair[0] == PLAIN}
    more_ns |= dict.fromkeys([("d1", PLAIN), ("d1", TWIN)], 200_000)
    uneven = longer(trips, lambda each: more_ns.get((each.asker, each.reflector), 0))
    for one, other in zip(lab.changes(trips), lab.changes(uneven), strict=True):
        assert other.error_ns == pytest.approx(one.error_ns, abs=1)
        assert other.expanded_ns == pytest.approx(one.expanded_ns, rel=0.1)


def test_a_delay_that_one_partner_sees_alone_is_not_told_from_it() -> None:
    """The farthest of the triangles adds to U."""
    lab = Lab.of(4)
    trips = lab.trips([*lab.pairs(), *asked_by("d1", "d2", "d3")])
    trips[-1:] = longer(trips[-1:], lambda _: 300_000)
    (first, *_) = lab.changes(trips)
    assert abs(first.error_ns) > 50_000
    assert first.is_right


def test_what_both_twins_have_in_common_wanders_in_neither_change() -> None:
    """d1's partners get 2 ms slower together, so that every mean wanders; the twin's change does not."""
    lab = Lab.of(3)
    trips = lab.trips([*lab.pairs(), ("d1", PLAIN), ("d1", TWIN), ("d2", PLAIN), ("d2", TWIN)])
    moved = longer(trips, lambda each: slower_each_turn(each) if "d1" in (each.asker, each.reflector) else 0)
    found = estimate(lab.devices, moved)
    assert found.wanders
    for one, other in zip(lab.changes(trips), lab.changes(moved, found), strict=True):
        assert other.expanded_ns < 3 * one.expanded_ns + 1000
    apart = longer(trips, lambda each: slower_each_turn(each) if each.reflector == TWIN else 0)
    assert lab.changes(apart)[0].expanded_ns > 500_000, "the twin alone got slower"


def test_waits_of_trips_that_do_not_count_are_not_what_was_put_in() -> None:
    """A tenth of the waits took 300 us more, in pauses: by the mean of all 30 us too little were seen."""
    lab = Lab.of(3)
    trips = lab.trips([*lab.pairs(), *asked_by("d1", "d2")])
    paused = lab.rng.random(len(trips[0].rtt_ns)) < 0.1
    waits_ns = lab.rng.integers(PUT_NS, PUT_NS + 20_000, len(paused)) + 300_000 * paused
    none = [replace(each, excluded=paused, known_delay_ns=np.zeros_like(waits_ns)) for each in trips]
    waited = [replace(each, rtt_ns=each.rtt_ns + waits_ns, known_delay_ns=waits_ns) for each in none[-2:]]
    told = [*none[:-2], *waited]
    mean_ns = float(waits_ns.mean())
    found = estimate(lab.devices, told)
    (change, *others) = lab.changes(told, found, mean_ns, PUT_NS)
    assert change.put_ns == pytest.approx(waits_ns[~paused].mean(), abs=1)
    assert change.put_ns < mean_ns - 20_000
    for one, other in zip([change, *others], lab.changes(none), strict=True):
        assert one.error_ns == pytest.approx(other.error_ns, abs=1), "each trip less its own wait"
    unsaid = [replace(each, known_delay_ns=None) for each in told]
    (before, *_) = lab.changes(unsaid, found, mean_ns, PUT_NS)
    assert before.error_ns == pytest.approx(change.error_ns + change.put_ns - mean_ns, abs=1)
    assert before.expanded_ns > change.expanded_ns + 20_000


def test_waits_in_pauses_of_the_machine_make_u_larger() -> None:
    """Of runs whose trips do not say what each waited: the mean of all is 30 us more than was asked for."""
    lab = Lab.of(3)
    trips = lab.trips([*lab.pairs(), *asked_by("d1", "d2")])
    found = estimate(lab.devices, trips)
    exact = lab.changes(trips, found, 530_000, 530_000)
    less = lab.changes(trips, found, 530_000, PUT_NS)
    grown = [two.expanded_ns - one.expanded_ns for one, two in zip(exact, less, strict=True)]
    assert grown == pytest.approx([30_000, 0, 0])


def test_a_twin_without_a_partner_that_asks_its_device_too_tells_nothing() -> None:
    lab = Lab.of(4)
    pairs = [pair for pair in lab.pairs() if set(pair) != {PLAIN, "d3"}]
    assert lab.changes(lab.trips([*pairs, *asked_by("d3"), ("d1", "d2")])) == ()


def test_among_trips_that_wander_u_has_a_part_for_it():
    """The last pair's trips are 60 us longer in the last quarter: d2's change is 7.5 us off, d1's as much."""
    lab = Lab.of(3, 1)
    trips = lab.trips([*lab.pairs(), *asked_by("d1", "d2")], 400)
    last = trips[-1]
    assert last.turn is not None
    wandered = [*trips[:-1], replace(last, rtt_ns=last.rtt_ns + np.where(last.turn >= 300, 60_000, 0))]
    found = estimate(lab.devices, wandered)
    assert found.wanders
    for one, other in zip(lab.changes(trips), lab.changes(wandered, found), strict=True):
        assert 6_000 < abs(other.error_ns - one.error_ns) < 16_000
        assert other.expanded_ns - one.expanded_ns > 15_000, "a quarter is 22.5 us off the mean of all"


def test_one_below_u_is_not_told() -> None:
    assert Change(("a",), 500_000, 10_000, 20_000).is_told
    assert not Change(("a",), 500_000, 260_000, 650_000).is_told
    assert Change(("b",), 0, 260_000, 650_000).is_told, "nothing was put in"
