# SPDX-License-Identifier: Apache-2.0
"""Take records: wait for the trigger, digitise every channel around it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hw.virtual.oscilloscope import front_end
from hw.virtual.oscilloscope.edges import Edge, EdgeSource, EndOfEdges, Progress
from hw.virtual.oscilloscope.front_end import PS_PER_S, REACH_SIGMAS, ChannelSetup, Hardware
from hw.virtual.oscilloscope.timeline import Timeline
from hw.virtual.oscilloscope.trigger import SEARCH_SIGMAS, TriggerSetup, find_crossing

POLL_S = 0.02
SETTLE_S = 0.05
"""When a live source has been silent for this long, a triggered record is taken to be complete."""

AUTOMATIC_S = 0.05
"""Time without a trigger after which the automatic sweep takes a record."""

CLIP_FACTOR = 20.0


@dataclass(frozen=True)
class RecordSetup:
    """How records are taken.

    Attributes:
        sample_interval_s: As the instrument's own clock has it.
        points: Samples of a segment.
        trigger_index: Sample at or next after the trigger; below 0 or beyond the record when the record
            begins after the trigger or ends before it.
        segments: Records of one acquisition.
        channels: Channels that are on.
        trigger: What starts a record.
    """

    sample_interval_s: float
    points: int
    trigger_index: int
    segments: int
    channels: Mapping[int, ChannelSetup]
    trigger: TriggerSetup


@dataclass(frozen=True)
class Segment:
    """One record of all channels.

    Attributes:
        codes: Codes of each channel; 0 is the centre of its range.
        setup: How it was taken.
        first_sample_s: Time of sample 0 from the trigger, by the instrument's clock.
        stamp_ps: When the trigger was, by the instrument's clock; at its first trigger ever that agrees with
            the true axis.
        triggered: False for a record of the automatic sweep.
    """

    codes: Mapping[int, NDArray[np.int16]]
    setup: RecordSetup
    first_sample_s: float
    stamp_ps: int
    triggered: bool


@dataclass(frozen=True)
class _Trigger:
    """An instant near which a record is taken: an edge's time, and the distance from it in picoseconds."""

    zero_ps: int
    distance_ps: float
    triggered: bool


