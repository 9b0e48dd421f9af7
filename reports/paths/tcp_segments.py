# SPDX-License-Identifier: Apache-2.0
"""The TCP segments of a packet capture as arrays, of IPv4 and IPv6, and where their data lie in the file."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from reports.paths.pcap import ETHERNET_BYTES, Bytes, Frames, Integers, read_frames, word16

_IP_BYTES = {4: 20, 6: 40}
_TCP_BYTES = 20
_TCP = 6
_SYN, _RST, _ACK = 0x02, 0x04, 0x10
_MAPPED = bytes(10) + b"\xff\xff"
_FLOW_BYTES = 36


@dataclass(frozen=True, eq=False)
class TcpSegments:
    """Whole segments, with data or without, in the order in which they were seen.

    Attributes:
        data: The file, shape (bytes,).
        time_ns: When each was seen by the clock of the capture, shape (n,).
        flow: Addresses and ports of source and destination, shape (n, 36): 16, 16, 2 and 2 bytes; addresses
            of IPv4 as those of IPv6 that are mapped to them.
        sequence: Number of the first byte of data, shape (n,).
        window: That its sender grants, not scaled, shape (n,).
        is_syn, grants: Begins a connection; has a window that counts. Shape (n,).
        at: Where its data begin in the file, shape (n,).
        data_bytes: How many there were, shape (n,).
        kept_bytes: How many are in the file, shape (n,).
        fragments: Parts of IP datagrams, which are not among these.
        others: Further frames that are no TCP, or too short to tell.
    """

    data: Bytes
    time_ns: Integers
    flow: Bytes
    sequence: Integers
    window: Integers
    is_syn: NDArray[np.bool_]
    grants: NDArray[np.bool_]
    at: Integers
    data_bytes: Integers
    kept_bytes: Integers
    fragments: int = 0
    others: int = 0

    def chosen(self, keep: NDArray[np.bool_] | Integers) -> TcpSegments:
        """Return some of them; `keep`: which, or their places."""
        return replace(
            self,
            time_ns=self.time_ns[keep],
            flow=self.flow[keep],
            sequence=self.sequence[keep],
            window=self.window[keep],
            is_syn=self.is_syn[keep],
            grants=self.grants[keep],
            at=self.at[keep],
            data_bytes=self.data_bytes[keep],
            kept_bytes=self.kept_bytes[keep],
        )


def flow_name(flow: bytes) -> str:
    """Return source and destination of a flow: `10.0.0.1:5000 > 10.0.0.2:5001`."""
    return f"{_end(flow[:16], flow[32:34])} > {_end(flow[16:32], flow[34:36])}"


def reversed_flow(flow: bytes) -> bytes:
    """Return the flow of the other direction."""
    return flow[16:32] + flow[:16] + flow[34:36] + flow[32:34]


def packed_address(address: str) -> bytes:
    """Return an address as flows have it; raises ValueError: it is none."""
    found = ipaddress.ip_address(address)
    return found.packed if found.version == 6 else _MAPPED + found.packed


def read_tcp_segments(path: Path) -> TcpSegments:
    """Read a capture; a record that was broken off at its end is left out.

    Raises:
        ReportError: It is not a pcap file of Ethernet frames.
    """
    every = read_frames(path)
    frames = every.chosen(np.argsort(every.time_ns, kind="stable"))
    head = frames.gather(0, ETHERNET_BYTES + _IP_BYTES[6])
    ether_type, version = word16(head, 12), head[:, 14] >> 4
    is_4 = (ether_type == 0x0800) & (version == 4) & (frames.kept >= ETHERNET_BYTES + _IP_BYTES[4])
    is_6 = (ether_type == 0x86DD) & (version == 6) & (frames.kept >= ETHERNET_BYTES + _IP_BYTES[6])
    ip_bytes = np.where(is_6, _IP_BYTES[6], (head[:, 14] & 0x0F).astype(np.int64) * 4)
    is_tcp = (is_4 & (head[:, 23] == _TCP) & (ip_bytes >= _IP_BYTES[4])) | (is_6 & (head[:, 20] == _TCP))
    part = is_tcp & is_4 & (word16(head, 20) & 0x3FFF != 0)
    tcp_at = ETHERNET_BYTES + ip_bytes
    said = np.where(is_6, word16(head, 18) + _IP_BYTES[6], word16(head, 16))
    # A card that joins or splits segments may leave the length out (0); and the smallest frame is filled up.
    least = np.where(is_6, _IP_BYTES[6], 0)
    end = np.where(said == least, frames.sizes, ETHERNET_BYTES + said)
    tcp = frames.gather(tcp_at, _TCP_BYTES)
    data_at = tcp_at + (tcp[:, 12] >> 4).astype(np.int64) * 4
    keep = is_tcp & ~part & (frames.kept >= tcp_at + _TCP_BYTES) & (data_at >= tcp_at + _TCP_BYTES)
    keep &= (end >= data_at) & (end <= frames.sizes)
    found = _segments(frames.chosen(keep), head[keep], tcp[keep], is_6[keep], data_at[keep], end[keep])
    fragments = int(part.sum())
    return replace(found, fragments=fragments, others=len(every.at) - int(keep.sum()) - fragments)


def _segments(
    frames: Frames,
    head: Bytes,
    tcp: Bytes,
    is_6: NDArray[np.bool_],
    data_at: Integers,
    end: Integers,
) -> TcpSegments:
    flow = np.zeros((len(frames.at), _FLOW_BYTES), dtype=np.uint8)
    mapped = np.frombuffer(_MAPPED, dtype=np.uint8)
    for to, at_4, at_6 in ((0, 26, 22), (16, 30, 38)):
        flow[:, to : to + 12] = mapped
        flow[:, to + 12 : to + 16] = head[:, at_4 : at_4 + 4]
        flow[is_6, to : to + 16] = head[is_6, at_6 : at_6 + 16]
    flow[:, 32:] = tcp[:, :4]
    flags = tcp[:, 13]
    is_syn = flags & _SYN != 0
    data_bytes = end - data_at
    return TcpSegments(
        frames.data,
        frames.time_ns,
        flow,
        (word16(tcp, 4) << 16 | word16(tcp, 6)) + is_syn & 0xFFFFFFFF,
        word16(tcp, 14),
        is_syn,
        (flags & _ACK != 0) & (flags & _RST == 0),
        frames.at + data_at,
        data_bytes,
        np.clip(frames.kept - data_at, 0, data_bytes),
    )


def _end(address: bytes, port: bytes) -> str:
    at = ipaddress.IPv6Address(address)
    host = str(at.ipv4_mapped) if at.ipv4_mapped else f"[{at}]"
    return f"{host}:{int.from_bytes(port, 'big')}"
