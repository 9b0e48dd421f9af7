# SPDX-License-Identifier: Apache-2.0
"""Waveform transfer of a 5 Series MSO: DATa, WFMOutpre, CURVe."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hw.virtual.oscilloscope.dialect import Block, Raw, Word, words
from hw.virtual.oscilloscope.recorder import Segment
from hw.virtual.oscilloscope.scpi_errors import ScpiError
from hw.virtual.oscilloscope.scpi_message import Parameters
from hw.virtual.oscilloscope.tektronix.fast_frame import sub_sample_s
from hw.virtual.oscilloscope.tektronix.front_panel import FrontPanel
from hw.virtual.oscilloscope.tektronix.replies import Fields, QuotedString

POINTS_MAX = 1_000_000_000
FRAMES_MAX = 1_000_000
ENCODINGS = ("ASCIi", "RIBinary", "RPBinary", "SRIbinary", "SRPbinary")


@dataclass(frozen=True)
class Encoding:
    """What an encoding means: text or binary, with or without sign, and which byte comes first."""

    binary: bool
    signed: bool
    low_byte_first: bool


def encoding(word: str) -> Encoding:
    """Return what a choice of DATa:ENCdg means; a leading S swaps the bytes."""
    return Encoding(word != "ASCIi", "P" not in word, word.startswith("S"))


def wire_codes(codes: NDArray[np.int16], adc_bits: int, width: int) -> NDArray[np.int32]:
    """Return signed codes of one or two bytes; what is clipped becomes the ends of the range."""
    bits, half = 8 * width, 1 << (adc_bits - 1)
    shift = bits - adc_bits
    full = codes.astype(np.int32)
    full = full << shift if shift >= 0 else full >> -shift
    full[codes == half - 1] = (1 << (bits - 1)) - 1
    full[codes == -half] = -(1 << (bits - 1))
    return full


class WaveformReader:
    """What the queries on waveforms answer."""

    def __init__(self, scope: FrontPanel) -> None:
        self._scope = scope

    def segments(self) -> Sequence[Segment]:
        """Return all frames of the source.

        Raises:
            ScpiError: There are none. Such a query has no reply at all, which a controller sees as time-out.
        """
        segments = self._scope.acquisition.segments
        if not segments or self._scope.transfer.source not in segments[0].codes:
            raise ScpiError(2244, f"CH{self._scope.transfer.source}")
        return segments

    def frames(self) -> Sequence[Segment]:
        """Return the frames to transfer: start beyond stop means start alone, beyond the last the last."""
        segments, transfer = self.segments(), self._scope.transfer
        start = min(transfer.frame_start, len(segments))
        return segments[start - 1 : max(start, min(transfer.frame_stop, len(segments)))]

    def window(self) -> tuple[int, int]:
        """Return the first sample to transfer, from 0, and the one after the last."""
        points, transfer = self.segments()[0].setup.points, self._scope.transfer
        start = min(transfer.start, points)
        return start - 1, max(start, min(transfer.stop, points))

    def selected(self) -> Segment:
        """Return the frame that is shown."""
        segments = self.segments()
        return segments[min(self._scope.settings.frame_selected, len(segments)) - 1]

    def y_multiplier_v(self) -> float:
        """Return volts a code of the present width."""
        step_v = self.selected().setup.channels[self._scope.transfer.source].step_v
        return step_v * (1 << self._scope.hardware.adc_bits) / (1 << (8 * self._scope.transfer.width))

    def y_zero_v(self) -> float:
        """Return the voltage of code 0; YOFf is always 0 on this family."""
        centre_v = self.selected().setup.channels[self._scope.transfer.source].centre_v
        transfer = self._scope.transfer
        coding = encoding(transfer.encoding)
        shift = 0 if coding.signed or not coding.binary else 1 << (8 * transfer.width - 1)
        return centre_v - shift * self.y_multiplier_v()

    def point_offset(self) -> int:
        """Return the place of the sample next after the trigger, counted from DATa:STARt."""
        return self.selected().setup.trigger_index - self.window()[0]

    def description(self) -> QuotedString:
        """Return WFId: source and settings in words."""
        scope, setup = self._scope, self.selected().setup
        channel = scope.settings.channels[scope.transfer.source - 1]
        screen_s = setup.points * setup.sample_interval_s / 10
        return QuotedString(
            f"Ch{scope.transfer.source}, DC coupling, {channel.scale_v * 1e3:.1f}mV/div, "
            f"{screen_s * 1e6:.3f}us/div, {setup.points} points, Sample mode"
        )

    def preamble(self) -> Fields:
        """Return all fields of WFMOutpre, in the order of the firmware that SH reads."""
        scope = self._scope
        begin, end = self.window()
        coding = encoding(scope.transfer.encoding)
        fields: list[tuple[str, object]] = [
            ("BYT_Nr", scope.transfer.width),
            ("BIT_Nr", 8 * scope.transfer.width),
            ("ENCdg", Word("BINary" if coding.binary else "ASCii")),
            ("BN_Fmt", Word("RI" if coding.signed else "RP")),
            ("ASC_Fmt", Word("INTEGER")),
            ("BYT_Or", Word("LSB" if coding.low_byte_first else "MSB")),
            ("WFId", self.description()),
            ("NR_Pt", end - begin),
            ("PT_Fmt", Word("Y")),
            ("PT_ORder", Word("LINEAR")),
            ("XUNit", QuotedString("s")),
            ("XINcr", self.selected().setup.sample_interval_s),
            ("XZEro", sub_sample_s(self.selected())),
            ("PT_Off", self.point_offset()),
            ("YUNit", QuotedString("V")),
            ("YMUlt", self.y_multiplier_v()),
            ("YOFf", 0.0),
            ("YZEro", self.y_zero_v()),
            ("DOMain", Word("TIME")),
            ("WFMTYPe", Word("ANALOG")),
            ("CENTERFREQuency", 0.0),
            ("SPAN", 0.0),
            ("REFLEvel", 0.0),
        ]
        if scope.settings.fast_frame:
            fields.append(("NR_FR", len(self.frames())))
        return Fields(fields)

    def curve(self) -> Block | Raw:
        """Return the samples: each frame is a block of its own."""
        scope, (begin, end) = self._scope, self.window()
        coding, width = encoding(scope.transfer.encoding), scope.transfer.width
        frames = [frame.codes[scope.transfer.source][begin:end] for frame in self.frames()]
        wire = (wire_codes(codes, scope.hardware.adc_bits, width) for codes in frames)
        if not coding.binary:
            return Raw(";".join(",".join(map(str, codes.tolist())) for codes in wire))
        kind = np.dtype(f"{'<' if coding.low_byte_first else '>'}{'i' if coding.signed else 'u'}{width}")
        shift = 0 if coding.signed else 1 << (8 * width - 1)
        return Block(
            b";".join(scope.waveform_block((codes + shift).astype(kind).tobytes()) for codes in wire)
        )


def add_commands(scope: FrontPanel) -> None:
    """Add the commands of the groups DATa and WFMOutpre, and CURVe."""
    reader = WaveformReader(scope)
    transfer = scope.transfer

    def place(pattern: str, name: str, most: int) -> None:
        def read(p: Parameters) -> int:
            maximum = p.texts[0].upper() in {"MAX", "MAXIMUM"}
            return most if maximum else p.integer_within(1, most)

        scope.add_field(pattern, lambda _: transfer, name, read)

    place("DATa:STARt", "start", POINTS_MAX)
    place("DATa:STOP", "stop", POINTS_MAX)
    place("DATa:FRAMESTARt", "frame_start", FRAMES_MAX)
    place("DATa:FRAMESTOP", "frame_stop", FRAMES_MAX)
    scope.add_setting(
        "DATa:SOUrce",
        lambda _: Word(f"CH{transfer.source}"),
        lambda _, p: setattr(transfer, "source", p.choice(scope.channel_words())),
    )
    scope.add_query("DATa:SOUrce:AVAILable", lambda _: Raw(_available(scope)))
    scope.add_field("DATa:ENCdg", lambda _: transfer, "encoding", lambda p: p.choice(words(ENCODINGS)))
    for pattern in ("DATa:WIDth", "WFMOutpre:BYT_Nr"):
        scope.add_field(pattern, lambda _: transfer, "width", lambda p: p.integer_within(1, 2))
    scope.add_query("DATa", lambda _: _data_settings(scope))
    scope.add_query("WFMOutpre", lambda _: reader.preamble())
    # One query a field, of which those that depend on no waveform are answered from the same list.
    for name in (
        *("BIT_Nr", "ENCdg", "BN_Fmt", "BYT_Or", "WFId", "NR_Pt", "PT_Fmt", "PT_ORder", "XUNit", "XINcr"),
        *("XZEro", "PT_Off", "YUNit", "YMUlt", "YOFf", "YZEro", "NR_FR"),
    ):
        scope.add_query(f"WFMOutpre:{name}", lambda _, name=name: _field(reader.preamble(), name))
    scope.add_query("CURVe", lambda _: reader.curve())


def _available(scope: FrontPanel) -> str:
    return ",".join(
        name
        for name, number in scope.channel_words().items()
        if scope.settings.channels[number - 1].displayed
    )


def _data_settings(scope: FrontPanel) -> Fields:
    transfer = scope.transfer
    return Fields(
        [
            ("DESTination", Word("REF1")),
            ("ENCdg", transfer.encoding),
            ("SOUrce", Word(f"CH{transfer.source}")),
            ("STARt", transfer.start),
            ("STOP", transfer.stop),
            ("FRAMESTARt", transfer.frame_start),
            ("FRAMESTOP", transfer.frame_stop),
        ]
    )


def _field(fields: Fields, name: str) -> object:
    found = dict(fields)
    return found.get(name, 1)
