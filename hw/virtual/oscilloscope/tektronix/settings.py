# SPDX-License-Identifier: Apache-2.0
"""The settings of a 5 Series MSO, and the record that they ask for."""

from __future__ import annotations

import math
from dataclasses import dataclass

from hw.virtual.oscilloscope.dialect import Word
from hw.virtual.oscilloscope.front_end import PS_PER_S, ChannelSetup, Hardware
from hw.virtual.oscilloscope.recorder import RecordSetup
from hw.virtual.oscilloscope.trigger import Slope, TriggerSetup

CODES_PER_DIVISION = 25
"""Of one byte: YMULT is the scale over 25, and over 6400 with two bytes (the manuals' examples)."""

HORIZONTAL_DIVISIONS = 10
AUTOMATIC_POINTS = 10_000
POINTS_MIN = 100
SLOPES = {"RISe": Slope.RISING, "FALL": Slope.FALLING, "EITher": Slope.EITHER}

_RISE = Word("RISe")
_AUTO = Word("AUTO")
_RUN_STOP = Word("RUNSTop")
_SIGNED = Word("RIBinary")


@dataclass
class Channel:
    """Settings of one channel; `position` is in divisions."""

    displayed: bool = False
    scale_v: float = 0.1
    position: float = 0.0
    offset_v: float = 0.0
    deskew_s: float = 0.0
    inverted: bool = False
    bandwidth_hz: float = math.inf
    probe_ratio: float = 1.0
    termination_ohm: float = 1e6
    trigger_level_v: float = 0.0


@dataclass
class Settings:
    """All that *RST sets."""

    channels: list[Channel]
    stop_after: Word = _RUN_STOP
    manual: bool = False
    scale_s: float = 400e-9
    record_points: int = AUTOMATIC_POINTS
    sample_rate_hz: float = math.inf
    position_percent: float = 50.0
    delayed: bool = True
    delay_s: float = 0.0
    fast_frame: bool = False
    frame_count: int = 10
    frame_selected: int = 1
    frame_reference: int = 1
    trigger_source: int = 1
    trigger_slope: Word = _RISE
    trigger_mode: Word = _AUTO
    holdoff_s: float = 0.0


@dataclass
class Transfer:
    """What *RST leaves alone: the form of replies and of waveforms."""

    header: bool = True
    verbose: bool = True
    source: int = 1
    encoding: Word = _SIGNED
    width: int = 1
    start: int = 1
    stop: int = AUTOMATIC_POINTS
    frame_start: int = 1
    frame_stop: int = 1_000_000


def after_reset(channels: int) -> Settings:
    """Return the settings of *RST: channel 1 alone is shown."""
    return Settings([Channel(displayed=number == 1) for number in range(1, channels + 1)])


def available_rate_hz(wanted_hz: float, hardware: Hardware) -> float:
    """Return the sample rate nearest to one: the highest, or it divided by 2, 5, 10, 20, ..."""
    highest_hz = hardware.sample_rate_max_hz
    if wanted_hz >= highest_hz:
        return highest_hz
    dividers = [factor * 10**power for power in range(10) for factor in (1, 2, 5)]
    return min((highest_hz / d for d in dividers), key=lambda rate_hz: abs(math.log(rate_hz / wanted_hz)))


def sample_rate_hz(settings: Settings, hardware: Hardware) -> float:
    """Return the sample rate: as set, or the highest with which the screen has AUTOMATIC_POINTS at most."""
    if settings.manual:
        return available_rate_hz(settings.sample_rate_hz, hardware)
    divider = 1
    for divider in (factor * 10**power for power in range(12) for factor in (1, 2, 5)):
        rate_hz = hardware.sample_rate_max_hz / divider
        if settings.scale_s * HORIZONTAL_DIVISIONS * rate_hz <= AUTOMATIC_POINTS:
            break
    return hardware.sample_rate_max_hz / divider


def record_points(settings: Settings, hardware: Hardware) -> int:
    """Return the record length."""
    if settings.manual:
        return min(settings.record_points, points_max(settings, hardware))
    screen = settings.scale_s * HORIZONTAL_DIVISIONS * sample_rate_hz(settings, hardware)
    return max(POINTS_MIN, math.floor(screen * (1 + 1e-12)))


def points_max(settings: Settings, hardware: Hardware) -> int:
    """Return the longest record."""
    return hardware.memory_samples // len(settings.channels)


def frames_max(settings: Settings, hardware: Hardware) -> int:
    """Return how many frames of the present length the memory holds."""
    return max(1, points_max(settings, hardware) // record_points(settings, hardware))


def record_setup(settings: Settings, hardware: Hardware) -> RecordSetup:
    """Return how records are taken with these settings."""
    rate_hz, points = sample_rate_hz(settings, hardware), record_points(settings, hardware)
    share = 0.5 - settings.delay_s * rate_hz / points if settings.delayed else settings.position_percent / 100
    trigger_channel = settings.channels[settings.trigger_source - 1]
    frames = min(settings.frame_count, frames_max(settings, hardware)) if settings.fast_frame else 1
    shown = [number for number, channel in enumerate(settings.channels, start=1) if channel.displayed]
    return RecordSetup(
        sample_interval_s=1 / rate_hz,
        points=points,
        trigger_index=round(points * share),
        segments=frames,
        channels={number: _channel_setup(settings.channels[number - 1], hardware) for number in shown},
        trigger=TriggerSetup(
            settings.trigger_source,
            SLOPES[settings.trigger_slope],
            trigger_channel.trigger_level_v / trigger_channel.probe_ratio,
            settings.trigger_mode == "AUTO",
            settings.holdoff_s,
        ),
    )


def _channel_setup(channel: Channel, hardware: Hardware) -> ChannelSetup:
    return ChannelSetup(
        centre_v=channel.offset_v - channel.position * channel.scale_v,
        step_v=channel.scale_v / CODES_PER_DIVISION * 256 / (1 << hardware.adc_bits),
        probe_ratio=channel.probe_ratio,
        bandwidth_hz=min(channel.bandwidth_hz, hardware.bandwidth_hz),
        early_ps=channel.deskew_s * PS_PER_S,
        inverted=channel.inverted,
    )
