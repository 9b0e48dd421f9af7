# SPDX-License-Identifier: Apache-2.0
"""Subsystems CHANnel, TIMebase, TRIGger and ACQuire of an InfiniiVision."""

from __future__ import annotations

from collections.abc import Callable

from hw.virtual.oscilloscope.dialect import Word, only, words
from hw.virtual.oscilloscope.keysight.front_panel import FrontPanel
from hw.virtual.oscilloscope.keysight.settings import (
    HORIZONTAL_DIVISIONS,
    REFERENCE_SHARE,
    SEGMENTS_MAX,
    SEGMENTS_MIN,
    SLOPES,
    VERTICAL_DIVISIONS,
    Channel,
    record_setup,
    sample_rate_hz,
)
from hw.virtual.oscilloscope.scpi_errors import ScpiError
from hw.virtual.oscilloscope.scpi_message import Parameters
from hw.virtual.oscilloscope.scpi_tree import Suffixes

SCALE_V = (1e-3, 10.0)
TIMEBASE_S = (1e-9, 50.0)
POSITION_S = 500.0
SKEW_S = 100e-9
OFFSET_V = 40.0
PROBE = (0.001, 10_000.0)
HOLDOFF_S = (40e-9, 10.0)


def add_commands(scope: FrontPanel, measure_all: Callable[[], None]) -> None:
    """Add the commands of these subsystems; `measure_all`: measures all segments."""
    _add_channel(scope)
    _add_timebase(scope)
    _add_trigger(scope)
    _add_acquire(scope, measure_all)


def _add_channel(scope: FrontPanel) -> None:
    def of(suffixes: Suffixes) -> Channel:
        return scope.settings.channels[suffixes[0] - 1]

    def set_scale(suffixes: Suffixes, volts_per_division: float) -> None:
        ratio = of(suffixes).probe_ratio
        if not SCALE_V[0] * ratio <= volts_per_division <= SCALE_V[1] * ratio:
            raise ScpiError(222)
        of(suffixes).scale_v = volts_per_division

    def set_offset(suffixes: Suffixes, p: Parameters) -> None:
        limit_v = OFFSET_V * of(suffixes).probe_ratio
        of(suffixes).offset_v = p.number_within(-limit_v, limit_v)

    def set_probe(suffixes: Suffixes, p: Parameters) -> None:
        channel, ratio = of(suffixes), p.number_within(*PROBE)
        factor = ratio / channel.probe_ratio
        channel.probe_ratio = ratio
        channel.scale_v *= factor
        channel.offset_v *= factor
        channel.trigger_level_v *= factor

    scope.add_setting("CHANnel<n>:SCALe", lambda s: of(s).scale_v, lambda s, p: set_scale(s, p.number()))
    scope.add_setting(
        "CHANnel<n>:RANGe",
        lambda s: of(s).scale_v * VERTICAL_DIVISIONS,
        lambda s, p: set_scale(s, p.number() / VERTICAL_DIVISIONS),
    )
    scope.add_setting("CHANnel<n>:OFFSet", lambda s: of(s).offset_v, set_offset)
    scope.add_setting("CHANnel<n>:PROBe", lambda s: of(s).probe_ratio, set_probe)
    scope.add_field("CHANnel<n>:PROBe:SKEW", of, "skew_s", lambda p: p.number_within(-SKEW_S, SKEW_S))
    scope.add_field("CHANnel<n>:DISPlay", of, "displayed", Parameters.boolean)
    scope.add_field("CHANnel<n>:INVert", of, "inverted", Parameters.boolean)
    scope.add_field("CHANnel<n>:BWLimit", of, "bandwidth_limited", Parameters.boolean)
    # Only what the front end has: direct coupling, into 1 MOhm or 50 Ohm, which makes no difference.
    scope.add_setting("CHANnel<n>:COUPling", lambda _: Word("DC"), only("DC", "AC"))
    impedance = dict.fromkeys(range(1, len(scope.hardware.signals) + 1), Word("ONEMeg"))
    scope.add_setting(
        "CHANnel<n>:IMPedance",
        lambda s: impedance[s[0]],
        lambda s, p: impedance.update({s[0]: p.choice(words(("ONEMeg", "FIFTy")))}),
    )


