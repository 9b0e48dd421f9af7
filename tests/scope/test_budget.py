# SPDX-License-Identifier: Apache-2.0
"""Budgets of uncertainty: parts, their kinds, and the figures that they rest on."""

from __future__ import annotations

import math

import numpy as np
import pytest

from scope.budget import (
    Budget,
    EdgeQuality,
    InstrumentLimits,
    Part,
    deviation_budget,
    mean_budget,
    peak_to_peak_budget,
)
from scope.jitter import DelaySummary, DelayTally
from scope.swap import combine_swapped

EDGE = EdgeQuality(noise_s=3e-12, interpolation_s=1e-12, lean_s=0.0, threshold_s=0.5e-12)
OTHER = EdgeQuality(noise_s=4e-12, interpolation_s=1e-12, lean_s=2e-12, threshold_s=0.5e-12)
LIMITS = InstrumentLimits(2e-6, clock_jitter_s=1e-12, trigger_jitter_s=7e-12, skew_s=100e-12)
SKEW = (Part("channel_skew:2", "standard", 2e-12),)


def value(budget: Budget | None, name: str) -> float:
    assert budget is not None
    return next(part.value_s for part in budget.parts if part.name == name)


def summary(delays: np.ndarray) -> DelaySummary:
    tally = DelayTally()
    tally.add(delays)
    found = tally.summary()
    assert found is not None
    return found


def normal(count: int, deviation_s: float, mean_s: float = 1e-9) -> DelaySummary:
    return summary(np.random.default_rng(1).normal(mean_s, deviation_s, count))


def test_bounds_are_added_and_standard_deviations_by_their_squares() -> None:
    budget = Budget((Part("a", "bound", 1.0), Part("b", "standard", 3.0), Part("c", "standard", 4.0)))
    assert (budget.bound_s, budget.standard_s, budget.expanded_s) == (1.0, 5.0, 11.0)


def test_no_parts_have_no_uncertainty() -> None:
    assert Budget(()).expanded_s == 0.0


def test_mean_delay_has_the_named_parts() -> None:
    budget = mean_budget(normal(100, 20e-12, -1e-3), (EDGE, OTHER), LIMITS)
    assert budget is not None
    assert value(budget, "noise") == pytest.approx(5e-12 / 10)
    assert value(budget, "sample_interval") == pytest.approx(math.hypot(0.1e-12, 0.1e-12, 2e-12))
    assert value(budget, "clock_jitter") == pytest.approx(math.sqrt(2) * 1e-12 / 10)
    assert value(budget, "trigger") == 0.0, "both edges lie in one frame"
    assert value(budget, "threshold") == pytest.approx(math.sqrt(0.5) * 1e-12)
    assert value(budget, "time_base") == pytest.approx(2e-9)
    assert value(budget, "skew") == 100e-12
    kinds = {part.name: part.kind for part in budget.parts}
    assert {name for name, kind in kinds.items() if kind == "bound"} == {"time_base", "skew"}


def test_calibrated_skew_takes_the_place_of_the_data_sheet() -> None:
    budget = mean_budget(normal(100, 20e-12), (EDGE, OTHER), LIMITS, calibration=SKEW)
    assert budget is not None
    names = [part.name for part in budget.parts]
    assert "channel_skew:2" in names
    assert "skew" not in names


def test_mean_of_many_keeps_what_does_not_scatter() -> None:
    delays = normal(100_000, 20e-12)
    budget = mean_budget(delays, (EDGE, EDGE), LIMITS, calibration=SKEW)
    scatter = math.hypot(
        *(value(budget, name) for name in ("noise", "sample_interval", "clock_jitter", "jitter"))
    )
    assert scatter == pytest.approx(20e-12 / math.sqrt(100_000), rel=0.02)
    assert value(budget, "threshold") == pytest.approx(math.sqrt(0.5) * 1e-12)
    assert value(budget, "channel_skew:2") == 2e-12


