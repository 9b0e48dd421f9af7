# SPDX-License-Identifier: Apache-2.0
"""The user-mode stack under hostile packets: it neither ends nor leaks, and who is honest is served."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import pytest

from tests.targets.userstack.script import ICMP, SYN_OPTIONS, Peer, state_of
from tests.targets.userstack.stack import READABLE, Family, Socket
from tests.targets.userstack.stack import UDP as DATAGRAMS
from tests.targets.userstack.test_sockets import fill
from tests.targets.userstack.wire import summed

PACKETS = 50_000
"""Of each family."""
GROWTH_MAX_BYTES = 48 * 1024 * 1024
HEADER_BYTES: dict[Family, int] = {4: 20, 6: 40}


def resident_bytes() -> int:
    """Return how much memory this process has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def repaired(packet: bytearray, family: Family) -> bytes:
    """Return a packet with the checksums that its bytes ask for: it gets further than the door."""
    header = HEADER_BYTES[family]
    if len(packet) < header + 8:
        return bytes(packet)
    if family == 4:
        packet[10:12] = b"\0\0"
        packet[10:12] = (0xFFFF - summed(bytes(packet[:20]))).to_bytes(2, "big")
    protocol = packet[9] if family == 4 else packet[6]
    at = header + {6: 16, 17: 6, 1: 2, 58: 2}.get(protocol, 0)
    if at == header or len(packet) < at + 2:
        return bytes(packet)
    packet[at : at + 2] = b"\0\0"
    body = bytes(packet[header:])
    addresses = bytes(packet[12:20] if family == 4 else packet[8:40])
    pseudo = b"" if protocol == 1 else addresses + len(body).to_bytes(4, "big") + protocol.to_bytes(4, "big")
    packet[at : at + 2] = (0xFFFF - summed(pseudo + body)).to_bytes(2, "big")
    return bytes(packet)


def mutated(packet: bytes, random: Random, family: Family) -> bytes:
    """Return a packet that differs by some bytes, its length or a number near another one."""
    changed = bytearray(packet)
    header = HEADER_BYTES[family]
    for _ in range(random.choice((1, 1, 2, 4))):
        kind = random.randrange(8)
        if kind < 2:
            changed[random.randrange(len(changed))] = random.randrange(256)
        elif kind == 2:
            changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
        elif kind == 3 and len(changed) > header + 12:
            at = header + random.choice((4, 8))
            number = int.from_bytes(changed[at : at + 4], "big") + random.choice(
                (-70000, -1, 1, 100, 5000, 65535, 2**31)
            )
            changed[at : at + 4] = (number % 2**32).to_bytes(4, "big")
        elif kind == 4 and len(changed) > header + 14:
            changed[header + 13] = random.randrange(256)
        elif kind == 5:
            changed += random.randbytes(random.randrange(1, 200))
        elif kind == 6 and len(changed) > header + 1:
            del changed[random.randrange(header, len(changed)) :]
        elif kind == 7 and len(changed) > header + 21:
            at = random.randrange(header + 12, min(len(changed), header + 60))
            changed[at : at + 4] = random.randbytes(4)
    length = len(changed) if family == 4 else max(0, len(changed) - 40)
    if random.random() < 0.9:
        at = 2 if family == 4 else 4
        changed[at : at + 2] = min(length, 65535).to_bytes(2, "big")
    return repaired(changed, family) if random.random() < 0.95 else bytes(changed)


def seeds(peer: Peer) -> list[bytes]:
    """Return packets of all kinds that are about the peer's connection or datagrams."""
    segments = [
        peer.segment("S", 0, options=SYN_OPTIONS),
        peer.segment("SA", 0, 1, options=SYN_OPTIONS),
        *(
            peer.segment(flags, data=data)
            for flags in ("A", "PA", "FA", "PAU")
            for data in (b"", b"data" * 20)
        ),
        *(peer.segment("A", peer.seq + off, data=bytes(200)) for off in (-100, 1, 100, 1000, 60000)),
        peer.segment("A", options=[("NOP", None), ("NOP", None), ("SAck", (1, 2, 3, 4))]),
        peer.segment("A", window=0),
        peer.segment("R"),
        peer.datagram(b"datagram", dport=7001),
        peer.datagram(b"", dport=7001),
    ]
    if peer.family == 4:
        segments += [
            peer.header() / ICMP(type=3, code=code) / bytes(peer.datagram(b"x")) for code in (1, 3, 4)
        ]
        segments += [peer.header(flags="MF", id=9) / bytes(64), peer.header(frag=3, id=9) / bytes(40)]
    return [bytes(each) for each in segments]


