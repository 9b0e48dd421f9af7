# SPDX-License-Identifier: Apache-2.0
"""Conformance: errors of ICMP (RFC 1122, 3.2.2 and 4.2.3.9; RFC 4443, 5927), path MTU (RFC 1191, 8201)."""

from __future__ import annotations

import errno

import pytest

from tests.targets.userstack.conftest import StackMaker
from tests.targets.userstack.script import HEADERS_BYTES, ICMP, IP, Peer, state_of
from tests.targets.userstack.stack import ERROR, HUNG_UP, READABLE, SEGMENT_BYTES, Socket, StackError
from tests.targets.userstack.stack import UDP as DATAGRAMS

LEAST_MTU_BYTES = {4: 552, 6: 1280}
"""Nothing makes the stack send smaller segments: of IPv4 as Linux, of IPv6 by RFC 8200."""


def sent_by(peer: Peer, sock: Socket, size: int = 5000) -> bytes:
    """Send data and return the first packet of it, as the stack sent it."""
    sock.send(bytes(size))
    return peer.stack.take()[0]


def sizes(peer: Peer) -> list[int]:
    """Return the sizes of all data segments that came."""
    return [len(packet) for packet in peer.stack.take() if len(packet) > HEADERS_BYTES[peer.family]]


@pytest.mark.parametrize("kind", ["net", "host", "prohibited"])
def test_must_56_a_connection_lives_on_when_its_peer_is_unreachable(peer: Peer, kind: str) -> None:
    sock = peer.connected()
    peer.icmp_error(sent_by(peer, sock), kind)
    assert state_of(sock) == "ESTABLISHED"
    assert sock.take_error() == 0


@pytest.mark.parametrize("kind", ["time-exceeded", "parameter", "quench", "protocol", "port"])
def test_rfc_5927_no_error_of_icmp_ends_a_connection(peer4: Peer, kind: str) -> None:
    sock = peer4.connected()
    peer4.icmp_error(sent_by(peer4, sock), kind)
    assert state_of(sock) == "ESTABLISHED"


def test_a_connection_that_times_out_says_what_icmp_said(peer: Peer) -> None:
    sock = peer.connected()
    peer.icmp_error(sent_by(peer, sock), "host")
    peer.drain(4_000_000)
    assert sock.take_error() == errno.EHOSTUNREACH


def test_what_icmp_said_is_forgotten_when_the_peer_is_heard(peer4: Peer) -> None:
    sock = peer4.connected()
    peer4.icmp_error(sent_by(peer4, sock, 100), "host")
    peer4.inject("A", 1, 101)
    sock.send(b"more")
    peer4.drain(4_000_000)
    assert sock.take_error() == errno.ETIMEDOUT


@pytest.mark.parametrize(
    ("kind", "number"),
    [("port", "ECONNREFUSED"), ("host", "EHOSTUNREACH"), ("net", "ENETUNREACH"), ("parameter", "EPROTO")],
)
def test_a_connection_that_begins_fails_as_with_the_kernel(peer: Peer, kind: str, number: str) -> None:
    sock = peer.stack.open(0, peer.family).connect(peer.ip, peer.port)
    peer.icmp_error(peer.stack.take()[0], kind)
    assert sock.ready & HUNG_UP
    assert errno.errorcode[sock.take_error()] == number
    peer.expect_nothing(10_000)


def test_what_the_host_cannot_send_costs_what_is_not_yet_connected(peer: Peer) -> None:
    sock = peer.stack.open(0, peer.family).connect(peer.ip, peer.port)
    packet = peer.stack.take()[0]
    peer.stack.call("stack_unreachable", packet, len(packet), errno.EHOSTUNREACH)
    assert sock.ready & HUNG_UP
    assert [sock.take_error(), sock.take_error(), sock.take_soft_error()] == [errno.EHOSTUNREACH, 0, 0]
    peer.expect_nothing(10_000)


def test_what_the_host_cannot_send_is_told_while_the_connection_goes_on(peer: Peer) -> None:
    sock = peer.connected()
    packet = sent_by(peer, sock, 100)
    peer.stack.call("stack_unreachable", packet, len(packet), errno.EHOSTUNREACH)
    assert state_of(sock) == "ESTABLISHED"
    assert [sock.take_error(), sock.take_soft_error(), sock.take_soft_error()] == [0, errno.EHOSTUNREACH, 0]


@pytest.mark.parametrize("size", [0, 1, 19, 27])
def test_what_the_host_cannot_send_is_too_little_to_tell_of(peer4: Peer, size: int) -> None:
    sock = peer4.stack.open(0).connect(peer4.ip, peer4.port)
    packet = peer4.stack.take()[0]
    peer4.stack.call("stack_unreachable", packet[:size], size, errno.EHOSTUNREACH)
    assert state_of(sock) == "SYN-SENT"


