# SPDX-License-Identifier: Apache-2.0
"""The ratio of two spreads: its interval holds the truth, also of offsets that follow each other closely."""

from __future__ import annotations

import math

import numpy as np
import pytest

from reports.clock_sync import spread
from reports.clock_sync.series import ClockSeries
from reports.clock_sync.spread import spread_ns, spread_ratio

TAU0_NS = 100_000_000


def _wandering(
    rng: np.random.Generator, deviation_ns: float, n: int = 600, memory: float = 0.8
) -> ClockSeries:
    """Return a first-order autoregression; its samples are alike for half a second unless told otherwise."""
    steps = rng.normal(0.0, deviation_ns * np.sqrt(1 - memory**2), n)
    offsets = np.empty(n)
    offsets[0] = rng.normal(0.0, deviation_ns)
    for index in range(1, n):
        offsets[index] = memory * offsets[index - 1] + steps[index]
    return ClockSeries.regular(TAU0_NS, offsets)


def test_spread_of_a_normal_distribution() -> None:
    offsets = np.random.default_rng(1).normal(5_000.0, 1_000.0, 200_000)
    assert spread_ns(offsets) == pytest.approx(1_960, rel=0.02)


@pytest.mark.parametrize("time_constant_s", [0.01, 0.5, 5.0])
def test_interval_holds_the_true_ratio(monkeypatch: pytest.MonkeyPatch, time_constant_s: float) -> None:
    """Whatever the clock's memory: with blocks of 1 s it held in 22 of 40 where offsets are alike for 5 s."""
    monkeypatch.setattr(spread, "RESAMPLES", 200)
    rng = np.random.default_rng(2)
    memory = math.exp(-TAU0_NS / 1e9 / time_constant_s)
    held = 0
    for _ in range(40):
        first, second = (_wandering(rng, deviation_ns, 1500, memory) for deviation_ns in (20_000, 1_000))
        found = spread_ratio(first, second)
        assert found is not None
        assert found.lower < found.ratio < found.upper
        held += found.lower <= 20 <= found.upper
    assert held >= 33  # of 95 % in 40, less two and a half standard deviations


def test_equal_clocks_are_not_told_apart() -> None:
    rng = np.random.default_rng(3)
    found = spread_ratio(_wandering(rng, 1_000), _wandering(rng, 1_000))
    assert found is not None
    assert found.lower < 1 < found.upper
    assert found.fits


def test_offsets_that_depend_for_too_long_are_told() -> None:
    rng = np.random.default_rng(5)
    ramp = ClockSeries.regular(TAU0_NS, np.arange(600.0) + rng.normal(0.0, 1.0, 600))
    found = spread_ratio(ramp, _wandering(rng, 1_000))
    assert found is not None
    assert not found.fits


def test_too_short_or_without_scatter() -> None:
    rng = np.random.default_rng(4)
    assert spread_ratio(_wandering(rng, 1_000, 40), _wandering(rng, 1_000)) is None
    assert spread_ratio(_wandering(rng, 1_000), ClockSeries.regular(TAU0_NS, np.zeros(600))) is None
