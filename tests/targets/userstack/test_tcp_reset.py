# SPDX-License-Identifier: Apache-2.0
"""Conformance: which RST, SYN and ACK a connection believes. RFC 9293, 3.10.7.4, and RFC 5961."""

from __future__ import annotations

import errno

import pytest

from tests.targets.userstack import stack as sockets
from tests.targets.userstack.conftest import StackMaker
from tests.targets.userstack.script import (
    IP,
    PEER_IPS,
    STACK_IPS,
    STATES,
    SYN_OPTIONS,
    TCP,
    Peer,
    Raw,
    state_of,
)
from tests.targets.userstack.stack import HUNG_UP, LINGER_S, READABLE, Socket, StackError, Wire
from tests.targets.userstack.test_tcp_window import fill

RESET_STATES = ("ESTABLISHED", "FIN-WAIT-1", "FIN-WAIT-2", "CLOSE-WAIT", "CLOSING", "LAST-ACK")


@pytest.mark.parametrize("state", RESET_STATES)
def test_rfc_5961_3_2_a_reset_at_the_next_number_ends_the_connection(peer: Peer, state: str) -> None:
    sock = peer.socket_in(state)
    peer.inject("R")
    peer.expect_nothing()
    assert sock.ready & HUNG_UP
    assert state_of(sock) == "CLOSED"
    peer.inject("A")
    peer.expect_reset()


@pytest.mark.parametrize("state", RESET_STATES)
def test_rfc_5961_3_2_a_reset_elsewhere_in_the_window_is_challenged(peer4: Peer, state: str) -> None:
    sock = peer4.socket_in(state)
    peer4.inject("R", peer4.seq + 10)
    peer4.expect("A", None, peer4.seq)
    assert state_of(sock) == state


@pytest.mark.parametrize("state", RESET_STATES)
@pytest.mark.parametrize("off", [-1, 2**30])
def test_rfc_5961_3_2_a_reset_outside_the_window_is_dropped(peer4: Peer, state: str, off: int) -> None:
    sock = peer4.socket_in(state)
    peer4.inject("R", peer4.seq + off)
    peer4.expect_nothing()
    assert state_of(sock) == state


def test_rfc_5961_3_2_a_reset_just_behind_the_window_is_dropped(peer4: Peer) -> None:
    sock = peer4.socket_in("ESTABLISHED")
    peer4.inject("R", peer4.seq + sock.info.receive_window_bytes)
    peer4.expect_nothing()
    assert state_of(sock) == "ESTABLISHED"


def test_rfc_1337_a_reset_does_not_end_time_wait(peer4: Peer) -> None:
    sock = peer4.socket_in("TIME-WAIT")
    peer4.inject("R")
    peer4.expect_nothing()
    assert state_of(sock) == "TIME-WAIT"


def test_must_66_a_reset_counts_when_the_window_is_closed(peer: Peer) -> None:
    sock = peer.connected()
    fill(peer, sock)
    assert sock.info.receive_window_bytes == 0
    peer.inject("R")
    assert state_of(sock) == "CLOSED"


def test_a_reset_after_data_leaves_the_data_and_then_an_error(peer: Peer) -> None:
    sock = peer.connected()
    peer.inject("PA", data=b"last words")
    peer.inject("R")
    assert sock.receive() == b"last words"
    with pytest.raises(StackError) as error:
        sock.receive()
    assert error.value.errno == errno.ECONNRESET


@pytest.mark.parametrize(
    ("state", "number"),
    [("ESTABLISHED", "ECONNRESET"), ("CLOSE-WAIT", "EPIPE"), ("LAST-ACK", "ECONNRESET")],
)
def test_a_reset_is_told_as_the_kernel_tells_it(peer4: Peer, state: str, number: str) -> None:
    sock = peer4.socket_in(state)
    peer4.inject("R")
    assert errno.errorcode[sock.take_error()] == number


@pytest.mark.parametrize(
    ("state", "off"),
    [(state, off) for state in STATES for off in (0, 100) if (state, off) != ("TIME-WAIT", 100)],
)
def test_rfc_5961_4_2_a_syn_in_the_window_is_challenged(peer: Peer, state: str, off: int) -> None:
    """In TIME-WAIT it may open anew: test_tcp_close.py."""
    sock = peer.into(state)
    seq = peer.seq
    peer.inject("S", seq + off)
    peer.expect("A", None, seq)
    assert sock is None or state_of(sock) == state


@pytest.mark.parametrize("state", [each for each in STATES if each != "SYN-RECEIVED"])
def test_rfc_5961_4_2_an_old_syn_is_challenged(peer4: Peer, state: str) -> None:
    sock = peer4.socket_in(state)
    peer4.inject("S", 0, options=SYN_OPTIONS)
    peer4.expect("A", None, peer4.seq)
    assert state_of(sock) == state


@pytest.mark.parametrize("state", [each for each in STATES if each not in ("SYN-RECEIVED", "TIME-WAIT")])
def test_rfc_5961_5_2_an_ack_of_what_was_not_sent_is_challenged(peer4: Peer, state: str) -> None:
    sock = peer4.socket_in(state)
    before = sock.info.send_unacknowledged
    peer4.inject("A", None, 1000)
    peer4.expect("A", None, peer4.seq)
    assert sock.info.send_unacknowledged == before


@pytest.mark.parametrize("ack", [1000, -70000], ids=["of-what-was-not-sent", "from-too-long-ago"])
def test_rfc_5961_5_2_data_with_an_ack_that_cannot_be_is_dropped(peer: Peer, ack: int) -> None:
    sock = peer.connected()
    peer.inject("PA", 1, ack, data=b"blind")
    peer.expect("A", 1, 1)
    assert not sock.ready & READABLE