def test_rfc_792_eight_bytes_of_the_segment_are_enough(peer4: Peer) -> None:
    sock = peer4.stack.open(0).connect(peer4.ip, peer4.port)
    peer4.icmp_error(peer4.stack.take()[0], "port", quoted_bytes=28)
    assert sock.take_error() == errno.ECONNREFUSED


def test_too_little_is_quoted_to_believe_it(peer4: Peer) -> None:
    sock = peer4.stack.open(0).connect(peer4.ip, peer4.port)
    peer4.icmp_error(peer4.stack.take()[0], "port", quoted_bytes=27)
    assert state_of(sock) == "SYN-SENT"


@pytest.mark.parametrize("what", ["sequence", "port", "local port", "address", "source"])
def test_rfc_5927_4_1_a_forged_error_is_ignored(peer: Peer, what: str) -> None:
    sock = peer.stack.open(0, peer.family).connect(peer.ip, peer.port)
    about = bytearray(peer.stack.take()[0])
    tcp = {4: 20, 6: 40}[peer.family]
    place = {"sequence": tcp + 4, "port": tcp + 2, "local port": tcp, "address": tcp - 1, "source": tcp - 5}
    at = place[what] if what != "source" else {4: 15, 6: 23}[peer.family]
    about[at] ^= 1
    peer.icmp_error(bytes(about), "port")
    assert state_of(sock) == "SYN-SENT"


def test_an_error_with_a_wrong_checksum_is_ignored(peer: Peer) -> None:
    sock = peer.stack.open(0, peer.family).connect(peer.ip, peer.port)
    about = peer.stack.take()[0]
    packet = bytearray(peer.icmp_packet(about, "port"))
    packet[-1] ^= 1
    peer.stack.input(bytes(packet))
    assert state_of(sock) == "SYN-SENT"


@pytest.mark.parametrize("mtu_bytes", [1492, 1400, 1300])
def test_rfc_1191_rfc_8201_segments_become_smaller(peer: Peer, mtu_bytes: int) -> None:
    sock = peer.connected()
    peer.icmp_error(sent_by(peer, sock), "too-big", mtu_bytes=mtu_bytes)
    again = sizes(peer)
    assert again
    assert max(again) == mtu_bytes
    assert sock.get(SEGMENT_BYTES) == mtu_bytes - HEADERS_BYTES[peer.family]


@pytest.mark.parametrize("mtu_bytes", [1400, 1280])
def test_a_smaller_mtu_of_the_interface_makes_segments_smaller(peer: Peer, mtu_bytes: int) -> None:
    """Of connections that are there, and of later ones; nobody says so by ICMP."""
    sock = peer.connected()
    sent_by(peer, sock)
    peer.stack.set_mtu(mtu_bytes)
    again = sizes(peer)
    assert again
    assert max(again) == mtu_bytes
    later = Peer(peer.stack, peer.family, port=peer.port + 1)
    later.listener = peer.listener
    assert len(sent_by(later, later.connected())) == mtu_bytes


@pytest.mark.parametrize("mtu_bytes", [1000, 68])
def test_an_mtu_that_is_too_small_for_ipv6(peer4: Peer, mtu_bytes: int) -> None:
    test_a_smaller_mtu_of_the_interface_makes_segments_smaller(peer4, mtu_bytes)


def test_a_larger_mtu_of_the_interface_is_for_later_connections(peer: Peer) -> None:
    sock = peer.connected()
    before = sock.get(SEGMENT_BYTES)
    peer.stack.set_mtu(9000)
    assert len(sent_by(peer, sock)) == before + HEADERS_BYTES[peer.family]


def test_a_stream_is_whole_after_its_segments_became_smaller(peer: Peer) -> None:
    sock = peer.connected()
    data = bytes(range(256)) * 40
    sock.send(data)
    first = peer.stack.take()[0]
    peer.icmp_error(first, "too-big", mtu_bytes=1300)
    heard = bytearray()
    for _ in range(100):
        for packet in peer.drain(500):
            at = (packet["TCP"].seq - peer.stack_isn - 1) % 2**32
            if at <= len(heard):
                heard[at:] = bytes(packet["TCP"].payload)
            assert len(packet) <= 1300
        peer.inject("A", 1, 1 + len(heard))
        if len(heard) == len(data):
            break
    assert bytes(heard) == data


