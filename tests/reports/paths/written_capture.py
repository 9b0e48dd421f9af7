# SPDX-License-Identifier: Apache-2.0
"""Captures written by hand: each datagram, and when it is seen."""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

MAGIC_NS, MAGIC_US = 0xA1B23C4D, 0xA1B2C3D4
ETHERNET = 1
SECOND_NS = 1_000_000_000
MACS = bytes(range(12))


@dataclass(frozen=True)
class Datagram:
    """A UDP datagram over IPv4 in an Ethernet frame."""

    number: int
    source: str = "10.77.0.2"
    destination: str = "10.77.0.1"
    ports: tuple[int, int] = (5000, 5001)
    fragment: int = 0
    """Flags and offset of its IP header."""
    ttl: int = 64
    options: bytes = b""
    """Of the IP header."""
    payload_bytes: int = 20

    def frame(self) -> bytes:
        """Return the frame, filled up to the smallest of Ethernet."""
        payload = struct.pack("!Q", self.number).ljust(self.payload_bytes, b"x")[: self.payload_bytes]
        udp = struct.pack("!HHHH", *self.ports, 8 + len(payload), self.ttl)  # a checksum that changes
        addresses = (ipaddress.IPv4Address(each).packed for each in (self.source, self.destination))
        ip = struct.pack(
            "!BBHHHBBH4s4s",
            0x45 + len(self.options) // 4,
            0,
            20 + len(self.options) + len(udp) + len(payload),
            self.number % 65536,
            self.fragment,
            self.ttl,
            17,
            self.ttl,
            *addresses,
        )
        return (MACS + b"\x08\x00" + ip + self.options + udp + payload).ljust(60, b"\0")


def write_capture(
    file: Path,
    seen: Sequence[tuple[int, Datagram | bytes]],
    order: str = "<",
    magic: int = MAGIC_NS,
    kept_bytes: int = 128,
    link: int = ETHERNET,
) -> Path:
    """Write a capture of datagrams and other frames, each with its time in ns; return the file."""
    content = [struct.pack(f"{order}IHHiIII", magic, 2, 4, 0, 0, kept_bytes, link)]
    unit_ns = 1 if magic == MAGIC_NS else 1000
    for time_ns, what in seen:
        frame = what if isinstance(what, bytes) else what.frame()
        kept = frame[:kept_bytes]
        stamp = (time_ns // SECOND_NS, time_ns % SECOND_NS // unit_ns)
        content += [struct.pack(f"{order}IIII", *stamp, len(kept), len(frame)), kept]
    file.write_bytes(b"".join(content))
    return file
