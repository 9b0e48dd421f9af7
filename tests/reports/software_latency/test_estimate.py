# SPDX-License-Identifier: Apache-2.0
"""Software latency of each device against the truth of a simulator, and what speaks against the model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from reports.software_latency.estimate import CHANCE, correlation, estimate
from reports.software_latency.plan import Device, PlanError
from reports.software_latency.spread import expand
from reports.software_latency.trips import PairTrips
from tests.reports.software_latency.coverage import Case, checks, errors_over_u, made_cases
from tests.reports.software_latency.simulator import SimulatedTrips, random_truths, simulate
from tests.reports.software_latency.test_trips import remembering

CASES = 200
TRIPS = 1000
THREE = [("d0", "d1"), ("d0", "d2"), ("d1", "d2")]
ACROSS = [("d0", "d1"), ("d2", "d3")]
ALL_OF_FOUR = [*THREE, ("d0", "d3"), ("d1", "d3"), ("d2", "d3")]


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    return made_cases(CASES, TRIPS)


def simulated_of(
    count: int, pairs: list[tuple[str, str]], seed: int = 0, trips: int = 3000
) -> SimulatedTrips:
    rng = np.random.default_rng(seed)
    return simulate(random_truths(count, rng), pairs, trips, rng)


def hog(count: int, seed: int = 9) -> NDArray[np.bool_]:
    """Return which trips another program on the same host disturbs: a fifth, in windows of 20."""
    return np.repeat(np.random.default_rng(seed).random(count // 20) < 0.2, 20)


def disturbed(trips: PairTrips, when: NDArray[np.bool_], by_ns: int, *, excluded: bool = False) -> PairTrips:
    return replace(trips, rtt_ns=trips.rtt_ns + by_ns * when, excluded=when if excluded else None)


def test_the_true_mean_is_within_u_and_not_always_within_half_of_it(cases: list[Case]):
    off = np.abs(errors_over_u(cases))
    assert len(off) > 1000
    assert np.mean(off <= 1) >= 0.95
    assert 0.5 <= np.mean(off <= 0.5) <= 0.9


def test_smallest_and_largest_latency_are_within_their_intervals(cases: list[Case]):
    for case in cases:
        for latency, truth in zip(case.found.latencies, case.truths, strict=True):
            name = truth.device.name
            low, high = latency.minimum, latency.maximum
            assert low.low_ns <= case.simulated.minimum_ns[name] <= low.high_ns + 1
            assert high.low_ns <= case.simulated.maximum_ns[name] <= high.high_ns + 1
            assert latency.one_way_alike.worst_max_ns == high.high_ns
            assert truth.send.mean_ns <= latency.one_way_mean.high_ns


def test_checks_seldom_speak_where_nothing_is_wrong(cases: list[Case]):
    assert checks(cases) > 4000
    assert sum(len(case.found.doubts) for case in cases) <= 0.002 * checks(cases)


def test_one_way_has_its_variance_between_a_quarter_and_a_half(cases: list[Case]):
    one_way = cases[0].found.latencies[0]
    alike = one_way.one_way_alike
    assert alike.mean_ns == alike.mean_error_max_ns == one_way.mean_ns / 2
    assert alike.mean_expanded_ns == one_way.mean_expanded_ns / 2
    assert (alike.variance_low_ns2, alike.variance_high_ns2) == pytest.approx(
        (one_way.variance_ns2 / 4, one_way.variance_ns2 / 2)
    )


def test_three_pairs_give_half_of_two_sums_less_the_third():
    simulated = simulated_of(3, THREE)
    found = estimate(simulated.devices, simulated.trips)
    ab, ac, bc = (each.cumulants for each in found.measured)
    first = found.latencies[0]
    assert [first.mean_ns, first.variance_ns2, first.third_ns3] == pytest.approx(list((ab + ac - bc) / 2))
    assert found.fits[0].residuals == pytest.approx([0, 0, 0], abs=1e-6)
    assert any("closure" in each for each in found.untested)
    assert any("independence" in each for each in found.untested)


def test_variance_and_third_cumulant_are_those_of_the_devices():
    rng = np.random.default_rng(11)
    own = [(2.0, 5e3), (4.0, 8e3), (1.5, 9e3), (3.0, 4e3)]
    inside: list[list[bool]] = []
    devices = [Device(f"d{place}", f"board{place}", "linux") for place in range(4)]
    for _ in range(100):
        trips = [
            PairTrips(
                *pair,
                np.rint(sum(scale * rng.standard_gamma(shape, 2000) for shape, scale in ways)).astype(int),
            )
            for pair in [*THREE, ("d0", "d3"), ("d1", "d3")]
            for ways in [[own[int(name[1])] for name in pair]]
        ]
        for latency, (shape, scale) in zip(
            estimate(devices, trips, resamples=200).latencies, own, strict=True
        ):
            inside.append(
                [
                    abs(latency.variance_ns2 - shape * scale**2) <= latency.variance_expanded_ns2,
                    abs(latency.third_ns3 - 2 * shape * scale**3) <= latency.third_expanded_ns3,
                ]
            )
    variance, third = np.mean(inside, axis=0)
    assert variance >= 0.92  # the more a series is skewed, the smaller both it and its u come out by chance
    assert third >= 0.88


def test_two_devices_of_one_kind_are_one_unknown():
    rng = np.random.default_rng(12)
    devices = [Device("a", "board", "linux"), Device("b", "board", "linux")]
    rtt = np.rint(rng.normal(40_000, 1000, 5000) + rng.normal(40_000, 1000, 5000)).astype(np.int64)
    (found,) = estimate(devices, [PairTrips("a", "b", rtt)]).latencies
    assert found.devices == ("a", "b")
    assert found.mean_ns == pytest.approx(40_000, abs=found.mean_expanded_ns)
    assert found.variance_ns2 == pytest.approx(1e6, abs=found.variance_expanded_ns2)


def test_pairs_that_do_not_tell_every_device_are_refused():
    simulated = simulated_of(4, [("d0", "d1"), ("d1", "d2"), ("d2", "d3")])
    with pytest.raises(PlanError, match="d0/d2") as refused:
        estimate(simulated.devices, simulated.trips)
    assert refused.value.missing == (("d0", "d2"),)


def test_a_hog_that_two_devices_share_is_told():
    simulated = simulated_of(4, ALL_OF_FOUR)
    first, last = simulated.trips[0], simulated.trips[-1]
    assert (first.name, last.name) == ("d0/d1", "d2/d3")
    when = hog(3000)
    slow = [disturbed(first, when, 30_000), *simulated.trips[1:-1], disturbed(last, when, 30_000)]
    found = estimate(simulated.devices, slow)
    assert any("d0/d1 and d2/d3: not independent" in doubt for doubt in found.doubts)
    assert not any(
        "not independent" in doubt for doubt in estimate(simulated.devices, simulated.trips).doubts
    )


def test_a_hog_whose_windows_are_excluded_is_not_told():
    one, other = simulated_of(4, ACROSS).trips
    when = hog(3000)
    told = correlation(disturbed(one, when, 30_000), disturbed(other, when, 30_000))
    assert told is not None
    assert not told.is_independent
    left = correlation(
        disturbed(one, when, 30_000, excluded=True), disturbed(other, when, 30_000, excluded=True)
    )
    assert left is not None
    assert left.is_independent


def test_pairs_that_remember_each_for_itself_are_independent():
    """Bins of a series that remembers go together by chance more often than those of one that does not."""
    one, other = simulated_of(4, ACROSS).trips
    for seed in range(20):
        rng = np.random.default_rng(seed)
        series = [(1e6 + 1e4 * remembering(0.99, 3000, rng)).astype(np.int64) for _ in range(2)]
        found = correlation(replace(one, rtt_ns=series[0]), replace(other, rtt_ns=series[1]))
        assert found is not None
        assert found.is_independent, seed


def test_trips_that_depend_for_too_long_wander_as_those_that_drift():
    simulated = simulated_of(3, THREE, trips=1000)
    slow = (1e6 + 1e4 * remembering(0.97, 1000, np.random.default_rng(0))).astype(np.int64)
    found = estimate(simulated.devices, [replace(simulated.trips[0], rtt_ns=slow), *simulated.trips[1:]])
    assert [each.is_long_enough for each in found.measured] == [False, True, True]
    assert all(each.drifts[0].is_stationary for each in found.measured)
    assert found.wanders
    assert not estimate(simulated.devices, simulated.trips).wanders


def test_devices_that_are_slow_together_do_not_close_in_the_variance():
    """Both devices of a pair wait for one hog: means add as ever, but the covariance comes on top twice."""
    simulated = simulated_of(4, ALL_OF_FOUR)
    rng = np.random.default_rng(3)
    trips: list[PairTrips] = []
    for each in simulated.trips:
        waiting = [name for name in (each.asker, each.reflector) if name in ("d0", "d1")]
        when = rng.random(3000) < 0.3  # one series: a pair of both waits twice at once
        trips.append(replace(each, rtt_ns=each.rtt_ns + 100_000 * len(waiting) * when, sent_mono_ns=None))
    found = estimate(simulated.devices, trips)
    assert [doubt for doubt in found.doubts if "contradict each other in the variance" in doubt]
    assert found.fits[0].chance > CHANCE


def test_what_is_not_stationary_is_named_with_its_pair():
    simulated = simulated_of(3, THREE)
    ramp = np.linspace(0, 60_000, 3000).astype(np.int64)
    moved = replace(simulated.trips[1], rtt_ns=simulated.trips[1].rtt_ns + ramp)
    doubts = estimate(simulated.devices, [simulated.trips[0], moved, simulated.trips[2]]).doubts
    assert [doubt for doubt in doubts if doubt.startswith("d0/d2: not stationary: its mean")]


def test_pairs_that_share_no_time_are_not_compared():
    one, other = simulated_of(4, ACROSS).trips
    assert other.sent_mono_ns is not None
    assert correlation(one, replace(other, sent_mono_ns=other.sent_mono_ns + 10**12)) is None
    assert correlation(one, replace(other, sent_mono_ns=None)) is None
    assert correlation(one, replace(other, excluded=np.ones(3000, np.bool_))) is None


def test_a_coarse_clock_makes_no_correlation():
    one, other = (replace(each, rtt_ns=each.rtt_ns // 10**9 + 5) for each in simulated_of(4, ACROSS).trips)
    found = correlation(one, other)
    assert found is not None
    assert found.coefficient == 0
    assert found.is_independent


def test_what_cannot_be_is_named():
    simulated = simulated_of(3, THREE)
    less = [replace(each, rtt_ns=each.rtt_ns - 10**6) for each in simulated.trips]
    assert sum("latency is below zero" in doubt for doubt in estimate(simulated.devices, less).doubts) == 3
    when = np.random.default_rng(1).random(3000) < 0.5
    first = disturbed(simulated.trips[2], when, 10**6)  # both other devices wait at once: the third pays
    doubts = estimate(simulated.devices, [*simulated.trips[:2], first]).doubts
    assert "board0 linux: variance is below zero: devices are not independent or changed" in doubts


def test_u_is_k_of_student_at_the_degrees_of_freedom_of_all_parts():
    assert expand(np.array([[3.0, 4.0]]), np.array([1e9, 1e9])) == pytest.approx(2 * 5, rel=1e-4)
    assert expand(np.array([[1.0]]), np.array([10.0])) == pytest.approx(2.28, abs=0.01)  # GUM, table G.2
    assert expand(np.array([[0.0]]), np.array([10.0])) == pytest.approx(0)


def test_nothing_at_all_is_refused():
    with pytest.raises(PlanError, match="no devices"):
        estimate([], [])
