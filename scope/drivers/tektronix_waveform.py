# SPDX-License-Identifier: Apache-2.0
"""Waveforms of Tektronix 4, 5 and 6 Series MSO: preamble, FastFrame. Sources as in `tektronix.py`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from fractions import Fraction
from typing import Any

import numpy as np

from scope.drivers.commands import Commands
from scope.drivers.link import TransferError
from scope.errors import InstrumentError
from scope.settings import OscilloscopeSettings
from scope.waveform import Frame, Scaling

OFFSETS = "HORizontal:FASTframe:XZEro:ALL?"
STAMPS = "HORizontal:FASTframe:TIMEStamp:ALL?"

_OFFSET = re.compile(r"(\d{1,9})\s*:\s*([+-]?[\d.]+(?:[eE][+-]?\d+)?)")
# "1: 24.11.2025 13:05:59.123456789012"; between date and time TMD prints a full stop, its older kin a blank,
# with the month as a word and the digits of the fraction in groups.
_STAMP = re.compile(
    r"(\d{1,9})\s*[:,]\s*\"?(\d{1,2})[. ](\d{1,2}|[A-Za-z]{3})[. ](\d{4})"
    r"[. ]+(\d{1,2}):(\d{2}):(\d{2})\.(\d[\d ]{0,29})"
)


@dataclass(frozen=True)
class Preamble:
    """What the instrument says of the selected source."""

    points: int
    scaling: Scaling
    dtype: np.dtype[Any]
    trigger_sample: float
    """PT_OFF: the sample after which the trigger came."""
    offset_s: float
    """XZERO of the frame that the preamble speaks of."""


def read_frames(
    commands: Commands, channel: int, count: int, settings: OscilloscopeSettings
) -> Iterator[Frame]:
    """Read frames 1..count of a channel; those before a break are yielded before the error.

    Each frame is a block of its own, with `;` between them (seen on an MSO64B); older kin send one block for
    all: both are read.
    """
    _select(commands, channel, count, settings)
    preamble = read_preamble(commands)
    offsets_s, tags_s = [preamble.offset_s], [0.0 if settings.segments == 1 else None]
    if settings.segments > 1:
        offsets_s = _offsets(commands, count, preamble)
        tags_s = _time_tags(commands, count)
    size = preamble.points * preamble.dtype.itemsize
    link = commands.link
    link.write("CURVe?")

    def frame(index: int, data: bytes) -> Frame:
        codes = np.frombuffer(data, preamble.dtype).astype(preamble.dtype.newbyteorder("="), copy=False)
        scaling = replace(preamble.scaling, first_sample_s=_first_sample_s(preamble, offsets_s[index]))
        return Frame(channel, index, codes, scaling, tags_s[index])

    index, follows = 0, True
    broken: TransferError | None = None
    while index < count and follows:
        try:
            data = link.read_block((size, count * size) if index == 0 else (size,))
        except TransferError as error:
            data, broken = error.received, error
        for part in range(len(data) // size):
            yield frame(index, data[part * size : (part + 1) * size])
            index += 1
        if broken is not None:
            raise broken
        follows = link.block_follows()
    if follows:
        raise link.garbage(f"more than {count} frames")
    if index < count:
        raise commands.error("CURVe?", f"sent {index} of {count} frames")


def _select(commands: Commands, channel: int, count: int, settings: OscilloscopeSettings) -> None:
    """Say what is to be sent. DATa:STARt and STOP do not follow the record length (TMD)."""
    commands.set(f"DATa:SOUrce CH{channel}")
    commands.set("DATa:ENCdg SRIbinary")  # signed, least significant byte first (P7)
    commands.set(f"DATa:WIDth {settings.sample_bytes}")
    commands.set("DATa:STARt 1")
    commands.set(f"DATa:STOP {commands.ask_integer('HORizontal:RECOrdlength?')}")
    if settings.segments > 1:
        commands.set("DATa:FRAMESTARt 1")
        commands.set(f"DATa:FRAMESTOP {count}")


def read_preamble(commands: Commands) -> Preamble:
    """Ask field by field: the order of `WFMOutpre?` changes with the firmware, and one may be missing (SH).

    volts = (code - YOFF) * YMULT + YZERO; t = XZERO + XINCR * (n - PT_OFF), n from 0 (TMD, P7). YMULT depends
    on the width, so it is asked after it was set.
    """

    def word(field: str) -> str:
        return commands.ask(f"WFMOutpre:{field}?").upper()

    width = commands.ask_integer("WFMOutpre:BYT_Nr?")
    if width not in (1, 2):
        raise commands.error("WFMOutpre:BYT_Nr?", f"{width} bytes a sample, 1 or 2 were asked for")
    kind, order = word("BN_Fmt"), word("BYT_Or")
    if kind not in ("RI", "RP") or order not in ("LSB", "MSB"):
        raise commands.error("WFMOutpre:BN_Fmt?", f"samples of {kind}, {order} first cannot be read")
    points = commands.ask_integer("WFMOutpre:NR_Pt?")
    interval_s = commands.ask_number("WFMOutpre:XINcr?")
    offset_s = commands.ask_number("WFMOutpre:XZEro?")
    trigger_sample = commands.ask_number("WFMOutpre:PT_Off?")
    step_v = commands.ask_number("WFMOutpre:YMUlt?")
    if points < 1 or interval_s <= 0 or step_v <= 0:
        raise commands.error("WFMOutpre:NR_Pt?", f"{points} samples of {interval_s:g} s and {step_v:g} V")
    signed = kind == "RI"
    middle = 0 if signed else 1 << (8 * width - 1)
    dtype = np.dtype(f"{'<' if order == 'LSB' else '>'}{'i' if signed else 'u'}{width}")
    # No code means clipped: those at the end of the range are taken for it. Of two bytes the upper one
    # decides; the screen ends at +-32000 (YMULT is scale / 6400), well inside.
    scaling = Scaling(
        volts_per_code=step_v,
        code_reference=commands.ask_number("WFMOutpre:YOFf?"),
        offset_v=commands.ask_number("WFMOutpre:YZEro?"),
        sample_interval_s=interval_s,
        first_sample_s=offset_s - trigger_sample * interval_s,
        code_low=middle + (-128 if width == 1 else -0x7F01),
        code_high=middle + (127 if width == 1 else 0x7F00),
    )
    return Preamble(points, scaling, dtype, trigger_sample, offset_s)


def _first_sample_s(preamble: Preamble, offset_s: float) -> float:
    return offset_s - preamble.trigger_sample * preamble.scaling.sample_interval_s


def _offsets(commands: Commands, count: int, preamble: Preamble) -> list[float]:
    """Return XZERO of each frame: the trigger lies elsewhere between two samples in each (TMD)."""
    reply = commands.ask(OFFSETS)
    offsets_s = {int(number): commands.number(OFFSETS, text) for number, text in _OFFSET.findall(reply)}
    try:
        listed = [offsets_s[number] for number in range(1, count + 1)]
    except KeyError as error:
        raise commands.error(OFFSETS, f"frame {error} is missing in {reply[:80]!r}") from error
    for number, offset_s in enumerate(listed, start=1):
        if abs(offset_s - preamble.offset_s) > 2 * preamble.scaling.sample_interval_s:
            raise commands.error(
                OFFSETS,
                f"{offset_s:g} s of frame {number} contradicts the preamble's {preamble.offset_s:g} s",
            )
    return listed


def _time_tags(commands: Commands, count: int) -> list[float | None]:
    """Return each frame's trigger after that of the first; None where the stamps cannot be read.

    Twelve decimals and a date do not fit a double: the difference is taken of fractions.
    """
    try:
        reply = commands.ask(STAMPS)
    except InstrumentError:
        if commands.link.broken:
            raise
        reply = ""
    stamps = {int(match[1]): _seconds(match) for match in _STAMP.finditer(reply)}
    first = stamps.get(1)
    return [
        None if first is None or (stamp := stamps.get(number)) is None else float(stamp - first)
        for number in range(1, count + 1)
    ]


def _seconds(match: re.Match[str]) -> Fraction | None:
    """Return the seconds since the year 0 that a stamp says; None: there is no such day."""
    day, month, year, hour, minute, second = match.group(2, 3, 4, 5, 6, 7)
    form = "%d %m %Y" if month.isdigit() else "%d %b %Y"
    try:
        days = datetime.strptime(f"{day} {month} {year}", form).toordinal()  # noqa: DTZ007 - a difference of days
    except ValueError:
        return None
    digits = match[8].replace(" ", "")
    whole = ((days * 24 + int(hour)) * 60 + int(minute)) * 60 + int(second)
    return whole + Fraction(int(digits), 10 ** len(digits))
