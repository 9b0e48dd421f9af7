# SPDX-License-Identifier: Apache-2.0
"""Subsystem WAVeform of an InfiniiVision: preamble, data, segments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from hw.virtual.oscilloscope.dialect import Block, Raw, Word, words
from hw.virtual.oscilloscope.front_end import PS_PER_S
from hw.virtual.oscilloscope.keysight.front_panel import FrontPanel
from hw.virtual.oscilloscope.recorder import Segment
from hw.virtual.oscilloscope.scpi_errors import ScpiError
from hw.virtual.oscilloscope.scpi_message import Parameters, short_form
from hw.virtual.oscilloscope.scpi_tree import Suffixes

MEASUREMENT_RECORD_POINTS = 62_500
POINTS_MIN = 100
BLOCK_DIGITS = 8
FORMATS = {"BYTE": 0, "WORD": 1, "ASCii": 4}
CODE_CLIPPED_LOW = 1


def number(value: float) -> str:
    """Return a number as the X-Series writes it: nine digits, sign, exponent of three digits."""
    mantissa, _, exponent = f"{value:+.8E}".partition("E")
    return f"{mantissa}E{exponent[0]}{int(exponent[1:]):03d}"


def wire_codes(codes: NDArray[np.int16], adc_bits: int, word: bool) -> NDArray[np.uint16]:
    """Return unsigned codes as they are sent.

    The converter's bits are the upper ones of a WORD; a BYTE is its upper half. Hole is 0, clipped low is 1,
    clipped high is all ones (:WAVeform:DATA, PG3T), so no code of a measured voltage is below 2 in a BYTE.
    """
    half = 1 << (adc_bits - 1)
    full = (codes.astype(np.int32) + half) << (16 - adc_bits)
    low, high = codes == -half, codes == half - 1
    top = 0xFFFF
    if not word:
        full >>= 8
        top = 0xFF
        full = np.maximum(full, CODE_CLIPPED_LOW + 1)
    full[low] = CODE_CLIPPED_LOW
    full[high] = top
    return full.astype(np.uint16)


class WaveformReader:
    """What the waveform queries answer, from the settings and the segments acquired."""

    def __init__(self, scope: FrontPanel) -> None:
        self._scope = scope

    def segments(self) -> Sequence[Segment]:
        """Return the segments acquired.

        Raises:
            ScpiError: There is nothing of the source.
        """
        segments = self._scope.acquisition.segments
        if not segments or self._scope.settings.waveform_source not in segments[0].codes:
            raise ScpiError(230, "no waveform")
        return segments

    def selected(self) -> Segment:
        """Return the segment of :ACQuire:SEGMented:INDex."""
        segments = self.segments()
        return segments[min(self._scope.segment_index, len(segments)) - 1]

    def step(self) -> int:
        """Return every which sample is sent."""
        settings, available = self._scope.settings, self.selected().setup.points
        raw = settings.points_mode != "NORMal" and not self._scope.acquisition.running
        limit = available if raw else MEASUREMENT_RECORD_POINTS
        wanted = min(limit, available if settings.points is None else settings.points)
        return -(-available // wanted)

    def points(self) -> int:
        """Return the samples sent of each segment."""
        return -(-self.selected().setup.points // self.step())

    def x_increment_s(self) -> float:
        """Return the time between samples sent."""
        return self.selected().setup.sample_interval_s * self.step()

    def y_increment_v(self) -> float:
        """Return volts a code; of the setup that the segments were taken with."""
        scope = self._scope
        step_v = self.selected().setup.channels[scope.settings.waveform_source].step_v
        range_v = step_v * (1 << scope.hardware.adc_bits)
        return range_v / (65536 if scope.settings.format == "WORD" else 256)

    def y_origin_v(self) -> float:
        """Return the voltage of the centre of the screen."""
        return self.selected().setup.channels[self._scope.settings.waveform_source].centre_v

    def y_reference(self) -> int:
        """Return the code of the centre of the screen."""
        if not self._scope.settings.unsigned:
            return 0
        return 32768 if self._scope.settings.format == "WORD" else 128

    def preamble(self) -> str:
        """Return the ten fields of the preamble."""
        fields = [
            f"{FORMATS[self._scope.settings.format]:+d}",
            "+0",
            f"{self.points():+d}",
            "+1",
            number(self.x_increment_s()),
            number(self.selected().first_sample_s),
            "+0",
            number(self.y_increment_v()),
            number(self.y_origin_v()),
            f"{self.y_reference():+d}",
        ]
        return ",".join(fields)

    def data(self) -> Block:
        """Return the samples of the selected segment, or of all."""
        settings = self._scope.settings
        segments = self.segments() if settings.all_segments else [self.selected()]
        step = self.step()
        return self._scope.waveform_block(
            b"".join(self._encode(segment.codes[settings.waveform_source][::step]) for segment in segments)
            if settings.format != "ASCii"
            else self._ascii(segment.codes[settings.waveform_source][::step] for segment in segments),
            BLOCK_DIGITS,
        )

    def _encode(self, codes: NDArray[np.int16]) -> bytes:
        settings = self._scope.settings
        word = settings.format == "WORD"
        wire = wire_codes(codes, self._scope.hardware.adc_bits, word).astype(np.int32)
        if not settings.unsigned:
            wire -= self.y_reference() or (32768 if word else 128)
        kind = f"{'u' if settings.unsigned else 'i'}{2 if word else 1}"
        order = ">" if settings.byte_order == "MSBFirst" else "<"
        return wire.astype(np.dtype(order + kind)).tobytes()

    def _ascii(self, segments: Iterable[NDArray[np.int16]]) -> bytes:
        channel = self.selected().setup.channels[self._scope.settings.waveform_source]
        values = (float(code) * channel.step_v + channel.centre_v for codes in segments for code in codes)
        return ",".join(map(number, values)).encode()

    def time_tag_s(self, segment: Segment) -> float:
        """Return seconds since the trigger of the first segment."""
        return (segment.stamp_ps - self.segments()[0].stamp_ps) / PS_PER_S

    def times(self, kind: str) -> str:
        """Return the list of all segments' times: RELXorigin, ABSXorigin or TTAG."""
        values: list[float] = []
        for segment in self.segments():
            origin_s = segment.first_sample_s if kind != "TTAG" else 0.0
            values.append(origin_s + (self.time_tag_s(segment) if kind != "RELXorigin" else 0.0))
        return ",".join(map(number, values))


