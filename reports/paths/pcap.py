# SPDX-License-Identifier: Apache-2.0
"""The frames of a packet capture: when each was seen, and where its bytes lie.

Files are pcap (https://www.tcpdump.org/manpages/pcap-savefile.5.html) of Ethernet frames, of either byte
order, with stamps of ns or us. VLAN tags are passed over.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from reports.errors import ReportError

Bytes: TypeAlias = NDArray[np.uint8]
Integers: TypeAlias = NDArray[np.int64]

ETHERNET_BYTES = 14
_NS_OF_A_UNIT = {0xA1B23C4D: 1, 0xA1B2C3D4: 1000}
_PCAPNG = 0x0A0D0D0A
_FILE_HEADER_BYTES, _RECORD_HEADER_BYTES = 24, 16
_ETHERNET = 1
_NS_PER_S = 1_000_000_000
_TAGS = 0x8100, 0x88A8, 0x9100
"""Types of a VLAN's tag, of a provider's, and of one before there was a standard."""
_TAG_BYTES, _TAGS_MAX = 4, 4


@dataclass(frozen=True, eq=False)
class Frames:
    """Frames in the order of the file.

    Attributes:
        data: The file, shape (bytes,).
        time_ns: When each was seen by the clock of the capture, shape (n,).
        at: Where each begins in the file, shape (n,); one with VLAN tags as if it were without: by their
            bytes later, so that its type and all behind lie where they do else, but not its addresses.
        kept: How many bytes of each are there from that on, shape (n,).
        sizes: How many it had, shape (n,).
    """

    data: Bytes
    time_ns: Integers
    at: Integers
    kept: Integers
    sizes: Integers

    def chosen(self, keep: NDArray[np.bool_] | Integers) -> Frames:
        """Return some of them; `keep`: which, or their places."""
        return Frames(self.data, self.time_ns[keep], self.at[keep], self.kept[keep], self.sizes[keep])

    def gather(self, offset: int | Integers, count: int) -> Bytes:
        """Return so many bytes of each frame from an offset on, shape (n, count); 0 beyond the file's end."""
        return gather(self.data, self.at + offset, count)


def read_frames(path: Path) -> Frames:
    """Read a capture; a record that was broken off at its end is left out.

    Raises:
        ReportError: It is not a pcap file of Ethernet frames.
    """
    content = path.read_bytes()
    order, unit_ns = _file_header(path.name, content)
    data = np.frombuffer(content, dtype=np.uint8)
    at = _records(content, order)
    words = gather(data, at, _RECORD_HEADER_BYTES).view(f"{order}u4").astype(np.int64)
    time_ns = words[:, 0] * _NS_PER_S + words[:, 1] * unit_ns
    return _without_tags(Frames(data, time_ns, at + _RECORD_HEADER_BYTES, words[:, 2], words[:, 3]))


def _without_tags(frames: Frames) -> Frames:
    """Pass over VLAN tags (IEEE 802.1Q), of which several may follow each other."""
    for _ in range(_TAGS_MAX):
        is_tagged = np.isin(word16(frames.gather(12, 2), 0), _TAGS)
        is_tagged &= frames.kept >= ETHERNET_BYTES + _TAG_BYTES
        if not is_tagged.any():
            break
        tag = np.where(is_tagged, _TAG_BYTES, 0)
        frames = replace(
            frames, at=frames.at + tag, kept=frames.kept - tag, sizes=np.maximum(frames.sizes - tag, 0)
        )
    return frames


def gather(data: Bytes, at: Integers, count: int) -> Bytes:
    """Return so many bytes from each place on, shape (len(at), count); 0 beyond the end."""
    places = at[:, None] + np.arange(count)
    found: Bytes = data[np.minimum(places, len(data) - 1)]
    found[places >= len(data)] = 0
    return found


def word16(rows: Bytes, at: int) -> Integers:
    """Return two bytes of each row as a number, the most significant first, shape (n,)."""
    return rows[:, at].astype(np.int64) << 8 | rows[:, at + 1]


def _file_header(name: str, content: bytes) -> tuple[str, int]:
    """Return the byte order of the file's numbers, and the unit of its fractions of seconds."""
    if len(content) < _FILE_HEADER_BYTES:
        raise ReportError(f"{name}: not a pcap file: {len(content)} bytes")
    for order in "<>":
        magic, link = *struct.unpack_from(f"{order}I", content), *struct.unpack_from(f"{order}I", content, 20)
        if magic in _NS_OF_A_UNIT:
            if link & 0x0FFFFFFF != _ETHERNET:
                raise ReportError(f"{name}: link type must be {_ETHERNET} (Ethernet), found {link}")
            return order, _NS_OF_A_UNIT[magic]
        if magic == _PCAPNG:
            raise ReportError(f"{name}: is pcapng; convert it by `editcap -F nsecpcap`")
    raise ReportError(f"{name}: not a pcap file: it begins with {content[:4].hex()}")


def _records(content: bytes, order: str) -> Integers:
    """Return where whole records begin."""
    length = struct.Struct(f"{order}I")
    at: list[int] = []
    position, end = _FILE_HEADER_BYTES, len(content)
    while position + _RECORD_HEADER_BYTES <= end:
        (frame_bytes,) = length.unpack_from(content, position + 8)
        behind = position + _RECORD_HEADER_BYTES + frame_bytes
        if behind > end:
            break
        at.append(position)
        position = behind
    return np.array(at, dtype=np.int64)
