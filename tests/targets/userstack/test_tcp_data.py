# SPDX-License-Identifier: Apache-2.0
"""Conformance: numbers, data out of order, acknowledgements, SACK blocks. RFC 9293 unless said otherwise."""

from __future__ import annotations

import errno
from ctypes import c_size_t
from itertools import pairwise
from random import Random

import pytest

from tests.targets.userstack.script import PLAIN_OPTIONS, SYN_OPTIONS, Peer, options_of
from tests.targets.userstack.stack import (
    MORE,
    NO_DELAY,
    READABLE,
    SEGMENT_BYTES,
    SEND_BYTES,
    TCP,
    WRITABLE,
    Socket,
    StackError,
)

URGENT = 32
"""The bit that `stack_ready()` would have for it."""
DATA = bytes(range(256)) * 8


def blocks(peer: Peer) -> list[tuple[int, int]]:
    """Take an ACK and return its SACK blocks, relative."""
    edges = [(each - peer.isn) % 2**32 for each in options_of(peer.expect("A")).get("SAck", ())]
    return list(zip(edges[::2], edges[1::2], strict=True))


def receive(sock: Socket) -> bytes:
    """Return all that can be read."""
    data = bytearray()
    while True:
        try:
            piece = sock.receive()
        except StackError as error:
            if error.errno != errno.EAGAIN:
                raise
            return bytes(data)
        if not piece:
            return bytes(data)
        data += piece


def test_3_4_data_in_order_is_heard_and_acknowledged(peer: Peer) -> None:
    sock = peer.connected()
    peer.inject("PA", data=b"abc")
    assert sock.receive() == b"abc"
    peer.expect("A", 1, 4, within_ms=500)


def test_must_40_an_ack_is_delayed_less_than_500_ms(peer: Peer) -> None:
    peer.connected()
    peer.stack.advance_ms(1)
    peer.inject("PA", data=b"abc")
    peer.expect("A", 1, 4, within_ms=499)


def test_shld_19_every_second_full_segment_is_acknowledged(peer: Peer) -> None:
    peer.connected()
    peer.inject("A", data=bytes(1460))
    peer.inject("A", data=bytes(1460))
    peer.expect("A", 1, 2921)


def test_shld_19_also_while_small_data_waits_for_nagle(peer: Peer) -> None:
    sock = peer.connected()
    sock.send(b"first")
    peer.expect("A", 1, 1, data=b"first")
    sock.send(b"held")
    peer.inject("A", data=bytes(1460), ack=1)
    peer.inject("A", data=bytes(1460), ack=1)
    peer.expect("A", None, 2921, data=b"")


@pytest.mark.parametrize("isn", [2**32 - 1, 2**32 - 2, 2**32 - 3, 2**32 - 100, 2**31 - 50, 0])
def test_3_4_the_peers_numbers_wrap(peer4: Peer, isn: int) -> None:
    peer4.isn = isn
    sock = peer4.connected()
    for place in range(0, 300, 30):
        peer4.inject("A", data=DATA[place : place + 30])
    assert receive(sock) == DATA[:300]
    peer4.drain()
    peer4.inject("A", 201, data=b"old")
    peer4.expect("A", 1, 301)


def test_3_4_data_out_of_order_across_the_wrap(peer4: Peer) -> None:
    peer4.isn = 2**32 - 50
    sock = peer4.connected()
    for place in (80, 40, 60, 20, 0):
        peer4.inject("A", 1 + place, 1, data=DATA[place : place + 20])
    assert receive(sock) == DATA[:100]


def test_3_4_the_stacks_numbers_wrap(peer4: Peer) -> None:
    """The clock of the initial number is moved so that 2^32 comes soon."""
    peer4.connecting()
    peer4.inject("RA", 0, 1)
    left_us = ((2**32 - peer4.stack_isn - 30_000) % 2**32) * 4
    peer4.stack.now_us += left_us
    peer4.stack.library.stack_advance_us(peer4.stack.now_us)
    again = Peer(peer4.stack, 4)
    sock = again.connecting()
    assert 2**32 - again.stack_isn < 40_000
    again.inject("SA", 0, 1, options=SYN_OPTIONS)
    again.expect("A")
    sent = bytearray()
    for _ in range(60):
        sock.send(bytes(DATA[:1460]))
        sent += again.expect("A").payload.load
        again.inject("A")
    assert bytes(sent) == DATA[:1460] * 60
    assert sock.info.send_next < 2**31