def add_commands(scope: FrontPanel) -> None:
    """Add the commands of the subsystem."""
    reader = WaveformReader(scope)
    settings = scope.settings_of

    def set_source(_: Suffixes, p: Parameters) -> None:
        scope.settings.waveform_source = p.choice(scope.channel_words())
        scope.settings.channels[scope.settings.waveform_source - 1].displayed = True

    def set_points(_: Suffixes, p: Parameters) -> None:
        if p.texts[0].upper() in {"MAX", "MAXIMUM"}:
            settings().points, settings().points_mode = None, Word("MAXimum")
        else:
            settings().points = p.integer_within(POINTS_MIN, 1_000_000_000)

    scope.add_setting("WAVeform:SOURce", lambda _: Word(f"CHANnel{settings().waveform_source}"), set_source)
    scope.add_field("WAVeform:FORMat", settings, "format", lambda p: p.choice(words(FORMATS)))
    scope.add_field("WAVeform:UNSigned", settings, "unsigned", Parameters.boolean)
    scope.add_field(
        "WAVeform:BYTeorder", settings, "byte_order", lambda p: p.choice(words(("MSBFirst", "LSBFirst")))
    )
    scope.add_setting(
        "WAVeform:POINts",
        lambda _: reader.points() if scope.acquisition.segments else settings().points or 0,
        set_points,
    )
    scope.add_field(
        "WAVeform:POINts:MODE",
        settings,
        "points_mode",
        lambda p: p.choice(words(("NORMal", "MAXimum", "RAW"))),
    )
    scope.add_field("WAVeform:SEGMented:ALL", settings, "all_segments", Parameters.boolean)
    _add_queries(scope, reader)


def _add_queries(scope: FrontPanel, reader: WaveformReader) -> None:
    def times(_: Suffixes, p: Parameters) -> object:
        p.expect(1)
        kind = p.choice({name: name for name in ("RELXorigin", "ABSXorigin", "TTAG")})
        text = reader.times(kind).encode()
        return Block(f"#{BLOCK_DIGITS}{len(text):0{BLOCK_DIGITS}d}".encode() + text)

    scope.add_query("WAVeform:PREamble", lambda _: Raw(reader.preamble()))
    scope.add_query("WAVeform:DATA", lambda _: reader.data())
    scope.add_query("WAVeform:COUNt", lambda _: 1)
    scope.add_query("WAVeform:TYPE", lambda _: Word("NORMal"))
    scope.add_query("WAVeform:XINCrement", lambda _: reader.x_increment_s())
    scope.add_query("WAVeform:XORigin", lambda _: reader.selected().first_sample_s)
    scope.add_query("WAVeform:XREFerence", lambda _: 0)
    scope.add_query("WAVeform:YINCrement", lambda _: reader.y_increment_v())
    scope.add_query("WAVeform:YORigin", lambda _: reader.y_origin_v())
    scope.add_query("WAVeform:YREFerence", lambda _: reader.y_reference())
    scope.add_query(
        "WAVeform:SEGMented:COUNt",
        lambda _: len(scope.acquisition.segments) if scope.settings.segmented else 0,
    )
    scope.add_query("WAVeform:SEGMented:TTAG", lambda _: reader.time_tag_s(reader.selected()))
    scope.commands.add("WAVeform:SEGMented:XLISt", getter=times)
    scope.add_query("WAVeform", lambda _: Raw(_dump(scope)))


def _dump(scope: FrontPanel) -> str:
    """Return the subsystem's settings: the one kind of reply with headers."""
    settings = scope.settings
    points = settings.points or 0
    return (
        f":WAV:UNS {int(settings.unsigned)};VIEW MAIN;BYT {short_form(settings.byte_order)};"
        f"FORM {short_form(settings.format)};POIN {points:+d};"
        f"SOUR CHAN{settings.waveform_source};SOUR:SUBS NONE"
    )
