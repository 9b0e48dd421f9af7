# SPDX-License-Identifier: Apache-2.0
"""Read what `bw-events record` has written.

The format is that of `traffic-gen/events/stream_file.h`. A file that ends anywhere is read as far as it is
whole; what is not is counted.
"""

from __future__ import annotations

import mmap
import re
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reports.errors import RecordError
from reports.timeline.event_stream import (
    PIECE_BYTES,
    ClockReading,
    EventStream,
    Kind,
    Point,
    RingEnd,
    Total,
    Trigger,
    Words,
)

MAGIC = b"BWSTREAM"
BYTE_ORDER = 0x01020304
SUFFIX = ".bwevents"
SLOT_BYTES = 32
POSITION_MAX = 2**62
FIRST = 0x80000000
DESCRIPTION_BYTES = 256
DATA_MAX_BYTES = 4096
KINDS: dict[int, Kind] = {1: "event", 2: "data", 3: "interval", 4: "counter", 5: "histogram"}
COUNTERS = {0: "none", 1: "tsc", 2: "cntvct"}
CLOCKS = {0: "realtime", 3: "monotonic", 4: "monotonic-raw"}
CAUSES = {1: "event", 2: "command", 3: "end"}
STATE_BYTES = 64
NAMES, SLOTS, CLOCK, STATE, END, TRIGGER = 1, 2, 3, 4, 5, 6
SLOT = np.dtype(
    [
        ("ticks", "<u8"),
        ("tag", "<i8"),
        ("thread", "<u4"),
        ("lost", "<u4"),
        ("point", "<u2"),
        ("size", "<u2"),
        ("commit", "<u4"),
    ]
)


@dataclass(slots=True)
class _Found:
    """What the blocks of a file hold, in their order."""

    names: tuple[Any, ...] = ()
    points: tuple[Point, ...] = ()
    runs: list[tuple[int, int, NDArray[np.uint8]]] = field(default_factory=list[Any])
    clocks: list[ClockReading] = field(default_factory=list[ClockReading])
    totals: dict[int, Total] = field(default_factory=dict[int, Total])
    ends: dict[int, RingEnd] = field(default_factory=dict[int, RingEnd])
    triggers: list[Trigger] = field(default_factory=list[Trigger])


def _text(raw: bytes) -> str:
    return raw.split(b"\0", 1)[0].decode("utf-8", "replace")


def _point(raw: bytes) -> Point:
    group, name, decoder, about, kind, buckets, low, high = struct.unpack("<24s40s24s144sIIqq", raw)
    if kind not in KINDS:
        raise RecordError(f"point of kind {kind}; there are 1 to {max(KINDS)}")
    return Point(_text(group), _text(name), KINDS[kind], _text(decoder), _text(about), low, high, buckets)


def _names(found: _Found, body: bytes) -> None:
    fixed = struct.Struct("<64s32sQQIIII")
    if len(body) < fixed.size:
        raise RecordError("names: too short")
    found.names = fixed.unpack(body[: fixed.size])
    rest, count = body[fixed.size :], found.names[5]
    if len(rest) != count * DESCRIPTION_BYTES:
        raise RecordError(f"names: {len(rest)} bytes for {count} points of {DESCRIPTION_BYTES}")
    found.points = tuple(
        _point(rest[at : at + DESCRIPTION_BYTES]) for at in range(0, len(rest), DESCRIPTION_BYTES)
    )


def _clock(found: _Found, body: bytes) -> None:
    clock, tai_utc_s, before, after, clock_ns = struct.unpack("<IiQQq", body)
    if clock not in CLOCKS:
        raise RecordError(f"clock {clock}; known: {', '.join(map(str, CLOCKS))}")
    found.clocks.append(ClockReading(CLOCKS[clock], before, after, clock_ns, tai_utc_s))


def _state(found: _Found, number: int, body: bytes) -> None:
    if number >= len(found.points) or len(body) < STATE_BYTES or len(body) % 8:
        raise RecordError(f"total of point {number}: {len(body)} bytes")
    total, count = struct.unpack_from("<qQ", body)
    found.totals[number] = Total(total, count, np.frombuffer(body, "<u8", offset=STATE_BYTES))


