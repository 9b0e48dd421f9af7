# SPDX-License-Identifier: Apache-2.0
"""Levels and noise of a signal, and signals that have none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from scope.errors import WaveformError
from scope.levels import estimate_levels
from scope.waveform import Frame
from tests.scope.model import FrontEnd

INTERVAL_S = 1e-10


def frames(
    rise: float = 5.0, count: int = 100, samples: int = 256, **front: float | bool | str
) -> list[Frame]:
    rng = np.random.default_rng(6)
    truth = rng.uniform(-10, 10, (count, 1)) * INTERVAL_S
    return FrontEnd(rise_s=rise * INTERVAL_S, **front).frames(  # type: ignore[arg-type]
        truth, rng, interval_s=INTERVAL_S, samples=samples
    )


@pytest.mark.parametrize("rise", [1.0, 5.0, 20.0])
@pytest.mark.parametrize("noise", [0.005, 0.05, 0.2])
def test_levels_and_noise_are_those_of_the_front_end(rise: float, noise: float) -> None:
    levels = estimate_levels(frames(rise, noise_v=noise))
    assert levels.base_v == pytest.approx(0.0, abs=0.1 * noise)
    assert levels.top_v == pytest.approx(3.3, abs=0.1 * noise)
    assert levels.noise_v == pytest.approx(noise, rel=0.08)


def test_middle_is_as_uncertain_as_it_scatters() -> None:
    stated: list[float] = []
    middles: list[float] = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        some = FrontEnd(rise_s=4e-10, noise_v=0.1, correlated=True).frames(
            np.zeros((4, 1)), rng, interval_s=INTERVAL_S, samples=128
        )
        levels = estimate_levels(some)
        stated.append(levels.mid_standard_v)
        middles.append(levels.at(0.5))
    assert float(np.median(stated)) == pytest.approx(float(np.std(middles)), rel=0.4)


def test_noise_is_never_less_than_rounding_leaves() -> None:
    levels = estimate_levels(frames(bits=8))
    assert levels.step_v == pytest.approx(8 / 256)
    assert levels.noise_v == pytest.approx(8 / 256 / 12**0.5)
    assert levels.mid_standard_v > 0


def test_noise_of_a_narrow_band_is_alike_from_sample_to_sample() -> None:
    white = estimate_levels(frames(8.0, noise_v=0.05))
    band = estimate_levels(frames(8.0, noise_v=0.05, correlated=True))
    assert white.covariance_v2(4)[0, 1] < 0.1 * white.covariance_v2(4)[0, 0]
    assert band.covariance_v2(4)[0, 1] > 0.8 * band.covariance_v2(4)[0, 0]


@pytest.mark.parametrize("top", [0.0, 0.1])
def test_signal_without_two_levels_is_refused(top: float) -> None:
    with pytest.raises(WaveformError, match="channel 1: no two levels"):
        estimate_levels(frames(noise_v=0.05, top_v=top))


def test_constant_signal_is_refused() -> None:
    with pytest.raises(WaveformError, match="no two levels: all samples have code 0"):
        estimate_levels(frames(top_v=0.0))


def test_only_clean_frames_count() -> None:
    some = frames(noise_v=0.01)
    scaling = replace(some[0].scaling, code_high=20000)
    limited = [replace(one, scaling=scaling) for one in some]
    limited[0].codes[:50] = 20000
    assert estimate_levels(limited).top_v == pytest.approx(3.3, abs=0.01)
    with pytest.raises(WaveformError, match="clipped, with holes or empty in all"):
        estimate_levels(limited[:1])


def test_no_frames_and_foreign_frames_are_refused() -> None:
    some = frames()
    with pytest.raises(WaveformError, match="no frames"):
        estimate_levels([])
    with pytest.raises(WaveformError, match="channels 1 and 2"):
        estimate_levels([some[0], replace(some[1], channel=2)])
