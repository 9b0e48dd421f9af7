# SPDX-License-Identifier: Apache-2.0
"""The header of a picture on the wire, as docs/control-loops.md has it."""

from __future__ import annotations

import struct
from typing import NamedTuple
from zlib import crc32

from reports.errors import RecordError

MAGIC = b"BWPI"
HEADER_BYTES = 40
_VERSION = 1
_HEADER = struct.Struct(">4sBB2sHHIiiIIII")
_SIDE_PX = range(32, 2049)
_PLACE_MAX_Q8 = 2097152
_ZOOM_Q8 = range(64, 4097)
_EXPOSURE_US = range(1, 1_000_001)


class PictureHeader(NamedTuple):
    """What a camera says of a picture; x, y and zoom in 1/256, as in the world.

    At the stream's end, `is_end`, no pixels follow, and `number` is how many pictures there were.
    """

    width_px: int
    height_px: int
    number: int
    x_q8: int
    y_q8: int
    zoom_q8: int
    exposure_us: int
    pixels_crc: int
    is_end: bool = False

    @property
    def size_bytes(self) -> int:
        """Return how long the picture is, with its header."""
        return HEADER_BYTES + (0 if self.is_end else self.width_px * self.height_px)


def parse_header(wire: bytes) -> PictureHeader:
    """Return the header that these 40 bytes are; raises RecordError: says what is wrong with them."""
    if not wire.startswith(MAGIC):
        raise RecordError("does not begin as a picture does: BWPI")
    _, version, end, zeros, *fields, header_crc = _HEADER.unpack(wire)
    header = PictureHeader(*fields, is_end=end == 1)
    for is_wrong, reason in (
        (version != _VERSION, "is of another version than 1"),
        (header_crc != crc32(wire[: HEADER_BYTES - 4]), "has a damaged header: its CRC-32 differs"),
        (end > 1, "has a byte 5 that is neither 0 nor 1"),
        (any(zeros), "has a header with bytes that are not 0 where they have to be"),
        (
            header.width_px not in _SIDE_PX or header.height_px not in _SIDE_PX,
            "has another size than 32 to 2048 pixels a side",
        ),
        (max(abs(header.x_q8), abs(header.y_q8)) > _PLACE_MAX_Q8, "has a pose beyond the largest world"),
        (header.zoom_q8 not in _ZOOM_Q8, "has another zoom than 64 to 4096"),
        (header.exposure_us not in _EXPOSURE_US, "has another exposure than 1 to 1000000 us"),
        (header.is_end and header.pixels_crc != 0, "is the end of the stream, and has pixels"),
    ):
        if is_wrong:
            raise RecordError(reason)
    return header
