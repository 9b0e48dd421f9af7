# SPDX-License-Identifier: Apache-2.0
"""Bulk data as the user and the kernel count it: each segment that came, and the call that read its end.

The receiver's kernel says of each segment when it came and how much payload it has, not where in the stream
that lies. As they come in the order of the stream, so long as none is sent again, each lies behind those
before it. The receiver's points say which bytes each call has read, and when; both by one clock. A segment's
partner is the call that read its last byte, and that has to be after it came.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reports.errors import RecordError
from reports.timeline.bulk_evidence import (
    RETRANSMISSION_EVENT,
    SEGMENT_EVENT,
    BulkAnswer,
    BulkEnd,
    BulkTransfer,
    load_bulk,
    load_bulk_answer,
)
from reports.timeline.clock_record import Times, nominal_ns
from reports.timeline.event_stream import EventStream
from reports.timeline.event_stream_file import read_event_stream
from reports.timeline.global_time import GlobalTime, Places
from reports.timeline.kernel_recording import Recording, load_recording
from reports.timeline.processing.stream_events import BEYOND_NS, clock_record, frequency_hz, readings_of

PIECE_BYTES = 4
"""Of a point's data: how much a call has moved, `<I`."""


@dataclass(frozen=True, slots=True, eq=False)
class Pieces:
    """What the calls of one end have moved, in the order of the stream.

    Attributes:
        end_bytes: Shape (n,): where each piece ends.
        places: By the machine's CLOCK_MONOTONIC: after each call.
        why: Why they are not the whole of it; empty: they are.
    """

    end_bytes: Times
    places: Places
    why: str

    @property
    def bytes(self) -> int:
        """Return all bytes."""
        return int(self.end_bytes[-1]) if self.end_bytes.size else 0


@dataclass(frozen=True, slots=True, eq=False)
class Segments:
    """What the receiver's kernel says of segments with payload, in the order in which they came.

    Attributes:
        time_ns: Shape (n,), by its CLOCK_MONOTONIC.
        payload_bytes: Shape (n,).
    """

    time_ns: Times
    payload_bytes: Times

    @property
    def bytes(self) -> int:
        """Return all payload bytes."""
        return int(self.payload_bytes.sum())


@dataclass(frozen=True, eq=False)
class Bulk:
    """What was found.

    Attributes:
        facts: Of the measurement.
        sent: The sender's answer.
        received: Likewise the receiver's.
        written: The sender's pieces.
        read: Likewise the receiver's.
        segments: None: the kernel's events are not there.
        retransmissions: Segments that the sender's kernel sent again; None likewise.
        why: Why nothing has a verdict: events without room, a program that was stopped, ends that contradict
            each other; empty: each has one.
    """

    facts: BulkTransfer
    sent: BulkAnswer
    received: BulkAnswer
    written: Pieces
    read: Pieces
    segments: Segments | None
    retransmissions: int | None
    why: str

    @property
    def difference_bytes(self) -> int | None:
        """Return the user's bytes less the kernel's."""
        return None if self.segments is None else self.read.bytes - self.segments.bytes

    @property
    def unmatched(self) -> int | None:
        """Return how many segments have no partner; see the module."""
        return None if self.segments is None else unmatched_segments(self.segments, self.read)


def unmatched_segments(segments: Segments, read: Pieces) -> int:
    """Return how many segments no call has read to their end, or one that had returned before they came."""
    ends = np.cumsum(segments.payload_bytes)
    partner = np.searchsorted(read.end_bytes, ends, "left")
    has_one = partner < read.end_bytes.size
    late = segments.time_ns[has_one] > read.places.latest_ns[partner[has_one]]
    return int((~has_one).sum() + late.sum())


def load_bulk_transfer(folder: Path) -> Bulk:
    """Read the evidence and match segments with calls; raises RecordError, which names the file."""
    facts = load_bulk(folder)
    sent = load_bulk_answer(folder, facts.sender, "sender")
    received = load_bulk_answer(folder, facts.receiver, "receiver")
    written = _pieces(folder, facts.sender, "bulk.written")
    read = _pieces(folder, facts.receiver, "bulk.read")
    recordings = {
        end.node: load_recording(folder / end.kernel)
        for end in (facts.sender, facts.receiver)
        if end.kernel is not None and not facts.refused
    }
    segments = retransmissions = None
    if not facts.refused:
        segments = _segments(recordings[facts.receiver.node], facts)
        retransmissions = _retransmissions(recordings[facts.sender.node], facts)
    whys = [*_contradictions(facts, sent, received, written, read), *_cut(recordings)]
    return Bulk(facts, sent, received, written, read, segments, retransmissions, next(iter(whys), ""))


