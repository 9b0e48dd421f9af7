# SPDX-License-Identifier: Apache-2.0
"""Conformance: how connections end. RFC 9293 unless said otherwise."""

from __future__ import annotations

import errno
import socket

import pytest

from tests.targets.userstack.script import SYN_OPTIONS, Peer, state_of
from tests.targets.userstack.stack import (
    HUNG_UP,
    KEEP_ALIVE,
    KEEP_COUNT,
    KEEP_IDLE_S,
    KEEP_INTERVAL_S,
    PEER_CLOSED,
    READABLE,
    Socket,
    StackError,
)

ANY_IPV4 = ".".join("0000")
MSL_MS = 30_000


def test_3_6_case_1_the_stack_closes_first(peer: Peer) -> None:
    sock = peer.connected()
    sock.shutdown(socket.SHUT_WR)
    peer.expect("FA", 1, 1)
    assert state_of(sock) == "FIN-WAIT-1"
    peer.inject("A")
    assert state_of(sock) == "FIN-WAIT-2"
    peer.inject("FA")
    peer.expect("A", 2, 2)
    assert state_of(sock) == "TIME-WAIT"


def test_3_6_case_2_the_peer_closes_first(peer: Peer) -> None:
    sock = peer.connected()
    peer.inject("FA")
    peer.expect("A", 1, 2)
    assert state_of(sock) == "CLOSE-WAIT"
    assert sock.ready & PEER_CLOSED
    assert sock.receive() == b""
    sock.shutdown(socket.SHUT_WR)
    peer.expect("FA", 1, 2)
    assert state_of(sock) == "LAST-ACK"
    peer.inject("A")
    assert state_of(sock) == "CLOSED"
    assert sock.take_error() == 0


def test_3_6_case_3_both_close_at_once(peer: Peer) -> None:
    sock = peer.connected()
    sock.shutdown(socket.SHUT_WR)
    peer.expect("FA", 1, 1)
    peer.inject("FA", 1, 1)
    peer.expect("A", 2, 2)
    assert state_of(sock) == "CLOSING"
    peer.inject("A", 2, 2)
    assert state_of(sock) == "TIME-WAIT"


def test_3_10_7_4_fin_with_the_ack_of_the_own_fin_goes_to_time_wait(peer: Peer) -> None:
    sock = peer.connected()
    sock.shutdown(socket.SHUT_WR)
    peer.expect("FA", 1, 1)
    peer.inject("FA")
    peer.expect("A", 2, 2)
    assert state_of(sock) == "TIME-WAIT"


def test_3_6_1_half_closed_data_still_comes(peer: Peer) -> None:
    sock = peer.socket_in("FIN-WAIT-2")
    peer.inject("PA", data=b"still")
    assert sock.receive() == b"still"
    with pytest.raises(StackError) as error:
        sock.send(b"no")
    assert error.value.errno == errno.EPIPE


def test_3_6_1_half_closed_data_still_goes(peer: Peer) -> None:
    sock = peer.socket_in("CLOSE-WAIT")
    sock.send(b"still")
    peer.expect("A", 1, 2, data=b"still")


def test_fin_waits_for_the_data_before_it(peer: Peer) -> None:
    sock = peer.connected(window=1000)
    sock.send(bytes(1500))
    sock.shutdown(socket.SHUT_WR)
    peer.expect("A", 1, 1, size=500)
    peer.expect("A", 501, 1, size=500)
    peer.expect_nothing()
    peer.inject("A", window=1000)
    peer.expect("FA", 1001, 1, size=500)


def test_fin_with_data_is_heard_after_the_data(peer: Peer) -> None:
    sock = peer.connected()
    peer.inject("FPA", data=b"all")
    peer.expect("A", 1, 5)
    assert (sock.receive(), sock.receive()) == (b"all", b"")


def test_fin_out_of_order_is_heard_in_its_place(peer: Peer) -> None:
    sock = peer.connected()
    peer.inject("FA", 4, 1, data=b"def")
    assert not sock.ready & PEER_CLOSED
    peer.inject("A", 1, 1, data=b"abc")
    assert (sock.receive(), sock.receive()) == (b"abcdef", b"")
    assert state_of(sock) == "CLOSE-WAIT"


