# SPDX-License-Identifier: Apache-2.0
"""Holdover: extremes over trials, time to a limit, drift, and how often the prediction holds."""

from __future__ import annotations

import numpy as np
import pytest

from reports.clock_sync.holdover import measured_holdover
from reports.clock_sync.series import ClockSeries
from reports.units import NS_PER_S


def test_a_drift_of_100_ppb_is_found_with_its_sign() -> None:
    """The paper's holdover: about 0.1 us a second."""
    offsets = np.concatenate([np.zeros(300), -100 * np.arange(1000)])
    found = measured_holdover([(ClockSeries.regular(NS_PER_S, offsets), 300 * NS_PER_S)])
    assert found is not None
    assert found.rate_ppb[0] == pytest.approx(-100)
    assert (found.low_ns[-1], found.high_ns[-1]) == (-99_900, 0)
    assert found.elapsed_ns[0] == 0


def test_the_envelope_holds_all_trials() -> None:
    up, down = 10 * np.arange(50), -20 * np.arange(80)
    found = measured_holdover(
        [(ClockSeries.regular(NS_PER_S, up), 0), (ClockSeries.regular(NS_PER_S, down, 10**12), 10**12)]
    )
    assert found is not None
    assert (found.trials, found.gaps) == (2, 0)
    assert (found.low_ns[-1], found.high_ns[-1]) == (-1580, 490)
    assert np.all(np.diff(found.high_ns) >= 0)
    assert np.all(np.diff(found.low_ns) <= 0)


def test_a_gap_is_counted_and_a_trial_without_a_loss_is_left_out() -> None:
    series = ClockSeries.from_samples(np.array([0, 1, 2, 9, 10]) * NS_PER_S, [0, 0, 0, 5, 5])
    found = measured_holdover([(series, NS_PER_S), (series, 60 * NS_PER_S)])
    assert found is not None
    assert (found.trials, found.gaps) == (1, 1)
    assert measured_holdover([(series, 60 * NS_PER_S)]) is None
