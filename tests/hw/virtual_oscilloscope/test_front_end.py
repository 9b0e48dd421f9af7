# SPDX-License-Identifier: Apache-2.0
"""The analogue front end and the trigger, against what was put in."""

from __future__ import annotations

import itertools
import math
import tracemalloc
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest

from hw.virtual.oscilloscope import front_end
from hw.virtual.oscilloscope.edges import Edge, Progress, ReplayedEdges
from hw.virtual.oscilloscope.front_end import ChannelSetup, Hardware, InputSignal
from hw.virtual.oscilloscope.recorder import Recorder, RecordSetup, Segment
from hw.virtual.oscilloscope.timeline import EDGES_KEPT, Arrivals, Timeline, Track
from hw.virtual.oscilloscope.trigger import Slope, TriggerSetup
from tests.hw.virtual_oscilloscope.controller import crossing_s, hardware, pulses

INTERVAL_S = 200e-12
STEP_V = 4.0 / 4096
VIEW = ChannelSetup(centre_v=1.65, step_v=STEP_V, probe_ratio=1.0, bandwidth_hz=1e9, early_ps=0.0)
TRIGGER = TriggerSetup(1, Slope.RISING, 1.65, automatic=False, holdoff_s=0.0)
SETUP = RecordSetup(INTERVAL_S, 1000, 500, 1, {1: VIEW, 2: VIEW}, TRIGGER)


def arrivals(*edges: tuple[float, bool]) -> Arrivals:
    return Arrivals(False, np.array([time for time, _ in edges]), np.array([rising for _, rising in edges]))


def take(
    machine: Hardware, edges: Iterable[Edge | Progress], setup: RecordSetup, count: int
) -> list[Segment]:
    recorder = Recorder(machine, ReplayedEdges(edges))
    found = [recorder.next_segment(setup, lambda: False) for _ in range(count)]
    return [segment for segment in found if segment is not None]


def crossing_of(segment: Segment, channel: int) -> float:
    volts = segment.codes[channel].astype(np.float64) * STEP_V + VIEW.centre_v
    return crossing_s(volts, segment.first_sample_s, INTERVAL_S)


def test_the_rise_time_is_that_of_bandwidth_and_source_together():
    signal = InputSignal(low_v=0.0, high_v=1.0, rise_time_s=1e-9)
    sigma = front_end.sigma_ps(signal, 1e9)
    times_ps = np.arange(-5000.0, 5000.0)
    volts = front_end.waveform_v(times_ps, arrivals((0.0, True)), signal, sigma)
    rise_ps = float(np.searchsorted(volts, 0.9) - np.searchsorted(volts, 0.1))
    assert rise_ps == pytest.approx(math.hypot(1000, 339.6), rel=0.002)
    assert volts[5000] == pytest.approx(0.5)


def test_the_step_is_the_normal_distribution_to_its_ends():
    signal = InputSignal(low_v=0.0, high_v=1.0)
    sigmas = np.linspace(-12, 12, 200)
    volts = front_end.waveform_v(sigmas * 100.0, arrivals((0.0, True)), signal, 100.0)
    expected = [0.5 * math.erfc(-place / math.sqrt(2)) for place in sigmas]
    assert volts == pytest.approx(expected, abs=1e-14)


def test_the_front_end_passes_its_bandwidth_at_minus_3_db():
    signal = InputSignal(low_v=0.0, high_v=1.0)
    times_ps = np.arange(-4000.0, 4000.0)
    step = front_end.waveform_v(times_ps, arrivals((0.0, True)), signal, front_end.sigma_ps(signal, 1e9))
    response = np.abs(np.sum(np.diff(step) * np.exp(-2j * np.pi * 1e-3 * times_ps[1:])))  # 1 GHz
    assert response == pytest.approx(10 ** (-3.0103 / 20), rel=0.002)


def test_a_record_between_two_edges_shows_the_level_that_went_before():
    edges = [Edge(1_000_000, 2, True), Edge(2_000_000, 1, True), Edge(9_000_000, 2, False)]
    volts = take(hardware(), edges, SETUP, 1)[0].codes[2] * STEP_V + VIEW.centre_v
    assert (volts.min(), volts.max()) == (pytest.approx(3.3, abs=STEP_V), pytest.approx(3.3, abs=STEP_V))


def test_many_edges_within_a_sample_interval_keep_the_last_level():
    times_ps = np.arange(0.0, 1e9, 1e6)
    edges = arrivals(*((float(n), n % 2 == 1) for n in range(500_001, 500_100)))
    volts = front_end.waveform_v(times_ps, edges, InputSignal(), 10.0)
    assert (volts[0], volts[1], volts[-1]) == (0, pytest.approx(3.3), pytest.approx(3.3))