def test_fin_alone_out_of_order(peer4: Peer) -> None:
    sock = peer4.connected()
    peer4.inject("FA", 4, 1)
    peer4.inject("A", 1, 1, data=b"abc")
    peer4.drain(500)
    peer4.inject("FA", 4, 1)
    assert (sock.receive(), sock.receive()) == (b"abc", b"")


@pytest.mark.parametrize("state", ["CLOSE-WAIT", "CLOSING", "LAST-ACK", "TIME-WAIT"])
def test_3_10_7_4_data_after_a_fin_is_not_heard(peer4: Peer, state: str) -> None:
    sock = peer4.socket_in(state)
    peer4.inject("A", data=b"after the end")
    peer4.drain(500)
    assert sock.receive() == b""


@pytest.mark.parametrize("state", ["CLOSE-WAIT", "CLOSING", "LAST-ACK", "TIME-WAIT"])
def test_3_10_7_4_a_fin_again_is_acknowledged_again(peer: Peer, state: str) -> None:
    sock = peer.socket_in(state)
    peer.inject("FA", 1)
    peer.expect("A", None, 2)
    assert state_of(sock) == state


def test_a_fin_is_sent_again_until_it_is_acknowledged(peer: Peer) -> None:
    peer.connected().shutdown(socket.SHUT_WR)
    peer.expect("FA", 1, 1)
    peer.expect("FA", 1, 1, within_ms=7000)
    peer.inject("A")
    peer.expect_nothing(20_000)


def test_must_13_time_wait_lasts_two_msl(peer: Peer) -> None:
    sock = peer.socket_in("TIME-WAIT")
    peer.stack.advance_ms(2 * MSL_MS - 1000)
    assert state_of(sock) == "TIME-WAIT"
    peer.stack.advance_ms(2000)
    assert state_of(sock) == "CLOSED"


def test_3_10_7_4_a_fin_again_starts_time_wait_again(peer4: Peer) -> None:
    sock = peer4.socket_in("TIME-WAIT")
    peer4.stack.advance_ms(2 * MSL_MS - 2000)
    peer4.inject("FA", 1)
    peer4.stack.advance_ms(4000)
    assert state_of(sock) == "TIME-WAIT"


def test_a_socket_outlives_its_time_wait(peer: Peer) -> None:
    """LwIP frees the control block without a word: closing the socket then touched freed memory."""
    sock = peer.socket_in("TIME-WAIT")
    peer.stack.advance_ms(3 * MSL_MS)
    assert sock.take_error() == 0
    assert sock.receive() == b""
    assert sock.ready & HUNG_UP
    sock.close()


def test_3_10_7_4_an_old_segment_in_time_wait_is_acknowledged(peer4: Peer) -> None:
    peer4.into("TIME-WAIT")
    peer4.inject("A", -100, 2)
    peer4.expect("A", 2, 2)


def test_may_2_a_newer_syn_opens_anew_out_of_time_wait(peer: Peer) -> None:
    peer.into("TIME-WAIT")
    again = Peer(peer.stack, peer.family, isn=peer.isn + 10)
    again.inject("S", 0, options=SYN_OPTIONS)
    again.expect("SA", 0, 1)
    assert (again.stack_isn - peer.stack_isn) % 2**32 < 2**31
    again.inject("A")
    assert peer.listener is not None
    assert peer.listener.ready & READABLE


def test_may_2_an_older_syn_does_not(peer4: Peer) -> None:
    sock = peer4.socket_in("TIME-WAIT")
    peer4.inject("S", -1000)
    peer4.expect("A", 2, 2)
    assert state_of(sock) == "TIME-WAIT"


def test_a_newer_syn_to_a_port_without_listener_is_refused(peer4: Peer) -> None:
    peer4.into("TIME-WAIT")
    assert peer4.listener is not None
    peer4.listener.close()
    again = Peer(peer4.stack, 4, isn=peer4.isn + 10)
    again.inject("S", 0)
    again.expect("RA")


@pytest.mark.parametrize("state", ["FIN-WAIT-1", "FIN-WAIT-2", "CLOSING", "LAST-ACK"])
def test_a_peer_that_vanishes_leaves_nothing(peer4: Peer, state: str) -> None:
    sock = peer4.socket_in(state)
    sock.close()
    peer4.drain(4_000_000)
    peer4.inject("A")
    peer4.expect_reset()


