# SPDX-License-Identifier: Apache-2.0
"""Conformance: how TCP connections begin. RFC 9293 unless said otherwise; MUST-n are its numbers."""

from __future__ import annotations

import errno
from ctypes import c_size_t, c_uint64
from itertools import pairwise

import pytest

from tests.targets.userstack.conftest import StackMaker
from tests.targets.userstack.script import (
    HEADERS_BYTES,
    MTU_BYTES,
    PLAIN_OPTIONS,
    STACK_IPS,
    SYN_OPTIONS,
    Peer,
    options_of,
    state_of,
)
from tests.targets.userstack.stack import (
    HUNG_UP,
    READABLE,
    REUSE_ADDRESS,
    SEGMENT_BYTES,
    WRITABLE,
    StackError,
)

ANY_IPV4 = ".".join("0000")


def test_must_14_a_syn_carries_the_mss_of_the_interface(peer: Peer) -> None:
    sock = peer.stack.open(0, peer.family).bind(peer.stack_ip, 7000).connect(peer.ip, peer.port)
    syn = peer.expect("S", 0)
    assert options_of(syn)["MSS"] == MTU_BYTES - HEADERS_BYTES[peer.family]
    assert state_of(sock) == "SYN-SENT"


def test_3_5_active_open(peer: Peer) -> None:
    sock = peer.connecting()
    peer.inject("SA", 0, 1, options=SYN_OPTIONS)
    peer.expect("A", 1, 1, data=b"")
    assert state_of(sock) == "ESTABLISHED"
    assert sock.ready & WRITABLE


def test_3_5_passive_open(peer: Peer) -> None:
    listener = peer.listen()
    peer.inject("S", 0, options=SYN_OPTIONS)
    peer.expect("SA", 0, 1)
    assert not listener.ready & READABLE
    peer.inject("A")
    peer.expect_nothing(100)
    assert listener.ready & READABLE
    assert state_of(listener.accept()[0]) == "ESTABLISHED"


def test_must_10_simultaneous_open(peer: Peer) -> None:
    sock = peer.connecting()
    peer.inject("S", 0, options=SYN_OPTIONS)
    peer.expect("SA", 0, 1)
    assert state_of(sock) == "SYN-RECEIVED"
    peer.inject("SA", 0, 1, options=SYN_OPTIONS)
    assert state_of(sock) == "ESTABLISHED"
    assert sock.ready & WRITABLE
    peer.drain()
    sock.send(b"both")
    peer.expect("A", 1, 1, data=b"both")


def test_must_10_simultaneous_open_ended_by_a_plain_ack(peer4: Peer) -> None:
    sock = peer4.connecting()
    peer4.inject("S", 0)
    peer4.expect("SA", 0, 1)
    peer4.inject("A", 1, 1)
    assert state_of(sock) == "ESTABLISHED"


def test_simultaneous_open_has_no_scale_when_the_peer_has_none(peer4: Peer) -> None:
    peer4.connecting()
    peer4.inject("S", 0, options=PLAIN_OPTIONS)
    synack = peer4.expect("SA", 0, 1)
    assert "WScale" not in options_of(synack)


def test_must_42_a_listener_goes_on_listening_while_connections_come(peer4: Peer) -> None:
    peer4.connected()
    other = Peer(peer4.stack, 4, port=40001, isn=5)
    other.listener = peer4.listener
    assert state_of(other.connected()) == "ESTABLISHED"


def test_3_10_7_1_a_port_without_a_listener_resets_a_syn(peer: Peer) -> None:
    peer.inject("S", 0)
    reset = peer.expect("RA")
    assert (reset.seq, reset.ack) == (0, peer.isn + 1)


def test_3_10_7_1_the_reset_of_a_syn_counts_its_data(peer4: Peer) -> None:
    peer4.inject("S", 0, data=b"12345")
    assert peer4.expect("RA").ack == peer4.isn + 6


def test_3_10_7_1_the_reset_of_an_acknowledgement_has_its_number(peer: Peer) -> None:
    peer.inject("A", 7, 12345)
    reset = peer.expect("R")
    assert (reset.seq, reset.ack) == (12345, 0)