def test_a_hundred_thousand_packets_do_no_harm(peer: Peer) -> None:
    """10^5 of both families, by a seed, most with right checksums, at connections in all states."""
    random = Random(35 + peer.family)
    stack = peer.stack
    datagrams = stack.open(DATAGRAMS, peer.family).bind(peer.stack_ip, 7001)
    peer.listen(backlog=8)
    others: list[tuple[Peer, Socket | None]] = []
    for place in range(6):
        other = Peer(stack, peer.family, port=41000 + place, isn=random.randrange(2**32))
        other.listener = peer.listener
        sock = other.connected()
        if place in (1, 2):
            sock.shutdown(1)
        if place in (2, 3):
            other.inject("FA")
        if place == 4:
            sock.send(bytes(200_000))
        stack.take()
        others.append((other, sock))
    half_open = Peer(stack, peer.family, port=42000)
    half_open.inject("S", 0)
    half_open.expect("SA", 0, 1)
    models = [seed for other, _ in [*others, (half_open, None), (peer, None)] for seed in seeds(other)]
    before = resident_bytes()
    for place in range(PACKETS):
        stack.input(mutated(random.choice(models), random, peer.family))
        if place % 100 == 0:
            stack.take()
            stack.advance_ms(20)
            while datagrams.ready & READABLE:
                datagrams.receive()
    assert resident_bytes() - before < GROWTH_MAX_BYTES
    stack.advance_ms(60_000)
    stack.take()
    honest = Peer(stack, peer.family, port=50000)
    honest.inject("S", 0, options=SYN_OPTIONS)
    honest.expect("SA", 0, 1)
    honest.inject("PA", data=b"honest")
    while datagrams.ready & READABLE:
        datagrams.receive()
    stack.input(bytes(honest.datagram(b"too", dport=7001)))
    assert datagrams.receive() == b"too"


@pytest.mark.parametrize("backlog", [4, 100])
def test_a_flood_of_syn_is_bounded_and_an_honest_client_gets_in(peer: Peer, backlog: int) -> None:
    """RFC 4987: as many half-open connections as the backlog, and at least 64; the oldest give way."""
    half_open = max(backlog, 64)
    random = Random(4987)
    listener = peer.listen(backlog)
    flooder = Peer(peer.stack, peer.family)
    model = bytearray(bytes(flooder.segment("S", 0, options=SYN_OPTIONS)))
    header = HEADER_BYTES[peer.family]

    def flood(count: int) -> None:
        for _ in range(count):
            model[header : header + 2] = random.randbytes(2)
            model[header - 1 - (4 if peer.family == 4 else 16)] = random.randrange(1, 250)
            model[header + 4 : header + 8] = random.randbytes(4)
            peer.stack.input(repaired(model, peer.family))

    flood(2000)
    before = resident_bytes()
    flood(10_000)
    assert resident_bytes() - before < 4 * 1024 * 1024
    peer.stack.take()
    honest = Peer(peer.stack, peer.family, port=50000)
    honest.ip = {4: "10.1.0.251", 6: "fd00::ffff"}[peer.family]
    honest.inject("S", 0, options=SYN_OPTIONS)
    honest.expect("SA", 0, 1)
    flood(half_open - 1)
    peer.stack.take()
    honest.inject("PA", data=b"through")
    assert listener.ready & READABLE
    assert listener.accept()[0].receive() == b"through"
    flood(1000)
    peer.stack.take()
    peer.stack.advance_ms(5_000)
    assert len(peer.stack.take()) <= half_open * 4