def _take(found: _Found, kind: int, ring: int, position: int, body: memoryview) -> None:
    """Take a block whose size is whole."""
    if kind == NAMES:
        _names(found, bytes(body))
    elif not found.points:
        raise RecordError("the first block does not name the points")
    elif kind == SLOTS:
        if position > POSITION_MAX:
            raise RecordError(f"slots at position {position}")
        whole = len(body) - len(body) % SLOT_BYTES
        found.runs.append((ring, position, np.frombuffer(body[:whole], np.uint8).reshape(-1, SLOT_BYTES)))
    elif kind == CLOCK:
        _clock(found, bytes(body))
    elif kind == STATE:
        _state(found, ring, bytes(body))
    elif kind == END:
        found.ends[ring] = RingEnd(*struct.unpack("<QQQ", body))
    elif kind == TRIGGER:
        ticks, tag, cause, _ = struct.unpack("<QqII", body)
        if cause not in CAUSES:
            raise RecordError(f"cause {cause} of a trigger; known: {', '.join(map(str, CAUSES))}")
        found.triggers.append(Trigger(ticks, tag, CAUSES[cause]))
    else:
        raise RecordError(f"block of kind {kind}; there are 1 to {TRIGGER}")


def _blocks(raw: memoryview, found: _Found) -> int:
    """Take all blocks that are whole, and the slots of one that is cut; return how many bytes are left."""
    header = struct.Struct("<IHHQQ")
    at = len(MAGIC)
    while at + header.size <= len(raw):
        order, kind, ring, position, size = header.unpack_from(raw, at)
        body = raw[at + header.size : at + header.size + size]
        if order != BYTE_ORDER:
            return len(raw) - at
        if len(body) < size and kind != SLOTS:
            return len(raw) - at
        try:
            _take(found, kind, ring, position, body)
        except (struct.error, RecordError) as error:
            raise RecordError(f"byte {at}: {error}") from error
        at += header.size + len(body)
        if len(body) < size:
            return len(body) % SLOT_BYTES
    return len(raw) - at


def _ring_slots(found: _Found, ring: int) -> tuple[NDArray[np.uint8], Words]:
    """Return the slots of a ring and their positions, each once, by position.

    A recorder that is killed may have written slots of which it had not yet said so: who saved the rest has
    them once more.
    """
    runs = [(position, slots) for number, position, slots in found.runs if number == ring]
    positions = np.concatenate([position + np.arange(len(slots), dtype=np.int64) for position, slots in runs])
    slots = np.concatenate([slots for _, slots in runs])
    if (np.diff(positions) > 0).all():
        return slots, positions
    positions, unique = np.unique(positions, return_index=True)
    return slots[unique], positions


