# SPDX-License-Identifier: Apache-2.0
"""A stream's file that is cut, damaged or of another machine: read as far as it is whole, or refused."""

from __future__ import annotations

import struct
from pathlib import Path
from random import Random

import numpy as np
import pytest

from reports.errors import RecordError
from reports.timeline.event_stream_file import (
    BYTE_ORDER,
    CLOCK,
    END,
    FIRST,
    MAGIC,
    NAMES,
    SLOTS,
    STATE,
    SUFFIX,
    TRIGGER,
    read_event_stream,
    read_event_streams,
)
from tests.campaign import Campaign
from tests.reports.hostile import damaged

EVENTS = 40


def block(kind: int, ring: int, position: int, body: bytes) -> bytes:
    """Return a block of a stream's file (traffic-gen/events/stream_file.h)."""
    return struct.pack("<IHHQQ", BYTE_ORDER, kind, ring, position, len(body)) + body


def slot(position: int, tag: int, *, size: int = 0, point: int = 0, lost: int = 0) -> bytes:
    """Return the first slot of an event."""
    commit = FIRST | (position + 1) & (FIRST - 1)
    return struct.pack("<QqIIHHI", 1000 + tag, tag, 7, lost, point, size, commit)


def piece(position: int, data: bytes) -> bytes:
    """Return a slot with bytes of an event."""
    return data.ljust(28, b"\0") + struct.pack("<I", (position + 1) & (FIRST - 1))


def description(name: str, kind: int, buckets: int = 0) -> bytes:
    """Return the description of a point."""
    texts = (b"group", name.encode(), b"bytes" if kind == 2 else b"", b"about")
    return struct.pack("<24s40s24s144sIIqq", *texts, kind, buckets, 0, 10 * buckets)


def names(program: bytes = b"made", points: int = 3) -> bytes:
    """Return the first block."""
    fixed = struct.pack("<64s32sQQIIII", program, b"all", 11, 0, 1, points, 2, 256)
    return block(
        NAMES, 0, 0, fixed + description("event", 1) + description("data", 2) + description("spread", 5, 4)
    )


def whole() -> bytes:
    """Return a file with events of two rings, one of them with bytes, one event lost, and all ends."""
    first = b"".join(slot(number, number, lost=int(number >= 20)) for number in range(EVENTS))
    second = slot(0, 100, size=30, point=1) + piece(1, bytes(range(28))) + piece(2, b"\x1c\x1d")
    cells = struct.pack("<qQ", 55, 3) + bytes(48) + struct.pack("<6Q", 0, 1, 1, 1, 0, 0)
    return b"".join(
        [
            MAGIC,
            names(),
            block(CLOCK, 0, 0, struct.pack("<IiQQq", 0, 37, 10, 20, 1_700_000_000_000_000_000)),
            block(SLOTS, 0, 0, first),
            block(SLOTS, 1, 0, second),
            block(STATE, 2, 0, cells),
            block(TRIGGER, 0, 0, struct.pack("<QqII", 1020, 20, 1, 0)),
            block(END, 0, 0, struct.pack("<QQQ", EVENTS, 1, 0)),
            block(END, 1, 0, struct.pack("<QQQ", 3, 0, 0)),
        ]
    )


def _written(folder: Path, content: bytes, name: str = "made.11.0.all") -> Path:
    path = folder / f"{name}{SUFFIX}"
    path.write_bytes(content)
    return path


def test_a_whole_file_is_read_whole(tmp_path: Path) -> None:
    stream = read_event_stream(_written(tmp_path, whole()))
    assert stream.tag[stream.of("group.event")].tolist() == list(range(EVENTS))
    assert np.flatnonzero(stream.lost_before).tolist() == [20]
    assert stream.lost == 1
    (data,) = stream.data(stream.of("group.data")).tolist()
    assert data == list(range(30))
    assert stream.totals[2].cells.tolist() == [0, 1, 1, 1, 0, 0]
    assert [(each.ticks, each.tag, each.cause) for each in stream.triggers] == [(1020, 20, "event")]
    assert (stream.damaged_bytes, stream.incomplete) == (0, 0)


def test_a_file_that_ends_anywhere_is_read_up_to_there(tmp_path: Path) -> None:
    content = whole()
    begins = len(MAGIC) + len(names())
    before = -1
    for end in range(len(content)):
        path = _written(tmp_path, content[:end])
        if end < begins:
            with pytest.raises(RecordError, match=r"made\.11\.0\.all"):
                read_event_stream(path)
            continue
        stream = read_event_stream(path)
        assert stream.tag.size >= before
        before = stream.tag.size
        assert stream.tag[: min(EVENTS, before)].tolist() == list(range(min(EVENTS, before)))
    assert before == EVENTS + 1


def test_what_was_saved_twice_is_there_once(tmp_path: Path) -> None:
    events = [slot(number, number) for number in range(EVENTS)]
    _written(tmp_path, MAGIC + names() + block(SLOTS, 0, 0, b"".join(events[:30])))
    _written(tmp_path, MAGIC + names() + block(SLOTS, 0, 20, b"".join(events[20:])), "made.11.0.all.rest")
    (stream,) = read_event_streams(tmp_path)
    assert stream.tag.tolist() == list(range(EVENTS))


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "no stream of bw-events"),
        (MAGIC, "before the names"),
        (MAGIC + struct.pack(">IHHQQ", BYTE_ORDER, 1, 0, 0, 0), "from the big end"),
        (MAGIC + block(SLOTS, 0, 0, bytes(32)), "does not name the points"),
        (MAGIC + names(points=4), "768 bytes for 4 points"),
        (MAGIC + names() + block(9, 0, 0, b""), "block of kind 9"),
        (MAGIC + names() + block(SLOTS, 0, 0, slot(0, 0, point=3)), "an event of point 3"),
        (MAGIC + names() + block(TRIGGER, 0, 0, struct.pack("<QqII", 0, 0, 4, 0)), "cause 4 of a trigger"),
        (MAGIC + names() + block(SLOTS, 0, 2**63, slot(0, 0)), "slots at position 9223372036854775808"),
        (MAGIC + names() + block(CLOCK, 0, 0, struct.pack("<IiQQq", 7, 0, 0, 0, 0)), "clock 7"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, content: bytes, says: str) -> None:
    with pytest.raises(RecordError, match=says):
        read_event_stream(_written(tmp_path, content))


def test_another_program_is_no_rest(tmp_path: Path) -> None:
    path = _written(tmp_path, whole())
    other = _written(tmp_path, MAGIC + names(b"other"), "made.11.0.all.rest")
    with pytest.raises(RecordError, match="of another program"):
        read_event_stream(path, other)


def test_a_damaged_file_is_read_or_refused(tmp_path: Path, campaign: Campaign) -> None:
    content = whole()

    def read(random: Random) -> None:
        try:
            stream = read_event_stream(_written(tmp_path, damaged(content, random)))
        except RecordError as error:
            campaign.reached.add(str(error).split(":")[1])
            return
        for number, point in enumerate(stream.points):
            assert (stream.point[stream.of(point.full_name)] == number).all()
        for size in np.unique(stream.size_bytes):
            assert stream.data(np.flatnonzero(stream.size_bytes == size)).shape[1] == size

    for random in campaign.rounds(300):
        read(random)
