# SPDX-License-Identifier: Apache-2.0
"""Pictures of noise, and captures of their stream that scapy writes."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from zlib import crc32

import numpy as np
from scapy.layers.inet import IP, TCP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.utils import PcapWriter

START_NS = 1_700_000_000_000_000_000
STEP_NS = 1_000_000
DLT_EN10MB = 1


def picture(number: int, width_px: int = 40, height_px: int = 32, seed: int = 7) -> bytes:
    """Return a picture of noise as a camera sends it."""
    pixels = np.random.default_rng([seed, number]).integers(0, 256, width_px * height_px, np.uint8).tobytes()
    header = struct.pack(
        ">4sB3xHHIiiIII",
        *(b"BWPI", 1, width_px, height_px, number, 262144, -196608, 256, 10_000, crc32(pixels)),
    )
    return header + struct.pack(">I", crc32(header)) + pixels


def end_of(count: int, width_px: int = 40, height_px: int = 32, pixels_crc: int = 0) -> bytes:
    """Return the header by which a camera ends a stream of so many pictures."""
    fields = b"BWPI", 1, 1, width_px, height_px, count, 0, 0, 256, 10_000, pixels_crc
    header = struct.pack(">4sBB2xHHIiiIII", *fields)
    return header + struct.pack(">I", crc32(header))


def stream_of(count: int, first: int = 0, **size_px: int) -> bytes:
    """Return pictures one after the other."""
    return b"".join(picture(number, **size_px) for number in range(first, first + count))


@dataclass
class Wire:
    """What a capture of one connection sees, a frame a millisecond.

    Attributes:
        stream: Its bytes.
        isn: Number of the SYN.
        ends: Addresses and ports: of the camera, of who reads.
        frames: Time in ns and bytes of each.
    """

    stream: bytes = field(default_factory=lambda: stream_of(3))
    isn: int = 1000
    ends: tuple[str, int, str, int] = ("10.0.0.1", 5000, "10.0.0.2", 6000)
    frames: list[tuple[int, bytes]] = field(default_factory=list[tuple[int, bytes]])

    def syn(self, isn: int | None = None) -> Wire:
        """Begin the connection; another number begins one anew."""
        self.isn = self.isn if isn is None else isn
        return self._add("S", self.isn, b"")

    def sent(self, begin: int, end: int, content: bytes | None = None) -> Wire:
        """See a segment with these places of the stream."""
        return self._add("A", self.isn + 1 + begin, self.stream[begin:end] if content is None else content)

    def in_pieces(self, begin: int, end: int, size_bytes: int) -> Wire:
        """See segments of this size."""
        for at in range(begin, end, size_bytes):
            self.sent(at, min(at + size_bytes, end))
        return self

    def window(self, window: int) -> Wire:
        """See the reader's acknowledgement with its window."""
        return self._add("A", 1, b"", window=window, is_back=True)

    def tagged(self, tags: bytes) -> Wire:
        """Put tags of VLANs into all frames."""
        return self._changed(lambda frame: [frame[:12] + tags + frame[12:]])

    def with_extension(self, number: int, extension: bytes) -> Wire:
        """Put an extension header of IPv6 in front of TCP; its first byte says what follows."""

        def changed(frame: bytes) -> list[bytes]:
            size = int.from_bytes(frame[18:20], "big") + len(extension)
            head = frame[:18] + size.to_bytes(2, "big") + bytes([number]) + frame[21:54]
            return [head + extension + frame[54:]]

        return self._changed(changed)

    def in_fragments(self, size_bytes: int) -> Wire:
        """Split IP datagrams into parts of so many bytes, a multiple of 8."""
        return self._changed(lambda frame: _fragments(frame, size_bytes))

    def _changed(self, change: Callable[[bytes], list[bytes]]) -> Wire:
        self.frames = [(time_ns, each) for time_ns, frame in self.frames for each in change(frame)]
        return self

    def written(self, file: Path, nano: bool = True) -> Path:
        """Write a capture of it."""
        return write_frames(file, self.frames, nano)

    def _add(
        self, flags: str, sequence: int, data: bytes, window: int = 512, *, is_back: bool = False
    ) -> Wire:
        source, source_port, destination, port = self.ends
        if is_back:
            source, source_port, destination, port = destination, port, source, source_port
        ip = (IPv6 if ":" in source else IP)(src=source, dst=destination)
        tcp = TCP(sport=source_port, dport=port, flags=flags, seq=sequence % 2**32, window=window)
        frame = bytes(Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / ip / tcp / data)
        self.frames.append((START_NS + len(self.frames) * STEP_NS, frame.ljust(60, b"\xee")))
        return self


def _fragments(frame: bytes, size_bytes: int) -> list[bytes]:
    """Split a datagram; its identification is of its content."""
    is_6 = frame[12:14] == b"\x86\xdd"
    begin = 54 if is_6 else 34
    content = frame[begin:]
    number = crc32(content)
    found: list[bytes] = []
    for at in range(0, len(content), size_bytes):
        part = content[at : at + size_bytes]
        more = at + size_bytes < len(content)
        if is_6:
            between = struct.pack(">BxHI", 6, at | more, number)
            length = (len(part) + 8).to_bytes(2, "big")
            head = frame[:18] + length + b"\x2c" + frame[21:54] + between
        else:
            length = (len(part) + 20).to_bytes(2, "big")
            where = struct.pack(">HH", number & 0xFFFF, at // 8 | more << 13)
            head = frame[:16] + length + where + frame[22:34]
        found.append(head + part)
    return found


def write_frames(
    file: Path, frames: list[tuple[int, bytes]], nano: bool = True, kept_bytes: int = 1 << 18
) -> Path:
    """Write frames with their times."""
    with PcapWriter(str(file), nano=nano, sync=True, linktype=DLT_EN10MB) as writer:
        writer.write_header(None)
        for time_ns, frame in frames:
            parts = {"sec": time_ns // 10**9, "usec": time_ns % 10**9 // (1 if nano else 1000)}
            kept = frame[:kept_bytes]
            writer.write_packet(kept, **parts, caplen=len(kept), wirelen=len(frame))
    return file