@pytest.mark.parametrize(
    ("name", "pieces"),
    [
        ("a duplicate", [(0, 100), (0, 100), (100, 200)]),
        ("an overlap at its start", [(0, 100), (50, 150)]),
        ("a segment around what came", [(0, 50), (0, 150)]),
        ("a segment within what came", [(0, 100), (20, 50), (100, 110)]),
        ("one gap", [(50, 100), (0, 50)]),
        ("two gaps, filled from behind", [(100, 150), (50, 100), (0, 50)]),
        ("two gaps, filled from the front", [(50, 75), (100, 150), (0, 50), (75, 100)]),
        ("a gap filled too widely", [(50, 100), (0, 80)]),
        ("a gap filled over all", [(50, 100), (0, 150)]),
        ("waiting pieces that overlap", [(50, 100), (80, 150), (0, 50)]),
        ("a waiting piece around another", [(60, 80), (50, 100), (0, 50)]),
        ("a waiting piece within another", [(50, 100), (60, 80), (0, 50)]),
        ("a waiting piece that joins two", [(50, 70), (90, 110), (60, 100), (0, 50)]),
        ("a waiting piece of the same start, longer", [(50, 70), (50, 100), (0, 50)]),
        ("a waiting piece of the same start, shorter", [(50, 100), (50, 70), (0, 50)]),
        ("byte by byte, backwards", [(place, place + 1) for place in reversed(range(60))]),
    ],
)
def test_shld_31_pieces_become_the_stream(peer: Peer, name: str, pieces: list[tuple[int, int]]) -> None:
    sock = peer.connected()
    end = max(last for _, last in pieces)
    for first, last in pieces:
        peer.inject("A", 1 + first, 1, data=DATA[first:last])
    assert receive(sock) == DATA[:end], name
    packets = peer.drain(500)
    assert (packets[-1]["TCP"].ack - peer.isn) % 2**32 == 1 + end


def test_pieces_in_any_order_become_the_stream(peer4: Peer) -> None:
    """A hundred orders with overlaps, from a seed."""
    random = Random(35)
    sock = peer4.connected()
    for _ in range(100):
        base = peer4.seq
        cuts = sorted({0, 500, *(random.randrange(500) for _ in range(8))})
        pieces = [
            (max(0, first - random.randrange(20)), min(500, last + random.randrange(20)))
            for first, last in pairwise(cuts)
        ]
        random.shuffle(pieces)
        for first, last in pieces:
            peer4.inject("A", base + first, 1, data=DATA[first:last])
        peer4.seq = base + 500
        assert receive(sock) == DATA[:500]


def test_3_10_7_4_a_duplicate_is_acknowledged_at_once(peer: Peer) -> None:
    sock = peer.connected()
    peer.inject("A", data=b"abc")
    peer.drain(500)
    peer.inject("A", 1, data=b"abc")
    peer.expect("A", 1, 4)
    assert receive(sock) == b"abc"


def test_rfc_5681_4_2_a_gap_is_acknowledged_at_once(peer: Peer) -> None:
    peer.connected()
    peer.inject("A", 101, 1, data=DATA[100:200])
    peer.expect("A", 1, 1)


def test_rfc_5681_4_2_a_filled_gap_is_acknowledged_at_once(peer: Peer) -> None:
    peer.connected()
    peer.inject("A", 101, 1, data=DATA[100:200])
    peer.inject("A", 201, 1, data=DATA[200:300])
    peer.drain()
    peer.inject("A", 1, 1, data=DATA[:50])
    peer.expect("A", 1, 51)


@pytest.mark.parametrize("off", ["beyond", "far beyond", "behind"])
def test_3_10_7_4_data_outside_the_window_is_dropped_and_acknowledged(peer4: Peer, off: str) -> None:
    sock = peer4.connected()
    window = sock.info.receive_window_bytes
    seq = {"beyond": 1 + window, "far beyond": 1 + 2**30, "behind": 1 - 2**30}[off]
    peer4.inject("A", seq, 1, data=b"lost")
    peer4.expect("A", 1, 1)
    assert not sock.ready & READABLE