def _events_of(slots: NDArray[np.uint8], positions: Words) -> tuple[Words, int]:
    """Return the rows of the first slots of events that are whole, and how many are not."""
    commit = slots[:, PIECE_BYTES:].copy().view("<u4").reshape(-1)
    belongs = (commit & (FIRST - 1)) == ((positions + 1) & (FIRST - 1))
    first = np.flatnonzero((commit & FIRST).astype(bool) & belongs)
    sizes = slots[first, 26:28].copy().view("<u2").reshape(-1).astype(np.int64)
    needed = -(-sizes // PIECE_BYTES)
    whole = (sizes <= DATA_MAX_BYTES) & (first + needed < len(slots))
    for extra in range(1, int(needed.max(initial=0)) + 1):
        asked = np.flatnonzero(whole & (needed >= extra))
        if not asked.size:
            break
        row = first[asked] + extra
        follows = (
            belongs[row] & ((commit[row] & FIRST) == 0) & (positions[row] == positions[first[asked]] + extra)
        )
        whole[asked[~follows]] = False
    return first[whole], int((~whole).sum())


def _stream(found: _Found, damaged_bytes: int) -> EventStream:
    program, stream, pid, hz, counter, _, _, _ = found.names
    fields: list[tuple[NDArray[Any], ...]] = []
    all_slots: list[NDArray[np.uint8]] = []
    first_rows: list[Words] = []
    incomplete = rows = 0
    for ring in sorted({ring for ring, _, _ in found.runs}):
        slots, positions = _ring_slots(found, ring)
        first, broken = _events_of(slots, positions)
        incomplete += broken
        words = slots[first].view(SLOT).reshape(-1)
        # Two that write at once may read the count in the other order: what is lost never becomes less.
        lost = np.maximum.accumulate(words["lost"].astype(np.int64)) if words.size else np.empty(0, np.int64)
        fields.append(
            (
                words["ticks"],
                words["tag"],
                words["thread"],
                words["point"],
                np.full(words.size, ring, np.uint16),
                np.diff(lost, prepend=0),
                words["size"],
            )
        )
        all_slots.append(slots)
        first_rows.append(first + rows)
        rows += len(slots)
    kinds = ("<u8", "<i8", "<u4", "<u2", "<u2", "<i8", "<u2")
    columns = [
        np.concatenate([np.asarray(each[i]) for each in fields]) if fields else np.empty(0, kinds[i])
        for i in range(len(kinds))
    ]
    unknown = np.flatnonzero(columns[3] >= len(found.points))
    if unknown.size:
        raise RecordError(f"an event of point {columns[3][unknown[0]]}; it has {len(found.points)}")
    return EventStream(
        _text(program),
        _text(stream),
        pid,
        COUNTERS.get(counter, f"counter {counter}"),
        hz,
        found.points,
        *columns,
        clocks=tuple(found.clocks),
        totals=found.totals,
        triggers=tuple(found.triggers),
        ends=found.ends,
        damaged_bytes=damaged_bytes,
        incomplete=incomplete,
        slots=np.concatenate(all_slots) if all_slots else np.empty((0, SLOT_BYTES), np.uint8),
        first_slot=np.concatenate(first_rows) if first_rows else np.empty(0, np.int64),
    )


def _mapped(path: Path) -> bytes | mmap.mmap:
    """Map a file; an empty one cannot be."""
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if path.stat().st_size else b""


def _found_in(path: Path) -> tuple[_Found, int]:
    try:
        raw = memoryview(_mapped(path))
    except OSError as error:
        raise RecordError(f"{path.name}: {error.strerror}") from error
    if bytes(raw[: len(MAGIC)]) != MAGIC:
        raise RecordError(f"{path.name}: no stream of bw-events: it does not begin with {MAGIC.decode()}")
    if len(raw) >= len(MAGIC) + 4 and struct.unpack_from(">I", raw, len(MAGIC))[0] == BYTE_ORDER:
        raise RecordError(f"{path.name}: of a machine that counts from the big end: not supported")
    found = _Found()
    try:
        damaged = _blocks(raw, found)
    except RecordError as error:
        raise RecordError(f"{path.name}: {error}") from error
    if not found.points:
        raise RecordError(f"{path.name}: ends before the names of the points")
    return found, damaged


def read_event_stream(path: Path, *rest: Path) -> EventStream:
    """Read a stream's file.

    Args:
        path: NAME.PID.N.STREAM.bwevents.
        rest: What was saved of the same one after its recorder was killed: NAME.PID.N.STREAM.rest.bwevents,
            and rest2 and so on of what could not be saved at once.

    Raises:
        RecordError: A file is missing, no stream, of another byte order, or damaged other than at its end.
    """
    found, damaged = _found_in(path)
    for other in rest:
        more, more_damaged = _found_in(other)
        if (more.names, more.points) != (found.names, found.points):
            raise RecordError(f"{other.name}: of another program or stream than {path.name}")
        found.runs += more.runs
        found.clocks += more.clocks
        found.totals |= more.totals
        found.ends |= more.ends
        found.triggers += more.triggers
        damaged += more_damaged
    try:
        return _stream(found, damaged)
    except RecordError as error:
        raise RecordError(f"{path.name}: {error}") from error


def read_event_streams(folder: Path) -> list[EventStream]:
    """Read all streams in a folder, each with what was saved of it.

    Raises:
        RecordError: As of `read_event_stream`.
    """
    files: dict[str, list[Path]] = {}
    for path in sorted(folder.glob(f"*{SUFFIX}"), key=lambda path: path.name.removesuffix(SUFFIX)):
        files.setdefault(re.sub(r"\.rest\d*$", "", path.name.removesuffix(SUFFIX)), []).append(path)
    return [read_event_stream(*each) for each in files.values()]
