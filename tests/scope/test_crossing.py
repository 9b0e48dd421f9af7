# SPDX-License-Identifier: Apache-2.0
"""Crossings between samples: how exact they are, and that the noise left in them is known."""

from __future__ import annotations

import numpy as np
import pytest

from scope.crossing import crossing_noise_v, fit_samples
from scope.edges import EdgeSettings, find_edges, rise_samples, settle_fit
from scope.levels import estimate_levels
from tests.scope.model import FrontEnd

INTERVAL_S = 1e-10
FRAMES, SAMPLES = 1000, 128


def errors(rise: float, snr_db: float, *, correlated: bool = False) -> tuple[np.ndarray, float, int]:
    """Return errors in samples of edges that take so many samples, the stated noise of them, and the fit."""
    rng = np.random.default_rng(11)
    truth_s = rng.uniform(-10, 10, FRAMES) * INTERVAL_S
    front = FrontEnd(noise_v=3.3 / 10 ** (snr_db / 20), rise_s=rise * INTERVAL_S, correlated=correlated)
    frames = front.frames(truth_s[:, None], rng, interval_s=INTERVAL_S, samples=SAMPLES)
    levels = estimate_levels(frames[:100])
    fit = settle_fit(frames[:100], levels)
    found = find_edges(frames, EdgeSettings(levels, fit))
    assert len(found.time_s) == FRAMES
    assert found.rising.all()
    slope = float(np.abs(found.slope_v_s).mean()) * INTERVAL_S
    return (found.time_s - truth_s[found.frame]) / INTERVAL_S, crossing_noise_v(levels, fit) / slope, fit


@pytest.mark.parametrize("rise", [1.3, 1.75, 2.5, 3.5, 5.0, 7.0, 10.0, 14.0])
def test_crossing_at_40_db_is_found_to_a_twentieth_of_an_interval(rise: float) -> None:
    # 40 dB: noise of a hundredth of the amplitude.
    found, _, _ = errors(rise, 40)
    assert float(np.median(np.abs(found))) <= 0.05


@pytest.mark.parametrize("rise", [1.3, 3.5, 10.0])
def test_bar_of_40_db_is_missed_with_five_times_the_noise(rise: float) -> None:
    found, _, _ = errors(rise, 26)
    assert float(np.median(np.abs(found))) > 0.05


@pytest.mark.parametrize("correlated", [False, True])
@pytest.mark.parametrize("rise", [2.5, 5.0, 10.0, 14.0])
def test_noise_left_in_a_crossing_is_stated(rise: float, correlated: bool) -> None:
    found, stated, _ = errors(rise, 40, correlated=correlated)
    assert stated == pytest.approx(float(np.std(found)), rel=0.15)


def test_longer_fit_takes_noise_away_where_edges_are_sampled_finely() -> None:
    _, stated, fit = errors(14.0, 40)
    assert fit > 4
    assert stated < 0.08  # four samples would leave 0.11


def test_edges_without_noise_are_found_without_bias() -> None:
    found, _, _ = errors(5.0, 120)
    assert float(np.abs(found).max()) < 0.005


@pytest.mark.parametrize("rise", [2.5, 4.0, 12.0])
def test_rise_time_is_told_from_the_samples(rise: float) -> None:
    rng = np.random.default_rng(4)
    frames = FrontEnd(noise_v=0.01, rise_s=rise * INTERVAL_S).frames(
        rng.uniform(-1, 1, (200, 1)) * INTERVAL_S, rng, interval_s=INTERVAL_S, samples=SAMPLES
    )
    assert rise_samples(frames, estimate_levels(frames)) == pytest.approx(rise, rel=0.15)


def test_fit_has_an_even_number_of_samples_between_its_limits() -> None:
    sizes = [fit_samples(rise) for rise in (0.5, 3, 8, 10, 14, 20, 1e6)]
    assert sizes == [4, 4, 6, 6, 8, 12, 64]
