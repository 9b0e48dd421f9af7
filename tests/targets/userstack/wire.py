# SPDX-License-Identifier: Apache-2.0
"""Packets that a test makes itself, at the far end of an `AccelLab`, and peers of TCP made of them."""

from __future__ import annotations

import os
import select
import socket
import struct
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.namespace import in_namespace
from tests.patience import HANG_S
from tests.targets.userstack.accel_lab import INTERFACE, NEAR, AccelLab

ETHERTYPES = {4: 0x0800, 6: 0x86DD}
FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
SEQUENCE_NUMBERS = 2**32
TCP_BYTES = 20
HEADER_BYTES = {4: 20, 6: 40}
_RECEIVE_BUFFER_BYTES = 1 << 24
_ETH_P_ALL, _SOL_PACKET, _PACKET_IGNORE_OUTGOING, _SO_RCVBUFFORCE = 3, 263, 23, 33


def summed(data: bytes) -> int:
    """Return the sum of 16-bit words that checksums of IP are made of."""
    if len(data) & 1:
        data += b"\0"
    total = int.from_bytes(data, "big") % 0xFFFF
    return total or (0xFFFF if any(data) else 0)


def ip_bytes(address: str) -> bytes:
    """Return an address as packets have it."""
    return socket.inet_pton(socket.AF_INET6 if ":" in address else socket.AF_INET, address)


def ip_packet(
    source: bytes, destination: bytes, protocol: int, payload: bytes, *, fragment: int = 0, number: int = 0
) -> bytes:
    """Return a packet of the family of its addresses.

    Args:
        source: Its address, as packets have it.
        destination: The same.
        protocol: Of the payload.
        payload: What is behind the header of IP.
        fragment: Of IPv4: the field of flags and offset.
        number: Of IPv4: the identification.
    """
    if len(source) == 16:
        return struct.pack("!IHBB", 6 << 28, len(payload), protocol, 64) + source + destination + payload
    fields = 0x45, 0, 20 + len(payload), number, fragment, 64, protocol
    head = struct.pack("!BBHHHBB", *fields)
    sum_ = 0xFFFF - summed(head + source + destination)
    return head + struct.pack("!H", sum_) + source + destination + payload


def with_sum(source: bytes, destination: bytes, protocol: int, payload: bytes, at: int) -> bytes:
    """Return a segment or datagram with its checksum filled in at an offset, where there are zeroes."""
    pseudo = source + destination + struct.pack("!II", len(payload), protocol)
    sum_ = 0xFFFF - summed(pseudo + payload)
    if protocol == socket.IPPROTO_UDP and not sum_:
        sum_ = 0xFFFF
    return payload[:at] + struct.pack("!H", sum_) + payload[at + 2 :]


def segment(
    ends: tuple[bytes, int, bytes, int],
    flags: int,
    seq: int,
    ack: int,
    *,
    data: bytes = b"",
    window: int = 65535,
    options: bytes = b"",
    words: int | None = None,
) -> bytes:
    """Return a segment of TCP in its packet.

    Args:
        ends: Source and its port, destination and its port.
        flags: FIN, SYN, …
        seq: Sequence number.
        ack: Acknowledgement number.
        data: Payload.
        window: As the field has it.
        options: A multiple of four bytes.
        words: Length of the header that it claims; None: the right one.
    """
    source, source_port, destination, port = ends
    numbers = seq % SEQUENCE_NUMBERS, ack % SEQUENCE_NUMBERS
    words = 5 + len(options) // 4 if words is None else words
    head = struct.pack("!HHIIBBHI", source_port, port, *numbers, words << 4, flags, window, 0)
    tcp = with_sum(source, destination, socket.IPPROTO_TCP, head + options + data, 16)
    return ip_packet(source, destination, socket.IPPROTO_TCP, tcp)


def datagram(ends: tuple[bytes, int, bytes, int], data: bytes, *, claimed_bytes: int = 0) -> bytes:
    """Return a datagram of UDP in its packet; `claimed_bytes` instead of its length."""
    source, source_port, destination, port = ends
    head = struct.pack("!HHHH", source_port, port, claimed_bytes or 8 + len(data), 0)
    udp = with_sum(source, destination, socket.IPPROTO_UDP, head + data, 6)
    return ip_packet(source, destination, socket.IPPROTO_UDP, udp)


@dataclass(frozen=True)
class Segment:
    """One that came."""

    family: int
    destination: bytes
    source_port: int
    port: int
    seq: int
    ack: int
    flags: int
    window: int
    data: bytes

    @classmethod
    def of_frame(cls, frame: bytes) -> Segment | None:
        """Take a frame apart; None: there is no TCP in it."""
        ethertype = int.from_bytes(frame[12:14], "big")
        family = 4 if ethertype == ETHERTYPES[4] else 6 if ethertype == ETHERTYPES[6] else 0
        if not family or frame[14 + (9 if family == 4 else 6)] != socket.IPPROTO_TCP:
            return None
        at = 14 + HEADER_BYTES[family]
        size = (
            int.from_bytes(frame[16:18], "big") if family == 4 else 40 + int.from_bytes(frame[18:20], "big")
        )
        ports_and_numbers = struct.unpack_from("!HHIIBBH", frame, at)
        source_port, port, seq, ack, words, flags, window = ports_and_numbers
        destination = frame[at - (4 if family == 4 else 16) : at]
        data = frame[at + (words >> 4) * 4 : 14 + size]
        return cls(family, destination, source_port, port, seq, ack, flags, window, data)


