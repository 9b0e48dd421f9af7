# SPDX-License-Identifier: Apache-2.0
"""Conformance: datagrams of UDP (RFC 768; RFC 1122, 4.1; RFC 8200, 8.1), packets of IP (RFC 791, 8200)."""

from __future__ import annotations

import errno
import socket

import pytest
from scapy.layers.inet import IPerror, UDPerror

from tests.targets.userstack.conftest import StackMaker
from tests.targets.userstack.script import ICMP, IP, PORT, STACK_IPS, UDP, IPv6, Peer, full
from tests.targets.userstack.stack import (
    PEEK,
    READABLE,
    RECEIVE_BYTES,
    REUSE_ADDRESS,
    Family,
    Socket,
    StackError,
)
from tests.targets.userstack.stack import UDP as DATAGRAMS

ANY: dict[Family, str] = {4: ".".join("0000"), 6: "::"}


@pytest.fixture
def sock(peer: Peer) -> Socket:
    """A socket that hears all that comes to its port."""
    return peer.stack.open(DATAGRAMS, peer.family).bind(ANY[peer.family], PORT)


@pytest.fixture
def sock4(peer4: Peer) -> Socket:
    """The same of IPv4 alone."""
    return peer4.stack.open(DATAGRAMS).bind(ANY[4], PORT)


@pytest.mark.parametrize("data", [b"hello", b""], ids=["some", "empty"])
def test_a_datagram_is_heard_with_its_sender(peer: Peer, sock: Socket, data: bytes) -> None:
    peer.stack.input(bytes(peer.datagram(data)))
    assert sock.receive_from() == (data, (peer.ip, peer.port))


def test_each_datagram_says_where_to_and_when_it_came(peer: Peer, sock: Socket) -> None:
    for number in (1, 2):
        peer.stack.set_arrival(number)
        peer.stack.input(bytes(peer.datagram(bytes([number]))))
    here = (STACK_IPS[peer.family], PORT)
    assert (sock.receive(flags=PEEK), sock.arrival) == (b"\1", (here, 1))
    assert (sock.receive(), sock.arrival) == (b"\1", (here, 1))
    assert (sock.receive(), sock.arrival) == (b"\2", (here, 2))
    sock.connect(peer.ip, peer.port).shutdown(socket.SHUT_RD)
    assert (sock.receive(), sock.arrival) == (b"", (("", 0), 0))


def test_a_datagram_leaves_from_the_address_that_is_named(peer: Peer, sock: Socket) -> None:
    second = {4: "10.0.0.9", 6: "fd00::9"}[peer.family]
    with pytest.raises(StackError) as refused:
        sock.send_from(b"hello", second, (peer.ip, peer.port))
    assert refused.value.errno == errno.EINVAL
    peer.stack.add_address(second)
    sock.send_from(b"hello", second, (peer.ip, peer.port))
    (packet,) = peer.stack.take()
    packet = IP(packet) if peer.family == 4 else IPv6(packet)
    assert (packet.src, packet[UDP].sport, bytes(packet[UDP].payload)) == (second, PORT, b"hello")


@pytest.mark.parametrize("data", [b"hello", b""], ids=["some", "empty"])
def test_a_datagram_goes_out_whole(peer: Peer, sock: Socket, data: bytes) -> None:
    sock.send(data, (peer.ip, peer.port))
    udp = peer.expect_datagram(data)
    assert (udp.sport, udp.dport, udp.len) == (PORT, peer.port, 8 + len(data))


def test_must_a_wrong_checksum_is_dropped_and_counted(peer: Peer, sock: Socket) -> None:
    peer.stack.input(bytes(peer.datagram(b"bad", chksum=0x1234)))
    assert not sock.ready & READABLE
    assert peer.stack.counts()["udp_checksum"] == 1


def test_rfc_768_no_checksum_is_no_error_of_ipv4(peer4: Peer, sock4: Socket) -> None:
    peer4.stack.input(bytes(peer4.datagram(b"bare", chksum=0)))
    assert sock4.receive() == b"bare"


def test_rfc_8200_8_1_no_checksum_is_an_error_of_ipv6(stack_of: StackMaker) -> None:
    peer = Peer(stack_of(STACK_IPS[6]), 6)
    sock = peer.stack.open(DATAGRAMS, 6).bind("::", PORT)
    peer.stack.input(bytes(peer.datagram(b"bare", chksum=0)))
    assert not sock.ready & READABLE


def test_rfc_768_a_sum_of_0_goes_out_as_ones(peer: Peer, sock: Socket) -> None:
    """Data that makes the sum 0: its field may not say that there is none."""
    packet = peer.datagram(bytes(2), sport=PORT, dport=peer.port)
    packet.src, packet.dst = peer.stack_ip, peer.ip
    data = int(full(bytes(packet), peer.family)[UDP].chksum).to_bytes(2, "big")
    sock.send(data, (peer.ip, peer.port))
    assert peer.expect_datagram(data).chksum == 0xFFFF


