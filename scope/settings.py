# SPDX-License-Identifier: Apache-2.0
"""How an oscilloscope is set up, in words that no maker owns, and what it really set."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum

from scope.errors import ScopeError

LARGEST_CHANNEL = 8
TERMINATIONS_OHM = (50, 1_000_000)
LONGEST_DESKEW_S = 100e-9
"""What both families accept: InfiniiVision 100 ns (unverified), 4/5/6 Series MSO 125 ns."""


class SettingsError(ScopeError, ValueError):
    """Say that a setting is outside of what any instrument can do; the text names field and range."""


class Coupling(StrEnum):
    """What of the signal passes an input."""

    DC = "dc"
    AC = "ac"


class Slope(StrEnum):
    """Direction of an edge."""

    RISING = "rising"
    FALLING = "falling"


def _in_range(name: str, value: float, low: float, high: float) -> None:
    if not (math.isfinite(value) and low <= value <= high):
        raise SettingsError(f"{name}: must be in {low:g}..{high:g}, found {value!r}")


@dataclass(frozen=True)
class ChannelSettings:
    """One input.

    Attributes:
        number: As on the instrument's front.
        scale_v_per_div: Height of one division, at the tip of the probe.
        offset_v: Voltage at the middle of the screen, at the tip of the probe.
        coupling: What passes.
        termination_ohm: 50 or 1,000,000. 50 ohm stands 5 V RMS at most.
        probe_ratio: By how much probe and cable divide the signal in all: a x10 probe has 10.
        bandwidth_limit_hz: None: the full bandwidth.
        deskew_s: By how much the instrument is to show this channel earlier; see docs/oscilloscopes.md.
    """

    number: int
    scale_v_per_div: float
    offset_v: float = 0.0
    coupling: Coupling = Coupling.DC
    termination_ohm: int = 1_000_000
    probe_ratio: float = 1.0
    bandwidth_limit_hz: float | None = None
    deskew_s: float = 0.0

    def __post_init__(self) -> None:
        name = f"channel {self.number}"
        _in_range("channel", self.number, 1, LARGEST_CHANNEL)
        _in_range(f"{name}: scale_v_per_div", self.scale_v_per_div, 1e-4, 1000.0)
        _in_range(f"{name}: offset_v", self.offset_v, -10_000.0, 10_000.0)
        _in_range(f"{name}: probe_ratio", self.probe_ratio, 1e-3, 1e4)
        _in_range(f"{name}: deskew_s", self.deskew_s, -LONGEST_DESKEW_S, LONGEST_DESKEW_S)
        if self.bandwidth_limit_hz is not None:
            _in_range(f"{name}: bandwidth_limit_hz", self.bandwidth_limit_hz, 1e6, 1e11)
        if self.termination_ohm not in TERMINATIONS_OHM:
            raise SettingsError(
                f"{name}: termination_ohm: must be 50 or 1000000, found {self.termination_ohm!r}"
            )


@dataclass(frozen=True)
class TimebaseSettings:
    """What part of time one record shows.

    Attributes:
        window_s: Length of the record.
        centre_s: Middle of the record, after the trigger.
        lowest_sample_rate_hz: A lower one is an error; None: any will do.
    """

    window_s: float
    centre_s: float = 0.0
    lowest_sample_rate_hz: float | None = None

    def __post_init__(self) -> None:
        _in_range("window_s", self.window_s, 1e-9, 1000.0)
        _in_range("centre_s", self.centre_s, -1000.0, 1000.0)
        if self.lowest_sample_rate_hz is not None:
            _in_range("lowest_sample_rate_hz", self.lowest_sample_rate_hz, 1.0, 1e12)


@dataclass(frozen=True)
class TriggerSettings:
    """The edge that starts a record. There is no automatic trigger: without an edge there is no record."""

    channel: int
    level_v: float
    slope: Slope = Slope.RISING


@dataclass(frozen=True)
class OscilloscopeSettings:
    """All that one kind of acquisition needs.

    Attributes:
        channels: The inputs that are recorded; all others are switched off.
        timebase: What part of time.
        trigger: The edge that starts a record.
        segments: Records that one arming takes (segmented memory, FastFrame).
        sample_bytes: 2 keeps all that the converter gives; 1 halves the transfer.
        allow_clipped: Whether samples at the converter's end are handed on; else they are an error.
    """

    channels: tuple[ChannelSettings, ...]
    timebase: TimebaseSettings
    trigger: TriggerSettings
    segments: int = 1
    sample_bytes: int = 2
    allow_clipped: bool = False

    def __post_init__(self) -> None:
        numbers = [channel.number for channel in self.channels]
        if not numbers or len(set(numbers)) != len(numbers):
            raise SettingsError(f"channels: must be distinct, at least one, found {numbers}")
        if self.trigger.channel not in numbers:
            raise SettingsError(f"trigger: channel must be one of {numbers}, found {self.trigger.channel}")
        _in_range("segments", self.segments, 1, 1_000_000)
        if self.sample_bytes not in (1, 2):
            raise SettingsError(f"sample_bytes: must be 1 or 2, found {self.sample_bytes!r}")


@dataclass(frozen=True)
class RealisedChannel:
    """What the instrument says that it has set; it rounds, and some cut without a word."""

    number: int
    scale_v_per_div: float
    offset_v: float
    deskew_s: float
    bandwidth_hz: float | None
    """None: the instrument only tells that a limit is on or off."""


@dataclass(frozen=True)
class RealisedSettings:
    """What the instrument says that it has set."""

    channels: tuple[RealisedChannel, ...]
    window_s: float
    sample_rate_hz: float
    segments: int
    remarks: tuple[str, ...] = field(default=())
    """Warnings of the instrument that were no errors."""
