# SPDX-License-Identifier: Apache-2.0
"""A receive buffer that is smaller than a message.

Of a stream: several reads of one size, all but the last full, and then the program writes, or the socket has
no more (the next read would block): only so the record shows where a message ends. What ends where the socket
has no more has to be equally long for the most part: bulk data is cut anywhere. Of datagrams Windows says it
(WSAEMSGSIZE); on Linux the call of a datagram that was cut looks like any other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import median
from typing import NamedTuple

from timed_calls import DATAGRAM, STREAM, WOULD_BLOCK, Timed, Trace

from delays.finding import MOST, NS_PER_MS, REPEATS_MIN, Finding, place_of

READS_MIN = 3
"""A head and a body are two."""
CUT = "WSAEMSGSIZE"


class Message(NamedTuple):
    """Reads of a message, and whether the program wrote behind it; else the socket had no more."""

    reads: Sequence[Timed]
    is_answered: bool

    @property
    def size_bytes(self) -> int:
        """What was read."""
        return sum(read.result for read in self.reads)

    @property
    def in_pieces(self) -> bool:
        """Whether all reads but the last were full and asked for the same."""
        rooms = {read.asked_bytes for read in self.reads}
        full = all(read.result == read.asked_bytes for read in self.reads[:-1])
        return len(self.reads) >= READS_MIN and len(rooms) == 1 and full

    @property
    def pieces_ns(self) -> int:
        """Time from the first read's end to the last one's."""
        return self.reads[-1].end_ns - self.reads[0].end_ns


def look(trace: Trace) -> Iterator[Finding]:
    """Yield a finding for each socket."""
    for socket, calls in trace.of_sockets().items():
        kind = trace.sockets[socket].kind
        if kind == STREAM:
            yield from _of_stream(place_of(trace, socket), list(_messages(calls)))
        elif kind == DATAGRAM and (cut := [call for call in calls if call.errno == CUT]):
            received = [
                call for call in calls if call.call == "receive" and (call.is_transfer or call in cut)
            ]
            room_bytes = max(call.asked_bytes for call in cut)
            yield Finding(
                "a receive buffer is smaller than a message",
                place_of(trace, socket),
                f"{len(cut)} of {len(received)} datagrams cut, {CUT}",
                0,
                f"no time: what did not fit into {room_bytes} bytes is lost",
                [call.line for call in cut],
                "receive with room for the largest datagram, 65,507 bytes at most",
            )


def _of_stream(where: str, messages: Sequence[Message]) -> Iterator[Finding]:
    pieces = [message for message in messages if message.in_pieces]
    cost_ns = sum(message.pieces_ns for message in pieces)
    if len(pieces) < max(REPEATS_MIN, MOST * len(messages)):
        return
    (size_bytes, same), *_ = Counter(message.size_bytes for message in pieces).most_common(1)
    if same < MOST * len(pieces) and sum(message.is_answered for message in pieces) < MOST * len(pieces):
        return
    reads = median(len(message.reads) for message in pieces)
    room_bytes = pieces[0].reads[0].asked_bytes
    yield Finding(
        "a receive buffer is smaller than a message",
        where,
        f"{len(pieces)} of {len(messages)} messages, {reads:g} reads of {room_bytes} bytes each (median); "
        f"most often {size_bytes} bytes",
        cost_ns,
        f"from the first read of a message to its last, {cost_ns / len(pieces) / NS_PER_MS:.3f} ms each",
        [message.reads[0].line for message in pieces],
        f"read with room for {size_bytes} bytes and more",
    )


def _messages(calls: Sequence[Timed]) -> Iterator[Message]:
    reads: list[Timed] = []
    for call in calls:
        if call.call == "receive" and call.is_transfer:
            if reads and reads[-1].result < reads[-1].asked_bytes:
                reads = []  # where that one ended the record does not show
            reads.append(call)
        elif reads and (call.call == "send" or call.errno in WOULD_BLOCK):
            yield Message(reads, call.call == "send")
            reads = []
