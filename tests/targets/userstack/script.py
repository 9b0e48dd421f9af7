# SPDX-License-Identifier: Apache-2.0
"""Scripts of packets: a peer sends what a test says, packet by packet, and checks what the stack answers.

Numbers are relative: `seq` counts from the sender's initial sequence number, `ack` from the other end's, so
that a SYN is 0 and the first byte of data is 1. Time is virtual; an expectation says how much may pass.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import (
    ICMPv6DestUnreach,
    ICMPv6PacketTooBig,
    ICMPv6ParamProblem,
    IPv6,
    _ICMPv6,  # pyright: ignore[reportPrivateUsage]
)
from scapy.packet import Packet, Raw

from tests.targets.userstack import stack as sockets
from tests.targets.userstack.stack import Family, Socket, Stack

STACK_IPS: dict[Family, str] = {4: "10.1.0.1", 6: "fd00::1"}
PEER_IPS: dict[Family, str] = {4: "10.1.0.2", 6: "fd00::2"}
HEADERS_BYTES: dict[Family, int] = {4: 40, 6: 60}
"""Of IP and TCP without options."""
MTU_BYTES = 1500
PORT = 7000
"""The stack's, in every script."""
SEQUENCE_NUMBERS = 2**32

Option = tuple[str | int, Any]
SYN_OPTIONS: tuple[Option, ...] = (("MSS", 1460), ("NOP", None), ("WScale", 0), ("SAckOK", b""))
PLAIN_OPTIONS: tuple[Option, ...] = (("MSS", 1460),)

STATES = (
    *("SYN-RECEIVED", "ESTABLISHED", "FIN-WAIT-1", "FIN-WAIT-2"),
    *("CLOSE-WAIT", "CLOSING", "LAST-ACK", "TIME-WAIT"),
)
"""The synchronized states, and SYN-RECEIVED."""


def full(packet: bytes, family: Family) -> Packet:
    """Take a packet of IP apart."""
    return IP(packet) if family == 4 else IPv6(packet)


def options_of(segment: Packet) -> dict[str, Any]:
    """Return the options of a segment by name, without padding."""
    return {name: value for name, value in segment.options if name not in ("NOP", "EOL")}