@pytest.mark.parametrize("gap", [False, True])
def test_3_10_7_4_what_lies_beyond_the_window_is_cut_off(peer4: Peer, gap: bool) -> None:
    sock = peer4.connected(options=PLAIN_OPTIONS)
    window = sock.info.receive_window_bytes
    assert window == 65535
    at = 0
    while window - at > 1000:
        at += min(30000, window - at - 1000)
        if not gap or at < window - 1000:
            peer4.inject("A", data=bytes(min(30000, at - (peer4.seq - 1))))
    peer4.inject("A", peer4.seq + (100 if gap else 0), 1, data=bytes(2000))
    if gap:
        peer4.inject("A", peer4.seq, 1, data=bytes(100))
    peer4.drain(500)
    assert sock.info.receive_next <= (peer4.isn + 1 + window) % 2**32
    assert len(receive(sock)) <= window


def test_a_waiting_piece_before_others_is_cut_to_the_window(peer4: Peer) -> None:
    """LwIP cut only the last one: the rest ended in a failed assertion."""
    sock = peer4.connected(options=PLAIN_OPTIONS)
    peer4.inject("A", 65000, 1, data=bytes(100))
    peer4.inject("A", 64000, 1, data=bytes(30000))
    peer4.inject("A", 1, 1, data=bytes(40000))
    peer4.inject("A", 40001, 1, data=bytes(24000))
    peer4.drain(500)
    assert len(receive(sock)) == 65535


def test_a_first_waiting_piece_is_cut_to_the_window(peer4: Peer) -> None:
    sock = peer4.connected(options=PLAIN_OPTIONS)
    peer4.inject("FA", 60001, 1, data=bytes(30000))
    peer4.inject("A", 1, 1, data=bytes(30000))
    peer4.inject("A", 30001, 1, data=bytes(30000))
    assert len(receive(sock)) == 65535


def test_3_9_1_2_push_is_no_border(peer4: Peer) -> None:
    sock = peer4.connected()
    peer4.inject("PA", data=b"one")
    peer4.inject("PA", data=b"two")
    assert sock.receive() == b"onetwo"


def test_must_61_the_last_segment_of_what_was_written_has_push(peer4: Peer) -> None:
    sock = peer4.connected()
    sock.send(bytes(2000))
    pushes = ["P" in str(packet["TCP"].flags) for packet in peer4.drain()]
    peer4.inject("A", 1, 1461)
    pushes += ["P" in str(packet["TCP"].flags) for packet in peer4.drain()]
    assert pushes == [False, True]


def test_data_is_not_lost_by_an_urgent_pointer(peer4: Peer) -> None:
    sock = peer4.connected()
    peer4.inject("PAU", data=b"urgent", urgptr=3)
    assert sock.receive() == b"urgent"


def test_an_urgent_pointer_beyond_the_data_does_no_harm(peer4: Peer) -> None:
    sock = peer4.connected()
    peer4.inject("PAU", data=b"x", urgptr=65535)
    peer4.inject("PA", data=b"y")
    assert sock.receive() == b"xy"


@pytest.mark.xfail(strict=True, reason="there is no urgent mode: no call of the contract tells of it")
def test_must_32_urgent_data_is_told(peer4: Peer) -> None:
    sock = peer4.connected()
    peer4.inject("PAU", data=b"!", urgptr=1)
    assert sock.ready & URGENT


def test_must_3_a_wrong_checksum_is_dropped_and_counted(peer: Peer) -> None:
    sock = peer.connected()
    peer.inject("PA", 1, 1, data=b"bad", chksum=0x1234)
    peer.expect_nothing(500)
    assert not sock.ready & READABLE
    assert peer.stack.counts()["tcp_checksum"] == 1


def test_must_3_a_checksum_covers_the_addresses(peer4: Peer) -> None:
    sock = peer4.connected()
    packet = bytearray(bytes(peer4.segment("PA", 1, 1, data=b"moved")))
    other = Peer(peer4.stack, 4)
    other.ip = "10.1.0.99"
    foreign = bytes(other.segment("PA", 1, 1, data=b"moved"))
    packet[36:38] = foreign[36:38]
    peer4.stack.input(bytes(packet))
    assert not sock.ready & READABLE


