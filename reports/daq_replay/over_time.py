# SPDX-License-Identifier: Apache-2.0
"""Latency over the time of a replay: what was largest when, and when the machine stalled."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from reports.daq_replay.verdict import ReplayResults, witness_time
from reports.tools.answers import Progress

BINS = 300
"""The replay is cut into so many parts; of each the largest is shown."""

Point = tuple[int, int]
"""A time in ns since the counted time began, and a length in ns."""


@dataclass(frozen=True, slots=True)
class StreamOverTime:
    """One stream over the counted time.

    Attributes:
        largest: The largest latency so far, whenever the consumer told a larger one, and at the end.
        late: The largest of the messages over their budgets in each part of the replay.
        lost: When the consumer first told of a lost message, or of one more; in ns likewise.
    """

    largest: tuple[Point, ...]
    late: tuple[Point, ...]
    lost: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ReplayOverTime:
    """Streams of a replay over its counted time, by their ids.

    Attributes:
        length_ns: Of the counted time.
        stalls: The longest pause of machine or emulator in each part; None: the witness's clock is unknown.
    """

    length_ns: int
    streams: dict[int, StreamOverTime]
    stalls: tuple[Point, ...] | None


def replay_over_time(
    replay: ReplayResults, progress: Sequence[Progress], streams: Iterable[int]
) -> ReplayOverTime:
    """Return streams of a replay over its time.

    Args:
        replay: As it is judged.
        progress: What the consumer told meanwhile; empty: it told nothing.
        streams: Ids of those wanted.
    """
    start_tai_ns = replay.recv.start_tai_ns
    length_ns = max(1, replay.recv.end_tai_ns - start_tai_ns)
    found: dict[int, StreamOverTime] = {}
    for stream in streams:
        told = [(each.local_tai_ns - start_tai_ns, *each.streams.get(stream, (0, 0))) for each in progress]
        counted = [(after_ns, max_ns, lost) for after_ns, max_ns, lost in told if after_ns > 0]
        late = [
            (miss.received_local_tai_ns - start_tai_ns, miss.received_minus_scheduled_ns)
            for miss in replay.misses
            if miss.stream == stream
        ]
        # What is under way may be missing for a moment: of a stream that lost nothing in the end, nothing is.
        lost = _rises((after_ns, lost) for after_ns, _max_ns, lost in counted)
        found[stream] = StreamOverTime(
            _with_end(_rises((after_ns, max_ns) for after_ns, max_ns, _lost in counted), length_ns),
            _largest_of_each(late, length_ns),
            tuple(after_ns for after_ns, _ in lost) if replay.recv.stream(stream).lost else (),
        )
    return ReplayOverTime(length_ns, found, _stalls(replay, length_ns))


def _rises(points: Iterable[Point]) -> tuple[Point, ...]:
    """Return the points that are larger than all before them, and than 0."""
    found: list[Point] = []
    for point in points:
        if point[1] > (found[-1][1] if found else 0):
            found.append(point)
    return tuple(found)


def _with_end(points: tuple[Point, ...], end_ns: int) -> tuple[Point, ...]:
    return (*points, (max(end_ns, points[-1][0]), points[-1][1])) if points else ()


def _stalls(replay: ReplayResults, length_ns: int) -> tuple[Point, ...] | None:
    by_witness = witness_time(replay)
    start_tai_ns = by_witness(replay.recv.start_tai_ns) if by_witness else None
    if start_tai_ns is None or replay.witness is None:
        return None
    pauses = [*((start, end) for start, end, _cpu in replay.witness.windows), *replay.emulator_pauses]
    return _largest_of_each([(start - start_tai_ns, end - start) for start, end in pauses], length_ns)


def _largest_of_each(points: Iterable[Point], length_ns: int) -> tuple[Point, ...]:
    """Return the largest of each part of the replay; what lies outside of it is left out."""
    largest: dict[int, Point] = {}
    for point in points:
        part = point[0] * BINS // length_ns
        # What was sent in the counted time may arrive after it.
        if 0 <= part <= BINS + BINS // 10 and point[1] > largest.get(part, (0, 0))[1]:
            largest[part] = point
    return tuple(largest[part] for part in sorted(largest))