def test_interpolation_does_not_average_out_on_one_place_between_samples() -> None:
    delays = normal(10_000, 20e-12)
    free = mean_budget(delays, (EDGE, EDGE), LIMITS)
    locked = mean_budget(delays, (EDGE, EDGE), LIMITS, phase_lock=(1.0, 1.0))
    assert value(free, "sample_interval") == pytest.approx(math.sqrt(2) * 1e-12 / 100)
    assert value(locked, "sample_interval") == pytest.approx(math.sqrt(2) * 1e-12)


def test_few_delays_have_a_larger_uncertainty_and_three_have_none() -> None:
    four = normal(4, 20e-12)
    budget = mean_budget(four, (EDGE, EDGE), LIMITS)
    assert budget is not None
    assert budget.standard_s > 1.7 * four.deviation_s / 2
    three = normal(3, 20e-12)
    assert mean_budget(three, (EDGE, EDGE), LIMITS) is None
    assert deviation_budget(three, (EDGE, EDGE), LIMITS) is None
    assert peak_to_peak_budget(three, (EDGE, EDGE), LIMITS) is None


def wandering(rng: np.random.Generator, count: int, time_constant: float) -> np.ndarray:
    """Return delays of a clock that wanders by 1 ns about 0, alike for so many edges."""
    memory = math.exp(-1 / time_constant) if time_constant else 0.0
    delays = rng.standard_normal(count)
    for index in range(1, count):
        delays[index] = memory * delays[index - 1] + math.sqrt(1 - memory**2) * delays[index]
    return delays * 1e-9


@pytest.mark.parametrize("time_constant", [0.0, 10.0, 100.0])
def test_mean_of_a_clock_that_wanders_is_within_u(time_constant: float) -> None:
    """Of independent edges U held it in 41 % of trials where edges are alike for 10, in 8 % for 100."""
    rng = np.random.default_rng(7)
    still = EdgeQuality(0.0, 0.0, 0.0, 0.0)
    exact = InstrumentLimits(0.0)
    held = 0
    for _ in range(200):
        delays = summary(wandering(rng, 2000, time_constant))
        budget = mean_budget(delays, (still, still), exact)
        assert budget is not None
        held += abs(delays.mean_s) <= budget.expanded_s
    assert held >= 181  # of 95 % in 200, less three standard deviations


def test_edges_that_do_not_show_for_how_long_they_are_alike_tell_one() -> None:
    delays = summary(np.linspace(-1e-9, 1e-9, 2000))
    budget = mean_budget(delays, (EDGE, EDGE), LIMITS)
    assert value(budget, "jitter") == pytest.approx(delays.deviation_s, rel=0.01)


def test_independent_edges_have_hardly_a_larger_uncertainty() -> None:
    rng = np.random.default_rng(2)
    found = [summary(rng.normal(0, 20e-12, 2000)) for _ in range(50)]
    larger = [value(mean_budget(each, (EDGE, EDGE), LIMITS), "jitter") for each in found]
    assert np.median(larger) == pytest.approx(20e-12 / math.sqrt(2000), rel=0.06)


@pytest.mark.parametrize("count", [4, 5, 100])
def test_repeatability_of_a_deviation_has_one_degree_of_freedom_less_than_delays(count: int) -> None:
    """GUM, E.4.3: the relative uncertainty of s is one over the root of 2 (n - 1), tails no heavier."""
    delays = summary(np.random.default_rng(1).uniform(1e-9, 1.1e-9, count))
    budget = deviation_budget(delays, (EDGE, EDGE), LIMITS)
    assert value(budget, "repeatability") == pytest.approx(delays.deviation_s / math.sqrt(2 * count - 2))


def test_repeatability_of_normal_delays_hardly_changes_by_their_fourth_moment() -> None:
    delays = normal(20_000, 20e-12)
    budget = deviation_budget(delays, (EDGE, EDGE), LIMITS)
    assert value(budget, "repeatability") == pytest.approx(delays.deviation_s / math.sqrt(40_000), rel=0.05)