def test_an_edge_to_the_same_level_changes_nothing():
    signal = InputSignal()
    times_ps = np.array([0.0, 100_000.0])
    volts = front_end.waveform_v(times_ps, arrivals((50_000.0, True), (60_000.0, True)), signal, 100.0)
    assert volts.tolist() == [0.0, pytest.approx(3.3)]


@pytest.mark.parametrize("bandwidth_hz", [20e6, 1e9, 1e12])
def test_noise_has_the_deviation_asked_for_whatever_the_bandwidth(bandwidth_hz: float):
    noise = front_end.noise_v(200_000, 200.0, 0.01, bandwidth_hz, np.random.default_rng(3))
    assert noise.size == 200_000
    assert float(np.std(noise)) == pytest.approx(0.01, rel=0.05)
    neighbours = float(np.corrcoef(noise[:-1], noise[1:])[0, 1])
    assert neighbours > 0.99 if bandwidth_hz == 20e6 else neighbours < 0.9


def test_voltages_beyond_the_range_become_the_end_codes():
    volts = np.array([-100.0, 1.65, 100.0])
    assert front_end.convert(volts, VIEW, 12).tolist() == [-2048, 0, 2047]
    assert front_end.convert(np.array([0.33]), replace(VIEW, probe_ratio=10.0), 12).tolist() == [1690]


def test_equal_seeds_give_equal_records_and_others_do_not():
    machine = hardware(noise_v=0.01, trigger_jitter_ps=50)
    first, second, other = (take(m, pulses(), SETUP, 3) for m in (machine, machine, replace(machine, seed=2)))
    for one, same, different in zip(first, second, other, strict=True):
        assert one.first_sample_s == same.first_sample_s != different.first_sample_s
        assert np.array_equal(one.codes[2], same.codes[2])
        assert not np.array_equal(one.codes[2], different.codes[2])


def test_the_trigger_falls_anywhere_between_two_samples():
    phases = [
        segment.first_sample_s / INTERVAL_S + SETUP.trigger_index
        for segment in take(hardware(), pulses(), SETUP, 200)
    ]
    assert min(phases) >= 0
    assert max(phases) < 1
    assert np.histogram(phases, bins=4, range=(0, 1))[0].min() > 25


def test_the_delay_is_found_and_skew_adds_to_it():
    for skew_ps in (0.0, 812.0):
        segments = take(hardware(skew_ps=skew_ps), pulses(), SETUP, 20)
        delays_s = [crossing_of(s, 2) - crossing_of(s, 1) for s in segments]
        assert np.mean(delays_s) == pytest.approx((37_500 + skew_ps) * 1e-12, abs=2e-12)


def test_trigger_jitter_moves_both_edges_alike():
    segments = take(hardware(trigger_jitter_ps=400), pulses(), SETUP, 300)
    places_s = np.array([crossing_of(s, 1) for s in segments])
    delays_s = np.array([crossing_of(s, 2) for s in segments]) - places_s
    assert float(np.std(places_s)) == pytest.approx(400e-12, rel=0.2)
    assert float(np.std(delays_s)) < 5e-12


def test_noise_widens_the_crossings_by_noise_over_slew_rate():
    machine = hardware(noise_v=0.02)
    segments = take(machine, pulses(), SETUP, 400)
    delays_s = np.array([crossing_of(s, 2) - crossing_of(s, 1) for s in segments])
    sigma_s = front_end.sigma_ps(machine.signals[0], 1e9) * 1e-12
    slew_v_per_s = 3.3 / (sigma_s * math.sqrt(2 * math.pi))
    expected_s = math.sqrt(2) * 0.02 / slew_v_per_s
    assert 0.6 * expected_s < float(np.std(delays_s, ddof=1)) < 1.1 * expected_s
    assert float(np.mean(delays_s)) == pytest.approx(37_500e-12, abs=4 * expected_s / math.sqrt(400))


def test_a_fast_sample_clock_measures_intervals_too_long():
    setup = replace(SETUP, points=300_000, trigger_index=500)
    segments = take(hardware(timebase_error_ppm=100), pulses(delay_ps=50_000_000), setup, 3)
    delay_s = crossing_of(segments[0], 2) - crossing_of(segments[0], 1)
    assert delay_s - 50e-6 == pytest.approx(5e-9, abs=20e-12)
    assert segments[2].stamp_ps - segments[0].stamp_ps == pytest.approx(2_000_200_000, abs=1)


def test_time_stamps_and_crossings_give_the_period_despite_trigger_jitter():
    segments = take(hardware(trigger_jitter_ps=400), pulses(), SETUP, 50)
    times_ps = [s.stamp_ps + crossing_of(s, 1) * 1e12 for s in segments]
    assert np.diff(times_ps) == pytest.approx(1e9, abs=10)