def test_3_10_7_1_a_segment_without_acknowledgement_is_reset_from_0(peer4: Peer) -> None:
    peer4.inject("", 7, data=b"abc", ack_field=12345)
    reset = peer4.expect("RA")
    assert (reset.seq, reset.ack) == (0, peer4.isn + 10)


def test_3_10_7_1_a_reset_to_no_connection_is_not_answered(peer: Peer) -> None:
    peer.inject("R", 0)
    peer.inject("RA", 0, 1)
    peer.expect_nothing(1000)


def test_3_10_7_2_listen_ignores_a_reset(peer: Peer) -> None:
    listener = peer.listen()
    peer.inject("R", 0)
    peer.inject("RA", 0, 1)
    peer.expect_nothing(1000)
    assert state_of(listener) == "LISTEN"


@pytest.mark.parametrize("flags", ["A", "SA", "FA", "PA"])
def test_3_10_7_2_listen_resets_any_acknowledgement(peer4: Peer, flags: str) -> None:
    peer4.listen()
    peer4.inject(flags, 0, 4711)
    reset = peer4.expect("R")
    assert (reset.seq, reset.ack) == (4711, 0)


@pytest.mark.parametrize("flags", ["", "F", "P", "U", "FPU"])
def test_3_10_7_2_listen_drops_what_has_no_syn_rst_ack(peer4: Peer, flags: str) -> None:
    peer4.listen()
    peer4.inject(flags, 0, data=b"x")
    peer4.expect_nothing(1000)


def test_3_10_7_2_data_on_a_syn_is_taken_or_asked_for_again(peer4: Peer) -> None:
    listener = peer4.listen()
    peer4.inject("S", 0, data=b"early")
    acked = (peer4.expect("SA", 0).ack - peer4.isn) % 2**32
    assert acked in (1, 6)
    peer4.inject("A", acked, 1, data=b"early"[acked - 1 :])
    assert listener.accept()[0].receive() == b"early"


@pytest.mark.parametrize(("flags", "number"), [("A", 0), ("A", 2), ("SA", 0), ("SA", 2), ("SA", 2**31)])
def test_3_10_7_3_syn_sent_resets_a_wrong_acknowledgement(peer4: Peer, flags: str, number: int) -> None:
    sock = peer4.connecting()
    peer4.inject(flags, 0, number)
    assert peer4.expect("R").seq == (peer4.stack_isn + number) % 2**32
    assert state_of(sock) == "SYN-SENT"


def test_3_10_7_3_syn_sent_is_refused_by_a_reset_that_acknowledges_its_syn(peer: Peer) -> None:
    sock = peer.connecting()
    peer.inject("RA", 0, 1)
    assert sock.ready & HUNG_UP
    assert sock.take_error() == errno.ECONNREFUSED
    peer.expect_nothing(5000)


@pytest.mark.parametrize(("flags", "number"), [("RA", 0), ("RA", 2), ("R", 1)])
def test_3_10_7_3_syn_sent_ignores_other_resets(peer4: Peer, flags: str, number: int) -> None:
    sock = peer4.connecting()
    peer4.inject(flags, 0, number, **({} if "A" in flags else {"ack_field": peer4.stack_isn + 1}))
    assert state_of(sock) == "SYN-SENT"
    peer4.expect_nothing()


@pytest.mark.parametrize("flags", ["", "F", "P"])
def test_3_10_7_3_syn_sent_drops_what_has_neither_syn_nor_rst(peer4: Peer, flags: str) -> None:
    sock = peer4.connecting()
    peer4.inject(flags, 0)
    assert state_of(sock) == "SYN-SENT"
    peer4.expect_nothing()


def test_3_10_7_3_a_wrong_syn_ack_teaches_no_options(peer4: Peer) -> None:
    sock = peer4.connecting()
    peer4.inject("SA", 0, 99, options=[("MSS", 100)])
    peer4.drain()
    peer4.inject("SA", 0, 1, options=PLAIN_OPTIONS)
    assert sock.get(SEGMENT_BYTES) == 1460


def test_a_syn_with_fin_does_not_establish_by_itself(peer4: Peer) -> None:
    listener = peer4.listen()
    peer4.inject("SF", 0)
    peer4.drain()
    assert not listener.ready & READABLE


