# SPDX-License-Identifier: Apache-2.0
"""Loss recovery by scripts of packets: what a peer is told, and what its answers do."""

from __future__ import annotations

import pytest

from tests.targets.userstack.script import PLAIN_OPTIONS, SYN_OPTIONS, Option, Peer, options_of
from tests.targets.userstack.stack import NO_DELAY, Socket

SEGMENT_BYTES = 1460
ROUND_TRIP_MS = 0.1
FIRST = 21
"""The number of the first byte that `sending` leaves unacknowledged."""


def told(peer: Peer) -> list[tuple[int, int]]:
    """Take an ACK, which may be delayed, and return the blocks of its SACK option, relative."""
    edges = [(each - peer.isn) % 2**32 for each in options_of(peer.expect("A", within_ms=2)).get("SAck", ())]
    return list(zip(edges[::2], edges[1::2], strict=True))


def sack(peer: Peer, *edges: int) -> tuple[Option, ...]:
    """Return the options of an ACK that tells these blocks, relative."""
    return (("NOP", None), ("NOP", None), ("SAck", peer.numbers(*edges)))


def sending(peer: Peer, segments: int) -> Socket:
    """Return a connection that knows its round trip and has sent so many segments, which are taken."""
    sock = peer.connected()
    sock.set(NO_DELAY, 1)
    for each in range(2, FIRST + 1):
        sock.send(b"x")
        peer.drain(ROUND_TRIP_MS)
        peer.inject("A", 1, each)
    sock.send(bytes(segments * SEGMENT_BYTES))
    assert len(peer.drain()) == segments
    return sock


def test_rfc_2883_4_what_came_twice_is_told(peer4: Peer) -> None:
    peer4.connected()
    peer4.inject("A", data=bytes(100))
    peer4.drain(10)
    peer4.inject("A", 1, 1, data=bytes(100))
    assert told(peer4) == [(1, 101)]
    peer4.inject("A", 1, 1, data=bytes(50))
    assert told(peer4) == [(1, 51)]


def test_rfc_2883_4_a_fin_that_came_twice_is_told(peer4: Peer) -> None:
    peer4.connected()
    peer4.inject("FA")
    peer4.drain(10)
    peer4.inject("FA", 1, 1)
    assert told(peer4) == [(1, 2)]


@pytest.mark.parametrize(("at", "end"), [(201, 301), (201, 251), (231, 301)])
def test_rfc_2883_4_what_waits_and_came_twice_is_told_before_its_block(
    peer4: Peer, at: int, end: int
) -> None:
    peer4.connected()
    peer4.inject("A", 201, 1, data=bytes(100))
    assert told(peer4) == [(201, 301)]
    peer4.inject("A", at, 1, data=bytes(end - at))
    assert told(peer4) == [(at, end), (201, 301)]


def test_what_came_twice_is_told_once(peer4: Peer) -> None:
    peer4.connected()
    peer4.inject("A", data=bytes(100))
    peer4.drain(10)
    peer4.inject("A", 1, 1, data=bytes(100))
    assert told(peer4)
    peer4.inject("A", data=bytes(3000))
    assert told(peer4) == []


@pytest.mark.parametrize("size", [1, 100])
def test_data_for_a_closed_window_is_not_told_as_received(peer4: Peer, size: int) -> None:
    """It is dropped: a peer that believed it had arrived would not send it again."""
    sock = peer4.connected()
    while room_bytes := min(sock.info.receive_window_bytes, 30000):
        peer4.inject("A", data=bytes(room_bytes))
    peer4.drain(500)
    peer4.inject("A", peer4.seq, 1, data=bytes(size))
    assert told(peer4) == []


def test_data_beyond_the_window_is_not_told_as_received(peer4: Peer) -> None:
    sock = peer4.connected()
    peer4.inject("A", 1 + sock.info.receive_window_bytes, 1, data=bytes(100))
    assert told(peer4) == []


def test_both_ends_that_open_at_once_count_their_syn_once(peer: Peer) -> None:
    sock = peer.connecting()
    peer.inject("S", 0, options=SYN_OPTIONS)
    peer.expect("SA", 0, 1)
    peer.inject("SA", 0, 1, options=SYN_OPTIONS)
    peer.drain()
    assert sock.info.in_flight_bytes == 0


def test_both_ends_that_open_at_once_send_after_a_lost_syn(peer: Peer) -> None:
    sock = peer.connecting()
    peer.expect("S", 0, within_ms=1100)
    peer.inject("S", 0, options=SYN_OPTIONS)
    peer.expect("SA", 0, 1)
    peer.inject("SA", 0, 1, options=SYN_OPTIONS)
    peer.drain()
    sock.send(b"both")
    peer.expect("A", 1, 1, data=b"both")
    assert sock.info.in_flight_bytes == 4


def test_segments_that_are_cut_are_repaired_one_by_one(peer4: Peer) -> None:
    """A second loss, of a piece of what a smaller MTU has cut, is found as any other."""
    sock = sending(peer4, 4)
    sock.send(b"x")
    about = peer4.stack.take()[0]
    peer4.icmp_error(about, "too-big", mtu_bytes=1000)
    again = peer4.drain(ROUND_TRIP_MS)
    assert [len(packet["TCP"].payload) for packet in again] == [960, 500] * 4
    end = FIRST + 4 * SEGMENT_BYTES
    peer4.inject("A", 1, FIRST, options=sack(peer4, FIRST + 960, end + 1))
    repaired = peer4.drain(ROUND_TRIP_MS)
    assert [(peer4.reach(packet), len(packet["TCP"].payload)) for packet in repaired] == [(FIRST + 960, 960)]
    peer4.inject("A", 1, end + 1)
    assert sock.info.in_flight_bytes == 0
    peer4.expect_nothing(100)


def test_rfc_2018_8_what_a_peer_tells_and_drops_is_sent_again(peer4: Peer) -> None:
    sock = sending(peer4, 4)
    second, end = FIRST + SEGMENT_BYTES, FIRST + 4 * SEGMENT_BYTES
    peer4.inject("A", 1, FIRST, options=sack(peer4, second, end))
    for at in range(second, end, SEGMENT_BYTES):
        peer4.inject("A", 1, at)
        assert at + SEGMENT_BYTES in {peer4.reach(packet) for packet in peer4.drain(50)}
    peer4.inject("A", 1, end)
    assert sock.info.in_flight_bytes == 0


def test_rfc_5682_a_time_out_in_vain_takes_no_window(peer4: Peer) -> None:
    sock = sending(peer4, 4)
    window_bytes = sock.info.congestion_window_bytes
    peer4.drain(4)
    assert sock.info.retransmitted_by_timeout == 1
    assert sock.info.congestion_window_bytes == SEGMENT_BYTES
    peer4.inject("A", 1, FIRST + 2 * SEGMENT_BYTES)
    assert sock.info.congestion_window_bytes >= window_bytes


def test_rfc_6298_5_the_timer_stays_backed_off_until_a_round_trip_is_known(peer4: Peer) -> None:
    """The way becomes longer than the timer, and the peer tells nothing of what comes twice."""
    sock = peer4.connected(options=PLAIN_OPTIONS)
    sock.set(NO_DELAY, 1)
    copies: list[int] = []
    for round_trip_ms in [ROUND_TRIP_MS] * 20 + [38] * 3:
        sock.send(b"x")
        came = peer4.drain(round_trip_ms)
        peer4.inject("A", None, max(peer4.reach(each) for each in came))
        copies.append(len(came))
    assert copies[20] > 1
    assert copies[21:] == [1, 1]