def test_a_fin_that_waits_stays_the_last(peer4: Peer) -> None:
    sock = peer4.connected()
    sock.send(bytes(1460))
    sock.send(bytes(1400))
    sock.shutdown(1)
    sent = peer4.drain()
    assert [len(packet) for packet in sent] == [1500, 1440]
    peer4.icmp_error(bytes(sent[0]), "too-big", mtu_bytes=1000)
    again = peer4.drain()
    assert ["F" in str(packet["TCP"].flags) for packet in again] == [False, False, False, True]
    assert [len(packet) for packet in again] == [1000, 540, 1000, 480]


def test_what_was_small_enough_is_not_sent_again(peer4: Peer) -> None:
    sock = peer4.connected()
    sock.send(bytes(1460))
    sock.shutdown(1)
    first, fin = peer4.drain()
    assert "F" in str(fin["TCP"].flags)
    peer4.icmp_error(bytes(first), "too-big", mtu_bytes=1000)
    again = peer4.drain()
    assert [len(packet) for packet in again] == [1000, 540]
    peer4.inject("A", 1, 1462)
    assert state_of(sock) == "FIN-WAIT-2"


def test_a_smaller_mtu_is_no_congestion(peer4: Peer) -> None:
    """The window stays, and what is in flight is counted once."""
    sock = peer4.connected()
    sock.send(bytes(14600))
    sent = peer4.drain()
    assert len(sent) == 10
    sack = (("NOP", None), ("NOP", None), ("SAck", peer4.numbers(1461, 2921)))
    peer4.inject("A", 1, 1, options=sack)
    window_bytes = sock.info.congestion_window_bytes
    assert sock.info.in_flight_bytes == 14600 - 1460
    peer4.icmp_error(bytes(sent[0]), "too-big", mtu_bytes=1000)
    again = peer4.drain()
    assert [len(packet) for packet in again] == [1000, 540] * 9
    assert {str(packet["TCP"].flags) for packet in again} <= {"A", "PA"}, "others are dropped (3.10.7.4)"
    assert 1461 not in {peer4.reach(packet) - len(packet["TCP"].payload) for packet in again}
    assert sock.info.in_flight_bytes == 14600 - 1460
    assert sock.info.congestion_window_bytes == window_bytes
    peer4.inject("A", 1, 14601)
    assert sock.info.in_flight_bytes == 0
    assert sock.info.unacknowledged_bytes == 0


@pytest.mark.parametrize("mtu_bytes", [1, 40, 68, 296])
def test_a_tiny_mtu_is_not_believed(peer: Peer, mtu_bytes: int) -> None:
    sock = peer.connected()
    peer.icmp_error(sent_by(peer, sock), "too-big", mtu_bytes=mtu_bytes)
    assert max(sizes(peer)) == LEAST_MTU_BYTES[peer.family]


@pytest.mark.parametrize("mtu_bytes", [1500, 9000, 65535])
def test_rfc_1191_3_an_error_never_makes_segments_larger(peer: Peer, mtu_bytes: int) -> None:
    sock = peer.connected()
    before = sock.get(SEGMENT_BYTES)
    peer.icmp_error(sent_by(peer, sock), "too-big", mtu_bytes=mtu_bytes)
    assert sock.get(SEGMENT_BYTES) == min(before, mtu_bytes - HEADERS_BYTES[peer.family])


def test_rfc_1191_5_a_router_that_tells_no_size(peer4: Peer) -> None:
    sock = peer4.connected()
    peer4.icmp_error(sent_by(peer4, sock), "too-big", mtu_bytes=0)
    assert max(sizes(peer4)) == 1492


def test_rfc_5927_7_a_forged_mtu_is_ignored(peer: Peer) -> None:
    sock = peer.connected()
    about = bytearray(sent_by(peer, sock))
    about[{4: 20, 6: 40}[peer.family] + 4] ^= 0x40
    peer.icmp_error(bytes(about), "too-big", mtu_bytes=1300)
    assert sock.get(SEGMENT_BYTES) == 1500 - HEADERS_BYTES[peer.family]


def test_rfc_5927_7_an_mtu_about_what_is_acknowledged_is_ignored(peer4: Peer) -> None:
    sock = peer4.connected()
    about = sent_by(peer4, sock, 100)
    peer4.inject("A", 1, 101)
    peer4.icmp_error(about, "too-big", mtu_bytes=1300)
    assert sock.get(SEGMENT_BYTES) == 1460


def test_rfc_1191_3_segments_may_not_be_broken_up(peer4: Peer) -> None:
    sock = peer4.connected()
    assert "DF" in str(IP(sent_by(peer4, sock)).flags)


def test_small_segments_may(peer4: Peer) -> None:
    peer4.listen()
    peer4.inject("S", 0)
    assert "DF" not in str(IP(peer4.stack.take()[0]).flags)