def test_a_syn_is_retransmitted_and_then_given_up(peer: Peer) -> None:
    sock = peer.connecting()
    peer.expect("S", 0, within_ms=7000)
    peer.drain(200_000)
    assert sock.ready & HUNG_UP
    assert sock.take_error() == errno.ETIMEDOUT


def test_a_syn_ack_is_retransmitted_and_then_given_up(peer: Peer) -> None:
    listener = peer.listen()
    peer.inject("S", 0)
    peer.expect("SA", 0, 1)
    peer.expect("SA", 0, 1, within_ms=7000)
    peer.drain(200_000)
    peer.inject("A", 1, 1)
    peer.expect_reset(1)
    assert not listener.ready & READABLE


def test_a_lost_syn_ack_is_sent_again_on_a_second_syn(peer: Peer) -> None:
    peer.into("SYN-RECEIVED")
    peer.inject("S", 0, options=SYN_OPTIONS)
    peer.expect("SA", 0, 1)


@pytest.mark.parametrize("number", [0, 2, 2**31])
def test_3_10_7_4_syn_received_resets_a_wrong_acknowledgement(peer4: Peer, number: int) -> None:
    peer4.into("SYN-RECEIVED")
    peer4.inject("A", 1, number)
    assert peer4.expect("R").seq == (peer4.stack_isn + number) % 2**32
    peer4.inject("A", 1, 1)
    assert peer4.listener is not None
    assert peer4.listener.ready & READABLE


def test_3_10_7_4_syn_received_of_a_listener_ends_by_a_reset_unheard(peer: Peer) -> None:
    peer.into("SYN-RECEIVED")
    peer.inject("R", 1)
    assert peer.listener is not None
    assert not peer.listener.ready & READABLE
    peer.inject("A", 1, 1)
    peer.expect_reset(1)


def test_3_10_7_4_syn_received_by_simultaneous_open_is_refused_by_a_reset(peer4: Peer) -> None:
    sock = peer4.connecting()
    peer4.inject("S", 0)
    peer4.expect("SA")
    peer4.inject("R", 1)
    assert sock.take_error() == errno.ECONNREFUSED


def test_data_with_the_last_segment_of_a_handshake_is_heard(peer: Peer) -> None:
    listener = peer.listen()
    peer.inject("S", 0)
    peer.expect("SA", 0, 1)
    peer.inject("PA", data=b"first")
    sock, _ = listener.accept()
    assert sock.receive() == b"first"


def test_fin_with_the_last_segment_of_a_handshake_is_heard(peer4: Peer) -> None:
    listener = peer4.listen()
    peer4.inject("S", 0)
    peer4.expect("SA", 0, 1)
    peer4.inject("FA", data=b"all")
    sock, _ = listener.accept()
    assert (sock.receive(), sock.receive()) == (b"all", b"")
    assert state_of(sock) == "CLOSE-WAIT"


@pytest.mark.parametrize(("mss", "segment"), [(536, 536), (1000, 1000), (1460, 1460), (9000, 1460), (0, 536)])
def test_must_16_segments_are_no_larger_than_the_peers_mss(peer4: Peer, mss: int, segment: int) -> None:
    sock = peer4.connected(options=[("MSS", mss)])
    sock.send(bytes(5000))
    peer4.expect("A", 1, 1, size=segment)


def test_must_15_without_an_mss_option_it_is_536_or_1220(peer: Peer) -> None:
    sock = peer.connected(options=())
    sock.send(bytes(5000))
    peer.expect("A", 1, 1, size={4: 536, 6: 1220}[peer.family])


def test_must_15_holds_for_an_active_open(peer: Peer) -> None:
    sock = peer.connecting()
    peer.inject("SA", 0, 1)
    peer.expect("A")
    sock.send(bytes(5000))
    peer.expect("A", 1, 1, size={4: 536, 6: 1220}[peer.family])


def test_a_tiny_mss_does_not_make_tiny_segments(peer4: Peer) -> None:
    sock = peer4.connected(options=[("MSS", 1)])
    sock.send(bytes(500))
    assert len(bytes(peer4.expect("A", 1, 1).payload)) >= 48