@pytest.mark.parametrize("words", [0, 1, 4, 15])
def test_a_header_length_that_does_not_fit_is_dropped(peer4: Peer, words: int) -> None:
    sock = peer4.connected()
    peer4.inject("PA", 1, 1, data=b"x", dataofs=words)
    peer4.expect_nothing(500)
    assert not sock.ready & READABLE
    assert peer4.stack.counts()["tcp_malformed"] >= 1


@pytest.mark.parametrize("size", [0, 1, 8, 19])
def test_a_segment_that_is_cut_off_is_dropped(peer: Peer, size: int) -> None:
    peer.connected()
    packet = bytes(peer.segment("PA", 1, 1, data=b"x"))
    cut = {4: 20, 6: 40}[peer.family] + size
    peer.stack.input(packet[:cut])
    peer.expect_nothing(500)


def test_reserved_bits_are_ignored(peer4: Peer) -> None:
    sock = peer4.connected()
    peer4.inject("PA", data=b"bits", reserved=7)
    assert sock.receive() == b"bits"


def test_ecn_bits_are_ignored(peer4: Peer) -> None:
    sock = peer4.connected()
    peer4.inject("PAEC", data=b"marked")
    assert sock.receive() == b"marked"


def test_rfc_2018_4_a_gap_is_told_by_a_block(peer: Peer) -> None:
    peer.connected()
    peer.inject("A", 101, 1, data=DATA[:100])
    assert blocks(peer) == [(101, 201)]


def test_rfc_2018_4_the_first_block_is_the_newest(peer: Peer) -> None:
    peer.connected()
    for first in (101, 301, 501):
        peer.inject("A", first, 1, data=DATA[:100])
        newest = blocks(peer)[0]
        assert newest == (first, first + 100)


def test_rfc_2018_4_further_blocks_repeat_the_last_ones(peer4: Peer) -> None:
    peer4.connected()
    for first in (101, 301, 501):
        peer4.inject("A", first, 1, data=DATA[:100])
    peer4.expect("A")
    peer4.expect("A")
    assert blocks(peer4) == [(501, 601), (301, 401), (101, 201)]


def test_rfc_2018_4_neighbours_are_one_block(peer4: Peer) -> None:
    peer4.connected()
    for first in (101, 301, 201):
        peer4.inject("A", first, 1, data=DATA[:100])
    peer4.expect("A")
    peer4.expect("A")
    assert blocks(peer4) == [(101, 401)]


def test_rfc_2018_4_a_block_ends_with_its_gap(peer4: Peer) -> None:
    peer4.connected()
    peer4.inject("A", 101, 1, data=DATA[:100])
    peer4.inject("A", 1, 1, data=DATA[:100])
    peer4.expect("A")
    assert "SAck" not in options_of(peer4.expect("A", 1, 201, within_ms=500))


def test_rfc_2018_3_no_blocks_without_permission(peer: Peer) -> None:
    peer.connected(options=PLAIN_OPTIONS)
    peer.inject("A", 101, 1, data=DATA[:100])
    assert blocks(peer) == []


def test_rfc_2018_4_four_blocks_at_most(peer4: Peer) -> None:
    peer4.connected()
    for first in range(101, 2101, 200):
        peer4.inject("A", first, 1, data=DATA[:100])
    for _ in range(9):
        peer4.expect("A")
    assert len(blocks(peer4)) == 4


def test_shld_7_small_data_waits_for_what_is_under_way(peer: Peer) -> None:
    sock = peer.connected()
    sock.send(b"a")
    peer.expect("A", 1, 1, data=b"a")
    sock.send(b"b")
    sock.send(b"c")
    peer.expect_nothing()
    peer.inject("A")
    peer.expect("A", 2, 1, data=b"bc")


def test_must_17_a_program_can_turn_that_off(peer: Peer) -> None:
    sock = peer.connected()
    sock.set(NO_DELAY, 1)
    for each in (b"a", b"b", b"c"):
        sock.send(each)
        peer.expect("A", data=each)


def test_a_full_segment_does_not_wait(peer4: Peer) -> None:
    sock = peer4.connected()
    sock.send(b"a")
    peer4.expect("A", 1, 1, data=b"a")
    sock.send(bytes(1460))
    peer4.expect("A", 2, 1, size=1460)