@pytest.mark.parametrize("length", [0, 7, 14, 65535])
def test_a_length_that_does_not_fit_is_dropped(peer4: Peer, sock4: Socket, length: int) -> None:
    peer4.stack.input(bytes(peer4.datagram(b"hello", len=length, chksum=0)))
    assert not sock4.ready & READABLE


def test_rfc_1122_padding_behind_a_datagram_is_not_data(peer4: Peer, sock4: Socket) -> None:
    peer4.stack.input(bytes(peer4.datagram(b"hello")) + bytes(18))
    assert sock4.receive() == b"hello"


def test_a_datagram_shorter_than_its_packet_is_cut(peer4: Peer, sock4: Socket) -> None:
    peer4.stack.input(bytes(peer4.datagram(b"hello", len=10, chksum=0)))
    assert sock4.receive() == b"he"


@pytest.mark.parametrize("size", range(8))
def test_a_header_that_is_cut_off_is_dropped(peer: Peer, sock: Socket, size: int) -> None:
    header = {4: 20, 6: 40}[peer.family]
    packet = bytearray(bytes(peer.datagram(b"hello"))[: header + size])
    if peer.family == 4:
        del (whole := IP(bytes(packet))).chksum
        whole.len = len(packet)
        packet = bytearray(bytes(whole))
    else:
        packet[4:6] = size.to_bytes(2, "big")
    peer.stack.input(bytes(packet))
    assert not sock.ready & READABLE


def test_rfc_1122_4_1_3_1_nobody_at_a_port_is_told(peer: Peer) -> None:
    peer.stack.input(bytes(peer.datagram(b"anyone?")))
    error = peer.expect_icmp_error(*{4: (3, 3), 6: (1, 4)}[peer.family])
    if peer.family == 4:
        assert error[IPerror].dst == peer.stack_ip
        assert error[UDPerror].dport == PORT
    assert peer.stack.counts()["udp_no_port"] == 1


def test_a_connected_socket_hears_its_peer_alone(peer: Peer) -> None:
    sock = peer.stack.open(DATAGRAMS, peer.family).bind(peer.stack_ip, PORT).connect(peer.ip, peer.port)
    other = Peer(peer.stack, peer.family, port=40001)
    peer.stack.input(bytes(other.datagram(b"foreign")))
    peer.stack.input(bytes(peer.datagram(b"own")))
    assert sock.receive() == b"own"
    with pytest.raises(StackError):
        sock.receive()


def test_a_connected_socket_comes_before_one_of_any_peer(peer4: Peer) -> None:
    any_peer = peer4.stack.open(DATAGRAMS)
    own = peer4.stack.open(DATAGRAMS)
    for each in (any_peer, own):
        each.set(REUSE_ADDRESS, 1)
        each.bind(peer4.stack_ip, PORT)
    own.connect(peer4.ip, peer4.port)
    peer4.stack.input(bytes(peer4.datagram(b"mine")))
    assert own.receive() == b"mine"
    assert not any_peer.ready & READABLE


def test_what_nobody_reads_is_bounded(peer: Peer, sock: Socket) -> None:
    sock.set(RECEIVE_BYTES, 4096)
    for _ in range(10):
        peer.stack.input(bytes(peer.datagram(bytes(1000))))
    assert peer.stack.counts()["udp_full"] == 6


@pytest.mark.parametrize("size", [0, 1])
def test_tiny_ones_that_nobody_reads_are_bounded_by_the_memory_that_they_take(
    peer: Peer, sock: Socket, size: int
) -> None:
    sock.set(RECEIVE_BYTES, 10_000)
    datagram = bytes(peer.datagram(bytes(size)))
    for _ in range(300):
        peer.stack.input(datagram)
    dropped = peer.stack.counts()["udp_full"]
    assert 100 < dropped < 280
    for _ in range(300 - dropped):
        assert sock.receive() == bytes(size)
    peer.stack.input(datagram)
    assert sock.receive() == bytes(size)


def test_a_datagram_above_65507_bytes_is_refused(peer4: Peer, sock4: Socket) -> None:
    with pytest.raises(StackError) as error:
        sock4.send(bytes(65508), (peer4.ip, peer4.port))
    assert error.value.errno == errno.EMSGSIZE


def test_shutdown_for_reading_ends_hearing(peer4: Peer) -> None:
    sock = peer4.stack.open(DATAGRAMS).bind(peer4.stack_ip, PORT).connect(peer4.ip, peer4.port)
    sock.shutdown(socket.SHUT_RD)
    peer4.stack.input(bytes(peer4.datagram(b"late")))
    assert sock.receive() == b""