class Recorder:
    """The instrument between its inputs and its memory."""

    def __init__(self, hardware: Hardware, source: EdgeSource) -> None:
        self._hardware = hardware
        self._source = source
        self._timeline = Timeline(len(hardware.signals))
        self._ended = False
        self._armed_from_ps = 0
        self._origin_ps: int | None = None
        self._serial = 0

    def rearm(self) -> None:
        """Begin an acquisition: what a live source had to say before is over."""
        last = self._source.restart()
        if last:
            self._timeline.settle(last)

    def next_segment(
        self, setup: RecordSetup, stopped: Callable[[], bool], clip: bool = False
    ) -> Segment | None:
        """Wait for a trigger and return its record, or None once `stopped` says so."""
        began_s = time.monotonic()
        while not stopped():
            trigger = self._find_trigger(setup, stopped)
            if trigger is None and setup.trigger.automatic and time.monotonic() - began_s >= AUTOMATIC_S:
                trigger = _Trigger(
                    max(self._timeline.known_until_ps, self._armed_from_ps), 0.0, triggered=False
                )
            if trigger is not None:
                return self._digitise(setup, trigger, clip)
            if not self._advance(POLL_S):
                time.sleep(POLL_S if self._ended else 0)
        return None

    def _advance(self, timeout_s: float) -> bool:
        """Take one event from the source; tell whether there was one."""
        if self._ended:
            return False
        try:
            event = self._source.take(timeout_s)
        except EndOfEdges:
            self._ended = True
            return False
        if isinstance(event, Edge):
            self._timeline.add(event)
        elif isinstance(event, Progress):
            self._timeline.known_until_ps = max(self._timeline.known_until_ps, event.time_ps)
        return event is not None

    def _margin_ps(self, setup: RecordSetup) -> float:
        """Return how far from a record an edge can be and still be seen in it."""
        hardware, trigger = self._hardware, setup.trigger.channel
        margins = [REACH_SIGMAS * front_end.sigma_ps(hardware.signals[trigger - 1], hardware.bandwidth_hz)]
        for number, channel in setup.channels.items():
            signal = hardware.signals[number - 1]
            width_ps = REACH_SIGMAS * front_end.sigma_ps(signal, channel.bandwidth_hz)
            margins.append(width_ps + abs(signal.skew_ps) + abs(channel.early_ps))
        return max(margins) + abs(hardware.signals[trigger - 1].skew_ps) + 10 * hardware.trigger_jitter_ps

    def _find_trigger(self, setup: RecordSetup, stopped: Callable[[], bool]) -> _Trigger | None:
        """Return the first trigger among the edges that are known, once its whole record is known."""
        interval_ps = setup.sample_interval_s * PS_PER_S
        margin_ps = self._margin_ps(setup)
        before_ps = max(setup.trigger_index, 0) * interval_ps + 2 * margin_ps
        after_ps = max(setup.points - setup.trigger_index + 2, 2) * interval_ps * 1.001 + 2 * margin_ps
        timeline, source = self._timeline, setup.trigger.channel
        while not stopped():
            candidate = timeline.tracks[source].first_from(self._armed_from_ps)
            if candidate is None:
                timeline.forget_before(timeline.known_until_ps - math.ceil(before_ps))
                return None
            time_ps, rising = candidate
            timeline.forget_before(time_ps - math.ceil(before_ps))
            if not self._complete(time_ps + math.ceil(after_ps), stopped):
                return None
            distance_ps = self._crossing(time_ps, rising, setup.trigger)
            if distance_ps is not None:
                return _Trigger(time_ps, distance_ps, triggered=True)
            self._armed_from_ps = time_ps + 1
        return None

    def _complete(self, until_ps: int, stopped: Callable[[], bool]) -> bool:
        """Wait until all edges up to an instant are known; False when stopped."""
        quiet_s = time.monotonic()
        while self._timeline.known_until_ps < until_ps and not self._ended:
            if stopped():
                return False
            if self._advance(POLL_S):
                quiet_s = time.monotonic()
            elif time.monotonic() - quiet_s >= SETTLE_S:
                break
        return True

    def _crossing(self, time_ps: int, rising: bool, trigger: TriggerSetup) -> float | None:
        """Return the distance from an edge to its crossing of the trigger level."""
        signal = self._hardware.signals[trigger.channel - 1]
        sigma = front_end.sigma_ps(signal, self._hardware.bandwidth_hz)
        reach_ps = (SEARCH_SIGMAS + REACH_SIGMAS) * sigma
        late_ps = signal.skew_ps
        track = self._timeline.tracks[trigger.channel]
        arrivals = track.near(time_ps, late_ps - reach_ps, late_ps + reach_ps, late_ps)
        return find_crossing(arrivals, late_ps, rising, trigger, signal, sigma)

    def _digitise(self, setup: RecordSetup, trigger: _Trigger, clip: bool) -> Segment:
        """Take the record around a trigger and go blind until the next may come."""
        hardware = self._hardware
        self._serial += 1
        generator = np.random.default_rng((hardware.seed, self._serial))
        rate = 1 + hardware.timebase_error_ppm * 1e-6
        interval_ps = setup.sample_interval_s * PS_PER_S
        seen_ps = trigger.distance_ps + generator.normal() * hardware.trigger_jitter_ps
        first_ps = (generator.random() - setup.trigger_index) * interval_ps
        places = np.arange(setup.points, dtype=np.float64)
        times_ps: NDArray[np.float64] = (places * interval_ps + first_ps) / rate + seen_ps
        codes: dict[int, NDArray[np.int16]] = {}
        for number in sorted(setup.channels):
            channel, signal = setup.channels[number], hardware.signals[number - 1]
            shown_ps = times_ps + channel.early_ps
            sigma = front_end.sigma_ps(signal, channel.bandwidth_hz)
            begin_ps, end_ps = shown_ps[0] - REACH_SIGMAS * sigma, shown_ps[-1] + REACH_SIGMAS * sigma
            arrivals = self._timeline.tracks[number].near(trigger.zero_ps, begin_ps, end_ps, signal.skew_ps)
            voltages = front_end.waveform_v(shown_ps, arrivals, signal, sigma)
            noise = np.random.default_rng((hardware.seed, self._serial, number))
            voltages += front_end.noise_v(
                setup.points, interval_ps, signal.noise_v, channel.bandwidth_hz, noise
            )
            if channel.inverted:
                voltages = -voltages
            if clip:
                centre_v = channel.centre_v / channel.probe_ratio
                voltages = centre_v + CLIP_FACTOR * (voltages - centre_v)
            codes[number] = front_end.convert(voltages, channel, hardware.adc_bits)
        ready_ps = max(float(times_ps[-1]), trigger.distance_ps) + hardware.rearm_s * PS_PER_S
        wait_ps = max(ready_ps, trigger.distance_ps + setup.trigger.holdoff_s * PS_PER_S)
        self._armed_from_ps = trigger.zero_ps + math.ceil(wait_ps)
        return Segment(
            codes,
            setup,
            first_ps / PS_PER_S,
            self._stamp(trigger.zero_ps + round(seen_ps)),
            trigger.triggered,
        )

    def _stamp(self, true_ps: int) -> int:
        """Return the instrument's own time of an instant."""
        if self._origin_ps is None:
            self._origin_ps = true_ps
        since_ps = true_ps - self._origin_ps
        return self._origin_ps + since_ps + round(since_ps * self._hardware.timebase_error_ppm * 1e-6)