def test_repeatability_of_heavy_tails_is_that_of_their_fourth_moment() -> None:
    """The variance of s is (m4 - s^4) / (4 n s^2), whatever the distribution."""
    delays_s = interrupted(np.random.default_rng(1), 2000)
    delays = summary(delays_s)
    m4_s4 = float(np.mean((delays_s - delays.mean_s) ** 4))
    expected_s = math.sqrt((m4_s4 - delays.deviation_s**4) / 2000) / (2 * delays.deviation_s)
    budget = deviation_budget(delays, (EDGE, EDGE), LIMITS)
    assert value(budget, "repeatability") == pytest.approx(expected_s, rel=0.01)
    assert expected_s > 4 * delays.deviation_s / math.sqrt(4000)


def interrupted(rng: np.random.Generator, count: int) -> np.ndarray:
    """Return delays of software of which one in a hundred was interrupted; their kurtosis is about 170."""
    delays_s = rng.normal(1.4e-6, 0.5e-6, count)
    return delays_s + np.where(rng.random(count) < 0.01, rng.uniform(0, 180e-6, count), 0.0)


def test_deviation_of_interrupted_delays_holds_that_of_many_more() -> None:
    """With the repeatability of normal delays, U held it in 17 % of trials."""
    rng = np.random.default_rng(7)
    sigma_s = float(interrupted(rng, 2_000_000).std())
    held = 0
    for _ in range(200):
        delays = summary(interrupted(rng, 2000))
        budget = deviation_budget(delays, (EDGE, EDGE), LIMITS)
        assert budget is not None
        held += abs(delays.deviation_s - sigma_s) <= budget.expanded_s
    assert held >= 180


@pytest.mark.parametrize("jitter_s", [0.0, 3e-12, 30e-12])
def test_deviation_holds_the_jitter_without_the_instrument(jitter_s: float) -> None:
    rng = np.random.default_rng(5)
    held = 0
    for _ in range(200):
        truth = rng.normal(0, jitter_s, 200)
        seen = truth + rng.normal(0, 3e-12, 200) + rng.normal(0, 4e-12, 200)
        noisy = (EdgeQuality(3e-12, 0, 0, 0), EdgeQuality(4e-12, 0, 0, 0))
        budget = deviation_budget(summary(seen), noisy, LIMITS)
        assert budget is not None
        held += abs(summary(seen).deviation_s - jitter_s) <= budget.expanded_s
    assert held >= 187


@pytest.mark.parametrize("jitter_s", [0.0, 3e-12, 30e-12])
@pytest.mark.parametrize("count", [10, 10_000])
def test_peak_to_peak_holds_that_without_the_instrument(jitter_s: float, count: int) -> None:
    rng = np.random.default_rng(5)
    held = 0
    for _ in range(100):
        truth = rng.normal(0, jitter_s, count)
        found = summary(truth + rng.normal(0, 5e-12, count))
        noisy = (EdgeQuality(3e-12, 0, 0, 0), EdgeQuality(4e-12, 0, 0, 0))
        budget = peak_to_peak_budget(found, noisy, LIMITS)
        assert budget is not None
        held += abs(found.peak_to_peak_s[count] - float(np.ptp(truth))) <= budget.expanded_s
    assert held >= 93


def test_swapped_channels_give_delay_and_skew() -> None:
    delays = [normal(100, 20e-12, mean_s) for mean_s in (30e-12, -10e-12)]
    straight, swapped = (mean_budget(each, (EDGE, OTHER), LIMITS) for each in delays)
    assert straight is not None
    assert swapped is not None
    found = combine_swapped(30e-12, -10e-12, straight, swapped)
    assert found.delay_s == pytest.approx(10e-12)
    assert found.skew_s == pytest.approx(20e-12)
    assert value(found.budget, "noise") == pytest.approx(5e-12 / 10 / math.sqrt(2))
    means_s = math.fsum(abs(each.mean_s) for each in delays)
    assert value(found.budget, "time_base") == pytest.approx(means_s / 2 * 2e-6)
    assert "skew" not in [part.name for part in found.budget.parts]