def test_3_7_1_an_mss_option_outside_a_syn_is_ignored(peer4: Peer) -> None:
    sock = peer4.connected()
    peer4.inject("A", options=[("MSS", 200)])
    assert sock.get(SEGMENT_BYTES) == 1460


def test_rfc_7323_2_2_a_syn_ack_has_a_scale_only_if_the_syn_had(peer: Peer) -> None:
    peer.listen()
    peer.inject("S", 0, options=PLAIN_OPTIONS)
    assert "WScale" not in options_of(peer.expect("SA"))


def test_rfc_7323_2_2_a_syn_ack_answers_a_scale(peer: Peer) -> None:
    peer.listen()
    peer.inject("S", 0, options=SYN_OPTIONS)
    assert options_of(peer.expect("SA"))["WScale"] == 7


def test_rfc_2018_2_sack_permitted_is_offered_and_answered(peer: Peer) -> None:
    peer.listen()
    peer.inject("S", 0, options=SYN_OPTIONS)
    assert "SAckOK" in options_of(peer.expect("SA"))


def test_rfc_2018_2_sack_permitted_is_not_sent_unasked(peer4: Peer) -> None:
    peer4.listen()
    peer4.inject("S", 0, options=PLAIN_OPTIONS)
    assert "SAckOK" not in options_of(peer4.expect("SA"))


