# SPDX-License-Identifier: Apache-2.0
"""A thousand cases drawn at random: the stated uncertainty holds the truth and is not padded."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest

from scope.budget import Budget, InstrumentLimits, Part, mean_budget
from scope.delay import DelayMeter
from tests.scope.model import RISE_TIMES_BANDWIDTH, FrontEnd, acquisition

CASES = 1000
WITHIN_U_MIN = 933
WITHIN_STANDARD = (0.55, 0.80)
SAMPLES = 96
TIME_BASE_ERROR = 10e-6


@dataclass(frozen=True)
class Case:
    """A measurement and its truth; delays in s."""

    error_s: float
    budget: Budget


def draw(rng: np.random.Generator) -> Case:
    """Measure one delay with everything drawn: bandwidth, noise, skew, sample rate, amplitude, jitter."""
    interval_s = 1.0 / float(rng.choice([1e9, 2.5e9, 5e9, 10e9, 20e9]))
    # The sample rate is 3.5 to 30 times the bandwidth.
    bandwidth_hz = 1.0 / interval_s / math.exp(rng.uniform(math.log(3.5), math.log(30)))
    amplitude_v = rng.uniform(0.5, 5.0)
    front = FrontEnd(
        base_v=rng.uniform(-1, 1),
        noise_v=amplitude_v / 10 ** (rng.uniform(28, 50) / 20),
        rise_s=RISE_TIMES_BANDWIDTH / bandwidth_hz,
        shape=str(rng.choice(["gaussian", "poles", "pole"])),
        bits=int(rng.choice([8, 10, 12])),
        full_scale_v=amplitude_v * rng.uniform(1.3, 2.5),
        correlated=bool(rng.integers(2)),
    )
    front = replace(front, top_v=front.base_v + amplitude_v)
    pairs = int(rng.integers(6, 40))
    # The truth: a mean delay, jitter of each edge, a skew that the calibration knows but for its uncertainty.
    delay_s = float(rng.uniform(-8, 8) * interval_s)
    jitter_s = rng.choice([0.0, 0.02, 0.2]) * interval_s
    skew_s = float(rng.normal(0, 5) * interval_s)
    skew_standard_s = rng.uniform(0.001, 0.02) * interval_s
    known_skew_s = float(skew_s + rng.normal(0, skew_standard_s))
    reference_s = rng.uniform(-4, 4, pairs) * interval_s
    true_s = delay_s + rng.normal(0, jitter_s, pairs)
    clock_jitter_s = rng.uniform(0, 0.01) * interval_s
    shaken = rng.normal(0, clock_jitter_s, (2, pairs))
    error = rng.uniform(-1, 1) * TIME_BASE_ERROR
    first = front.frames(
        (reference_s + shaken[0])[:, None], rng, interval_s=interval_s, samples=SAMPLES, clock_error=error
    )
    second = front.frames(
        (reference_s + true_s + skew_s + shaken[1])[:, None],
        rng,
        interval_s=interval_s,
        samples=SAMPLES,
        channel=2,
        clock_error=error,
    )
    meter = DelayMeter(1, 2)
    meter.add(acquisition(first, second))
    result = meter.result()
    assert result is not None
    assert result.counts.pairs == pairs
    limits = InstrumentLimits(TIME_BASE_ERROR, clock_jitter_s)
    calibration = (Part("channel_skew:2", "standard", skew_standard_s),)
    edges = (result.reference.quality, result.other.quality)
    lock = (result.reference.phase_lock, result.other.phase_lock)
    budget = mean_budget(result.delays, edges, limits, phase_lock=lock, calibration=calibration)
    assert budget is not None
    return Case(result.delays.mean_s - known_skew_s - delay_s, budget)


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    rng = np.random.default_rng(933)
    return [draw(rng) for _ in range(CASES)]


def test_uncertainty_of_a_mean_delay_holds_the_truth(cases: list[Case]) -> None:
    assert sum(abs(one.error_s) <= one.budget.expanded_s for one in cases) >= WITHIN_U_MIN


def test_uncertainty_of_a_mean_delay_is_not_padded(cases: list[Case]) -> None:
    # Half of what the standard parts come to in U, 2 * root of squares.
    share = sum(abs(one.error_s) <= one.budget.standard_s for one in cases) / CASES
    assert WITHIN_STANDARD[0] <= share <= WITHIN_STANDARD[1]


@pytest.mark.parametrize(("factor", "padded"), [(0.5, False), (2.0, True)])
def test_a_wrong_uncertainty_is_found_out(cases: list[Case], factor: float, padded: bool) -> None:
    """Half of it would not hold the truth, twice of it would be padded: the checks above can fail."""
    held = sum(abs(one.error_s) <= factor * one.budget.expanded_s for one in cases)
    share = sum(abs(one.error_s) <= factor * one.budget.standard_s for one in cases) / CASES
    assert (held < WITHIN_U_MIN) != padded
    assert (share > WITHIN_STANDARD[1]) == padded
