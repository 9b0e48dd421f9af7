# SPDX-License-Identifier: Apache-2.0
"""Conformance: fragments of IP. RFC 791, 3.2; RFC 815; RFC 1122, 3.3.2; RFC 8200, 4.5; RFC 5722."""

from __future__ import annotations

import pytest
from scapy.layers.inet6 import IPv6ExtHdrFragment

from tests.targets.userstack.conftest import StackMaker
from tests.targets.userstack.script import IP, PORT, STACK_IPS, UDP, IPv6, Packet, Peer, full
from tests.targets.userstack.stack import READABLE, Socket
from tests.targets.userstack.stack import UDP as DATAGRAMS

DATA = bytes(range(256)) * 8
UNIT_BYTES = 8


@pytest.fixture
def sock(peer: Peer) -> Socket:
    """A socket that hears the peer's datagrams."""
    return peer.stack.open(DATAGRAMS, peer.family).bind(peer.stack_ip, PORT)


def whole(peer: Peer, data: bytes = DATA) -> bytes:
    """Return a datagram behind its IP header."""
    return bytes(full(bytes(peer.datagram(data)), peer.family).payload)


def piece(peer: Peer, content: bytes, at: int, *, more: bool, identity: int = 7, protocol: int = 17) -> bytes:
    """Return a fragment; `at` is in bytes."""
    if peer.family == 4:
        ip = IP(src=peer.ip, dst=peer.stack_ip, id=identity, frag=at // UNIT_BYTES, proto=protocol)
        ip.flags = "MF" if more else 0
        return bytes(ip / content)
    header = IPv6ExtHdrFragment(nh=protocol, id=identity, offset=at // UNIT_BYTES, m=int(more))
    return bytes(IPv6(src=peer.ip, dst=peer.stack_ip) / header / content)


def pieces(peer: Peer, size: int = 512, identity: int = 7, data: bytes = DATA) -> list[bytes]:
    """Return a datagram in fragments of that many bytes."""
    content = whole(peer, data)
    return [
        piece(peer, content[at : at + size], at, more=at + size < len(content), identity=identity)
        for at in range(0, len(content), size)
    ]


def hear(peer: Peer, *packets: bytes) -> None:
    """Hand packets in, in this order."""
    for packet in packets:
        peer.stack.input(packet)


@pytest.mark.parametrize("order", ["in order", "backwards", "odd first"])
def test_must_fragments_become_the_datagram(peer: Peer, sock: Socket, order: str) -> None:
    packets = pieces(peer)
    if order == "backwards":
        packets = packets[::-1]
    elif order == "odd first":
        packets = packets[1::2] + packets[::2]
    hear(peer, *packets)
    assert sock.receive() == DATA


def test_a_datagram_of_64_kb_in_fragments(peer: Peer, sock: Socket) -> None:
    data = bytes(range(256)) * 255
    hear(peer, *pieces(peer, 1448, data=data))
    assert sock.receive() == data


def test_two_datagrams_whose_fragments_are_mixed(peer: Peer, sock: Socket) -> None:
    one, other = pieces(peer, identity=1), pieces(peer, identity=2, data=DATA[::-1])
    for each in zip(one, other, strict=True):
        hear(peer, *each)
    assert {sock.receive(), sock.receive()} == {DATA, DATA[::-1]}


def test_fragments_of_two_senders_do_not_mix(peer: Peer, sock: Socket) -> None:
    other = Peer(peer.stack, peer.family)
    other.ip = {4: "10.1.0.3", 6: "fd00::3"}[peer.family]
    hear(peer, *pieces(peer)[:-1], pieces(other)[-1])
    assert not sock.ready & READABLE


def test_a_missing_fragment_is_no_datagram(peer: Peer, sock: Socket) -> None:
    packets = pieces(peer)
    hear(peer, *packets[:2], *packets[3:])
    assert not sock.ready & READABLE


def test_a_missing_last_fragment_is_no_datagram(peer: Peer, sock: Socket) -> None:
    hear(peer, *pieces(peer)[:-1])
    assert not sock.ready & READABLE


def test_rfc_8200_4_5_a_fragment_twice_does_no_harm(peer4: Peer) -> None:
    sock = peer4.stack.open(DATAGRAMS).bind(peer4.stack_ip, PORT)
    packets = pieces(peer4)
    hear(peer4, packets[0], packets[0], *packets[1:])
    hear(peer4, *pieces(peer4, identity=8))
    assert sock.receive() == DATA


OVERLAPS = pytest.mark.parametrize(
    ("first", "last"),
    [(504, 1016), (600, 696), (8, 1800), (1000, 1032)],
    ids=["front", "within", "around", "end"],
)


def overlap(peer: Peer, first: int, last: int) -> None:
    """Send a datagram in fragments, and between them one that overlaps others."""
    packets = pieces(peer)
    hear(peer, packets[0], packets[1], piece(peer, b"\xee" * (last - first), first, more=True), *packets[2:])


@OVERLAPS
def test_a_fragment_that_overlaps_changes_nothing_that_came(peer4: Peer, first: int, last: int) -> None:
    sock = peer4.stack.open(DATAGRAMS).bind(peer4.stack_ip, PORT)
    overlap(peer4, first, last)
    assert sock.receive() == DATA


@OVERLAPS
def test_rfc_5722_fragments_that_overlap_are_no_datagram(stack_of: StackMaker, first: int, last: int) -> None:
    """Nobody is told of it, and the next one comes."""
    peer = Peer(stack_of(STACK_IPS[6]), 6)
    sock = peer.stack.open(DATAGRAMS, 6).bind(peer.stack_ip, PORT)
    overlap(peer, first, last)
    assert not sock.ready & READABLE
    peer.stack.advance_ms(125_000)
    assert peer.stack.take() == []
    hear(peer, *pieces(peer, identity=8))
    assert sock.receive() == DATA


def test_rfc_8200_4_5_the_same_fragment_twice_does_not_overlap(stack_of: StackMaker) -> None:
    peer = Peer(stack_of(STACK_IPS[6]), 6)
    sock = peer.stack.open(DATAGRAMS, 6).bind(peer.stack_ip, PORT)
    packets = pieces(peer)
    hear(peer, packets[0], packets[1], packets[1], packets[0], *packets[2:])
    assert sock.receive() == DATA


def test_teardrop(peer: Peer, sock: Socket) -> None:
    """A second fragment that ends before the first does."""
    content = whole(peer)
    hear(peer, piece(peer, content[:64], 0, more=True), piece(peer, content[24:28], 24, more=False))
    assert not sock.ready & READABLE
    hear(peer, *pieces(peer, identity=8))
    assert sock.receive() == DATA


def test_ping_of_death(peer: Peer, sock: Socket) -> None:
    """Fragments that together are larger than any packet."""
    hear(peer, piece(peer, bytes(1024), 65528, more=False))
    for at in range(0, 65528, 1448):
        hear(peer, piece(peer, bytes(1448), at // 8 * 8, more=True))
    assert not sock.ready & READABLE
    hear(peer, *pieces(peer, identity=8))
    assert sock.receive() == DATA


def test_a_fragment_that_is_no_multiple_of_8_bytes_is_dropped(peer: Peer, sock: Socket) -> None:
    content = whole(peer)
    hear(peer, piece(peer, content[:509], 0, more=True), piece(peer, content[512:], 512, more=False))
    assert not sock.ready & READABLE


def test_an_empty_fragment_does_no_harm(peer: Peer, sock: Socket) -> None:
    hear(peer, piece(peer, b"", 0, more=True, identity=9), piece(peer, b"", 8, more=False, identity=9))
    hear(peer, *pieces(peer, identity=8))
    assert sock.receive() == DATA


def test_two_last_fragments_are_no_datagram(peer: Peer, sock: Socket) -> None:
    packets = pieces(peer)
    content = whole(peer)
    hear(peer, piece(peer, content[1536:1600], 1536, more=False), *packets)
    assert not sock.ready & READABLE
    hear(peer, *pieces(peer, identity=8))
    assert sock.receive() == DATA


def test_rfc_8200_4_5_a_fragment_that_is_the_whole_is_taken(peer: Peer, sock: Socket) -> None:
    """An atomic fragment (RFC 6946); of IPv4 a packet with neither offset nor more."""
    hear(peer, piece(peer, whole(peer, b"atom"), 0, more=False))
    assert sock.receive() == b"atom"


def test_must_fragments_that_wait_are_given_up(peer: Peer, sock: Socket) -> None:
    """RFC 1122, 3.3.2: 60 s to 120 s is asked for, and RFC 8200 says 60 s."""
    packets = pieces(peer)
    hear(peer, *packets[:-1])
    peer.drain(125_000)
    hear(peer, packets[-1])
    assert not sock.ready & READABLE


def test_rfc_1122_3_3_2_who_sent_the_first_fragment_is_told(peer: Peer, sock: Socket) -> None:
    hear(peer, *pieces(peer)[:-1])
    peer.stack.advance_ms(125_000)
    peer.expect_icmp_error(*{4: (11, 1), 6: (3, 1)}[peer.family])
    assert not sock.ready & READABLE


def test_without_the_first_fragment_nobody_is_told(peer: Peer) -> None:
    hear(peer, *pieces(peer)[1:])
    peer.expect_nothing(125_000)


def test_too_many_fragments_do_not_keep_others_out(peer: Peer, sock: Socket) -> None:
    for identity in range(3000):
        hear(peer, piece(peer, bytes(64), 64, more=True, identity=identity + 100))
    hear(peer, *pieces(peer, identity=8))
    assert sock.receive() == DATA


def test_a_fragment_of_tcp_is_put_together(peer: Peer) -> None:
    connection = peer.connected()
    content = bytes(full(bytes(peer.segment("PA", data=DATA[:1024])), peer.family).payload)
    hear(
        peer,
        piece(peer, content[:512], 0, more=True, protocol=6),
        piece(peer, content[512:], 512, more=False, protocol=6),
    )
    assert connection.receive() == DATA[:1024]


def test_rfc_1858_a_tcp_header_in_two_fragments_is_dropped(peer4: Peer) -> None:
    connection = peer4.connected()
    content = bytes(full(bytes(peer4.segment("PA", data=b"tiny" * 4)), 4).payload)
    hear(
        peer4,
        piece(peer4, content[:8], 0, more=True, protocol=6),
        piece(peer4, content[8:], 8, more=False, protocol=6),
    )
    peer4.expect_nothing(500)
    assert peer4.stack.counts()["tcp_malformed"] == 1
    peer4.inject("PA", data=b"tiny" * 4)
    assert connection.receive() == b"tiny" * 4


def test_a_large_datagram_goes_out_in_fragments(peer: Peer, sock: Socket) -> None:
    sock.send(DATA * 4, (peer.ip, peer.port))
    packets = peer.drain()
    assert all(len(packet) <= 1500 for packet in packets)
    assert rebuilt(packets) == DATA * 4


def rebuilt(packets: list[Packet]) -> bytes:
    """Return the data of a datagram whose fragments were sent."""
    content = bytearray()
    for packet in packets:
        if IPv6ExtHdrFragment in packet:
            header = packet[IPv6ExtHdrFragment]
            at, body = header.offset * UNIT_BYTES, bytes(header.payload)
        else:
            at, body = packet.frag * UNIT_BYTES, bytes(packet.payload)
        content[at:] = body
    return bytes(UDP(bytes(content)).payload)
