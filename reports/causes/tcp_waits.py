# SPDX-License-Identifier: Apache-2.0
"""What TCP waited for before it sent what a program had written: by the kernel's own trace points.

`tcp_probe` says at each segment that comes what was sent and acknowledged before it, the congestion window
and the peer's window. Bytes that were written and not sent waited since their writing, for what binds there.
A segment that is sent again (`tcp_retransmit_skb`) waited since its first byte was written: until a timer
expired, unless a segment that came at that moment asked for it. One that had come by then waited for nothing.

Source: Linux, include/trace/events/tcp.h, net/ipv4/tcp_input.c (`tcp_rcv_established`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reports.causes.suspects import Activity, Times, merged, stretches, without
from reports.timeline.kernel_recording import Recording

PROBE, AGAIN = "tcp/tcp_probe", "tcp/tcp_retransmit_skb"
AT_ONCE_NS = 200_000
"""A segment that comes, and what it asks to be sent again."""
LEAST_NS = 20_000
"""Shorter waits are the way from a program's write to the kernel's."""
NAGLE, SLOW_START = "Nagle's algorithm", "slow start"
CONGESTION, RECEIVER = "congestion window", "the receiver's window"
TIMER, ASKED = "a retransmission timer", "a segment that was sent again"
NEVER = 1 << 62
_WRAP = 1 << 32


@dataclass(frozen=True, eq=False)
class Connection:
    """What a program sends by one connection.

    Attributes:
        port: At the other end.
        nagle: Small segments wait for an acknowledgement.
        congestion: The control of its window; empty: not known.
        written_ns: When the program wrote, on a timeline, sorted, shape (k,).
        written_bytes: What it had written then, that write included, shape (k,).
        came_ns: When that came to the other end's kernel, NEVER where nobody knows, shape (k,).
    """

    port: int
    nagle: bool
    congestion: str
    written_ns: Times
    written_bytes: Times
    came_ns: Times


def tcp_waits(
    name: str,
    place: str,
    recording: Recording,
    connection: Connection,
    placed: Callable[[Times], Times],
) -> list[Activity]:
    """Return what a connection waited for, on the timeline of its program's writes.

    Args:
        name: Of the connection: that of each activity begins with it.
        place: Where they are said to be, the `node` of each.
        recording: Of the sender's kernel.
        connection: What the program wrote.
        placed: Brings times of the trace to the timeline.
    """
    probes = _rows(recording, PROBE, connection.port)
    if not len(probes) or not len(connection.written_ns):
        return []
    at_ns = placed(probes["time_ns"].astype(np.int64))
    first = int(probes["snd_una"][0])
    sent, acknowledged = (_unwrapped(probes[each], first) for each in ("snd_nxt", "snd_una"))
    found: dict[str, list[tuple[int, int]]] = defaultdict(list)
    lost: dict[str, list[tuple[int, int]]] = defaultdict(list)
    waits = _unsent(connection, at_ns, sent)
    for row in np.flatnonzero(waits):
        binding = _binding(connection, probes[row], int(sent[row] - acknowledged[row]))
        found[binding].append((int(waits[row]), int(at_ns[row])))
    sent_again: Times = placed(_rows(recording, AGAIN, connection.port)["time_ns"].astype(np.int64))
    rows = np.searchsorted(at_ns, sent_again)
    for row, again_ns in zip(rows.tolist(), sent_again.tolist(), strict=True):
        # What comes next says what nobody has acknowledged until then.
        una = int(acknowledged[min(row, len(acknowledged) - 1)])
        write = int(np.searchsorted(connection.written_bytes, una, side="right"))
        if write == len(connection.written_ns) or connection.came_ns[write] < again_ns:
            continue  # it was there, and what acknowledged it came late, or not at all
        if connection.written_ns[write] < again_ns:
            is_asked = row > 0 and again_ns - at_ns[row - 1] <= AT_ONCE_NS
            lost[ASKED if is_asked else TIMER].append((int(connection.written_ns[write]), again_ns))
    again = [Activity(f"{name}: {what}", place, *merged(spans)) for what, spans in sorted(lost.items())]
    others = [Activity(f"{name}: {what}", place, *merged(spans)) for what, spans in sorted(found.items())]
    # Behind what was lost all else waits, and for that reason.
    return again + [without(each, *stretches(again)) for each in others]


def has_probes(recording: Recording, port: int) -> bool:
    """Tell whether the kernel said something of the connection to a port."""
    return bool(len(_rows(recording, PROBE, port)))


def _rows(recording: Recording, event: str, port: int) -> NDArray[Any]:
    """Return events of the connection to a port, of all processors, in their order."""
    found = [
        rows[rows["dport"] == port]
        for ring in recording.rings.values()
        if (rows := ring.events.get(event)) is not None and len(rows)
    ]
    if not found:
        return np.empty(0, [("time_ns", "i8")])
    every = np.concatenate(found)
    return every[np.argsort(every["time_ns"], kind="stable")]


def _unwrapped(numbers: NDArray[Any], first: int) -> Times:
    """Return sequence numbers as bytes since the first one, shape (n,)."""
    steps = np.diff(numbers.astype(np.int64), prepend=first)
    return np.cumsum((steps + _WRAP // 2) % _WRAP - _WRAP // 2)


def _unsent(connection: Connection, at_ns: Times, sent: Times) -> Times:
    """Return since when the first byte not sent had waited at each segment that came; 0: none did."""
    had = np.searchsorted(connection.written_ns, at_ns - LEAST_NS, side="right")
    write = np.searchsorted(connection.written_bytes, sent, side="right")
    is_waiting = write < had
    return np.where(is_waiting, connection.written_ns[np.minimum(write, len(connection.written_ns) - 1)], 0)


def _binding(connection: Connection, probe: Any, in_flight: int) -> str:
    """Return what keeps bytes from being sent while a segment comes."""
    if int(probe["snd_wnd"]) <= in_flight:
        return RECEIVER
    if connection.nagle:
        return NAGLE
    of = f" of {connection.congestion}" if connection.congestion else ""
    # BBR knows no threshold: it stays where it began.
    is_slow = int(probe["snd_cwnd"]) < int(probe["ssthresh"]) and not connection.congestion.startswith("bbr")
    return (SLOW_START if is_slow else CONGESTION) + of
