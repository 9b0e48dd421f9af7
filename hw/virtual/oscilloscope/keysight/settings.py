# SPDX-License-Identifier: Apache-2.0
"""The settings of an InfiniiVision as *RST leaves them, and the record that they ask for."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from hw.virtual.oscilloscope.dialect import Word
from hw.virtual.oscilloscope.front_end import PS_PER_S, ChannelSetup, Hardware
from hw.virtual.oscilloscope.recorder import RecordSetup
from hw.virtual.oscilloscope.trigger import Slope, TriggerSetup

VERTICAL_DIVISIONS = 8
HORIZONTAL_DIVISIONS = 10
BANDWIDTH_LIMIT_HZ = 20e6
SEGMENTS_MIN, SEGMENTS_MAX = 2, 1000

REFERENCE_SHARE = {"LEFT": 0.1, "CENTer": 0.5, "RIGHt": 0.9}
"""Place of the time reference on the screen, from the left: one division from an edge, or the middle."""

SLOPES = {"POSitive": Slope.RISING, "NEGative": Slope.FALLING, "EITHer": Slope.EITHER}

_CENTER = Word("CENTer")
_POSITIVE = Word("POSitive")
_AUTO = Word("AUTO")
_BYTE = Word("BYTE")
_MSB_FIRST = Word("MSBFirst")
_NORMAL = Word("NORMal")
_ON = Word("ON")


@dataclass
class Channel:
    """CHANnel subsystem of one channel."""

    displayed: bool = False
    scale_v: float = 5.0
    offset_v: float = 0.0
    probe_ratio: float = 1.0
    skew_s: float = 0.0
    bandwidth_limited: bool = False
    inverted: bool = False
    trigger_level_v: float = 0.0


@dataclass
class Settings:
    """All that *RST sets."""

    channels: list[Channel]
    timebase_scale_s: float = 100e-6
    timebase_position_s: float = 0.0
    timebase_reference: Word = _CENTER
    trigger_source: int = 1
    trigger_slope: Word = _POSITIVE
    sweep: Word = _AUTO
    holdoff_s: float = 40e-9
    segmented: bool = False
    segment_count: int = SEGMENTS_MIN
    waveform_source: int = 1
    format: Word = _BYTE
    unsigned: bool = True
    byte_order: Word = _MSB_FIRST
    points: int | None = 1000
    points_mode: Word = _NORMAL
    all_segments: bool = False
    statistics: Word = _ON
    measure_sources: tuple[int, int] = (1, 2)
    delay_edges: tuple[int, int] = (1, 1)
    delays: list[tuple[bool, int, int]] = field(default_factory=list[tuple[bool, int, int]])


def after_reset(channels: int) -> Settings:
    """Return the settings of *RST: channel 1 alone is shown."""
    return Settings([Channel(displayed=number == 1) for number in range(1, channels + 1)])


def sample_rate_hz(settings: Settings, hardware: Hardware) -> float:
    """Return the highest rate, divided by 1, 2, 5, 10, ..., at which a segment fits into its memory."""
    segments = settings.segment_count if settings.segmented else 1
    room = max(2, hardware.memory_samples // (len(settings.channels) * segments))
    divider = 1
    while settings.timebase_scale_s * HORIZONTAL_DIVISIONS * hardware.sample_rate_max_hz / divider > room:
        leading = int(str(divider)[0])
        divider = divider * {1: 2, 2: 5, 5: 10}[leading] // {1: 1, 2: 2, 5: 5}[leading]
    return hardware.sample_rate_max_hz / divider


def record_setup(settings: Settings, hardware: Hardware, channels: list[int], skew_sign: int) -> RecordSetup:
    """Return how records are taken with these settings.

    Args:
        settings: Of the front panel.
        hardware: Behind it.
        channels: Channels to acquire.
        skew_sign: 1: a positive skew shows the channel earlier; -1: later.
    """
    rate_hz = sample_rate_hz(settings, hardware)
    range_s = settings.timebase_scale_s * HORIZONTAL_DIVISIONS
    begin_s = settings.timebase_position_s - REFERENCE_SHARE[settings.timebase_reference] * range_s
    trigger_channel = settings.channels[settings.trigger_source - 1]
    return RecordSetup(
        sample_interval_s=1 / rate_hz,
        points=max(2, math.floor(range_s * rate_hz * (1 + 1e-12))),
        trigger_index=round(-begin_s * rate_hz),
        segments=settings.segment_count if settings.segmented else 1,
        channels={
            number: _channel_setup(settings.channels[number - 1], hardware, skew_sign) for number in channels
        },
        trigger=TriggerSetup(
            settings.trigger_source,
            SLOPES[settings.trigger_slope],
            trigger_channel.trigger_level_v / trigger_channel.probe_ratio,
            settings.sweep == "AUTO",
            settings.holdoff_s,
        ),
    )


def _channel_setup(channel: Channel, hardware: Hardware, skew_sign: int) -> ChannelSetup:
    limit_hz = BANDWIDTH_LIMIT_HZ if channel.bandwidth_limited else hardware.bandwidth_hz
    return ChannelSetup(
        centre_v=channel.offset_v,
        step_v=channel.scale_v * VERTICAL_DIVISIONS / (1 << hardware.adc_bits),
        probe_ratio=channel.probe_ratio,
        bandwidth_hz=min(limit_hz, hardware.bandwidth_hz),
        early_ps=skew_sign * channel.skew_s * PS_PER_S,
        inverted=channel.inverted,
    )
