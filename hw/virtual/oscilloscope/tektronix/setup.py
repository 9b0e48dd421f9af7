# SPDX-License-Identifier: Apache-2.0
"""Channels, horizontal system and edge trigger of a 5 Series MSO."""

from __future__ import annotations

import math

from hw.virtual.oscilloscope.dialect import Word, only, words
from hw.virtual.oscilloscope.scpi_errors import ScpiError
from hw.virtual.oscilloscope.scpi_message import Parameters
from hw.virtual.oscilloscope.scpi_tree import Suffixes
from hw.virtual.oscilloscope.tektronix import settings as tektronix
from hw.virtual.oscilloscope.tektronix.front_panel import FrontPanel
from hw.virtual.oscilloscope.tektronix.settings import HORIZONTAL_DIVISIONS, POINTS_MIN, SLOPES, Channel

SCALE_V = (500e-6, 10.0)
POSITION = 10.0
OFFSET_V = 40.0
DESKEW_S = 125e-9
DESKEW_STEP_S = 40e-12
BANDWIDTH_LIMITS_HZ = (20e6, 250e6)
PROBE = (1e-3, 1e6)
HORIZONTAL_S = (200e-12, 1000.0)
DELAY_S = 500.0
SAMPLE_RATE_MIN_HZ = 1.0
HOLDOFF_S = 10.0


def add_commands(scope: FrontPanel) -> None:
    """Add the commands of these groups."""
    _add_channels(scope)
    _add_horizontal(scope)
    _add_trigger(scope)


def _clipped(scope: FrontPanel, parameters: Parameters, low: float, high: float) -> float:
    """Return a number, brought into its range with a warning, as this family does."""
    value = parameters.number()
    if not low <= value <= high:
        scope.warn(528, parameters.texts[0][:40])
    return min(max(value, low), high)


def _add_channels(scope: FrontPanel) -> None:
    def of(suffixes: Suffixes) -> Channel:
        return scope.settings.channels[suffixes[0] - 1]

    def number(pattern: str, name: str, low: float, high: float) -> None:
        scope.add_field(pattern, of, name, lambda p: _clipped(scope, p, low, high))

    def set_deskew(suffixes: Suffixes, p: Parameters) -> None:
        value_s = min(max(p.number(), -DESKEW_S), DESKEW_S)  # without any complaint
        of(suffixes).deskew_s = round(value_s / DESKEW_STEP_S) * DESKEW_STEP_S

    def set_bandwidth(suffixes: Suffixes, p: Parameters) -> None:
        if p.texts[0].upper() in {"FUL", "FULL"}:
            of(suffixes).bandwidth_hz = math.inf
            return
        wanted_hz = p.number_within(1.0, 1e12)
        choices = (*BANDWIDTH_LIMITS_HZ, scope.hardware.bandwidth_hz)
        of(suffixes).bandwidth_hz = min(choices, key=lambda hz: abs(math.log(hz / wanted_hz)))

    def set_termination(suffixes: Suffixes, p: Parameters) -> None:
        of(suffixes).termination_ohm = min((50.0, 1e6), key=lambda ohm: abs(ohm - p.number()))

    def clipping(suffixes: Suffixes) -> bool:
        half = 1 << (scope.hardware.adc_bits - 1)
        codes = [segment.codes.get(suffixes[0]) for segment in scope.acquisition.segments]
        return any(bool((c == -half).any() or (c == half - 1).any()) for c in codes if c is not None)

    number("CH<n>:SCAle", "scale_v", *SCALE_V)
    number("CH<n>:POSition", "position", -POSITION, POSITION)
    number("CH<n>:OFFSet", "offset_v", -OFFSET_V, OFFSET_V)
    number("CH<n>:PROBEFunc:EXTAtten", "probe_ratio", *PROBE)
    scope.add_query("CH<n>:PRObe:GAIN", lambda _: 1.0)
    scope.add_setting("CH<n>:DESKew", lambda s: of(s).deskew_s, set_deskew)
    scope.add_setting(
        "CH<n>:BANdwidth", lambda s: min(of(s).bandwidth_hz, scope.hardware.bandwidth_hz), set_bandwidth
    )
    scope.add_setting("CH<n>:TERmination", lambda s: of(s).termination_ohm, set_termination)
    scope.add_setting("CH<n>:COUPling", lambda _: Word("DC"), only("DC", "AC", "DCREJ"))
    scope.add_query("CH<n>:CLIPping", clipping)
    scope.add_field("CH<n>:INVert", of, "inverted", Parameters.boolean)
    for pattern in ("DISplay:GLObal:CH<n>:STATE", "SELect:CH<n>"):
        scope.add_field(pattern, of, "displayed", Parameters.boolean)


