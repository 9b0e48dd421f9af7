# SPDX-License-Identifier: Apache-2.0
"""The UDP datagrams of a packet capture as arrays: when each was seen, and what tells it from others.

Files are pcap (https://www.tcpdump.org/manpages/pcap-savefile.5.html) of Ethernet frames, of either byte
order, with stamps of ns or us.
"""

from __future__ import annotations

import ipaddress
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from reports.errors import ReportError

Bytes: TypeAlias = NDArray[np.uint8]
Integers: TypeAlias = NDArray[np.int64]

PAYLOAD_BYTES = 64
"""As much of a payload tells datagrams apart; both captures have to keep it, or all that there is."""
_NS_OF_A_UNIT = {0xA1B23C4D: 1, 0xA1B2C3D4: 1000}
_PCAPNG = 0x0A0D0D0A
_FILE_HEADER_BYTES, _RECORD_HEADER_BYTES = 24, 16
_ETHERNET = 1
_ETHERNET_BYTES, _IP_BYTES, _UDP_BYTES = 14, 20, 8
_NS_PER_S = 1_000_000_000


@dataclass(frozen=True)
class Datagrams:
    """Whole UDP datagrams over IPv4, in the order of the file.

    Attributes:
        time_ns: When each was seen by the clock of the capture, shape (n,).
        source, destination: Addresses as numbers, shape (n,).
        source_port, destination_port: Shape (n,).
        key: Equal where datagrams are the same, shape (n,) of bytes: addresses, ports, IP identification,
            length and the first PAYLOAD_BYTES of the payload. Not what a router or a card may change: TTL,
            DSCP, checksums.
        fragments: Parts of datagrams, which are not among these.
        others: Further frames that are no UDP over IPv4, or too short to tell.
    """

    time_ns: Integers
    source: Integers
    destination: Integers
    source_port: Integers
    destination_port: Integers
    key: NDArray[np.void]
    fragments: int = 0
    others: int = 0

    def chosen(self, source: str = "", destination: str = "", destination_port: int = 0) -> Datagrams:
        """Return those of a flow; what is empty or 0 may be any."""
        keep = np.ones(len(self.time_ns), dtype=bool)
        for address, found in ((source, self.source), (destination, self.destination)):
            if address:
                keep &= found == int(ipaddress.IPv4Address(address))
        if destination_port:
            keep &= self.destination_port == destination_port
        return Datagrams(
            self.time_ns[keep],
            self.source[keep],
            self.destination[keep],
            self.source_port[keep],
            self.destination_port[keep],
            self.key[keep],
            self.fragments,
            self.others,
        )


def read_datagrams(path: Path) -> Datagrams:
    """Read a capture; a record that was broken off at its end is left out.

    Raises:
        ReportError: It is not a pcap file of Ethernet frames.
    """
    content = path.read_bytes()
    order, unit_ns = _file_header(path.name, content)
    data = np.frombuffer(content, dtype=np.uint8)
    at, kept = _records(content, order)
    words = _gather(data, at, 8).view(f"{order}u4").astype(np.int64)
    time_ns = words[:, 0] * _NS_PER_S + words[:, 1] * unit_ns
    return _datagrams(data, at + _RECORD_HEADER_BYTES, kept, time_ns)


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


def _records(content: bytes, order: str) -> tuple[Integers, Integers]:
    """Return where whole records begin, and how many bytes of each frame were kept."""
    length = struct.Struct(f"{order}I")
    at: list[int] = []
    kept: list[int] = []
    position, end = _FILE_HEADER_BYTES, len(content)
    while position + _RECORD_HEADER_BYTES <= end:
        (frame_bytes,) = length.unpack_from(content, position + 8)
        behind = position + _RECORD_HEADER_BYTES + frame_bytes
        if behind > end:
            break
        at.append(position)
        kept.append(frame_bytes)
        position = behind
    return np.array(at, dtype=np.int64), np.array(kept, dtype=np.int64)


def _datagrams(data: Bytes, frame: Integers, kept: Integers, time_ns: Integers) -> Datagrams:
    total = len(frame)
    whole = kept >= _ETHERNET_BYTES + _IP_BYTES
    frame, kept, time_ns = frame[whole], kept[whole], time_ns[whole]
    head = _gather(data, frame, _ETHERNET_BYTES + _IP_BYTES)
    ip_bytes = (head[:, 14] & 0x0F).astype(np.int64) * 4
    is_udp = (_word16(head, 12) == 0x0800) & (head[:, 14] >> 4 == 4) & (ip_bytes >= _IP_BYTES)
    is_udp &= head[:, 23] == 17
    part = is_udp & (_word16(head, 20) & 0x3FFF != 0)
    payload = _ETHERNET_BYTES + ip_bytes + _UDP_BYTES
    keep = is_udp & ~part & (kept >= payload)
    frame, kept, time_ns, payload = (each[keep] for each in (frame, kept, time_ns, payload))
    head = head[keep]
    udp = _gather(data, frame + payload - _UDP_BYTES, _UDP_BYTES)
    # The frame may be longer than its datagram: the smallest Ethernet frame is filled up with zeros.
    said = np.maximum(_word16(udp, 4) - _UDP_BYTES, 0)
    size = np.minimum(np.minimum(kept - payload, said), PAYLOAD_BYTES)
    begin = _gather(data, frame + payload, PAYLOAD_BYTES)
    begin[np.arange(PAYLOAD_BYTES) >= size[:, None]] = 0
    parts = [head[:, 26:34], udp[:, :6], head[:, 18:20], begin]
    key = np.ascontiguousarray(np.concatenate(parts, axis=1))
    fragments = int(part.sum())
    return Datagrams(
        time_ns,
        _word16(head, 26) << 16 | _word16(head, 28),
        _word16(head, 30) << 16 | _word16(head, 32),
        _word16(udp, 0),
        _word16(udp, 2),
        key.view(f"V{key.shape[1]}")[:, 0],
        fragments,
        total - fragments - len(time_ns),
    )


def _gather(data: Bytes, at: Integers, count: int) -> Bytes:
    """Return so many bytes from each place on, shape (len(at), count); 0 beyond the end."""
    places = at[:, None] + np.arange(count)
    found: Bytes = data[np.minimum(places, len(data) - 1)]
    found[places >= len(data)] = 0
    return found


def _word16(rows: Bytes, at: int) -> Integers:
    return rows[:, at].astype(np.int64) << 8 | rows[:, at + 1]