class Wire:
    """Sends packets by the far end's interface, and hears what comes there."""

    def __init__(self, lab: AccelLab, *, source_mac: bytes | None = None) -> None:
        """Open it; frames say that they are from another station if one is given."""
        self.near_mac = _mac(lab.near)
        self.own_mac = source_mac or _mac(lab.far)
        self._head = self.near_mac + self.own_mac
        self._ethertypes = {family: struct.pack("!H", value) for family, value in ETHERTYPES.items()}
        self.socket = in_namespace(lab.far, lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0))

    def listen(self) -> None:
        """Hear from now on what comes from the near end."""
        self.socket.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _RECEIVE_BUFFER_BYTES)
        self.socket.setsockopt(_SOL_PACKET, _PACKET_IGNORE_OUTGOING, 1)
        self.bind(_ETH_P_ALL)

    def bind(self, ethertype: int = 0) -> None:
        """Bind to the interface; without an ethertype nothing is heard."""
        self.socket.bind((INTERFACE, ethertype))

    def close(self) -> None:
        """End."""
        self.socket.close()

    def frame(self, packet: bytes) -> bytes:
        """Return the frame of a packet of IP."""
        return self._head + self._ethertypes[4 if packet[0] >> 4 != 6 else 6] + packet

    def send(self, packet: bytes) -> None:
        """Send a packet."""
        self.socket.send(self.frame(packet))

    def segments(self, timeout_s: float) -> Iterable[Segment]:
        """Yield segments as they come, until none has for a time."""
        while select.select([self.socket], [], [], timeout_s)[0]:
            found = Segment.of_frame(self.socket.recv(1 << 16))
            if found:
                yield found


class WirePeer:
    """The other end of a connection, at an address that no kernel has."""

    def __init__(self, wire: Wire, address: str, port: int, *, near_port: int, isn: int = 1000) -> None:
        """Take its address and port, and the port of the server at the near end."""
        self.wire = wire
        self.family = 6 if ":" in address else 4
        self.address = ip_bytes(address)
        self.port, self.isn = port, isn
        self.ends = self.address, port, ip_bytes(NEAR[self.family]), near_port
        self.seq, self.ack = isn, 0
        self.received = b""
        self.closed = self.reset = False

    def send(
        self,
        flags: int,
        data: bytes = b"",
        *,
        window: int = 65535,
        seq: int | None = None,
        options: bytes = b"",
    ) -> None:
        """Send a segment; where its number is not given, the next one begins behind it."""
        sent_seq = self.seq if seq is None else seq
        acked = self.ack if flags & ACK else 0
        self.wire.send(segment(self.ends, flags, sent_seq, acked, data=data, window=window, options=options))
        if seq is None:
            self.seq += len(data) + bool(flags & SYN) + bool(flags & FIN)

    def take(self, found: Segment) -> bool:
        """Take a segment if it is this peer's and the next one; say whether it is this peer's."""
        if (found.destination, found.port) != (self.address, self.port):
            return False
        if found.flags & RST:
            self.reset = True
            return True
        if found.flags & SYN:
            self.ack = (found.seq + 1) % SEQUENCE_NUMBERS
            return True
        ahead = (self.ack - found.seq) % SEQUENCE_NUMBERS
        if ahead <= len(found.data):
            new = found.data[ahead:]
            self.received += new
            self.ack = (self.ack + len(new)) % SEQUENCE_NUMBERS
            if found.flags & FIN and not self.closed:
                self.closed = True
                self.ack = (self.ack + 1) % SEQUENCE_NUMBERS
        return True


def hear(wire: Wire, peers: Iterable[WirePeer], timeout_s: float) -> int:
    """Let peers take what comes, until nothing has for a time; return how many segments were theirs."""
    by_end = {(peer.address, peer.port): peer for peer in peers}
    count = 0
    for found in wire.segments(timeout_s):
        peer = by_end.get((found.destination, found.port))
        count += peer is not None and peer.take(found)
    return count


def connect(wire: Wire, peers: Iterable[WirePeer], *, window: int = 65535, options: bytes = b"") -> None:
    """Let peers connect, one after the other.

    Raises:
        AssertionError: One gets no answer.
    """
    for peer in peers:
        peer.send(SYN, window=window, options=options)
        deadline_s = time.monotonic() + HANG_S
        while not peer.ack:
            assert time.monotonic() < deadline_s, "no answer to a SYN"
            hear(wire, [peer], 0.001)
        peer.send(ACK, window=window)


def resident_kib(pid: int) -> int:
    """Return how much memory a process has."""
    fields = Path(f"/proc/{pid}/statm").read_text().split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


def descriptors(pid: int) -> int:
    """Return how many descriptors a process has."""
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def _mac(namespace: str) -> bytes:
    """Return the address of a namespace's interface."""
    text = in_namespace(namespace, lambda: _own_mac())
    return bytes.fromhex(text.replace(":", ""))


def _own_mac() -> str:
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as sock:
        sock.bind((INTERFACE, 0))
        mac: bytes = sock.getsockname()[4]
        return mac.hex(":")
