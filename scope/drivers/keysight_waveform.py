# SPDX-License-Identifier: Apache-2.0
"""Waveforms of Keysight InfiniiVision: preamble, records, all segments. Sources as in `keysight.py`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scope.drivers.commands import Commands
from scope.drivers.link import TransferError
from scope.errors import InstrumentError
from scope.waveform import Frame, Scaling

PREAMBLE = ":WAVeform:PREamble?"
DATA = ":WAVeform:DATA?"
BYTE, WORD = 0, 1
PEAK_DETECT = 1


@dataclass(frozen=True)
class Preamble:
    """What the instrument says of the selected waveform."""

    points: int
    scaling: Scaling
    dtype: np.dtype[Any]


def read_preamble(commands: Commands) -> Preamble:
    """Ask for the preamble: 10 fields (PG3T, PG92 p. 1184).

    volts = (code - yreference) * yincrement + yorigin; t = (i - xreference) * xincrement + xorigin, i from 0.
    """
    reply = commands.ask(PREAMBLE)
    if "," not in reply:  # seen on a 2022A: just +0; the second answer is right
        reply = commands.ask(PREAMBLE)
    fields = reply.split(",")
    if len(fields) != 10:
        raise commands.link.garbage(f"preamble of {len(fields)} fields, must have 10: {reply[:80]!r}")
    numbers = [commands.number(PREAMBLE, field) for field in fields]
    sample_format, kind, points = (int(number) for number in numbers[:3])
    interval_s, origin_s, reference, step_v, origin_v, code_reference = numbers[4:]
    if sample_format not in (BYTE, WORD):
        raise commands.error(PREAMBLE, f"format {sample_format} is neither BYTE nor WORD")
    if kind == PEAK_DETECT:
        raise commands.error(PREAMBLE, "peak detect has two samples at one time; set type NORMal")
    if points < 1:
        raise commands.error(PREAMBLE, "no samples: nothing was acquired on this channel")
    if interval_s <= 0 or step_v <= 0:
        raise commands.link.garbage(f"preamble with a step that is not above zero: {reply[:120]!r}")
    if commands.ask_integer(":WAVeform:UNSigned?") != 1:
        raise commands.error(":WAVeform:UNSigned 1", "was not taken; holes and clipping would be hidden")
    big_endian = commands.ask(":WAVeform:BYTeorder?").upper().startswith("MSB")
    scaling = Scaling(
        volts_per_code=step_v,
        code_reference=code_reference,
        offset_v=origin_v,
        sample_interval_s=interval_s,
        first_sample_s=origin_s - reference * interval_s,
        # 0x00 hole, 0x01 clipped low, 0xFF clipped high (PG4 p. 1243). As a WORD it may be 0xFF00 or 0xFFFF:
        # the upper byte decides.
        code_low=1 if sample_format == BYTE else 0x01FF,
        code_high=0xFF if sample_format == BYTE else 0xFF00,
        code_hole=0,
    )
    dtype = np.dtype(np.uint8) if sample_format == BYTE else np.dtype(">u2" if big_endian else "<u2")
    return Preamble(points, scaling, dtype)


def read_record(commands: Commands, channel: int, index: int, time_tag_s: float) -> Iterator[Frame]:
    """Yield the selected record, with a preamble of its own, before what stands behind it is looked at."""
    preamble = read_preamble(commands)
    commands.link.write(DATA)
    data = commands.link.read_block((preamble.points * preamble.dtype.itemsize,))
    yield Frame(channel, index, _codes(data, preamble.dtype), preamble.scaling, time_tag_s)
    _finish(commands)


def read_segments(commands: Commands, channel: int, count: int) -> Iterator[Frame]:
    """Read all segments as one block: their samples follow each other without separators (PG3T).

    The preamble is that of one segment; its origin differs from segment to segment (RELXorigin), and so does
    the trigger's time tag. What of a broken transfer is whole is yielded before the error.
    """
    preamble = read_preamble(commands)
    origins_s = _list(commands, "RELXorigin", count)
    tags_s = _list(commands, "TTAG", count)
    size = preamble.points * preamble.dtype.itemsize
    broken: InstrumentError | None = None
    commands.link.write(DATA)
    try:
        data = commands.link.read_block((count * size,))
    except TransferError as error:
        data, broken = error.received, error
    own = preamble.scaling
    shift_s = own.first_sample_s - origins_s[0]
    if abs(shift_s) > 2 * own.sample_interval_s:
        # The preamble of the selected segment and the list must speak of the same thing.
        raise commands.error(
            ":WAVeform:SEGMented:XLISt? RELXorigin",
            f"{origins_s[0]:g} s contradicts the preamble's {own.first_sample_s:g} s",
        )
    for index in range(len(data) // size):
        codes = _codes(data[index * size : (index + 1) * size], preamble.dtype)
        scaling = replace(own, first_sample_s=origins_s[index])
        yield Frame(channel, index, codes, scaling, tags_s[index])
    if broken is not None:
        raise broken
    _finish(commands)


def _list(commands: Commands, kind: str, count: int) -> list[float]:
    """Ask for one number a segment: a block that holds a comma-separated list (PG3T)."""
    command = f":WAVeform:SEGMented:XLISt? {kind}"
    commands.link.write(command)
    text = commands.link.read_block().decode("ascii", errors="replace")
    _finish(commands)
    numbers = [commands.number(command, field) for field in text.split(",")]
    if len(numbers) != count:
        raise commands.error(command, f"{len(numbers)} numbers for {count} segments")
    return numbers


def _finish(commands: Commands) -> None:
    if commands.link.block_follows():
        raise commands.link.garbage("a second block")


def _codes(data: bytes, dtype: np.dtype[Any]) -> NDArray[np.integer[Any]]:
    return np.frombuffer(data, dtype).astype(dtype.newbyteorder("="), copy=False)