def test_connections_that_are_reset_before_they_are_accepted_are_bounded(peer: Peer) -> None:
    """As with the kernel each keeps its place, and what it has sent, until it is accepted."""
    listener = peer.listen(4)
    for port in range(20_000, 20_100):
        each = Peer(peer.stack, peer.family, port=port)
        each.inject("S", 0, options=SYN_OPTIONS)
        if not peer.stack.sent:
            continue
        each.expect("SA", 0, 1)
        each.inject("A", data=b"heard")
        each.drain(1)
        each.inject("R")
    count = 0
    while listener.ready & READABLE:
        assert listener.accept()[0].receive() == b"heard"
        count += 1
    assert count == 5
    late = Peer(peer.stack, peer.family)
    late.inject("S", 0, options=SYN_OPTIONS)
    late.expect("SA", 0, 1)


def test_what_a_peer_sends_out_of_order_is_bounded(peer4: Peer) -> None:
    """Single bytes with gaps: a window of 4 MB of them would cost a gigabyte."""
    sock = peer4.connected(options=SYN_OPTIONS)
    before = resident_bytes()
    model = bytearray(bytes(peer4.segment("A", data=b"x")))
    for place in range(10_000, 0, -1):
        model[24:28] = ((peer4.isn + 2 + 2 * place) % 2**32).to_bytes(4, "big")
        peer4.stack.input(repaired(model, 4))
    peer4.stack.take()
    assert resident_bytes() - before < GROWTH_MAX_BYTES
    peer4.inject("A", data=b"ab")
    assert sock.receive() == b"ab"


@pytest.mark.parametrize("old_bytes", [0, 1000])
def test_single_bytes_that_nobody_reads_cost_no_more_than_a_window(peer4: Peer, old_bytes: int) -> None:
    """Also where each comes behind a kilobyte that had come before."""
    sock, count = peer4.connected(), 150_000
    stream = Random(1122).randbytes(old_bytes + count)
    peer4.inject("A", data=stream[:old_bytes])
    model = bytearray(bytes(peer4.segment("A", data=bytes(old_bytes + 1))))
    before = resident_bytes()
    for place in range(count):
        model[24:28] = ((peer4.isn + 1 + place) % 2**32).to_bytes(4, "big")
        model[40:] = stream[place : place + old_bytes + 1]
        peer4.stack.input(repaired(model, 4))
        peer4.stack.take()
    assert resident_bytes() - before < 8 * 1024 * 1024
    came = b""
    while sock.ready & READABLE:
        came += sock.receive(777)
    assert came == stream


def test_a_peer_that_never_reads_costs_its_buffer_alone(peer4: Peer) -> None:
    sock = peer4.connected(window=0)
    before = resident_bytes()
    fill(sock)
    peer4.drain(60_000)
    assert resident_bytes() - before < GROWTH_MAX_BYTES
    other = Peer(peer4.stack, 4, port=40001)
    other.listener = peer4.listener
    other.connected()
    other.inject("PA", data=b"x")


def test_segments_that_overlap_at_random_never_tear_the_stream(peer4: Peer) -> None:
    """Whatever a retransmission says of bytes that were heard, what is read is one stream without a gap."""
    random = Random(7)
    sock = peer4.connected()
    data = random.randbytes(60_000)
    heard = bytearray()
    base = peer4.seq
    while len(heard) < len(data):
        first = max(0, len(heard) + random.randrange(-2000, 4000))
        peer4.inject("A", base + first, 1, data=data[first : first + random.randrange(1, 1460)])
        if random.random() < 0.3:
            peer4.inject(
                "A", base + len(heard), 1, data=data[len(heard) : len(heard) + random.randrange(1, 1460)]
            )
        while sock.ready & READABLE:
            heard += sock.receive()
        peer4.stack.take()
    assert bytes(heard) == data


@pytest.mark.parametrize("window", [1, 2, 7])
def test_tiny_windows_do_not_make_a_storm(peer4: Peer, window: int) -> None:
    sock = peer4.connected(window=window)
    sock.send(bytes(1000))
    for _ in range(100):
        packets = peer4.drain(100)
        if packets:
            peer4.ack = max(
                (each["TCP"].seq - peer4.stack_isn) % 2**32 + len(each["TCP"].payload) for each in packets
            )
            peer4.inject("A", window=window)
    assert state_of(sock) == "ESTABLISHED"
    assert peer4.stack.counts()["tcp_out"] < 1000