def test_an_ack_a_little_old_is_no_reason_to_drop_data(peer4: Peer) -> None:
    sock = peer4.connected()
    sock.send(b"12345")
    peer4.expect("A", 1, 1)
    peer4.inject("A", 1, 6)
    peer4.inject("PA", 1, 3, data=b"late")
    assert sock.receive() == b"late"


@pytest.mark.parametrize("state", ["ESTABLISHED", "FIN-WAIT-1", "FIN-WAIT-2", "CLOSE-WAIT", "SYN-RECEIVED"])
def test_3_10_7_4_a_segment_without_ack_is_dropped(peer4: Peer, state: str) -> None:
    sock = peer4.into(state)
    peer4.inject("", peer4.seq, data=b"none")
    assert sock is None or (state_of(sock) == state and no_data(sock))


@pytest.mark.parametrize("state", ["ESTABLISHED", "FIN-WAIT-1", "FIN-WAIT-2"])
def test_3_10_7_4_a_fin_without_ack_is_dropped(peer4: Peer, state: str) -> None:
    sock = peer4.socket_in(state)
    peer4.inject("F", peer4.seq)
    assert state_of(sock) == state


def test_3_10_7_4_an_ack_outside_the_window_acknowledges_nothing(peer: Peer) -> None:
    sock = peer.connected()
    sock.send(b"12345")
    peer.expect("A", 1, 1, data=b"12345")
    peer.inject("A", 2**30, 6)
    peer.expect("A", 6, 1)
    assert sock.info.unacknowledged_bytes == 5


def test_3_10_7_4_a_window_outside_the_window_is_not_believed(peer4: Peer) -> None:
    sock = peer4.connected()
    peer4.inject("A", 2**30, 1, window=0)
    peer4.drain()
    assert sock.info.send_window_bytes == 65535


def test_rfc_5961_7_ends_that_do_not_agree_do_not_answer_each_other_for_good(stack_of: StackMaker) -> None:
    """One of them has heard four bytes of a forger."""
    near, far = stack_of(STACK_IPS[4]), stack_of(PEER_IPS[4], seed=2)
    wire = Wire(near, far)
    listener = near.open(sockets.TCP).bind(STACK_IPS[4], 7000).listen()
    client = far.open(sockets.TCP).bind(PEER_IPS[4], 40000).connect(STACK_IPS[4], 7000)
    assert wire.run_ms(10, lambda: bool(listener.ready & READABLE))
    server = listener.accept()[0]
    forged = TCP(sport=40000, dport=7000, flags="A", seq=server.info.receive_next, ack=server.info.send_next)
    near.input(bytes(IP(src=PEER_IPS[4], dst=STACK_IPS[4]) / forged / Raw(b"evil")))
    before = near.counts()["packets_out"]
    wire.run_ms(4_000)
    assert near.counts()["packets_out"] - before < 20
    client.send(b"still")
    assert wire.run_ms(100, lambda: client.info.unacknowledged_bytes == 0)


@pytest.mark.parametrize(("gap_ms", "answers"), [(0, 10), (499, 19), (500, 20)])
def test_rfc_5961_7_challenges_are_few(peer4: Peer, gap_ms: int, answers: int) -> None:
    peer4.connected()
    came = 0
    for _ in range(20):
        peer4.inject("A", 0, 1)
        came += len(peer4.drain(gap_ms))
    peer4.inject("A", 0, 1, data=b"x")
    peer4.expect("A", 1, 1)
    assert came == answers


def test_rfc_5961_7_challenges_are_no_answer_to_resets_outside(peer4: Peer) -> None:
    peer4.connected()
    for place in range(100):
        peer4.inject("R", 2**30 + place)
    peer4.expect_nothing()


@pytest.mark.parametrize("state", ["ESTABLISHED", "SYN-SENT"])
def test_3_10_5_abort_sends_a_reset_at_the_next_number(peer: Peer, state: str) -> None:
    sock = peer.socket_in(state)
    sock.set(LINGER_S, 0)
    sock.close()
    if state == "ESTABLISHED":
        peer.expect_reset(1, 1)
    peer.expect_nothing(1000)


def test_shld_3_close_with_unread_data_resets(peer: Peer) -> None:
    sock = peer.connected()
    peer.inject("PA", data=b"unread")
    peer.expect("A", 1, 7, within_ms=500)
    sock.close()
    peer.expect_reset(1, 7)


def test_3_10_5_a_reset_behind_a_probe_of_a_closed_window_lies_in_it(peer: Peer) -> None:
    """A peer drops one beyond its window, and would wait for good."""
    sock = peer.connected(window=0)
    sock.send(b"waits")
    peer.expect("A", 1, 1, size=1, within_ms=10_000)
    peer.inject("A", 1, 1, window=0)
    sock.set(LINGER_S, 0)
    sock.close()
    peer.expect_reset(1)


def test_3_6_1_data_after_close_is_reset(peer: Peer) -> None:
    sock = peer.connected()
    sock.close()
    peer.expect("FA", 1, 1)
    peer.inject("A", 1, 2)
    peer.inject("PA", data=b"to whom?")
    peer.expect_reset()


def no_data(sock: Socket) -> bool:
    """Return whether nothing can be read."""
    try:
        return not sock.receive(10)
    except StackError as error:
        return error.errno == errno.EAGAIN
