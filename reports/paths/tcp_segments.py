# SPDX-License-Identifier: Apache-2.0
"""The TCP segments of a packet capture as arrays, of IPv4 and IPv6, and where their data lie in the file."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from reports.errors import ReportError
from reports.paths.pcap import ETHERNET_BYTES, Bytes, Frames, Integers, read_frames, word16

Flags: TypeAlias = NDArray[np.bool_]

_IP_BYTES = {4: 20, 6: 40}
_TCP_BYTES = 20
_TCP, _FRAGMENT = 6, 44
_EXTENSIONS = 0, 43, _FRAGMENT, 60
"""Hop-by-hop options, routing, fragment, destination options."""
_EXTENSION_BYTES, _EXTENSIONS_MAX = 8, 8
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
        fragment_flow, cut_flow: Flows, as above, of frames of TCP that are not among these: parts of IP
            datagrams, and those without their whole header; a port that is not known is 0.
    """

    data: Bytes
    time_ns: Integers
    flow: Bytes
    sequence: Integers
    window: Integers
    is_syn: Flags
    grants: Flags
    at: Integers
    data_bytes: Integers
    kept_bytes: Integers
    fragment_flow: Bytes
    cut_flow: Bytes

    def chosen(self, keep: Flags | Integers) -> TcpSegments:
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

    def of(self, source: str, source_port: int, destination: str = "", destination_port: int = 0) -> Flags:
        """Return which are from and to these ends, shape (n,); what is empty or 0 may be any.

        Raises:
            ReportError: Frames of these ends could not be read.
        """
        ends = source, source_port, destination, destination_port
        for flow, what in (
            (self.fragment_flow, "parts of IP datagrams: capture where they are whole"),
            (self.cut_flow, "without their whole header of TCP: capture whole frames"),
        ):
            if found := int(_is_between(flow, *ends, port_may_be_0=True).sum()):
                raise ReportError(f"{found} of the stream's frames are {what}")
        return _is_between(self.flow, *ends)


def _is_between(
    flow: Bytes,
    source: str,
    source_port: int,
    destination: str,
    destination_port: int,
    *,
    port_may_be_0: bool = False,
) -> Flags:
    keep = np.ones(len(flow), dtype=bool)
    for at, address in ((0, source), (16, destination)):
        if address:
            wanted = np.frombuffer(packed_address(address), dtype=np.uint8)
            keep &= (flow[:, at : at + 16] == wanted).all(axis=1)
    for at, port in ((32, source_port), (34, destination_port)):
        if port:
            found = word16(flow, at)
            keep &= (found == port) | (port_may_be_0 & (found == 0))
    return keep


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
    is_4 &= ip_bytes >= _IP_BYTES[4]
    behind = _behind_ip(frames, head, is_6, ETHERNET_BYTES + ip_bytes)
    is_tcp = (is_4 | is_6) & (behind.protocol == _TCP)
    part, tcp_at = is_tcp & behind.is_part, behind.at
    said = np.where(is_6, word16(head, 18) + _IP_BYTES[6], word16(head, 16))
    # A card that joins or splits segments may leave the length out (0); and the smallest frame is filled up.
    least = np.where(is_6, _IP_BYTES[6], 0)
    end = np.where(said == least, frames.sizes, ETHERNET_BYTES + said)
    tcp = frames.gather(tcp_at, _TCP_BYTES)
    data_at = tcp_at + (tcp[:, 12] >> 4).astype(np.int64) * 4
    is_cut = is_tcp & ~part & (frames.kept < tcp_at + _TCP_BYTES) & (frames.sizes >= tcp_at + _TCP_BYTES)
    flow = _flow(head, is_6, tcp)
    # Ports are at the beginning of the first part.
    has_ports = (frames.kept >= tcp_at + 4) & ~(part & (behind.offset > 0))
    flow[~has_ports, 32:] = 0
    fragment_flow = _with_ports(flow[part], behind.identification[part])
    keep = is_tcp & ~part & (frames.kept >= tcp_at + _TCP_BYTES) & (data_at >= tcp_at + _TCP_BYTES)
    keep &= (end >= data_at) & (end <= frames.sizes)
    found = _segments(frames.chosen(keep), flow[keep], tcp[keep], data_at[keep], end[keep])
    return replace(found, fragment_flow=fragment_flow, cut_flow=flow[is_cut])