def _add_horizontal(scope: FrontPanel) -> None:
    settings = scope.settings_of

    def set_mode(_: Suffixes, p: Parameters) -> None:
        manual = p.choice({"AUTO": False, "MANual": True})
        if manual and not scope.settings.manual:
            scope.settings.record_points = tektronix.record_points(scope.settings, scope.hardware)
            scope.settings.sample_rate_hz = tektronix.sample_rate_hz(scope.settings, scope.hardware)
        scope.settings.manual = manual

    def need_manual() -> None:
        if not scope.settings.manual:
            raise ScpiError(221, "HORizontal:MODe is AUTO")

    def set_points(_: Suffixes, p: Parameters) -> None:
        need_manual()
        longest = tektronix.points_max(scope.settings, scope.hardware)
        scope.settings.record_points = round(_clipped(scope, p, POINTS_MIN, longest))

    def set_rate(_: Suffixes, p: Parameters) -> None:
        need_manual()
        wanted_hz = _clipped(scope, p, SAMPLE_RATE_MIN_HZ, scope.hardware.sample_rate_max_hz)
        scope.settings.sample_rate_hz = tektronix.available_rate_hz(wanted_hz, scope.hardware)

    def get_scale() -> float:
        points = tektronix.record_points(scope.settings, scope.hardware)
        return points / tektronix.sample_rate_hz(scope.settings, scope.hardware) / HORIZONTAL_DIVISIONS

    def set_scale(_: Suffixes, p: Parameters) -> None:
        scope.settings.scale_s = _clipped(scope, p, *HORIZONTAL_S)
        if scope.settings.manual:  # the sample rate stays, the record becomes as long as the screen
            rate_hz = tektronix.sample_rate_hz(scope.settings, scope.hardware)
            longest = tektronix.points_max(scope.settings, scope.hardware)
            wanted = round(scope.settings.scale_s * HORIZONTAL_DIVISIONS * rate_hz)
            scope.settings.record_points = min(max(wanted, POINTS_MIN), longest)

    def get_rate() -> float:
        return tektronix.sample_rate_hz(scope.settings, scope.hardware)

    def get_points() -> int:
        return tektronix.record_points(scope.settings, scope.hardware)

    scope.add_setting(
        "HORizontal:MODe", lambda _: Word("MANual" if scope.settings.manual else "AUTO"), set_mode
    )
    for pattern in ("HORizontal:RECOrdlength", "HORizontal:MODe:RECOrdlength"):
        scope.add_setting(pattern, lambda _: get_points(), set_points)
    for pattern in ("HORizontal:SAMPLERate", "HORizontal:MODe:SAMPLERate"):
        scope.add_setting(pattern, lambda _: get_rate(), set_rate)
    for pattern in ("HORizontal:SCAle", "HORizontal:MODe:SCAle"):
        scope.add_setting(pattern, lambda _: get_scale(), set_scale)
    scope.add_setting(
        "HORizontal:POSition",
        lambda _: 50.0 if scope.settings.delayed else scope.settings.position_percent,
        lambda _, p: setattr(scope.settings, "position_percent", _clipped(scope, p, 0.0, 100.0)),
    )
    scope.add_field("HORizontal:DELay:MODe", settings, "delayed", Parameters.boolean)
    scope.add_field(
        "HORizontal:DELay:TIMe", settings, "delay_s", lambda p: _clipped(scope, p, -DELAY_S, DELAY_S)
    )


def _add_trigger(scope: FrontPanel) -> None:
    settings = scope.settings_of

    def set_level(suffixes: Suffixes, p: Parameters) -> None:
        channel = settings().channels[suffixes[0] - 1]
        limit_v = 10 * channel.scale_v + abs(channel.offset_v) + POSITION * channel.scale_v
        channel.trigger_level_v = _clipped(scope, p, -limit_v, limit_v)

    scope.add_setting(
        "TRIGger:A:TYPe", lambda _: Word("EDGE"), only("EDGE", "WIDth", "TIMEOut", "RUNt", "WINdow", "LOGIc")
    )
    scope.add_field("TRIGger:A:MODe", settings, "trigger_mode", lambda p: p.choice(words(("AUTO", "NORMal"))))
    scope.add_setting(
        "TRIGger:A:EDGE:SOUrce",
        lambda _: Word(f"CH{settings().trigger_source}"),
        lambda _, p: setattr(scope.settings, "trigger_source", p.choice(scope.channel_words())),
    )
    scope.add_field("TRIGger:A:EDGE:SLOpe", settings, "trigger_slope", lambda p: p.choice(words(SLOPES)))
    scope.add_setting(
        "TRIGger:A:EDGE:COUPling", lambda _: Word("DC"), only("DC", "HFRej", "LFRej", "NOISErej")
    )
    scope.add_field(
        "TRIGger:A:HOLDoff:TIMe", settings, "holdoff_s", lambda p: _clipped(scope, p, 0.0, HOLDOFF_S)
    )
    scope.add_setting(
        "TRIGger:A:LEVel:CH<n>", lambda s: settings().channels[s[0] - 1].trigger_level_v, set_level
    )