@pytest.mark.parametrize(
    ("name", "raw"),
    [
        ("kind without length", bytes([2])),
        ("length 0", bytes([254, 0, 1, 1])),
        ("length 1", bytes([254, 1, 1, 1])),
        ("length beyond the header", bytes([254, 40, 1, 1])),
        ("MSS of length 3", bytes([2, 3, 5, 1])),
        ("MSS cut off", bytes([1, 1, 2, 4])),
        ("scale of length 4", bytes([3, 4, 5, 1])),
        ("SACK permitted of length 3", bytes([4, 3, 1, 1])),
        ("only NOPs", bytes([1] * 40)),
        ("only ends", bytes([0] * 40)),
    ],
)
def test_must_7_malformed_options_end_no_handshake(peer4: Peer, name: str, raw: bytes) -> None:
    raw = raw.ljust(-(-len(raw) // 4) * 4, b"\1" if name == "kind without length" else b"\0")
    peer4.listen()
    syn = bytearray(bytes(peer4.segment("S", 0, dataofs=5 + len(raw) // 4, data=raw)))
    peer4.stack.input(bytes(syn))
    peer4.seq = 1
    peer4.expect("SA", 0, 1)


def test_must_6_unknown_options_are_skipped(peer4: Peer) -> None:
    sock = peer4.connected(options=[(253, b"\xab\xcd"), ("MSS", 700)])
    assert sock.get(SEGMENT_BYTES) == 700


def test_must_4_options_may_end_anywhere(peer4: Peer) -> None:
    sock = peer4.connected(options=[("NOP", None), ("MSS", 700), ("EOL", None), ("MSS", 800)])
    assert sock.get(SEGMENT_BYTES) == 700


def test_must_5_options_of_a_data_segment_are_read_and_skipped(peer4: Peer) -> None:
    sock = peer4.connected()
    peer4.inject("A", data=b"x", options=[("NOP", None), (253, b"abc"), ("NOP", None)])
    assert sock.receive() == b"x"


@pytest.mark.parametrize("where", ["remote address", "remote port", "local port"])
def test_shld_1_initial_numbers_differ_by_connection(stack_of: StackMaker, where: str) -> None:
    """RFC 6528: the number is a keyed hash of both ends, plus a clock."""
    stack = stack_of(STACK_IPS[4], start_us=1_000_000)
    numbers: list[int] = []
    for place in range(8):
        peer = Peer(stack, 4, port=40000 + place * (where == "remote port"))
        local_port = 7000 + place * (where == "local port")
        if where == "remote address":
            peer.ip = f"10.1.0.{10 + place}"
        sock = stack.open(0)
        sock.set(REUSE_ADDRESS, 1)
        sock.bind(STACK_IPS[4], local_port).connect(peer.ip, peer.port)
        numbers.append(peer.expect("S").seq)
    steps = {(after - before) % 2**32 for before, after in pairwise(numbers)}
    assert len(steps) == 7
    assert max(steps) > 2**20


def test_rfc_6528_3_the_number_of_one_connection_grows_with_the_clock(stack_of: StackMaker) -> None:
    stack = stack_of(STACK_IPS[4], start_us=1_000_000)
    numbers: list[int] = []
    for _ in range(3):
        peer = Peer(stack, 4)
        peer.connecting()
        numbers.append(peer.stack_isn)
        peer.inject("RA", 0, 1)
        stack.advance_ms(1000)
    grown = [(after - before) % 2**32 for before, after in pairwise(numbers)]
    assert all(200_000 <= each <= 300_000 for each in grown), grown


def test_rfc_6528_3_the_key_is_the_hosts_secret(stack_of: StackMaker) -> None:
    numbers: set[int] = set()
    for seed in range(5):
        peer = Peer(stack_of(STACK_IPS[4], seed=seed, start_us=1_000_000), 4)
        peer.connecting()
        numbers.add(peer.stack_isn)
    assert len(numbers) == 5


@pytest.mark.parametrize("to", ["224.0.0.1", "255.255.255.255", "ff02::1"])
def test_must_57_a_syn_to_a_group_is_ignored(stack_of: StackMaker, to: str) -> None:
    family = 6 if ":" in to else 4
    peer = Peer(stack_of(STACK_IPS[family]), family)
    peer.stack.open(0, family).bind({4: ANY_IPV4, 6: "::"}[family], 7000).listen()
    peer.stack_ip = to
    peer.inject("S", 0)
    peer.expect_nothing(100)


@pytest.mark.parametrize("source", ["224.0.0.5", "255.255.255.255", "ff02::5"])
def test_must_63_a_syn_from_a_group_is_ignored(stack_of: StackMaker, source: str) -> None:
    family = 6 if ":" in source else 4
    peer = Peer(stack_of(STACK_IPS[family]), family)
    peer.listen()
    peer.ip = source
    peer.inject("S", 0)
    peer.expect_nothing(100)


def test_3_4_1_a_connection_is_told_by_both_addresses_and_both_ports(peer: Peer) -> None:
    sock = peer.connected()
    for change in ({"port": 40001}, {"stack_port": 7001}):
        other = Peer(peer.stack, peer.family, isn=peer.isn)
        other.stack_isn, other.seq, other.ack = peer.stack_isn, peer.seq, peer.ack
        for name, value in change.items():
            setattr(other, name, value)
        other.inject("PA", data=b"foreign")
        other.expect_reset()
    with pytest.raises(StackError):
        sock.receive()


def test_the_backlog_bounds_connections_that_wait(peer4: Peer) -> None:
    """To one more than it says, as with the kernel."""
    peer4.listen(backlog=1)
    answers: list[bool] = []
    for place in range(4):
        other = Peer(peer4.stack, 4, port=41000 + place)
        other.inject("S", 0)
        answers.append(bool(other.stack.sent))
        if other.stack.sent:
            other.expect("SA", 0, 1)
            other.inject("A")
    assert answers == [True, True, False, False]


def test_peers_that_connect_at_once_are_all_served_however_few_may_wait(peer4: Peer) -> None:
    listener = peer4.listen(backlog=0)
    others = [Peer(peer4.stack, 4, port=41000 + place) for place in range(8)]
    for other in others:
        other.inject("S", 0, options=SYN_OPTIONS)
        other.expect("SA", 0, 1)
    for other in others:
        other.inject("PA", data=b"served")
        other.expect("A", 1, 7, within_ms=1)
    assert [listener.accept()[0].receive() for _ in others] == [b"served"] * len(others)


@pytest.mark.parametrize(
    ("words", "digest"), [((), 0x726FDB47DD0E0E31), ((0x0706050403020100,), 0x93F5F5799A932462)]
)
def test_rfc_6528_3_the_hash_is_siphash(peer4: Peer, words: tuple[int, ...], digest: int) -> None:
    """Vectors of its authors, of no byte and of eight."""
    hashed = peer4.stack.library.stack_keyed_hash
    hashed.restype = c_uint64
    key = (c_uint64 * 2)(0x0706050403020100, 0x0F0E0D0C0B0A0908)
    assert hashed(key, (c_uint64 * len(words))(*words), c_size_t(len(words))) == digest