def test_close_of_a_listener_refuses_the_next_and_keeps_the_others(peer: Peer) -> None:
    sock = peer.connected()
    assert peer.listener is not None
    peer.listener.close()
    Peer(peer.stack, peer.family, port=40001).inject("S", 0)
    peer.expect_reset()
    peer.inject("PA", data=b"on")
    assert sock.receive() == b"on"


def test_close_of_a_listener_resets_who_waits_to_be_accepted(peer: Peer) -> None:
    listener = peer.listen()
    peer.inject("S", 0)
    peer.expect("SA", 0, 1)
    peer.inject("A")
    listener.close()
    peer.expect_reset(1, 1)


def test_close_in_syn_sent_sends_no_more(peer: Peer) -> None:
    peer.connecting().close()
    peer.expect_nothing(20_000)
    peer.inject("SA", 0, 1)
    peer.expect_reset(1)


def test_close_before_everything_was_sent_sends_it(peer: Peer) -> None:
    sock = peer.connected(window=1000)
    sock.send(bytes(1500))
    sock.close()
    peer.expect("A", 1, 1, size=500)
    peer.expect("A", 501, 1, size=500)
    peer.inject("A", window=1000)
    peer.expect("FA", 1001, 1, size=500)
    peer.inject("FA")
    peer.expect("A", 1502, 2)


def test_must_25_keep_alive_is_off_unless_asked_for(peer: Peer) -> None:
    peer.connected()
    peer.expect_nothing(8 * 3600 * 1000)


def kept_alive(peer: Peer) -> Socket:
    """Return a connection that is probed after 10 s, each second, three times."""
    sock = peer.connected()
    for option, value in ((KEEP_ALIVE, 1), (KEEP_IDLE_S, 10), (KEEP_INTERVAL_S, 1), (KEEP_COUNT, 3)):
        sock.set(option, value)
    return sock


def test_may_5_a_silent_peer_is_probed_with_an_old_number(peer: Peer) -> None:
    kept_alive(peer)
    peer.expect_nothing(9_000)
    peer.expect("A", 0, 1, within_ms=2_500)


def test_3_8_4_an_answered_probe_keeps_the_connection(peer: Peer) -> None:
    sock = kept_alive(peer)
    for _ in range(10):
        peer.expect("A", 0, 1, within_ms=12_000)
        peer.inject("A")
    assert state_of(sock) == "ESTABLISHED"


def test_must_29_one_lost_probe_does_not_end_it(peer4: Peer) -> None:
    sock = kept_alive(peer4)
    peer4.expect("A", 0, 1, within_ms=12_000)
    peer4.expect("A", 0, 1, within_ms=3_000)
    peer4.inject("A")
    assert state_of(sock) == "ESTABLISHED"


def test_a_peer_that_answers_no_probe_is_given_up(peer: Peer) -> None:
    sock = kept_alive(peer)
    peer.drain(30_000)
    assert sock.ready & HUNG_UP
    assert sock.take_error() == errno.ETIMEDOUT


def test_data_puts_probes_off(peer4: Peer) -> None:
    kept_alive(peer4)
    for _ in range(5):
        peer4.stack.advance_ms(8_000)
        peer4.inject("A", data=b"x")
    assert not [packet for packet in peer4.drain() if (packet["TCP"].seq - peer4.stack_isn) % 2**32 == 0]


@pytest.mark.parametrize("size", [0, 1])
def test_a_peers_keep_alive_is_answered(peer: Peer, size: int) -> None:
    peer.connected()
    peer.inject("A", 0, 1, data=bytes(size))
    peer.expect("A", 1, 1)


def test_an_address_that_is_removed_takes_its_connections_along(peer: Peer) -> None:
    sock = peer.connected()
    peer.stack.remove_address(peer.stack_ip)
    assert sock.ready & HUNG_UP
    with pytest.raises(StackError):
        sock.send(b"gone")
    peer.drain()
    peer.inject("A", data=b"x")
    peer.expect_nothing(1000)


def test_a_listener_of_any_address_outlives_an_address(peer4: Peer) -> None:
    peer4.stack.open(0).bind(ANY_IPV4, 7000).listen()
    peer4.stack.remove_address(peer4.stack_ip)
    peer4.stack.add_address(peer4.stack_ip)
    peer4.inject("S", 0)
    peer4.expect("SA", 0, 1)