def test_a_corrected_channel_is_shown_earlier():
    setup = replace(SETUP, channels={1: VIEW, 2: replace(VIEW, early_ps=812.0)})
    segments = take(hardware(skew_ps=812), pulses(), setup, 5)
    assert crossing_of(segments[0], 2) - crossing_of(segments[0], 1) == pytest.approx(37_500e-12, abs=3e-12)


@pytest.mark.parametrize(("level_v", "sigmas"), [(0.165, -1.6449), (1.65, 0.0), (2.97, 1.2816)])
def test_the_trigger_is_where_the_waveform_crosses_the_level(level_v: float, sigmas: float):
    setup = replace(SETUP, trigger=replace(TRIGGER, level_v=level_v))
    machine = hardware()
    segment = take(machine, pulses(), setup, 1)[0]
    sigma_s = front_end.sigma_ps(machine.signals[0], machine.bandwidth_hz) * 1e-12
    assert crossing_of(segment, 1) == pytest.approx(-sigmas * sigma_s, abs=3e-12)


def test_only_edges_of_the_slope_trigger():
    falling = replace(SETUP, trigger=replace(TRIGGER, slope=Slope.FALLING))
    either = replace(SETUP, trigger=replace(TRIGGER, slope=Slope.EITHER))
    assert take(hardware(), pulses(), falling, 1)[0].stamp_ps == pytest.approx(1_500_000_000, abs=1)
    stamps_ps = [s.stamp_ps for s in take(hardware(), pulses(), either, 3)]
    assert np.diff(stamps_ps) == pytest.approx(500_000_000, abs=2)


def test_a_pulse_too_short_to_reach_the_level_does_not_trigger():
    runt = [Edge(1_000_000, 1, True), Edge(1_000_100, 1, False)]
    whole = [Edge(5_000_000, 1, True), Edge(6_000_000, 1, False)]
    assert take(hardware(), runt + whole, SETUP, 1)[0].stamp_ps == pytest.approx(5_000_000, abs=1)


def test_edges_during_a_record_and_the_holdoff_do_not_trigger():
    edges = [Edge(1_000_000 * n, 1, n % 2 == 1) for n in range(1, 2000)]
    held = replace(SETUP, trigger=replace(TRIGGER, holdoff_s=10.5e-6))
    stamps_ps = [s.stamp_ps for s in take(hardware(), edges, held, 3)]
    assert np.diff(stamps_ps) == pytest.approx(12_000_000, abs=2)


def test_edges_slightly_out_of_order_are_sorted():
    edges = [Edge(2_037_500, 2, True), Edge(2_000_000, 1, True), Progress(10**9)]
    segment = take(hardware(), edges, SETUP, 1)[0]
    assert crossing_of(segment, 2) - crossing_of(segment, 1) == pytest.approx(37_500e-12, abs=3e-12)


def test_a_late_edge_of_the_same_input_takes_its_place():
    track = Track()
    for time_ps, rising in ((500, False), (100, True), (900, True)):
        track.add(time_ps, rising)
    near = track.near(100, 0.0, 500.0, 50.0)
    assert near.times_ps.tolist() == [50, 450]
    assert (near.high_before, near.rising.tolist()) == (False, [True, False])
    track.forget_before(200)
    assert track.near(300, 0.0, 100.0, 0.0).high_before


def test_the_automatic_sweep_takes_a_record_without_a_trigger():
    automatic = replace(SETUP, trigger=replace(TRIGGER, automatic=True))
    segment = take(hardware(), [], automatic, 1)[0]
    assert not segment.triggered
    assert segment.codes[1].max() < 0


def test_without_a_trigger_nothing_is_recorded_until_stopped():
    recorder = Recorder(hardware(), ReplayedEdges([]))
    asked = itertools.count()
    assert recorder.next_segment(SETUP, lambda: next(asked) > 2) is None


def test_times_of_today_lose_no_picosecond():
    day_ps = 1_800_000_000 * 10**12
    edges = [Edge(day_ps + 123, 1, True), Edge(day_ps + 37_623, 2, True)]
    segment = take(hardware(), edges, SETUP, 1)[0]
    assert segment.stamp_ps == pytest.approx(day_ps + 123, abs=1)
    assert crossing_of(segment, 2) - crossing_of(segment, 1) == pytest.approx(37_500e-12, abs=3e-12)


def test_memory_does_not_grow_with_the_number_of_edges():
    timeline = Timeline(2)
    for number in range(EDGES_KEPT + 10):
        timeline.add(Edge(number, 1, number % 2 == 1))
    assert len(timeline.tracks[1]) <= EDGES_KEPT
    recorder = Recorder(hardware(), ReplayedEdges(pulses()))
    short = replace(SETUP, points=100, trigger_index=50)
    recorder.next_segment(short, lambda: False)
    tracemalloc.start()
    for _ in range(500):
        recorder.next_segment(short, lambda: False)
    grown_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert grown_bytes < 200_000