def datagrams(peer: Peer, *, connect: bool = True) -> Socket:
    """Return a socket of UDP that has sent one datagram to the peer, which is taken."""
    sock = peer.stack.open(DATAGRAMS, peer.family).bind(peer.stack_ip, 7000)
    if connect:
        sock.connect(peer.ip, peer.port)
    return sock


def sent_datagram(peer: Peer, sock: Socket) -> bytes:
    """Send a datagram and return its packet."""
    sock.send(b"hello", (peer.ip, peer.port))
    return peer.stack.take()[0]


@pytest.mark.parametrize("call", ["receive", "send", "SO_ERROR"])
def test_rfc_1122_4_1_3_3_a_connected_socket_hears_that_nobody_is_there(peer: Peer, call: str) -> None:
    sock = datagrams(peer)
    peer.icmp_error(sent_datagram(peer, sock), "port")
    assert sock.ready & ERROR
    assert not sock.ready & READABLE  # as the kernel: there is nothing to read
    if call == "SO_ERROR":
        assert sock.take_error() == errno.ECONNREFUSED
    else:
        with pytest.raises(StackError) as error:
            sock.receive() if call == "receive" else sock.send(b"again")
        assert error.value.errno == errno.ECONNREFUSED
    assert not sock.ready & ERROR
    assert sock.send(b"again") == 5


def test_a_socket_that_is_not_connected_hears_nothing(peer: Peer) -> None:
    sock = datagrams(peer, connect=False)
    peer.icmp_error(sent_datagram(peer, sock), "port")
    assert not sock.ready & ERROR


@pytest.mark.parametrize("kind", ["net", "host"])
def test_a_connected_socket_hears_no_error_that_may_pass(peer: Peer, kind: str) -> None:
    sock = datagrams(peer)
    peer.icmp_error(sent_datagram(peer, sock), kind)
    assert not sock.ready & ERROR


@pytest.mark.parametrize(("kind", "number"), [("protocol", "ENOPROTOOPT"), ("prohibited", "EHOSTUNREACH")])
def test_a_connected_socket_hears_errors_that_stay(peer4: Peer, kind: str, number: str) -> None:
    sock = datagrams(peer4)
    peer4.icmp_error(sent_datagram(peer4, sock), kind)
    assert errno.errorcode[sock.take_error()] == number


def test_rfc_4443_administratively_prohibited(stack_of: StackMaker) -> None:
    peer = Peer(stack_of("fd00::1"), 6)
    sock = datagrams(peer)
    peer.icmp_error(sent_datagram(peer, sock), "prohibited")
    assert sock.take_error() == errno.EACCES


def test_a_datagram_that_is_too_large_is_told(peer: Peer) -> None:
    sock = datagrams(peer)
    peer.icmp_error(sent_datagram(peer, sock), "too-big", mtu_bytes=1280)
    assert sock.take_error() == errno.EMSGSIZE


@pytest.mark.parametrize("what", ["peer's port", "own port", "peer's address"])
def test_a_forged_error_about_a_datagram_is_ignored(peer: Peer, what: str) -> None:
    sock = datagrams(peer)
    about = bytearray(sent_datagram(peer, sock))
    header = {4: 20, 6: 40}[peer.family]
    about[{"peer's port": header + 2, "own port": header, "peer's address": header - 1}[what]] ^= 1
    peer.icmp_error(bytes(about), "port")
    assert not sock.ready & ERROR


def test_must_an_error_about_an_error_is_not_answered(peer: Peer) -> None:
    """RFC 1122, 3.2.2; RFC 4443, 2.4 (e)."""
    peer.icmp_error(bytes(peer.datagram(b"x")), "port")
    peer.expect_nothing(100)


def test_rfc_1122_3_2_2_6_an_echo_is_answered(peer4: Peer) -> None:
    peer4.stack.input(bytes(peer4.header() / ICMP(type=8, id=5, seq=9) / b"ping"))
    packet = peer4.next_packet()
    assert packet is not None
    assert (packet[ICMP].type, packet[ICMP].id, packet[ICMP].seq, bytes(packet[ICMP].payload)) == (
        0,
        5,
        9,
        b"ping",
    )


def test_errors_in_a_storm_do_no_harm(peer: Peer) -> None:
    sock = peer.connected()
    about = sent_by(peer, sock)
    for size in range(0, len(about) + 1, 7):
        for kind in ("port", "too-big"):
            peer.icmp_error(about, kind, mtu_bytes=size, quoted_bytes=size)
    assert state_of(sock) == "ESTABLISHED"
