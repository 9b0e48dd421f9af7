# SPDX-License-Identifier: Apache-2.0
"""Connections of a capture put together again: the place of each data segment in the stream of its bytes.

Sequence numbers count on from the SYN's and begin anew at 2^32: a place is the one next to the highest so
far. What was seen first counts; the byte of a keep-alive, or of a probe into a window of zero, which its
receiver drops, only where nothing else brings it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from reports.errors import ReportError
from reports.paths.pcap import Integers
from reports.paths.tcp_segments import (
    Flags,
    TcpSegments,
    flow_name,
    read_tcp_segments,
    reversed_flow,
)

NONE = -1
WINDOW_MAX_BYTES = 1 << 30
"""Of TCP (RFC 7323, 2.3): what lies further off belongs to no window of this connection."""
_TURN = 1 << 32


@dataclass(frozen=True, eq=False)
class TcpStream:
    """One direction of a connection; segments with data alone, in the order in which they were seen.

    Attributes:
        name: `10.0.0.1:5000 > 10.0.0.2:5001`; of a later connection of the same ends with ` (2)`.
        time_ns: When each was seen, shape (n,).
        first_byte, last_byte: Places in the stream from 0, shape (n,); NONE: of no byte of it (a keep-alive
            before the first one; a segment of an earlier connection).
        duplicate_bytes: Of each, that had been seen before, shape (n,).
        is_late: Brings bytes below the highest so far for the first time, shape (n,): it was overtaken, or
            lost before the capture and sent again.
        is_spare: A keep-alive or a probe into a window of zero, shape (n,).
        is_different: Has other bytes than the stream, shape (n,).
        content: The stream; 0 where bytes are missing.
        missing: Begin and end of what nobody has brought, shape (m, 2).
        edges: Where segments begin or end, shape (e + 1,), in rising order.
        carrier: Which segment brought what lies between two edges, shape (e,); NONE.
    """

    name: str
    time_ns: Integers
    first_byte: Integers
    last_byte: Integers
    duplicate_bytes: Integers
    is_late: Flags
    is_spare: Flags
    is_different: Flags
    content: bytearray
    missing: Integers
    edges: Integers
    carrier: Integers

    @property
    def is_retransmission(self) -> Flags:
        """Return which segments bring bytes again, shape (n,)."""
        return self.duplicate_bytes > 0

    def missing_bytes(self, begin: int, end: int) -> int:
        """Return how many bytes of a part of the stream are missing; what lies beyond its end is."""
        overlap = np.minimum(self.missing[:, 1], end) - np.maximum(self.missing[:, 0], begin)
        return int(overlap[overlap > 0].sum()) + max(0, end - max(begin, len(self.content)))

    def carriers(self, begin: int, end: int) -> Integers:
        """Return which segments have brought a part of the stream, each once or more often."""
        if end <= begin or len(self.edges) == 0:
            return self.carrier[:0]
        low = max(0, int(np.searchsorted(self.edges, begin, "right")) - 1)
        found = self.carrier[low : int(np.searchsorted(self.edges, end, "left"))]
        return found[found != NONE]


def read_tcp_streams(
    path: Path, source: str = "", source_port: int = 0, destination: str = "", destination_port: int = 0
) -> tuple[TcpStream, ...]:
    """Return the streams with data of these ends, in the order of their first SYN; what is empty or 0 is any.

    Raises:
        ReportError: Not a pcap file of Ethernet frames; frames that were not kept whole, or are parts of IP
            datagrams; the beginning of a connection is not in the capture, so that no place is known.
    """
    every = read_tcp_segments(path)
    try:
        keep = every.of(source, source_port, destination, destination_port)
    except ReportError as error:
        raise ReportError(f"{path.name}: {error}") from None
    flow = np.ascontiguousarray(every.flow)
    flows, number = np.unique(flow.view(f"V{flow.shape[1]}")[:, 0], return_inverse=True)
    number_of = {name: which for which, name in enumerate(flows.tolist())}
    begun: list[tuple[int, TcpStream]] = []
    for name, which in number_of.items():
        places = np.flatnonzero((number == which) & keep)
        back = np.flatnonzero((number == number_of.get(reversed_flow(name), NONE)) & every.grants)
        begun += _connections(path.name, every, name, places, back)
    return tuple(stream for _, stream in sorted(begun, key=lambda each: each[0]))


def _connections(
    file: str, every: TcpSegments, flow: bytes, places: Integers, back: Integers
) -> Iterator[tuple[int, TcpStream]]:
    """Cut a flow at each SYN with another number, and put each connection together."""
    syn = places[every.is_syn[places]]
    is_new = np.diff(every.sequence[syn], prepend=NONE) != 0
    bounds = [-1, *syn[is_new].tolist(), len(every.time_ns)]
    number = 0
    for start, end in pairwise(bounds):
        own = places[(places >= start) & (places < end)]
        own = own[every.data_bytes[own] > 0]
        number += start >= 0
        if len(own) == 0:
            continue
        name = flow_name(flow) + (f" ({number})" if number > 1 else "")
        if start < 0:
            raise ReportError(
                f"{file}: {name}: the capture has no SYN of it: the places of its bytes are not known"
            )
        granted = back[np.clip(np.searchsorted(back, own) - 1, 0, None)] if len(back) else own
        is_closed = (granted < own) & (every.window[granted] == 0)
        yield start, _stream(file, name, every.chosen(own), int(every.sequence[start]), is_closed)


def _stream(file: str, name: str, segments: TcpSegments, first_sequence: int, is_closed: Flags) -> TcpStream:
    cut = np.flatnonzero(segments.kept_bytes < segments.data_bytes)
    if len(cut):
        kept, of = int(segments.kept_bytes[cut[0]]), int(segments.data_bytes[cut[0]])
        raise ReportError(f"{file}: {name}: only {kept} of {of} bytes of a segment: capture whole frames")
    begin, before = _places(segments, first_sequence)
    is_within = begin >= 0
    begin = np.maximum(begin, 0)
    end = np.where(is_within, begin + segments.data_bytes, begin)
    is_single = segments.data_bytes == 1
    is_spare = is_single & (is_closed | (begin == before - 1) | (~is_within & (before == 0)))
    size = int(end.max(initial=0))
    if size > int(segments.data_bytes.sum()) + WINDOW_MAX_BYTES:
        raise ReportError(f"{file}: {name}: more than {WINDOW_MAX_BYTES} of {size} bytes are missing")

    edges = np.unique(np.concatenate((np.zeros(1, dtype=np.int64), begin[is_within], end[is_within])))
    low, high = np.searchsorted(edges, begin).tolist(), np.searchsorted(edges, end).tolist()
    order = np.arange(len(begin))
    seen = carrier = _first(order, low, high, len(edges) - 1)
    if is_spare.any():
        order = np.concatenate((order[~is_spare], order[is_spare]))
        carrier = _first(order, low, high, len(edges) - 1)
    lengths = np.diff(edges)
    new_bytes = np.zeros(len(begin), dtype=np.int64)
    np.add.at(new_bytes, seen[seen != NONE], lengths[seen != NONE])
    duplicate_bytes = end - begin - new_bytes
    content = _content(segments, size, begin, end, order)
    is_different = np.array(
        [
            to > at and bytes(content[at:to]) != segments.data[place : place + to - at].tobytes()
            for at, to, place in zip(begin.tolist(), end.tolist(), segments.at.tolist(), strict=True)
        ],
        dtype=bool,
    )
    hole = np.flatnonzero(carrier == NONE)
    return TcpStream(
        name,
        segments.time_ns,
        np.where(is_within, begin, NONE),
        np.where(is_within, end - 1, NONE),
        duplicate_bytes,
        is_within & (begin < before) & (duplicate_bytes == 0),
        is_spare,
        is_different & ~is_spare,
        content,
        np.stack((edges[hole], edges[hole + 1]), axis=1),
        edges,
        carrier,
    )


def _places(segments: TcpSegments, first_sequence: int) -> tuple[Integers, Integers]:
    """Return where each segment begins, below 0: nowhere; and the highest end before it."""
    begin: list[int] = []
    before: list[int] = []
    highest = 0
    sequences, sizes = segments.sequence.tolist(), segments.data_bytes.tolist()
    for sequence, size in zip(sequences, sizes, strict=True):
        ahead = (sequence - first_sequence - highest + _TURN // 2) % _TURN - _TURN // 2
        place = highest + ahead if abs(ahead) <= WINDOW_MAX_BYTES else NONE
        begin.append(place)
        before.append(highest)
        if place >= 0:
            highest = max(highest, place + size)
    return np.array(begin, dtype=np.int64), np.array(before, dtype=np.int64)


def _first(order: Integers, low: list[int], high: list[int], count: int) -> Integers:
    """Return which segment of an order is the first on each part between edges, shape (count,)."""
    first = np.full(count, NONE, dtype=np.int64)
    for number in order.tolist():
        part = first[low[number] : high[number]]
        part[part == NONE] = number
    return first


def _content(segments: TcpSegments, size: int, begin: Integers, end: Integers, order: Integers) -> bytearray:
    """Return the bytes; of several segments the first in the order counts, so that it is written last."""
    content = bytearray(size)
    for number in order[::-1].tolist():
        at, to, place = int(begin[number]), int(end[number]), int(segments.at[number])
        content[at:to] = segments.data[place : place + to - at].tobytes()
    return content
