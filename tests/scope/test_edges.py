# SPDX-License-Identifier: Apache-2.0
"""Edges of frames: polarity, runts, borders, faults, and what does not go together."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from scope.edges import Edges, EdgeSettings, find_edges, rise_samples
from scope.errors import WaveformError
from scope.levels import Levels, estimate_levels
from scope.schmitt import find_transits
from scope.waveform import Frame, Scaling
from tests.scope.model import FrontEnd

INTERVAL_S = 1e-9
SCALING = Scaling(0.01, 100.0, 0.5, INTERVAL_S, -2e-9, 1, 255, 0)
LEVELS = Levels(0.5, 1.5, (1e-6,), 0.01, 1e-4)
SETTINGS = EdgeSettings(LEVELS, 4)


def frame(volts: list[float], *, scaling: Scaling = SCALING, index: int = 0, channel: int = 1) -> Frame:
    """Return a frame of uint8 codes of these volts."""
    codes = np.rint((np.array(volts) - scaling.offset_v) / scaling.volts_per_code + scaling.code_reference)
    return Frame(channel, index, codes.astype(np.uint8), scaling, None)


def step(low: int, high: int, *, base: float = 0.5, top: float = 1.5) -> list[float]:
    return [base] * low + [top] * high


def test_place_of_an_edge_follows_from_the_scaling() -> None:
    found = find_edges([frame(step(10, 10))], SETTINGS)
    # Between samples 9 and 10, of which the first is at -2 ns.
    assert found.time_s == pytest.approx([7.5e-9], abs=1e-15)
    assert found.rising.tolist() == [True]
    assert found.slope_v_s[0] > 0
    assert found.phase == pytest.approx([0.5], abs=1e-6)


def test_polarity_is_that_of_volts_not_of_codes() -> None:
    turned = Scaling(-0.01, 100.0, 1.5, INTERVAL_S, 0.0, None, None)
    found = find_edges([frame(step(10, 10), scaling=turned)], SETTINGS)
    assert found.rising.tolist() == [True]
    assert found.slope_v_s[0] > 0


def test_both_edges_of_a_pulse_are_found() -> None:
    found = find_edges([frame(step(10, 10) + [0.5] * 10)], SETTINGS)
    assert found.rising.tolist() == [True, False]
    assert found.slope_v_s[1] < 0


def test_noise_around_the_middle_makes_one_edge() -> None:
    shaky = [0.5] * 8 + [0.9, 1.05, 0.95, 1.1, 0.98, 1.05] + [1.5] * 8
    found = find_edges([frame(shaky)], SETTINGS)
    assert len(found.time_s) == 1
    assert not len(found.runt_frame)


@pytest.mark.parametrize(("peak", "runts"), [(0.7, 0), (0.95, 1), (1.1, 1), (1.25, 0)])
def test_pulse_that_falls_short_of_the_other_level_is_a_runt(peak: float, runts: int) -> None:
    found = find_edges([frame([0.5] * 10 + [peak] * 5 + [0.5] * 10)], SETTINGS)
    assert len(found.runt_frame) == runts
    assert len(found.time_s) == (2 if peak > 1.2 else 0)
    if runts:
        assert found.runt_rising.tolist() == [True]
        assert found.runt_time_s == pytest.approx([7e-9])


def test_runt_from_the_upper_level_goes_down() -> None:
    found = find_edges([frame([1.5] * 10 + [0.95] * 5 + [1.5] * 10)], SETTINGS)
    assert found.runt_rising.tolist() == [False]


def test_edge_does_not_go_on_from_one_frame_to_the_next() -> None:
    found = find_edges([frame([0.5] * 20), frame([1.5] * 20, index=1)], SETTINGS)
    assert not len(found.time_s)


def test_edge_at_the_border_of_a_frame_is_counted_not_timed() -> None:
    found = find_edges([frame(step(1, 19)), frame(step(19, 1), index=1)], SETTINGS)
    assert not len(found.time_s)
    assert found.at_border == 2


def test_clipped_frames_and_frames_with_holes_are_named() -> None:
    clipped = frame(step(10, 10))
    clipped.codes[15] = 255
    hole = frame(step(10, 10), index=1)
    hole.codes[3] = 0
    low = frame(step(10, 10), index=2)
    low.codes[3] = 1
    found = find_edges([clipped, hole, low, frame(step(10, 10), index=3)], SETTINGS)
    assert found.faults == {0: "clipped", 1: "hole", 2: "clipped"}
    assert found.frame.tolist() == [3]


def test_frames_of_several_lengths_keep_their_numbers() -> None:
    found = find_edges([frame(step(10, 10)), frame(step(5, 9), index=1), frame([], index=2)], SETTINGS)
    assert found.frame.tolist() == [0, 1]
    assert found.time_s == pytest.approx([7.5e-9, 2.5e-9], abs=1e-15)


def test_no_frames_have_no_edges() -> None:
    assert len(find_edges([], SETTINGS).time_s) == 0


@pytest.mark.parametrize(
    ("other", "text"),
    [
        (frame(step(5, 5), channel=2), "channels 1, 2"),
        (frame(step(5, 5), scaling=replace(SCALING, volts_per_code=0.02)), "volts_per_code 0.02"),
        (frame(step(5, 5), scaling=replace(SCALING, code_hole=None)), "clipped samples or holes"),
        (Frame(1, 1, np.zeros(10, np.int16), SCALING, None), "int16, uint8"),
    ],
)
def test_frames_that_do_not_go_together_are_refused(other: Frame, text: str) -> None:
    with pytest.raises(WaveformError, match=text):
        find_edges([frame(step(5, 5)), other], SETTINGS)


@pytest.mark.parametrize("interval", [0.0, -1e-9, float("nan")])
def test_scaling_without_a_sample_interval_is_refused(interval: float) -> None:
    with pytest.raises(WaveformError, match="sample_interval_s"):
        find_edges([frame(step(5, 5), scaling=replace(SCALING, sample_interval_s=interval))], SETTINGS)


def test_threshold_outside_the_hysteresis_is_refused() -> None:
    with pytest.raises(WaveformError, match=r"threshold: 0\.8"):
        EdgeSettings(LEVELS, 4, 0.8)


def test_rise_time_without_an_edge_is_refused() -> None:
    with pytest.raises(WaveformError, match="no edge in 1 frames"):
        rise_samples([frame([0.5] * 20)], LEVELS)


def same(one: Edges, other: Edges) -> bool:
    return bool(np.array_equal(one.time_s, other.time_s) and np.array_equal(one.frame, other.frame))


def test_other_sample_types_and_byte_orders_give_the_same_edges() -> None:
    rng = np.random.default_rng(2)
    frames = FrontEnd(noise_v=0.02, rise_s=3e-9, bits=8).frames(
        rng.uniform(-5, 5, (20, 1)) * INTERVAL_S, rng, interval_s=INTERVAL_S, samples=100
    )
    settings = EdgeSettings(estimate_levels(frames), 4)
    plain = find_edges(frames, settings)
    swapped = [replace(one, codes=one.codes.astype(">i2")) for one in frames]
    assert same(plain, find_edges(swapped, settings))
    small = Scaling(256 * frames[0].scaling.volts_per_code, 0.0, 1.65, INTERVAL_S, -5e-8, None, None)
    narrow = [replace(one, codes=(one.codes >> 8).astype(np.int8), scaling=small) for one in frames]
    assert find_edges(narrow, settings).time_s == pytest.approx(plain.time_s, abs=1e-15)


def by_hand(codes: NDArray[np.int16], low: int, high: int) -> list[tuple[int, int, bool]]:
    """Return (before, after, upward) of all edges, sample by sample."""
    found: list[tuple[int, int, bool]] = []
    level, since = "", 0
    for place, code in enumerate(codes.tolist()):
        now = "low" if code <= low else "high" if code >= high else ""
        if now:
            if level and now != level:
                found.append((since, place, now == "high"))
            level, since = now, place
    return found


@pytest.mark.parametrize("block", [2, 3, 7, 50, 1 << 20])
def test_blocks_find_what_a_walk_over_the_samples_finds(block: int) -> None:
    rng = np.random.default_rng(5)
    walk = np.cumsum(rng.integers(-60, 61, 4000)) % 800
    codes = np.abs(walk - 400).astype(np.int16)
    found = find_transits(codes, len(codes), 120, 280, 20.0, block)
    places = zip(found.before.tolist(), found.after.tolist(), found.upward.tolist(), strict=True)
    assert list(places) == by_hand(codes, 120, 280)
    assert len(found.before) > 20
    whole = find_transits(codes, len(codes), 120, 280, 20.0)
    assert found.runt.tolist() == whole.runt.tolist()
    assert len(whole.runt) > 5


@pytest.mark.parametrize(("low", "high"), [(10, 11), (-200, 0), (0, 200), (20, 10)])
def test_thresholds_without_room_are_refused(low: int, high: int) -> None:
    with pytest.raises(WaveformError, match="thresholds at codes"):
        find_transits(np.zeros(10, np.int8), 10, low, high, 5.0)
