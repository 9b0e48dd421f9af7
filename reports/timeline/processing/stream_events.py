# SPDX-License-Identifier: Apache-2.0
"""Events of a program on the axis of a clock of its machine, by the readings of that clock in the stream.

An interval lies where it began. What came with a data point whose decoder is a format of numbers (`<qd`, as
Python's struct has it) are columns `data_0`, `data_1`, …
"""

from __future__ import annotations

import re
import struct
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from reports.errors import RecordError
from reports.timeline.clock_record import NS_PER_S, ClockLimits, ClockRecord, Times, nominal_ns
from reports.timeline.event_stream import ClockReading, EventStream
from reports.timeline.global_time import GlobalTime, Places
from reports.timeline.placed_events import Track, placed_track

Clock = Literal["monotonic", "monotonic-raw", "realtime"]
BEYOND_NS = 2 * NS_PER_S
"""Clocks are read once a second: events so far outside of the readings have a place, too."""
_LARGEST_TICKS = 1 << 62
_NUMBERS = re.compile(r"[<=]?([bBhHiIqQfd]+)", re.ASCII)
_KINDS = dict(
    zip("bBhHiIqQfd", ("i1", "u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f4", "<f8"), strict=True)
)


def frequency_hz(stream: EventStream, readings: list[ClockReading]) -> tuple[int, int]:
    """Return the frequency of a stream's counter, and by how many ppb it may be off for its readings alone.

    Args:
        stream: Of a program.
        readings: Of one clock, in their order; they tell it where the architecture does not.

    Raises:
        RecordError: They lie too close together.
    """
    if stream.counter == "none":
        return NS_PER_S, 0
    if stream.counter_hz:
        return stream.counter_hz, 0
    first, last = readings[0], readings[-1]
    passed_ns = last.clock_ns - first.clock_ns
    if passed_ns <= 0:
        raise RecordError(f"{stream.program}: readings of a clock within {passed_ns} ns tell no frequency")
    ticks = (last.after_ticks + last.before_ticks - first.after_ticks - first.before_ticks) / 2
    window = last.after_ticks - last.before_ticks + first.after_ticks - first.before_ticks
    if ticks <= 0 or window > ticks / 100:
        raise RecordError(f"{stream.program}: its counter and a clock do not go together")
    return round(ticks * NS_PER_S / passed_ns), round(window / ticks * NS_PER_S)


def readings_of(stream: EventStream, clock: Clock) -> list[ClockReading]:
    """Return the readings of a clock in their order."""
    found = [each for each in stream.clocks if each.clock == clock]
    return sorted(found, key=lambda each: each.before_ticks)


def clock_record(node: str, stream: EventStream, clock: Clock, tai_utc_s: int | None) -> ClockRecord:
    """Return the readings of a clock of the machine by the counter of a stream.

    Args:
        node: The machine.
        stream: Of a program.
        clock: Of those in the stream; `realtime` is brought to TAI.
        tai_utc_s: TAI - UTC; None: as the machine's kernel has it.

    Raises:
        RecordError: There are none, the kernel does not know TAI, or they cannot be.
    """
    where = f"{stream.program}: clock {clock}"
    found = readings_of(stream, clock)
    if not found:
        raise RecordError(f"{where}: no reading")
    if any(
        not 0 <= each.before_ticks <= each.after_ticks < _LARGEST_TICKS or abs(each.clock_ns) > _LARGEST_TICKS
        for each in found
    ):
        raise RecordError(f"{where}: a reading that cannot be")
    hz, off_ppb = frequency_hz(stream, found)
    shift_s = 0
    if clock == "realtime":
        shift_s = found[-1].tai_utc_s if tai_utc_s is None else tai_utc_s
        if not shift_s:
            raise RecordError(f"{where}: the machine does not know TAI - UTC: give tai_utc_s")
    before_ns, after_ns = (
        nominal_ns(np.array([getattr(each, key) for each in found], np.uint64), hz)
        for key in ("before_ticks", "after_ticks")
    )
    bound_ns = (after_ns - before_ns + 1) // 2 + 1
    return ClockRecord(
        node,
        "counter",
        f"its CLOCK_{clock.upper().replace('-', '_')}",
        True,
        (before_ns + after_ns) // 2,
        np.array([each.clock_ns for each in found], np.int64) + shift_s * NS_PER_S,
        bound_ns,
        bound_ns,
        ClockLimits(rate_ppb=ClockLimits().rate_ppb + off_ppb),
    )