@dataclass(frozen=True, eq=False)
class _BehindIp:
    """What lies behind the headers of IP, each of shape (n,).

    Attributes:
        protocol, at: Which, and where.
        is_part, offset, identification: Of a datagram; where in it, in 8 bytes; of which.
    """

    protocol: Integers
    at: Integers
    is_part: Flags
    offset: Integers
    identification: Integers


def _behind_ip(frames: Frames, head: Bytes, is_6: Flags, at: Integers) -> _BehindIp:
    """Pass over the extension headers of IPv6 (RFC 8200, 4)."""
    protocol = np.where(is_6, head[:, 20], head[:, 23]).astype(np.int64)
    is_part = ~is_6 & (word16(head, 20) & 0x3FFF != 0)
    offset = np.where(is_part, word16(head, 20) & 0x1FFF, 0)
    identification = word16(head, 18)
    for _ in range(_EXTENSIONS_MAX):
        is_extended = is_6 & np.isin(protocol, _EXTENSIONS) & (frames.kept >= at + _EXTENSION_BYTES)
        is_extended &= offset == 0
        if not is_extended.any():
            break
        extension = frames.gather(at, _EXTENSION_BYTES)
        splits = is_extended & (protocol == _FRAGMENT)
        where = word16(extension, 2)
        is_part |= splits & (where & 0xFFF9 != 0)
        offset = np.where(splits, where >> 3, offset)
        numbered = word16(extension, 4) << 16 | word16(extension, 6)
        identification = np.where(splits, numbered, identification)
        protocol = np.where(is_extended, extension[:, 0], protocol)
        more = np.where(splits, 0, extension[:, 1]).astype(np.int64)
        at = np.where(is_extended, at + _EXTENSION_BYTES * (1 + more), at)
    return _BehindIp(protocol, at, is_part, offset, identification)


def _with_ports(flow: Bytes, identification: Integers) -> Bytes:
    """Return the flows of parts of datagrams, each with the ports that the first part has, shape (n, 36)."""
    keys = [(each[:32].tobytes(), which) for each, which in zip(flow, identification.tolist(), strict=True)]
    ports = {key: each[32:] for key, each in zip(keys, flow, strict=True) if each[32:].any()}
    found = flow.copy()
    for row, key in zip(found, keys, strict=True):
        row[32:] = ports.get(key, row[32:])
    return found


def _flow(head: Bytes, is_6: Flags, tcp: Bytes) -> Bytes:
    flow = np.zeros((len(head), _FLOW_BYTES), dtype=np.uint8)
    mapped = np.frombuffer(_MAPPED, dtype=np.uint8)
    for to, at_4, at_6 in ((0, 26, 22), (16, 30, 38)):
        flow[:, to : to + 12] = mapped
        flow[:, to + 12 : to + 16] = head[:, at_4 : at_4 + 4]
        flow[is_6, to : to + 16] = head[is_6, at_6 : at_6 + 16]
    flow[:, 32:] = tcp[:, :4]
    return flow


def _segments(frames: Frames, flow: Bytes, tcp: Bytes, data_at: Integers, end: Integers) -> TcpSegments:
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
        flow[:0],
        flow[:0],
    )


def _end(address: bytes, port: bytes) -> str:
    at = ipaddress.IPv6Address(address)
    host = str(at.ipv4_mapped) if at.ipv4_mapped else f"[{at}]"
    return f"{host}:{int.from_bytes(port, 'big')}"