@pytest.mark.parametrize(
    "to", ["224.0.0.1", "255.255.255.255", "10.1.0.9", "127.0.0.1", "ff02::1", "fd00::9", "::1"]
)
def test_what_is_for_others_is_ignored_and_not_answered(stack_of: StackMaker, to: str) -> None:
    family = 6 if ":" in to else 4
    peer = Peer(stack_of(STACK_IPS[family]), family)
    peer.stack_ip = to
    peer.stack.input(bytes(peer.datagram(b"x")))
    peer.expect_nothing(100)


@pytest.mark.parametrize("source", ["224.0.0.1", "255.255.255.255", "ff02::1"])
def test_rfc_1122_3_2_1_3_what_comes_from_a_group_is_ignored(stack_of: StackMaker, source: str) -> None:
    family = 6 if ":" in source else 4
    peer = Peer(stack_of(STACK_IPS[family]), family)
    sock = peer.stack.open(DATAGRAMS, family).bind(ANY[family], PORT)
    peer.ip = source
    peer.stack.input(bytes(peer.datagram(b"x")))
    assert not sock.ready & READABLE
    peer.expect_nothing(100)


# IP itself.


def test_must_a_wrong_checksum_of_ip_is_dropped_and_counted(peer4: Peer, sock4: Socket) -> None:
    packet = peer4.datagram(b"x")
    packet[IP].chksum = 0x1234
    peer4.stack.input(bytes(packet))
    assert not sock4.ready & READABLE
    assert peer4.stack.counts()["ip_checksum"] == 1


@pytest.mark.parametrize("version", [0, 3, 5, 7, 15])
def test_must_other_versions_are_dropped(peer: Peer, sock: Socket, version: int) -> None:
    packet = bytearray(bytes(peer.datagram(b"x")))
    packet[0] = version << 4 | packet[0] & 15
    peer.stack.input(bytes(packet))
    assert not sock.ready & READABLE
    assert peer.stack.counts()["ip_malformed"] == 1


@pytest.mark.parametrize("words", [0, 4, 15])
def test_a_header_length_of_ip_that_does_not_fit_is_dropped(peer4: Peer, sock4: Socket, words: int) -> None:
    packet = peer4.datagram(b"x")
    packet[IP].ihl = words
    peer4.stack.input(bytes(packet))
    assert not sock4.ready & READABLE


@pytest.mark.parametrize("more", [1, 1000])
def test_a_packet_shorter_than_it_says_is_dropped(peer: Peer, sock: Socket, more: int) -> None:
    packet = peer.datagram(b"x" * 10)
    whole = type(packet)(bytes(packet))
    if peer.family == 4:
        del whole.chksum
        whole.len += more
    else:
        whole.plen += more
    peer.stack.input(bytes(whole))
    assert not sock.ready & READABLE


def test_must_options_of_ip_are_skipped(peer4: Peer, sock4: Socket) -> None:
    packet = peer4.datagram(b"routed")
    packet[IP].options = b"\x07\x07\x04\0\0\0\0\0"
    peer4.stack.input(bytes(packet))
    assert sock4.receive() == b"routed"


def test_rfc_1122_3_2_2_1_a_protocol_that_is_not_there_is_told(peer4: Peer) -> None:
    peer4.stack.input(bytes(IP(src=peer4.ip, dst=peer4.stack_ip, proto=99) / b"12345678"))
    peer4.expect_icmp_error(3, 2)


def test_rfc_8200_4_a_header_that_is_not_there_is_told(stack_of: StackMaker) -> None:
    peer = Peer(stack_of(STACK_IPS[6]), 6)
    peer.stack.input(bytes(IPv6(src=peer.ip, dst=peer.stack_ip, nh=99) / b"12345678"))
    peer.expect_icmp_error(4, 1)


@pytest.mark.parametrize("number", [0, 60, 43])
def test_rfc_8200_4_headers_before_the_datagram_are_skipped(stack_of: StackMaker, number: int) -> None:
    peer = Peer(stack_of(STACK_IPS[6]), 6)
    sock = peer.stack.open(DATAGRAMS, 6).bind("::", PORT)
    whole = IPv6(bytes(peer.datagram(b"behind")))
    options = bytes([17, 0, 0, 0, 0, 0, 0, 0]) if number == 43 else bytes([17, 0, 1, 4, 0, 0, 0, 0])
    packet = IPv6(src=peer.ip, dst=peer.stack_ip, nh=number) / (options + bytes(whole.payload))
    peer.stack.input(bytes(packet))
    assert sock.receive() == b"behind"


def test_an_error_is_never_sent_about_icmp(peer4: Peer) -> None:
    peer4.stack.input(bytes(peer4.header() / ICMP(type=3, code=3) / bytes(peer4.datagram(b"x"))))
    peer4.expect_nothing(100)
