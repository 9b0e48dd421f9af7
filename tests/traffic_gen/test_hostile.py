# SPDX-License-Identifier: Apache-2.0
"""Hostile input is counted, and never spoils the numbers of a stream. Run under sanitizers.

Over real sockets, a case a transport; every count against a model of its own: fuzz_receive.c.
"""

from __future__ import annotations

import random
import socket
import time
from collections.abc import Callable

import pytest

from resources.daq_replay.plan_file import BASE_PORT
from tests.traffic_gen import wire
from tests.traffic_gen.lab import (
    CONSUMER,
    NONCE,
    Json,
    Lab,
    Plan,
    SocketMaker,
    Stream,
    is_put_out,
    pattern_text,
    producer_address,
    streams_by_id,
)

pytestmark = [pytest.mark.simulated, pytest.mark.timed]

TCP = Stream(10, "tcp", 1000, 20_000)
UDP = Stream(12, "udp", 200, 20_000)
VICTIM = producer_address(1)

Attack = Callable[[SocketMaker], None]


def _run_attacked(lab: Lab, attack: Attack) -> Json:
    """Replay two streams, attack while they are counted, and check that nothing of it shows in them."""
    recv, send = lab.begin_replay(Plan(pattern_text(TCP, UDP), duration_ms=3000, grace_ms=1500))
    recv.wait_line(lambda line: line.get("phase") == "counting")
    with lab.sockets() as sockets:
        attack(sockets)
        send.result()
        result = recv.result()
    assert result["valid"]
    for stream in streams_by_id(result).values():
        assert stream["received"] == stream["expected"] == 150
        assert stream["reordered"] == stream["invalid_samples"] == 0
        assert stream["received_minus_scheduled"]["n"] == 150
        assert stream["received_minus_scheduled"]["min_ns"] > 0
    return result


def _send_udp(sockets: SocketMaker, source: str, *datagrams: bytes) -> None:
    sock = sockets.open(socket.SOCK_DGRAM, source)
    for datagram in datagrams:
        sock.sendto(datagram, (CONSUMER, BASE_PORT + UDP.id))


def test_wrong_hellos(checked_lab: Lab) -> None:
    good = wire.hello(NONCE, TCP.id, TCP.size_bytes)
    bad = [
        wire.hello(NONCE, TCP.id, TCP.size_bytes, magic=b"BWT2"),
        wire.hello(NONCE, TCP.id, TCP.size_bytes, version=3),
        wire.hello(NONCE, TCP.id + 1, TCP.size_bytes),
        wire.hello(NONCE, TCP.id, TCP.size_bytes + 1),
        good[:-1] + b"\x01",
        b"GET / HTTP/1.1\r\nHost: consumer\r\n\r\n",
        random.Random(1).randbytes(4096),
    ]

    def attack(sockets: SocketMaker) -> None:
        for hello in bad:
            sock = sockets.connect(VICTIM, TCP.id)
            sock.sendall(hello)
            assert is_put_out(sock)
        sock = sockets.connect(VICTIM, TCP.id)
        sock.sendall(good[:10])
        sock.shutdown(socket.SHUT_WR)
        assert is_put_out(sock)

    hostile = _run_attacked(checked_lab, attack)["hostile"]
    assert hostile == {"foreign_connections": 0, "bad_hello": len(bad) + 1, "bad_check": 0, "truncated": 0,
                       "oversized": 0, "stale": 0}  # fmt: skip


def test_damaged_datagrams(checked_lab: Lab) -> None:
    whole = wire.message(NONCE, UDP.id, 120, 0, UDP.size_bytes)

    def attack(sockets: SocketMaker) -> None:
        _send_udp(sockets, VICTIM, b"", whole[:1], whole[:9], whole[:-1], whole + b"x", whole * 300)
        _send_udp(sockets, VICTIM, whole[:8] + bytes([whole[8] ^ 1]) + whole[9:])

    hostile = _run_attacked(checked_lab, attack)["hostile"]
    assert (hostile["truncated"], hostile["oversized"], hostile["bad_check"]) == (4, 2, 1)


def test_replayed_and_impossible_sequences(checked_lab: Lab) -> None:
    """Slot 30 has come by then: a replay of it is a duplicate. Slots outside the plan are stale."""

    def attack(sockets: SocketMaker) -> None:
        replayed = wire.message(NONCE, UDP.id, 30, 0, UDP.size_bytes)
        outside = [wire.message(NONCE, UDP.id, k, 0, UDP.size_bytes) for k in (175, 10**6, 2**32 - 1)]
        time.sleep(0.5)
        _send_udp(sockets, VICTIM, *[replayed] * 5, *outside)

    result = _run_attacked(checked_lab, attack)
    assert streams_by_id(result)[UDP.id]["duplicates"] == 5
    assert result["hostile"]["stale"] == 3
