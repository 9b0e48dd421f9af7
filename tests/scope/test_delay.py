# SPDX-License-Identifier: Apache-2.0
"""Delays over acquisitions: counts of what became of segments, and what does not go together."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from scope.delay import DelayMeter
from scope.errors import WaveformError
from scope.pairs import PairSettings
from scope.waveform import Acquisition, Frame
from tests.scope.model import FrontEnd, acquisition

INTERVAL_S = 1e-10
SAMPLES = 128
FRONT = FrontEnd(noise_v=0.02, rise_s=4 * INTERVAL_S)


def channel(
    edges_s: list[list[float]], number: int, seed: int = 1, interval_s: float = INTERVAL_S
) -> list[Frame]:
    rng = np.random.default_rng(seed + 100 * number)
    return FRONT.frames(edges_s, rng, interval_s=interval_s, samples=SAMPLES, channel=number)


def both(count: int, delay_s: float, seed: int = 1) -> Acquisition:
    starts = np.random.default_rng(seed).uniform(-10, 10, count) * INTERVAL_S
    return acquisition(
        channel([[float(t)] for t in starts], 1, seed),
        channel([[float(t) + delay_s] for t in starts], 2, seed),
    )


def test_delays_of_all_acquisitions_are_counted() -> None:
    meter = DelayMeter(1, 2)
    assert meter.result() is None
    for seed in range(5):
        pairs = meter.add(both(40, 1.3e-9, seed))
        assert len(pairs.delay_s) == 40
    found = meter.result()
    assert found is not None
    assert found.delays.count == 200
    assert found.delays.mean_s == pytest.approx(1.3e-9, abs=1e-12)
    assert found.counts.pairs == found.counts.segments == found.counts.wanted == 200
    assert found.reference.rise == pytest.approx(4, rel=0.15)
    assert found.reference.phase_lock < 0.1


def test_sign_turns_with_the_roles() -> None:
    meter = DelayMeter(2, 1)
    meter.add(both(40, 1.3e-9))
    found = meter.result()
    assert found is not None
    assert found.delays.mean_s == pytest.approx(-1.3e-9, abs=5e-12)


def test_edges_at_one_place_between_samples_are_noticed() -> None:
    meter = DelayMeter(1, 2)
    edges = [[0.0]] * 50
    meter.add(acquisition(channel(edges, 1), channel(edges, 2)))
    found = meter.result()
    assert found is not None
    assert found.reference.phase_lock > 0.95


def test_what_became_of_each_segment_is_told() -> None:
    edges = [[0.0]] * 8
    first, second = channel(edges, 1), channel(edges, 2)
    first[0].codes[3] = second[1].codes[3] = 32767
    first[2] = replace(first[2], codes=np.full(SAMPLES, first[2].codes[0]))
    second[3] = replace(second[3], codes=np.full(SAMPLES, second[3].codes[0]))
    runt = second[4].codes.astype(np.float64)
    second[4] = replace(second[4], codes=(runt[0] + (runt - runt[0]) * 0.6).astype(np.int16))
    second[4].codes[100:] = second[4].codes[0]
    clipping = replace(first[0].scaling, code_high=32767)
    frames = [replace(one, scaling=clipping) for one in (*first, *second[:7])]
    meter = DelayMeter(1, 2, PairSettings(within_s=3e-9))
    meter.add(Acquisition("MODEL", tuple(frames), 10))
    counts = meter.counts
    assert (counts.wanted, counts.segments, counts.incomplete) == (10, 7, 1)
    assert (counts.clipped, counts.holes, counts.no_reference) == (2, 0, 1)
    assert (counts.pairs, counts.missing, counts.runt, counts.extra) == (2, 1, 1, 1)


def test_order_of_frames_does_not_matter() -> None:
    one, other = DelayMeter(1, 2), DelayMeter(1, 2)
    taken = both(20, 1e-9)
    turned = replace(taken, frames=tuple(reversed(taken.frames)))
    assert one.add(taken).delay_s.tolist() == other.add(turned).delay_s.tolist()


def test_what_does_not_go_together_is_refused() -> None:
    taken = both(10, 0.0)
    with pytest.raises(WaveformError, match="channel 1 stands for both"):
        DelayMeter(1, 1)
    with pytest.raises(WaveformError, match="MODEL,1,2,3: no frame of channel 3"):
        DelayMeter(1, 3).add(taken)
    shifted = [replace(one, index=one.index + 50) if one.channel == 2 else one for one in taken.frames]
    with pytest.raises(WaveformError, match="no segment of both channels"):
        DelayMeter(1, 2).add(replace(taken, frames=tuple(shifted)))
    meter = DelayMeter(1, 2)
    meter.add(taken)
    edges = [[0.0]] * 5
    slower = acquisition(*(channel(edges, number, interval_s=2e-10) for number in (1, 2)))
    with pytest.raises(WaveformError, match="sample_interval_s 2e-10, first acquisition 1e-10"):
        meter.add(slower)
