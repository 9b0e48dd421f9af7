# SPDX-License-Identifier: Apache-2.0
"""Sockets of the user-mode stack between two stacks, without a kernel."""

from __future__ import annotations

import errno
import socket

import pytest

from tests.targets.userstack.conftest import StackMaker
from tests.targets.userstack.stack import (
    HUNG_UP,
    LINGER_S,
    ONLY_IPV6,
    PEEK,
    PEER_CLOSED,
    READABLE,
    TCP,
    TRUNCATE,
    UDP,
    WRITABLE,
    Endpoint,
    Family,
    Socket,
    Stack,
    StackError,
    Wire,
)

ENDS: dict[Family, tuple[str, str]] = {4: ("10.1.0.1", "10.1.0.2"), 6: ("fd00::1", "fd00::2")}
PORT = 7000


class Pair:
    """A client's and a server's stack on one wire."""

    def __init__(self, stack_of: StackMaker, family: Family) -> None:
        """Make both."""
        self.family = family
        self.ips = ENDS[family]
        self.client, self.server = (stack_of(ip, seed=place) for place, ip in enumerate(self.ips))
        self.wire = Wire(self.client, self.server)
        self.where: Endpoint = (self.ips[1], PORT)

    def connected(self) -> tuple[Socket, Socket]:
        """Return both ends of a connection."""
        listener = self.server.open(TCP, self.family).bind(*self.where).listen()
        client = self.client.open(TCP, self.family).connect(*self.where)
        assert self.wire.run_ms(100, lambda: bool(listener.ready & READABLE and client.ready & WRITABLE))
        server, peer = listener.accept()
        assert peer == client.local
        assert server.peer == client.local
        assert client.peer == server.local == self.where
        listener.close()
        return client, server


@pytest.fixture
def pair(stack_of: StackMaker, family: Family) -> Pair:
    return Pair(stack_of, family)


def why(error: pytest.ExceptionInfo[StackError]) -> str:
    assert error.value.errno is not None
    return errno.errorcode[error.value.errno]


def fill(sock: Socket) -> int:
    """Send until there is no room, and return how much that was."""
    sent = 0
    while True:
        try:
            sent += sock.send(bytes(100_000))
        except StackError as error:
            if error.errno != errno.EAGAIN:
                raise
            return sent


def exchange(pair: Pair, sender: Socket, receiver: Socket, data: bytes) -> bytes:
    """Send all of some data and return what arrived."""
    sent, arrived = 0, bytearray()
    while len(arrived) < len(data):
        if sent < len(data) and sender.ready & WRITABLE:
            sent += sender.send(data[sent : sent + 200_000])
        assert pair.wire.run_ms(5000, lambda: bool(receiver.ready & READABLE))
        arrived += receiver.receive(1_000_000)
    return bytes(arrived)


def test_a_stream_goes_both_ways_whole_and_in_order(pair: Pair) -> None:
    client, server = pair.connected()
    data = bytes(range(256)) * 8000
    assert exchange(pair, client, server, data) == data
    assert exchange(pair, server, client, data[::-1]) == data[::-1]
    assert pair.client.counts()["tcp_checksum"] == pair.server.counts()["tcp_checksum"] == 0


def test_the_end_of_a_stream_is_heard_after_its_data_and_the_other_way_goes_on(pair: Pair) -> None:
    client, server = pair.connected()
    client.send(b"last")
    client.shutdown(socket.SHUT_WR)
    pair.wire.run_ms(1000, lambda: bool(server.ready & PEER_CLOSED))
    assert (server.receive(), server.receive()) == (b"last", b"")
    with pytest.raises(StackError) as error:
        client.send(b"more")
    assert why(error) == "EPIPE"
    server.send(b"still here")
    pair.wire.run_ms(1000, lambda: bool(client.ready & READABLE))
    assert client.receive() == b"still here"
    server.close()
    assert pair.wire.run_ms(2000, lambda: bool(client.ready & HUNG_UP))
    assert client.receive() == b""


def test_linger_of_zero_resets(pair: Pair) -> None:
    client, server = pair.connected()
    client.set(LINGER_S, 0)
    client.close()
    assert pair.wire.run_ms(1000, lambda: bool(server.ready & HUNG_UP))
    assert errno.errorcode[server.take_error()] == "ECONNRESET"
    assert server.take_error() == 0


