# SPDX-License-Identifier: Apache-2.0
"""Packets that try to break an accelerated server, and which counters each has to raise."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random

from tests.targets.userstack.wire import (
    ACK,
    FIN,
    HEADER_BYTES,
    PSH,
    RST,
    SYN,
    TCP_BYTES,
    datagram,
    ip_packet,
    segment,
    summed,
)

SENDER = bytes.fromhex("0200000000f0")
"""Ethernet address that all of them are from."""
WINDOW_BYTES = 4 * 1024 * 1024
"""What the stack offers at most."""
KERNEL = "kernel"
"""Stands for a counter: the packet is none of the program's."""
LONE_FRAGMENT = 60_000
"""First identification of fragments that have no other; those with others have the ones below."""
Ends = tuple[bytes, int, bytes, int]


@dataclass
class Connection:
    """What the forger knows of the sound one: all of it."""

    ends: Ends
    seq: int
    """What its client sends next."""
    ack: int
    """What its server sends next."""


@dataclass(frozen=True)
class Hostile:
    """A packet, and the counters that rise by one because of it."""

    packet: bytes
    counts: tuple[str, ...]


@dataclass
class Forger:
    """Makes them, the same ones of a seed."""

    random: Random
    near: bytes
    strangers: tuple[bytes, ...]
    """Addresses that no kernel has."""
    port: int
    sound: Connection
    numbers: int = field(default=0)
    """Of fragments."""

    def packets(self) -> Iterator[Hostile]:
        """Yield them without end."""
        kinds = self._kinds()
        while True:
            yield from self.random.choice(kinds)()

    def _kinds(self) -> list[Callable[[], list[Hostile]]]:
        kinds = [
            *(
                self._cut_headers,
                self._claimed_length,
                self._wrong_checksum,
                self._bad_options,
                self._to_nobody,
            ),
            *(self._any_flags, self._syn_and_more, self._overlapping, self._datagrams, self._bits),
            *(self._reset_beside, self._syn_in_window, self._data_outside, self._old_acknowledgement),
            *(self._future_acknowledgement, self._cut_packet),
        ]
        return (
            [*kinds, self._ip_checksum, self._fragments, self._lone_fragment]
            if len(self.near) == 4
            else kinds
        )

    def _stranger(self) -> Ends:
        return self.random.choice(self.strangers), self.random.randrange(1024, 65536), self.near, self.port

    def _number(self) -> int:
        return self.random.getrandbits(32)

    def _of(self, packet: bytes, *counts: str) -> list[Hostile]:
        return [Hostile(packet, ("ip_in", *counts))]

    # At nobody's connection, or at one that the forger begins.

    def _any_flags(self) -> list[Hostile]:
        data = self.random.randbytes(self.random.choice((0, 0, 1, 3, 500, 1400)))
        flags, numbers = self.random.randrange(256), (self._number(), self._number())
        return self._of(segment(self._stranger(), flags, *numbers, data=data), "tcp_in")

    def _syn_and_more(self) -> list[Hostile]:
        """A connection that begins, and what may be the end of it, or data before its time."""
        ends, isn = self._stranger(), self._number()
        first = segment(ends, SYN, isn, 0, data=self.random.randbytes(self.random.choice((0, 0, 10))))
        flags = self.random.choice((ACK, RST, FIN | ACK, SYN | ACK, PSH | ACK, SYN, RST | ACK))
        second = segment(ends, flags, isn + self.random.choice((0, 1, 1, 2, 70000)), self._number())
        return [*self._of(first, "tcp_in"), *self._of(second, "tcp_in")]

    def _bad_options(self) -> list[Hostile]:
        options = self.random.randbytes(4 * self.random.randrange(1, 11))
        if self.random.random() < 0.5:
            kind, size = self.random.choice((2, 3, 4, 5, 8, 254)), self.random.choice((0, 1, 2, 3, 40, 255))
            options = bytes((kind, size)) + options[2:]
        flags = self.random.choice((SYN, ACK, SYN | ACK))
        return self._of(segment(self._stranger(), flags, self._number(), 0, options=options), "tcp_in")

    def _cut_headers(self) -> list[Hostile]:
        """A header of TCP that is not all there, by the length of IP or by its own."""
        ends = self._stranger()
        if self.random.random() < 0.5:
            size = self.random.randrange(4, TCP_BYTES)
            head = struct.pack("!HHIIBBHI", ends[1], self.port, 1, 1, 5 << 4, SYN, 1000, 0)[:size]
            packet = ip_packet(ends[0], self.near, socket.IPPROTO_TCP, head)
            return self._of(packet, "tcp_in", "tcp_malformed")
        packet = segment(ends, SYN, 1, 1, words=self.random.choice((0, 1, 4, 6, 15)))
        return self._of(packet, "tcp_in", "tcp_malformed")

    def _wrong_checksum(self) -> list[Hostile]:
        """Of a segment that would be the sound connection's next one, if it were right."""
        sound = self.sound
        packet = bytearray(
            segment(sound.ends, PSH | ACK, sound.seq, sound.ack, data=self.random.randbytes(100))
        )
        packet[-self.random.randrange(1, 100)] ^= 1 << self.random.randrange(8)
        return self._of(bytes(packet), "tcp_in", "tcp_checksum")

    def _overlapping(self) -> list[Hostile]:
        """Pieces of a stream that begin and end anywhere, of a connection that was not made."""
        ends, isn = self._stranger(), self._number()
        found = self._of(segment(ends, SYN, isn, 0), "tcp_in")
        for _ in range(self.random.randrange(1, 6)):
            at, size = self.random.randrange(2000), self.random.randrange(1, 1400)
            found += self._of(segment(ends, ACK, isn + 1 + at, self._number(), data=bytes(size)), "tcp_in")
        return found

    def _datagrams(self) -> list[Hostile]:
        ends = self._stranger()
        data = self.random.randbytes(self.random.randrange(200))
        kind = self.random.randrange(3)
        if kind == 0:
            # Longer than the packet, or shorter than its own header.
            claimed = self.random.choice((1, 7, 9 + len(data), 65535))
            return self._of(datagram(ends, data, claimed_bytes=claimed), "udp_in", "udp_malformed")
        packet = bytearray(datagram(ends, data + b"x"))
        if kind == 1:
            packet[-1] ^= 1 << self.random.randrange(8)
            return self._of(bytes(packet), "udp_in", "udp_checksum")
        return self._of(bytes(packet), "udp_in")

    def _to_nobody(self) -> list[Hostile]:
        """What the kernel has: ports that no program has, other protocols."""
        source, port, near, _ = self._stranger()
        if self.random.random() < 0.5:
            packet = segment((source, port, near, self.port + 2 + self.random.randrange(20000)), RST, 1, 1)
        else:
            packet = ip_packet(source, near, self.random.choice((2, 47, 132, 255)), self.random.randbytes(40))
        return [Hostile(packet, (KERNEL,))]

    def _bits(self) -> list[Hostile]:
        """Random bits behind a header that brings them to the program."""
        source, port, near, own = self._stranger()
        junk = struct.pack("!HH", port, own) + self.random.randbytes(self.random.randrange(20, 300))
        packet = ip_packet(source, near, socket.IPPROTO_TCP, junk)
        words, pseudo = junk[12] >> 4, source + near + struct.pack("!II", len(junk), socket.IPPROTO_TCP)
        if summed(pseudo + junk) != 0xFFFF:  # of 65536 one is right
            return self._of(packet, "tcp_in", "tcp_checksum")
        bad = words < 5 or words * 4 > len(junk)
        return self._of(packet, "tcp_in", *(["tcp_malformed"] if bad else []))

    def _claimed_length(self) -> list[Hostile]:
        """A packet that says to be longer than its frame: the kernel drops it."""
        packet = bytearray(segment(self._stranger(), SYN, 1, 0))
        at = 2 if len(self.near) == 4 else 4
        packet[at : at + 2] = struct.pack("!H", self.random.choice((100, 1500, 65535)))
        return [Hostile(bytes(packet), (KERNEL,))]

    def _cut_packet(self) -> list[Hostile]:
        packet = segment(self._stranger(), SYN, 1, 0)
        size = self.random.randrange(1, HEADER_BYTES[4 if len(self.near) == 4 else 6] + TCP_BYTES)
        return [Hostile(packet[:size], (KERNEL,))]

    # At the sound connection, by a forger who knows its numbers. None may end it, or be taken for its data.

    def _reset_beside(self) -> list[Hostile]:
        """In the window and beside it, but never at the very number (RFC 5961, 3.2)."""
        off = self.random.choice((1, 2, 1000, WINDOW_BYTES // 2, WINDOW_BYTES * 2, 2**31, -1, -1000))
        sound = self.sound
        # Far enough from what the client may have sent meanwhile.
        seq = sound.seq + off + (200_000 if off > 0 else -200_000)
        return self._of(segment(sound.ends, RST, seq, sound.ack), "tcp_in")

    def _syn_in_window(self) -> list[Hostile]:
        seq = self.sound.seq + self.random.choice((0, 1, 5000, -5000, 2**31))
        return self._of(segment(self.sound.ends, SYN, seq, 0), "tcp_in")

    def _data_outside(self) -> list[Hostile]:
        sound = self.sound
        seq = sound.seq + self.random.choice((-100_000, WINDOW_BYTES * 2, 2**31, -(2**30)))
        flags = self.random.choice((ACK, PSH | ACK, FIN | ACK))
        return self._of(segment(sound.ends, flags, seq, sound.ack, data=bytes(100)), "tcp_in")

    def _old_acknowledgement(self) -> list[Hostile]:
        sound = self.sound
        old = self.random.choice((2**30, 2**31 - 1, WINDOW_BYTES * 2))
        return self._of(segment(sound.ends, ACK, sound.seq, sound.ack - old, data=b"forged"), "tcp_in")

    def _future_acknowledgement(self) -> list[Hostile]:
        """Of what has not been sent: its data is not to be believed either (RFC 9293, 3.10.7.4)."""
        sound = self.sound
        new = self.random.choice((100_000, WINDOW_BYTES, 2**30))
        return self._of(segment(sound.ends, ACK, sound.seq, sound.ack + new, data=b"forged"), "tcp_in")

    # Of IPv4 alone.

    def _ip_checksum(self) -> list[Hostile]:
        packet = bytearray(segment(self._stranger(), SYN, 1, 0))
        packet[self.random.choice((1, 4, 8))] ^= 1 << self.random.randrange(8)
        return self._of(bytes(packet), "ip_checksum")

    def _fragments(self) -> list[Hostile]:
        """A datagram in two parts that overlap, or of which one is missing."""
        ends = self._stranger()
        whole = datagram(ends, self.random.randbytes(600))[20:]
        self.numbers = (self.numbers + 1) % LONE_FRAGMENT
        more = 0x2000

        def part(begin: int, end: int, flags: int, *counts: str) -> Hostile:
            place = flags | begin // 8
            packet = ip_packet(
                ends[0], self.near, socket.IPPROTO_UDP, whole[begin:end], fragment=place, number=self.numbers
            )
            return Hostile(packet, ("ip_in", *counts))

        begin = self.random.choice((304, 296, 200, 8))
        parts = [part(0, 304, more), part(begin, len(whole), 0, *(["udp_in"] if begin == 304 else []))]
        return parts[: self.random.randrange(1, 3)]

    def _lone_fragment(self) -> list[Hostile]:
        """One whose first is not known: nobody's."""
        source = self.random.choice(self.strangers)
        number = self.random.randrange(LONE_FRAGMENT, 65536)
        packet = ip_packet(
            source, self.near, socket.IPPROTO_UDP, self.random.randbytes(80), fragment=100, number=number
        )
        return [Hostile(packet, (KERNEL,))]
