# SPDX-License-Identifier: Apache-2.0
"""The ratio of two spreads: its interval holds the truth, also of offsets that follow each other closely."""

from __future__ import annotations

import numpy as np
import pytest

from reports.clock_sync.series import ClockSeries
from reports.clock_sync.spread import spread_ns, spread_ratio

TAU0_NS = 100_000_000


def _wandering(rng: np.random.Generator, deviation_ns: float, n: int = 600) -> ClockSeries:
    """Return a first-order autoregression whose samples are alike for half a second."""
    memory = 0.8
    steps = rng.normal(0.0, deviation_ns * np.sqrt(1 - memory**2), n)
    offsets = np.empty(n)
    offsets[0] = rng.normal(0.0, deviation_ns)
    for index in range(1, n):
        offsets[index] = memory * offsets[index - 1] + steps[index]
    return ClockSeries.regular(TAU0_NS, offsets)


def test_spread_of_a_normal_distribution() -> None:
    offsets = np.random.default_rng(1).normal(5_000.0, 1_000.0, 200_000)
    assert spread_ns(offsets) == pytest.approx(1_960, rel=0.02)


def test_interval_holds_the_true_ratio() -> None:
    rng = np.random.default_rng(2)
    held = 0
    for _ in range(20):
        found = spread_ratio(_wandering(rng, 20_000), _wandering(rng, 1_000))
        assert found is not None
        assert found.lower < found.ratio < found.upper
        held += found.lower <= 20 <= found.upper
    assert (
        held >= 15
    )  # a bootstrap of blocks is a little too sure: 15 of 20 is far below chance for one that is not


def test_equal_clocks_are_not_told_apart() -> None:
    rng = np.random.default_rng(3)
    found = spread_ratio(_wandering(rng, 1_000), _wandering(rng, 1_000))
    assert found is not None
    assert found.lower < 1 < found.upper


def test_too_short_or_without_scatter() -> None:
    rng = np.random.default_rng(4)
    assert spread_ratio(_wandering(rng, 1_000, 40), _wandering(rng, 1_000)) is None
    assert spread_ratio(_wandering(rng, 1_000), ClockSeries.regular(TAU0_NS, np.zeros(600))) is None