def test_a_peer_that_never_reads_stops_the_sender_and_loses_nothing(pair: Pair) -> None:
    client, server = pair.connected()
    sent = 0
    while client.ready & WRITABLE:
        sent += client.send(bytes(100_000))
        pair.wire.run_ms(50)
    sent += fill(client)
    pair.wire.run_ms(3000)
    arrived = 0
    while arrived < sent:
        arrived += len(server.receive(100_000))
        pair.wire.run_ms(5000, lambda: bool(server.ready & READABLE))
    assert arrived == sent
    assert client.ready & WRITABLE


def test_datagrams_are_whole_and_say_from_whom(pair: Pair) -> None:
    server = pair.server.open(UDP, pair.family).bind(*pair.where)
    client = pair.client.open(UDP, pair.family).connect(*pair.where)
    for data in (b"", b"one", bytes(range(256)) * 255):
        assert client.send(data) == len(data)
        assert pair.wire.run_ms(100, lambda: bool(server.ready & READABLE))
        arrived, sender = server.receive_from()
        assert (arrived, sender) == (data, client.local)
        server.send(data[::-1], sender)
        assert pair.wire.run_ms(100, lambda: bool(client.ready & READABLE))
        assert client.receive() == data[::-1]


def test_a_datagram_is_cut_to_the_room_and_may_be_looked_at(pair: Pair) -> None:
    server = pair.server.open(UDP, pair.family).bind(*pair.where)
    client = pair.client.open(UDP, pair.family)
    for _ in range(2):
        client.send(b"0123456789", pair.where)
    assert pair.wire.run_ms(100, lambda: pair.server.counts()["udp_in"] == 2)
    assert server.receive(4, PEEK) == b"0123"
    assert server.stack.call("stack_receive", server.handle, bytes(4), 4, TRUNCATE, None) == 10
    assert server.receive(4) == b"0123"
    with pytest.raises(StackError) as error:
        server.receive()
    assert why(error) == "EAGAIN"


def test_a_port_in_use_is_refused(pair: Pair) -> None:
    for type_ in (TCP, UDP):
        first = pair.server.open(type_, pair.family).bind(*pair.where)
        with pytest.raises(StackError) as error:
            pair.server.open(type_, pair.family).bind(*pair.where)
        assert why(error) == "EADDRINUSE"
        first.close()
        pair.server.open(type_, pair.family).bind(*pair.where).close()


def test_an_address_of_another_machine_is_refused(pair: Pair) -> None:
    with pytest.raises(StackError) as error:
        pair.server.open(TCP, pair.family).bind(pair.ips[0], 0)
    assert why(error) == "EADDRNOTAVAIL"


def test_a_socket_of_ipv6_hears_ipv4_unless_it_is_told_not_to(stack_of: StackMaker) -> None:
    client, server = stack_of("10.1.0.1", seed=1), stack_of("10.1.0.2", "fd00::2", seed=2)
    wire = Wire(client, server)
    listener = server.open(TCP, 6).bind("::", PORT).listen()
    connecting = client.open(TCP).connect("10.1.0.2", PORT)
    assert wire.run_ms(100, lambda: bool(listener.ready & READABLE))
    assert listener.accept()[1] == connecting.local
    alone = server.open(TCP, 6)
    alone.set(ONLY_IPV6, 1)
    alone.bind("::", PORT + 1).listen()
    refused = client.open(TCP).connect("10.1.0.2", PORT + 1)
    assert wire.run_ms(100, lambda: bool(refused.ready & HUNG_UP))
    assert errno.errorcode[refused.take_error()] == "ECONNREFUSED"


def test_garbage_is_counted_and_does_no_harm(pair: Pair) -> None:
    stack: Stack = pair.server
    for packet in (b"", b"\x45", b"\x45" * 19, b"\x60" * 39, bytes(60), b"\x45" + bytes(40), b"\x6f" * 100):
        stack.input(packet)
    counts = stack.counts()
    assert counts["packets_in"] == 7
    assert counts["ip_malformed"] + counts["ip_checksum"] >= 4
    assert not stack.take()
