# SPDX-License-Identifier: Apache-2.0
"""The UDP datagrams of a packet capture as arrays: when each was seen, and what tells it from others."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from reports.paths.pcap import ETHERNET_BYTES, Integers, read_frames, word16

PAYLOAD_BYTES = 64
"""As much of a payload tells datagrams apart; both captures have to keep it, or all that there is."""
_IP_BYTES, _UDP_BYTES = 20, 8


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
    frames = read_frames(path)
    total = len(frames.at)
    frames = frames.chosen(frames.kept >= ETHERNET_BYTES + _IP_BYTES)
    head = frames.gather(0, ETHERNET_BYTES + _IP_BYTES)
    ip_bytes = (head[:, 14] & 0x0F).astype(np.int64) * 4
    is_udp = (word16(head, 12) == 0x0800) & (head[:, 14] >> 4 == 4) & (ip_bytes >= _IP_BYTES)
    is_udp &= head[:, 23] == 17
    part = is_udp & (word16(head, 20) & 0x3FFF != 0)
    payload = ETHERNET_BYTES + ip_bytes + _UDP_BYTES
    keep = is_udp & ~part & (frames.kept >= payload)
    frames, payload, head = frames.chosen(keep), payload[keep], head[keep]
    udp = frames.gather(payload - _UDP_BYTES, _UDP_BYTES)
    # The frame may be longer than its datagram: the smallest Ethernet frame is filled up with zeros.
    said = np.maximum(word16(udp, 4) - _UDP_BYTES, 0)
    size = np.minimum(np.minimum(frames.kept - payload, said), PAYLOAD_BYTES)
    begin = frames.gather(payload, PAYLOAD_BYTES)
    begin[np.arange(PAYLOAD_BYTES) >= size[:, None]] = 0
    parts = [head[:, 26:34], udp[:, :6], head[:, 18:20], begin]
    key = np.ascontiguousarray(np.concatenate(parts, axis=1))
    fragments = int(part.sum())
    return Datagrams(
        frames.time_ns,
        word16(head, 26) << 16 | word16(head, 28),
        word16(head, 30) << 16 | word16(head, 32),
        word16(udp, 0),
        word16(udp, 2),
        key.view(f"V{key.shape[1]}")[:, 0],
        fragments,
        total - fragments - len(frames.at),
    )