def _add_timebase(scope: FrontPanel) -> None:
    settings = scope.settings_of

    def set_range(_: Suffixes, p: Parameters) -> None:
        low_s, high_s = (limit_s * HORIZONTAL_DIVISIONS for limit_s in TIMEBASE_S)
        scope.settings.timebase_scale_s = p.number_within(low_s, high_s) / HORIZONTAL_DIVISIONS

    scope.add_setting("TIMebase:MODE", lambda _: Word("MAIN"), only("MAIN", "WINDow", "XY", "ROLL"))
    scope.add_field("TIMebase:SCALe", settings, "timebase_scale_s", lambda p: p.number_within(*TIMEBASE_S))
    scope.add_setting(
        "TIMebase:RANGe",
        lambda _: scope.settings.timebase_scale_s * HORIZONTAL_DIVISIONS,
        set_range,
    )
    scope.add_field(
        "TIMebase:POSition",
        settings,
        "timebase_position_s",
        lambda p: p.number_within(-POSITION_S, POSITION_S),
    )
    scope.add_field(
        "TIMebase:REFerence", settings, "timebase_reference", lambda p: p.choice(words(REFERENCE_SHARE))
    )


def _add_trigger(scope: FrontPanel) -> None:
    settings = scope.settings_of

    def set_level(_: Suffixes, p: Parameters) -> None:
        p.expect(1, 2)
        number = p.choice(scope.channel_words(), 1) if len(p) > 1 else settings().trigger_source
        channel = settings().channels[number - 1]
        limit_v = VERTICAL_DIVISIONS * channel.scale_v + abs(channel.offset_v)
        channel.trigger_level_v = p.number_within(-limit_v, limit_v)

    def get_level(_: Suffixes, p: Parameters) -> object:
        p.expect(0, 1)
        number = p.choice(scope.channel_words()) if len(p) else settings().trigger_source
        return settings().channels[number - 1].trigger_level_v

    scope.add_setting("TRIGger:MODE", lambda _: Word("EDGE"), only("EDGE", "GLITch", "PATTern"))
    scope.add_field("TRIGger:SWEep", settings, "sweep", lambda p: p.choice(words(("AUTO", "NORMal"))))
    scope.add_field("TRIGger:HOLDoff", settings, "holdoff_s", lambda p: p.number_within(*HOLDOFF_S))
    scope.add_setting(
        "TRIGger:EDGE:SOURce",
        lambda _: Word(f"CHANnel{settings().trigger_source}"),
        lambda _, p: setattr(scope.settings, "trigger_source", p.choice(scope.channel_words())),
    )
    scope.add_field("TRIGger:EDGE:SLOPe", settings, "trigger_slope", lambda p: p.choice(words(SLOPES)))
    scope.add_setting("TRIGger:EDGE:COUPling", lambda _: Word("DC"), only("DC", "AC", "LFReject"))
    scope.add_setting("TRIGger:EDGE:REJect", lambda _: Word("OFF"), only("OFF", "LFReject", "HFReject"))
    scope.commands.add("TRIGger:EDGE:LEVel", setter=set_level, getter=get_level)


def _add_acquire(scope: FrontPanel, measure_all: Callable[[], None]) -> None:
    def set_mode(_: Suffixes, p: Parameters) -> None:
        scope.settings.segmented = p.choice({"RTIMe": False, "SEGMented": True})

    def set_count(_: Suffixes, p: Parameters) -> None:
        scope.settings.segment_count = p.integer_within(SEGMENTS_MIN, SEGMENTS_MAX)

    def set_index(_: Suffixes, p: Parameters) -> None:
        scope.segment_index = p.integer_within(1, max(1, len(scope.acquisition.segments)))

    def points() -> int:
        return record_setup(scope.settings, scope.hardware, scope.displayed_channels(), 1).points

    scope.add_setting(
        "ACQuire:TYPE",
        lambda _: Word("NORMal"),
        only("NORMal", "AVERage", "HRESolution", "PEAK"),
    )
    scope.add_setting(
        "ACQuire:MODE", lambda _: Word("SEGMented" if scope.settings.segmented else "RTIMe"), set_mode
    )
    scope.add_setting("ACQuire:SEGMented:COUNt", lambda _: scope.settings.segment_count, set_count)
    scope.add_setting("ACQuire:SEGMented:INDex", lambda _: scope.segment_index, set_index)
    scope.add_action("ACQuire:SEGMented:ANALyze", lambda: _analyze(scope, measure_all))
    scope.add_query("ACQuire:SRATe", lambda _: sample_rate_hz(scope.settings, scope.hardware))
    scope.add_query("ACQuire:POINts", lambda _: points())


def _analyze(scope: FrontPanel, measure_all: Callable[[], None]) -> None:
    """Measure all segments, as the key Analyze Segments does: stopped, and in segmented mode only."""
    if scope.acquisition.running or not scope.settings.segmented:
        raise ScpiError(221)
    measure_all()
