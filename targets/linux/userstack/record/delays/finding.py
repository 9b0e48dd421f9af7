# SPDX-License-Identifier: Apache-2.0
"""A fault that a record shows, and from when on it is named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from timed_calls import DATAGRAM, Socket, Timed, Trace

NS_PER_MS = 1_000_000
REPEATS_MIN = 8
"""Times that a fault has to be seen: one stall of a busy machine is none."""
MOST = 0.75
"""Part of the cases that have to show it."""
SHARE_MIN = 0.01
"""Of the span of all transfers; what costs less is not named."""


@dataclass(frozen=True)
class Finding:
    """A fault.

    Attributes:
        fault: Its name.
        where: Socket and peer, or thread.
        how_often: A count with what was counted.
        cost_ns: Time that it cost, by `reason`; 0: it cost data, not time.
        reason: How the amount was got.
        lines: Of the record, where it was seen.
        remedy: What to change.
    """

    fault: str
    where: str
    how_often: str
    cost_ns: int
    reason: str
    lines: Sequence[int]
    remedy: str


def place_of(trace: Trace, socket: Socket) -> str:
    """Return a socket's number, kind and peer, and its process where there are several."""
    facts = trace.sockets[socket]
    kind = "UDP" if facts.kind == DATAGRAM else "TCP"
    peer = f" with {facts.peer}" if facts.peer else ""
    several = len({process for process, _ in trace.sockets}) > 1
    return f"{'process ' + str(socket[0]) + ', ' if several else ''}socket {socket[1]}, {kind}{peer}"


def thread_of(call: Timed) -> str:
    """Return the name of a call's thread."""
    return f"thread {call.thread}"


def is_worth(trace: Trace, cost_ns: int) -> bool:
    """Say whether a cost is enough of the span to be named."""
    return cost_ns >= SHARE_MIN * trace.span_ns and cost_ns > 0
