# SPDX-License-Identifier: Apache-2.0
"""Several addresses: what is bound to each, what comes to each, what becomes of one removed."""

from __future__ import annotations

import errno

import pytest

from tests.targets.userstack.conftest import StackMaker
from tests.targets.userstack.script import IP, PORT, STACK_IPS, TCP, Peer, full
from tests.targets.userstack.stack import HUNG_UP, Stack, StackError
from tests.targets.userstack.stack import TCP as STREAMS
from tests.targets.userstack.stack import UDP as DATAGRAMS

OTHER, THIRD = "10.1.0.7", "10.9.0.7"
ANY_IPV4 = ".".join("0000")


@pytest.fixture
def stack(stack_of: StackMaker) -> Stack:
    return stack_of(STACK_IPS[4], OTHER, THIRD, STACK_IPS[6], start_us=1_000_000)


def peer_of(stack: Stack, ip: str, port: int = 40000) -> Peer:
    """Sit at the other end of one of the addresses."""
    peer = Peer(stack, 4, port=port)
    peer.stack_ip = ip
    return peer


@pytest.mark.parametrize("ip", [STACK_IPS[4], OTHER, THIRD])
def test_datagrams_of_each_address(stack: Stack, ip: str) -> None:
    sock = stack.open(DATAGRAMS).bind(ip, PORT)
    peer = peer_of(stack, ip)
    stack.input(bytes(peer.datagram(b"question")))
    data, sender = sock.receive_from()
    assert data == b"question"
    sock.send(b"answer", sender)
    peer.expect_datagram(b"answer")


def test_datagrams_are_heard_by_the_address_that_they_came_to(stack: Stack) -> None:
    socks = {ip: stack.open(DATAGRAMS).bind(ip, PORT) for ip in (OTHER, THIRD)}
    for ip, sock in socks.items():
        stack.input(bytes(peer_of(stack, ip).datagram(ip.encode())))
        assert sock.receive() == ip.encode()
    stack.input(bytes(peer_of(stack, STACK_IPS[4]).datagram(b"nobody's")))
    stack.input(bytes(peer_of(stack, "10.1.0.99").datagram(b"another's")))
    for sock in socks.values():
        with pytest.raises(StackError):
            sock.receive()
    assert stack.counts()["udp_no_port"] == 1


@pytest.mark.parametrize("connected", [False, True])
def test_a_socket_of_all_addresses_sends_as_the_host_says(stack: Stack, connected: bool) -> None:
    sock = stack.open(DATAGRAMS).bind(ANY_IPV4, PORT)
    peer = peer_of(stack, THIRD)
    stack.set_source(sock, THIRD)
    if connected:
        sock.connect(peer.ip, peer.port)
        assert sock.local == (THIRD, PORT)
    sock.send(b"x", None if connected else (peer.ip, peer.port))
    peer.expect_datagram(b"x")


def test_a_socket_of_all_addresses_hears_them_all(stack: Stack) -> None:
    sock = stack.open(DATAGRAMS, 6).bind("::", PORT)
    for ip in (STACK_IPS[4], OTHER, THIRD):
        stack.input(bytes(peer_of(stack, ip).datagram(ip.encode())))
        assert sock.receive() == ip.encode()


@pytest.mark.parametrize("ip", [OTHER, THIRD])
def test_a_listener_of_one_address(stack: Stack, ip: str) -> None:
    peer_of(stack, ip).connected()
    stranger = peer_of(stack, STACK_IPS[4], 40001)
    stranger.inject("S", 0)
    stranger.expect_reset()


@pytest.mark.parametrize("ip", [OTHER, THIRD])
def test_a_connection_from_one_address(stack: Stack, ip: str) -> None:
    stack.open(STREAMS).bind(ip, PORT).connect("10.1.0.2", 40000)
    (syn,) = [full(packet, 4) for packet in stack.take()]
    assert (syn[IP].src, syn[TCP].sport, syn[IP].dst) == (ip, PORT, "10.1.0.2")


@pytest.mark.parametrize("removed", [STACK_IPS[4], OTHER, THIRD])
def test_an_address_that_is_removed_takes_its_own_along(stack: Stack, removed: str) -> None:
    listener = stack.open(STREAMS).bind(ANY_IPV4, PORT).listen()
    peers = {ip: peer_of(stack, ip, port) for port, ip in enumerate((STACK_IPS[4], OTHER, THIRD), 40000)}
    for peer in peers.values():
        peer.listener = listener
    socks = {ip: peer.connected() for ip, peer in peers.items()}
    bound = stack.open(DATAGRAMS).bind(removed, PORT + 1)
    stack.remove_address(removed)
    assert {ip for ip, sock in socks.items() if sock.ready & HUNG_UP} == {removed}
    stack.take()
    for ip in socks.keys() - {removed}:
        peers[ip].inject("A", data=b"goes on")
        assert socks[ip].receive() == b"goes on"
        stack.advance_ms(1)
        assert {full(packet, 4)[IP].src for packet in stack.take()} == {ip}
    with pytest.raises(StackError) as refused:
        bound.send(b"x", ("10.1.0.2", 9))
    assert refused.value.errno == errno.ENETUNREACH
    with pytest.raises(StackError) as refused:
        stack.open(DATAGRAMS).bind(removed, PORT + 2)
    assert refused.value.errno == errno.EADDRNOTAVAIL


@pytest.mark.parametrize("removed", [STACK_IPS[4], OTHER])
def test_what_is_bound_to_a_removed_address_gets_no_other(stack: Stack, removed: str) -> None:
    stack.open(STREAMS).bind(removed, PORT).listen()
    sock = stack.open(DATAGRAMS).bind(removed, PORT)
    stack.remove_address(removed)
    for ip in {STACK_IPS[4], OTHER, THIRD} - {removed}:
        peer = peer_of(stack, ip)
        peer.inject("S", 0)
        peer.expect_reset()
        stack.input(bytes(peer.datagram(b"x")))
        stack.take()
    with pytest.raises(StackError):
        sock.receive()
    stack.add_address(removed)
    peer = peer_of(stack, removed, 40001)
    peer.inject("S", 0)
    peer.expect("SA", 0, 1)


def test_there_is_room_for_sixteen(stack: Stack) -> None:
    for number in range(13):
        stack.add_address(f"10.2.0.{number}")
    with pytest.raises(StackError) as refused:
        stack.add_address("10.2.0.99")
    assert refused.value.errno == errno.ENOSPC
    stack.add_address(OTHER)
    stack.remove_address(STACK_IPS[4])
    stack.add_address("10.2.0.99")
    sock = stack.open(DATAGRAMS).bind("10.2.0.99", PORT)
    stack.input(bytes(peer_of(stack, "10.2.0.99").datagram(b"last")))
    assert sock.receive() == b"last"


@pytest.mark.parametrize("third", ["fd00:9::7", "fe80::7"])
def test_there_is_room_for_three_of_ipv6(stack_of: StackMaker, third: str) -> None:
    """Be they of a link or not: an address that the interface has, and the stack has not, is nobody's."""
    own = [STACK_IPS[6], "fd00::7", third]
    stack = stack_of(*own)
    with pytest.raises(StackError) as refused:
        stack.add_address("fd00::9")
    assert refused.value.errno == errno.ENOSPC
    stack.remove_address(own.pop(0))
    stack.add_address("fd00::9")
    sock = stack.open(DATAGRAMS, 6).bind("::", PORT)
    for ip in (*own, "fd00::9"):
        peer = Peer(stack, 6)
        peer.stack_ip = ip
        stack.input(bytes(peer.datagram(ip.encode())))
        assert sock.receive() == ip.encode()
