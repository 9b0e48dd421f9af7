# SPDX-License-Identifier: Apache-2.0
"""What TCP waited for, by trace points of a connection that is written by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from reports.causes.tcp_waits import NEVER, Connection, has_probes, tcp_waits
from reports.timeline.kernel_recording import Recording
from reports.timeline.kernel_ring import GAP, CpuRing

PORT, MS, SIZE = 9652, 1_000_000, 10
FIRST = (1 << 32) - 15
"""Sequence numbers wrap within the second message."""
WIDE, SSTHRESH = 65_535, 0x7FFFFFFF
Probe = tuple[int, int, int, int, int, int]
"""Time in ms, bytes acknowledged before, bytes sent before, window, threshold, the peer's window."""


def recording(probes: list[Probe], again_ms: Sequence[float] = (), port: int = PORT) -> Recording:
    head = [("time_ns", "i8"), ("place", "i8"), ("dport", "u2")]
    words = [(each, "u4") for each in ("snd_una", "snd_nxt", "snd_cwnd", "ssthresh", "snd_wnd")]
    rows = [
        (at * MS, 0, port, (FIRST + una) % (1 << 32), (FIRST + nxt) % (1 << 32), *window)
        for at, una, nxt, *window in probes
    ]
    events: dict[str, Any] = {
        "tcp/tcp_probe": np.array(rows, [*head, *words]),
        "tcp/tcp_retransmit_skb": np.array([(round(at * MS), 0, port) for at in again_ms], head),
    }
    return Recording({0: CpuRing(0, events, np.empty(0, GAP), ())}, {})


def connection(
    writes_ms: list[int], *, nagle: bool = False, congestion: str = "cubic", came_ms: Sequence[int] = ()
) -> Connection:
    """Return one on which a message of SIZE bytes is written at each of these times."""
    at = np.array(writes_ms, np.int64) * MS
    came = np.array(came_ms, np.int64) * MS if came_ms else np.full(len(at), NEVER)
    return Connection(PORT, nagle, congestion, at, SIZE * np.arange(1, len(at) + 1), came)


def waits(found: Recording, of: Connection, shift_ns: int = 0) -> dict[str, list[tuple[float, float]]]:
    """Return who waited from when until when, in ms."""
    each = tcp_waits("TCP", "hop 1", found, of, lambda at_ns: at_ns + shift_ns)
    return {
        one.name: [(a / MS, b / MS) for a, b in zip(one.begin_ns.tolist(), one.end_ns.tolist(), strict=True)]
        for one in each
    }


def test_a_connection_that_sends_at_once_waits_for_nothing() -> None:
    found = recording([(2, 0, 10, 10, SSTHRESH, WIDE), (12, 10, 20, 10, SSTHRESH, WIDE)])
    assert waits(found, connection([1, 11])) == {}


@pytest.mark.parametrize(
    ("nagle", "congestion", "window", "name"),
    [
        (True, "cubic", (10, SSTHRESH, WIDE), "Nagle's algorithm"),
        (False, "cubic", (1, SSTHRESH, WIDE), "slow start of cubic"),
        (False, "cubic", (10, 5, WIDE), "congestion window of cubic"),
        (False, "bbr", (4, SSTHRESH, WIDE), "congestion window of bbr"),
        (False, "", (10, 5, WIDE), "congestion window"),
        (False, "cubic", (10, 5, 10), "the receiver's window"),
    ],
)
def test_what_was_written_and_not_sent_waits_for_what_binds(
    nagle: bool, congestion: str, window: tuple[int, int, int], name: str
) -> None:
    found = recording([(9, 0, 10, *window), (12, 10, 30, *window)])
    assert waits(found, connection([1, 4, 6], nagle=nagle, congestion=congestion)) == {
        f"TCP: {name}": [(4, 9)]
    }


def test_places_are_those_of_the_timeline() -> None:
    found = recording([(9, 0, 10, 1, SSTHRESH, WIDE)])
    assert waits(found, connection([3, 5]), shift_ns=2 * MS) == {"TCP: slow start of cubic": [(5, 11)]}


def test_what_is_lost_waits_for_the_timer_and_all_behind_it_for_that() -> None:
    probes = [(2, 0, 10, 10, SSTHRESH, WIDE), (220, 10, 20, 1, 5, WIDE)]
    found = recording(probes, again_ms=[215])
    # The second message is lost; the third one finds no room in the window until it has come.
    assert waits(found, connection([1, 5, 10])) == {
        "TCP: a retransmission timer": [(5, 215)],
        "TCP: slow start of cubic": [(215, 220)],
    }


def test_what_had_come_before_it_was_sent_again_waited_for_nothing() -> None:
    found = recording([(2, 0, 10, 10, SSTHRESH, WIDE), (220, 10, 20, 10, SSTHRESH, WIDE)], again_ms=[12])
    assert waits(found, connection([1, 5], came_ms=[2, 6])) == {}
    assert waits(found, connection([1, 5], came_ms=[2, 13])) == {"TCP: a retransmission timer": [(5, 12)]}


def test_a_segment_that_the_receiver_asks_for_waits_for_no_timer() -> None:
    probes = [(2, 0, 10, 10, 5, WIDE), (12, 10, 30, 10, 5, WIDE), (14, 10, 30, 10, 5, WIDE)]
    found = recording(probes, again_ms=[12.1])
    assert waits(found, connection([1, 5, 11])) == {"TCP: a segment that was sent again": [(5, 12.1)]}


def test_another_connection_says_nothing() -> None:
    found = recording([(9, 0, 10, 1, SSTHRESH, WIDE)], port=PORT + 1)
    assert not has_probes(found, PORT)
    assert waits(found, connection([1, 4])) == {}