def _pieces(folder: Path, end: BulkEnd, point: str) -> Pieces:
    """Return the pieces of an end; raises RecordError: names the file."""
    stream = read_event_stream(folder / end.events)
    found = stream.of(point)
    if found.size and (stream.size_bytes[found] != PIECE_BYTES).any():
        raise RecordError(f"{end.events}: {point}: an event without its {PIECE_BYTES} bytes of data")
    # By the stream, not by time: what a call returned may lie within a step of the clock.
    found = found[np.argsort(stream.tag[found], kind="stable")]
    sizes = np.ascontiguousarray(stream.data(found)).view("<u4").reshape(-1).astype(np.int64)
    ends = np.cumsum(sizes)
    places = _places(end.node, stream, found)
    why = ""
    if stream.lost:
        why = f"{end.node}: {stream.lost} events of the program had no room in a ring"
    elif stream.damaged_bytes or stream.incomplete or not stream.ends:
        why = f"{end.node}: the stream of its points is cut"
    elif (stream.tag[found] != ends - sizes).any():
        why = f"{end.node}: its pieces are not one behind the other"
    elif not places.known.all():
        why = f"{end.node}: {int((~places.known).sum())} of its pieces have no place in time"
    return Pieces(ends, places, why)


def _places(node: str, stream: EventStream, found: Times) -> Places:
    time = GlobalTime(clock_record(node, stream, "monotonic", None))
    hz, _ = frequency_hz(stream, readings_of(stream, "monotonic"))
    ticks = stream.ticks[found]
    if ticks.size and int(ticks.max()) >= 1 << 62:
        raise RecordError(f"{stream.program}: an event at a time that cannot be")
    return time.place(nominal_ns(ticks, hz), BEYOND_NS)


def _contradictions(
    facts: BulkTransfer, sent: BulkAnswer, received: BulkAnswer, written: Pieces, read: Pieces
) -> Iterable[str]:
    """Say where programs and points do not tell one story."""
    yield from (each.why for each in (written, read) if each.why)
    for answer, pieces, end in ((sent, written, facts.sender), (received, read, facts.receiver)):
        if not answer.complete:
            yield f"{end.node}: the program was stopped before its end"
        if (answer.bytes, answer.calls) != (pieces.bytes, pieces.end_bytes.size):
            yield (
                f"{end.node}: the program says {answer.bytes} bytes in {answer.calls} calls, its points"
                f" {pieces.bytes} in {pieces.end_bytes.size}"
            )
    if (sent.bytes, sent.checksum) != (received.bytes, received.checksum):
        yield (
            f"{sent.bytes} bytes were sent, checksum {sent.checksum}; {received.bytes} were received,"
            f" checksum {received.checksum}"
        )


def _cut(recordings: dict[str, Recording]) -> Iterable[str]:
    """Say where a kernel's recording is not whole."""
    for node, recording in recordings.items():
        if dropped := sum(recording.dropped.values()):
            yield f"{node}: {dropped} events of the kernel had no room in its ring"
        for ring in recording.rings.values():
            if ring.damages:
                yield f"{node}: CPU {ring.cpu}: {ring.damages[0]}"
            if ring.gaps.size:
                yield f"{node}: CPU {ring.cpu}: its ring has lost events"
        if missing := sorted(recording.dropped.keys() - recording.rings.keys()):
            yield f"{node}: the ring of CPU {missing[0]} is missing"


def _of(recording: Recording, name: str, wanted: Iterable[str]) -> Any:
    """Return the events of a name of all CPUs by time; raises RecordError where the kernel lacks a field."""
    every = [ring.events[name] for ring in recording.rings.values() if name in ring.events]
    if not every:
        raise RecordError(f"the kernel's recording has no {name}")
    found = np.concatenate(every)
    if missing := sorted({*wanted} - {*(found.dtype.names or ())}):
        raise RecordError(f"{name}: this kernel's has no {missing[0]}")
    return found[np.argsort(found["time_ns"], kind="stable")]


def _is_at(column: NDArray[np.uint8], address: str) -> NDArray[np.bool_]:
    """Say of socket addresses, shape (n, 28), which are of an address; IPv6 has its port and flow before."""
    parsed = ipaddress.ip_address(address)
    first = 4 if parsed.version == 4 else 8
    packed = np.frombuffer(parsed.packed, np.uint8)
    return (column[:, first : first + packed.size] == packed).all(axis=1)


def _segments(recording: Recording, facts: BulkTransfer) -> Segments:
    """Return segments with payload that came to the receiver's port from the sender's address."""
    found = _of(recording, SEGMENT_EVENT, ("saddr", "daddr", "sport", "data_len"))
    own = found["sport"] == facts.port
    own &= _is_at(found["saddr"], facts.receiver.address) & _is_at(found["daddr"], facts.sender.address)
    found = found[own & (found["data_len"] > 0)]
    return Segments(found["time_ns"].astype(np.int64), found["data_len"].astype(np.int64))


def _retransmissions(recording: Recording, facts: BulkTransfer) -> int:
    """Return how often the sender's kernel sent a segment to the receiver's port again."""
    is_six = ipaddress.ip_address(facts.receiver.address).version == 6
    name = "daddr_v6" if is_six else "daddr"
    found = _of(recording, RETRANSMISSION_EVENT, (name, "dport"))
    packed = np.frombuffer(ipaddress.ip_address(facts.receiver.address).packed, np.uint8)
    return int(((found["dport"] == facts.port) & (found[name] == packed).all(axis=1)).sum())