class Peer:
    """The other end of one connection (or of datagrams), played by a script.

    Attributes:
        stack: Whose packets it sees.
        isn: Its own initial sequence number.
        stack_isn: The stack's, known from its first SYN.
        seq: Relative: what it sends next, unless a line says otherwise.
        ack: Relative: what it expects of the stack next.
    """

    def __init__(self, stack: Stack, family: Family, *, port: int = 40000, isn: int = 1_000_000) -> None:
        """Sit at the other end of a stack that has the address STACK_IPS[family]."""
        self.stack = stack
        self.family = family
        self.port, self.stack_port = port, PORT
        self.ip, self.stack_ip = PEER_IPS[family], STACK_IPS[family]
        self.isn: int = isn
        self.stack_isn: int = 0
        self.seq: int = 0
        self.ack: int = 0
        self.listener: Socket | None = None

    # What it sends.

    def header(self, **fields: Any) -> Packet:
        """Return the IP header of what goes to the stack."""
        layer = IP if self.family == 4 else IPv6
        return layer(**{"src": self.ip, "dst": self.stack_ip, **fields})

    def segment(
        self,
        flags: str,
        seq: int | None = None,
        ack: int | None = None,
        *,
        data: bytes = b"",
        window: int = 65535,
        options: Iterable[Option] = (),
        **fields: Any,
    ) -> Packet:
        """Return a segment as IP has it; fields are those of scapy's TCP."""
        seq = self.seq if seq is None else seq
        ack = self.ack if ack is None else ack
        has_ack = "A" in flags or "ack_field" in fields
        acked = (self.stack_isn + ack) % SEQUENCE_NUMBERS if has_ack else 0
        acked = fields.pop("ack_field", acked)
        tcp = TCP(
            sport=self.port,
            dport=self.stack_port,
            flags=flags,
            seq=(self.isn + seq) % SEQUENCE_NUMBERS,
            ack=acked,
            window=window,
            options=list(options),
            **fields,
        )
        return self.header() / tcp / Raw(data) if data else self.header() / tcp

    def inject(self, flags: str, seq: int | None = None, ack: int | None = None, **fields: Any) -> None:
        """Send a segment; `self.seq` goes on behind it if it is the next one."""
        self.stack.input(bytes(self.segment(flags, seq, ack, **fields)))
        if (seq is None or seq == self.seq) and "R" not in flags:
            self.seq += len(fields.get("data", b"")) + ("S" in flags) + ("F" in flags)

    def datagram(self, data: bytes, **fields: Any) -> Packet:
        """Return a datagram as IP has it; fields are those of scapy's UDP."""
        udp = UDP(**{"sport": self.port, "dport": self.stack_port, **fields})
        return self.header() / udp / Raw(data) if data else self.header() / udp

    def icmp_error(self, about: bytes, kind: str, *, mtu_bytes: int = 0, quoted_bytes: int = 548) -> None:
        """Send an ICMP error: `icmp_packet`."""
        self.stack.input(self.icmp_packet(about, kind, mtu_bytes=mtu_bytes, quoted_bytes=quoted_bytes))

    def icmp_packet(self, about: bytes, kind: str, *, mtu_bytes: int = 0, quoted_bytes: int = 548) -> bytes:
        """Return an ICMP error about a packet of the stack.

        Args:
            about: The packet, as the stack sent it or as a forger makes it up.
            kind: `net`, `host`, `port`, `too-big`, `prohibited`, `parameter`; of IPv4
                also `protocol`, `quench` and `time-exceeded`.
            mtu_bytes: Of `too-big`.
            quoted_bytes: How much of the packet is quoted.
        """
        if self.family == 4:
            codes = {"net": 0, "host": 1, "protocol": 2, "port": 3, "too-big": 4, "prohibited": 13}
            types = {"time-exceeded": 11, "quench": 4, "parameter": 12}
            error = ICMP(type=types.get(kind, 3), code=codes.get(kind, 0))
            if kind == "too-big":
                error.nexthopmtu = mtu_bytes
            return bytes(self.header() / error / Raw(about[:quoted_bytes]))
        codes = {"net": 0, "prohibited": 1, "host": 3, "port": 4}
        if kind == "too-big":
            layer: Packet = ICMPv6PacketTooBig(mtu=mtu_bytes)
        elif kind == "parameter":
            layer = ICMPv6ParamProblem()
        elif kind in codes:
            layer = ICMPv6DestUnreach(code=codes[kind])
        else:
            raise ValueError(f"kind is {kind!r}, not one that IPv6 has")
        return bytes(self.header() / layer / Raw(about[:quoted_bytes]))

    # What it expects.

    def next_packet(self, within_ms: float = 0) -> Packet | None:
        """Return the next packet that the stack sends, None if there is none in that time."""
        end_us = self.stack.now_us + round(within_ms * 1000)
        while not self.stack.sent:
            due_us = min(end_us, self.stack.next_us)
            if self.stack.now_us >= end_us:
                return None
            self.stack.advance_to_us(max(due_us, self.stack.now_us + 1))
        return full(self.stack.sent.pop(0), self.family)

    def expect(
        self,
        flags: str,
        seq: int | None = None,
        ack: int | None = None,
        *,
        data: bytes | None = None,
        size: int | None = None,
        window: int | None = None,
        options: dict[str, Any] | None = None,
        within_ms: float = 0,
    ) -> Packet:
        """Take the next packet, which has to be this segment, and return its TCP layer.

        What is None is not looked at. `self.ack` goes on behind it. A SYN tells
        the stack's initial sequence number.
        """
        packet = self.next_packet(within_ms)
        assert packet is not None, f"expected {flags}, nothing came within {within_ms} ms"
        assert TCP in packet, f"expected {flags}, got {packet.summary()}"
        tcp = packet[TCP]
        self._check_sum(packet, TCP)
        if "S" in flags and "S" in str(tcp.flags):
            self.stack_isn = tcp.seq
        payload = bytes(tcp.payload)
        got_seq = (tcp.seq - self.stack_isn) % SEQUENCE_NUMBERS
        got_ack = (tcp.ack - self.isn) % SEQUENCE_NUMBERS
        got = f"{packet.summary()}: seq {got_seq}, ack {got_ack}, {len(payload)} bytes"
        assert set(str(tcp.flags)) - {"P"} == set(flags), f"expected {flags}, got {got}"
        for name, wanted, is_ in (
            ("seq", seq, got_seq),
            ("ack", ack, got_ack),
            ("data", data, payload),
            ("size", size, len(payload)),
            ("window", window, tcp.window),
            ("options", options, options_of(tcp)),
        ):
            assert wanted is None or wanted == is_, f"expected {name} {wanted!r}, got {is_!r}: {got}"
        end = got_seq + len(payload) + ("S" in flags) + ("F" in flags)
        if "R" not in flags and self.ack < end < 2**31:
            self.ack = end
        return tcp

    def expect_reset(self, seq: int | None = None, ack: int | None = None, within_ms: float = 0) -> Packet:
        """Take the next packet, which has to be a RST, with or without an acknowledgement."""
        packet = self.next_packet(within_ms)
        assert packet is not None, "expected a RST, nothing came"
        assert TCP in packet, f"expected a RST, got {packet.summary()}"
        assert "R" in str(packet[TCP].flags), f"expected a RST, got {packet.summary()}"
        got_seq = (packet[TCP].seq - self.stack_isn) % SEQUENCE_NUMBERS
        got_ack = (packet[TCP].ack - self.isn) % SEQUENCE_NUMBERS
        assert seq is None or seq == got_seq, f"expected seq {seq}, got {got_seq}"
        assert ack is None or ack == got_ack, f"expected ack {ack}, got {got_ack}"
        return packet[TCP]

    def expect_nothing(self, ms: float = 0) -> None:
        """Let time pass, in which the stack may send nothing."""
        packet = self.next_packet(ms)
        assert packet is None, f"expected nothing, got {packet.summary()}"

    def expect_datagram(self, data: bytes) -> Packet:
        """Take the next packet, which has to be this datagram, and return its UDP layer."""
        packet = self.next_packet()
        assert packet is not None, "expected a datagram, nothing came"
        assert UDP in packet, f"expected a datagram, got {packet.summary()}"
        self._check_sum(packet, UDP)
        assert bytes(packet[UDP].payload) == data
        return packet[UDP]

    def expect_icmp_error(self, type_: int, code: int) -> Packet:
        """Take the next packet, which has to be an ICMP error of that type and code."""
        packet = self.next_packet()
        assert packet is not None, "expected an ICMP error, nothing came"
        error = packet[ICMP] if self.family == 4 else packet.payload
        assert self.family == 4 or isinstance(error, _ICMPv6), packet.summary()
        assert (error.type, error.code) == (type_, code)
        return error

    def drain(self, ms: float = 0) -> list[Packet]:
        """Let time pass and return all packets that the stack sent."""
        self.stack.advance_ms(ms)
        return [full(packet, self.family) for packet in self.stack.take()]

    def numbers(self, *relative: int) -> tuple[int, ...]:
        """Return the stack's sequence numbers as SACK has them."""
        return tuple((self.stack_isn + each) % SEQUENCE_NUMBERS for each in relative)

    def reach(self, packet: Packet) -> int:
        """Return the relative number behind the data of a segment that came."""
        return (packet[TCP].seq + len(packet[TCP].payload) - self.stack_isn) % SEQUENCE_NUMBERS

    def _check_sum(self, packet: Packet, layer: type[Packet]) -> None:
        was = packet[layer].chksum
        again = packet.copy()
        del again[layer].chksum
        assert full(bytes(again), self.family)[layer].chksum == was, "wrong checksum"

    # How a script gets to where its subject begins.

    def listen(self, backlog: int = 16) -> Socket:
        """Let the stack listen."""
        self.listener = self.stack.open(sockets.TCP, self.family).bind(self.stack_ip, PORT).listen(backlog)
        return self.listener

    def connected(self, *, options: Iterable[Option] = SYN_OPTIONS, window: int = 65535) -> Socket:
        """Connect to the stack, which listens, and return its socket."""
        listener = self.listener or self.listen()
        self.inject("S", 0, options=options, window=window)
        self.expect("SA", 0, 1)
        self.inject("A", window=window)
        return listener.accept()[0]

    def connecting(self) -> Socket:
        """Let the stack connect to the peer; its SYN is taken."""
        sock = self.stack.open(sockets.TCP, self.family).bind(self.stack_ip, PORT).connect(self.ip, self.port)
        self.expect("S", 0)
        return sock

    def into(self, state: str) -> Socket | None:
        """Bring a connection into a state: STATES, or SYN-SENT; return its socket if there is one."""
        if state == "SYN-SENT":
            return self.connecting()
        if state == "SYN-RECEIVED":
            self.listen()
            self.inject("S", 0, options=SYN_OPTIONS)
            self.expect("SA", 0, 1)
            return None
        sock = self.connected()
        if state in ("CLOSE-WAIT", "LAST-ACK"):
            self.inject("FA")
            self.expect("A", 1, 2)
        if state in ("FIN-WAIT-1", "FIN-WAIT-2", "CLOSING", "LAST-ACK", "TIME-WAIT"):
            sock.shutdown(1)
            self.expect("FA", 1)
            self.ack = 1 if state in ("FIN-WAIT-1", "CLOSING", "LAST-ACK") else 2
        if state in ("FIN-WAIT-2", "TIME-WAIT"):
            self.inject("A")
        if state in ("CLOSING", "TIME-WAIT"):
            self.inject("FA")
            self.expect("A", 2, 2)
        assert STATE_NAMES[sock.info.state] == state
        return sock

    def socket_in(self, state: str) -> Socket:
        """Do the same for a state other than SYN-RECEIVED: there is a socket."""
        sock = self.into(state)
        assert sock is not None
        return sock


STATE_NAMES = (
    *("", "ESTABLISHED", "SYN-SENT", "SYN-RECEIVED", "FIN-WAIT-1", "FIN-WAIT-2", "TIME-WAIT"),
    *("CLOSED", "CLOSE-WAIT", "LAST-ACK", "LISTEN", "CLOSING"),
)
"""Of the numbers of `stack_info.state`."""


def state_of(sock: Socket) -> str:
    """Return the state of a socket's connection."""
    return STATE_NAMES[int(sock.info.state)]