@pytest.mark.parametrize("no_delay", [0, 1])
def test_where_more_is_to_follow_full_segments_go_and_the_rest_waits(peer4: Peer, no_delay: int) -> None:
    sock = peer4.connected()
    sock.set(NO_DELAY, no_delay)
    sock.send(bytes(1459), flags=MORE)
    peer4.expect_nothing()
    sock.send(bytes(1462), flags=MORE)
    peer4.expect("A", 1, 1, size=1460)
    peer4.expect("A", 1461, 1, size=1460)
    peer4.expect_nothing()
    sock.send(bytes(1459))
    peer4.expect("A", 2921, 1, size=1460)


@pytest.mark.parametrize("size", [3000, 4096, 5000])
def test_what_leaves_no_room_goes_though_more_is_to_follow(peer4: Peer, size: int) -> None:
    """Here a segment is larger than the buffer: who waits until there is room again can add nothing to it."""
    peer4.stack.call("stack_set_mtu", c_size_t(9000))
    sock = peer4.connected(options=(("MSS", 8960),))
    sock.set(SEND_BYTES, 4096)
    taken = sock.send(bytes(size), flags=MORE)
    assert not sock.ready & WRITABLE
    peer4.expect("A", 1, 1, size=taken)
    peer4.inject("A")
    assert sock.ready & WRITABLE


@pytest.mark.parametrize("listens", [False, True])
def test_segments_are_as_large_as_the_program_lets_them_be(peer4: Peer, listens: bool) -> None:
    """It says so before; of a connection that is there it changes nothing."""
    if listens:
        listener = peer4.listen()
        listener.set(SEGMENT_BYTES, 600)
        peer4.inject("S", 0, options=SYN_OPTIONS)
        syn = peer4.expect("SA", 0, 1)
        peer4.inject("A")
        sock = listener.accept()[0]
    else:
        sock = peer4.stack.open(TCP, 4).bind(peer4.stack_ip, peer4.stack_port)
        sock.set(SEGMENT_BYTES, 600)
        sock.connect(peer4.ip, peer4.port)
        syn = peer4.expect("S", 0)
        peer4.inject("SA", 0, 1, options=SYN_OPTIONS)
        peer4.expect("A", 1, 1)
    assert options_of(syn)["MSS"] == 600
    sock.set(SEGMENT_BYTES, 1000)
    sock.send(bytes(20_000))
    for place in range(10):
        peer4.expect("A", 1 + 600 * place, 1, size=600)
    peer4.expect_nothing()


@pytest.mark.parametrize(("size", "sent"), [(0, 1460), (88, 88), (1460, 1460), (32767, 1460)])
def test_no_segment_is_larger_than_the_way_takes(peer4: Peer, size: int, sent: int) -> None:
    listener = peer4.listen()
    listener.set(SEGMENT_BYTES, size)
    peer4.inject("S", 0, options=SYN_OPTIONS)
    assert options_of(peer4.expect("SA", 0, 1))["MSS"] == sent
    peer4.inject("A")
    listener.accept()[0].send(bytes(3000))
    peer4.expect("A", 1, 1, size=sent)


@pytest.mark.parametrize("size", [-1, 87, 32768])
def test_a_size_of_segments_that_the_kernel_refuses_is_refused(peer4: Peer, size: int) -> None:
    with pytest.raises(StackError) as error:
        peer4.connected().set(SEGMENT_BYTES, size)
    assert error.value.errno == errno.EINVAL


def test_what_is_not_acknowledged_is_sent_again(peer: Peer) -> None:
    sock = peer.connected()
    sock.send(b"again")
    peer.expect("A", 1, 1, data=b"again")
    peer.expect("A", 1, 1, data=b"again", within_ms=7000)


def test_must_20_data_that_is_never_acknowledged_ends_the_connection(peer4: Peer) -> None:
    sock = peer4.connected()
    sock.send(b"to nobody")
    peer4.drain(4_000_000)
    assert sock.take_error() == errno.ETIMEDOUT


def test_an_ack_in_the_middle_of_a_segment_counts(peer4: Peer) -> None:
    sock = peer4.connected()
    sock.send(b"0123456789")
    peer4.expect("A", 1, 1)
    peer4.inject("A", 1, 6)
    assert sock.info.send_unacknowledged == (peer4.stack_isn + 6) % 2**32