def track_of_stream(
    node: str, lane: str, stream: EventStream, clock: Clock, tai_utc_s: int | None
) -> tuple[Track, int]:
    """Return the events of a stream that have a place, and how many have none.

    Args:
        node: The machine.
        lane: What they are called together.
        stream: Of a program.
        clock: On whose axis.
        tai_utc_s: As of `clock_record`.

    Raises:
        RecordError: As of `clock_record`, or a time cannot be.
    """
    record = clock_record(node, stream, clock, tai_utc_s)
    time = GlobalTime(record)
    hz, _ = frequency_hz(stream, readings_of(stream, clock))
    length = _lengths_ticks(stream)
    if stream.ticks.size and (int(stream.ticks.max()) >= _LARGEST_TICKS or (length > stream.ticks).any()):
        raise RecordError(f"{stream.program}: an event at a time that cannot be")
    end = time.place(nominal_ns(stream.ticks, hz), BEYOND_NS)
    begin = time.place(nominal_ns(stream.ticks - length, hz), BEYOND_NS)
    known = begin.known & end.known & (begin.tai_ns >= 0)
    places = Places(begin.tai_ns, begin.earliest_ns, begin.latest_ns, begin.u_ns, known)
    columns: dict[str, NDArray[Any]] = {
        "thread": stream.thread.astype(np.int64),
        "ring": stream.ring.astype(np.int64),
        "lost_before": stream.lost_before,
        **_data_columns(stream),
    }
    duration_ns = np.where(known & (length > 0), np.maximum(end.tai_ns - begin.tai_ns, 0), 0)
    names = tuple(each.full_name for each in stream.points)
    track, _ = placed_track(
        node,
        lane,
        names,
        places,
        stream.point.astype(np.int64),
        stream.tag.astype(np.int64),
        duration_ns=duration_ns,
        columns=columns,
    )
    return track, int((~known).sum())


def _lengths_ticks(stream: EventStream) -> NDArray[np.uint64]:
    length = np.zeros(stream.ticks.shape, np.uint64)
    for number, point in enumerate(stream.points):
        if point.kind == "interval":
            own = np.flatnonzero((stream.point == number) & (stream.size_bytes == 8))
            length[own] = stream.lengths_ticks(own)
    return length


def _data_columns(stream: EventStream) -> dict[str, NDArray[Any]]:
    """Return what decoders of numbers make of the events' bytes; 0 of events that have no such bytes."""
    found: dict[str, NDArray[Any]] = {}
    for number, point in enumerate(stream.points):
        form = _NUMBERS.fullmatch(point.decoder) if point.kind == "data" else None
        if form is None:
            continue
        row = np.dtype([(f"data_{at}", _KINDS[letter]) for at, letter in enumerate(form[1])])
        own: Times = np.flatnonzero((stream.point == number) & (stream.size_bytes == row.itemsize))
        if not own.size or struct.calcsize(point.decoder) != row.itemsize:  # which pads without < or =
            continue
        rows = np.ascontiguousarray(stream.data(own)).view(row).reshape(-1)
        for name in row.names or ():
            is_real = row[name].kind == "f" or (row[name] == np.uint64 and (rows[name] >> 63).any())
            kind = np.float64 if is_real else np.int64
            have = found.setdefault(name, np.zeros(stream.ticks.shape, kind))
            if have.dtype != kind:
                have = found[name] = have.astype(np.float64)
            have[own] = rows[name]
    return found
