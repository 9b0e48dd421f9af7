# SPDX-License-Identifier: Apache-2.0
"""The events of a program, as `bw-events record` has written them: arrays."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from reports.errors import RecordError

Words = NDArray[np.int64]
Kind = Literal["event", "data", "interval", "counter", "histogram"]

PIECE_BYTES = 28
"""Of what came with an event, in a slot of 32."""


@dataclass(frozen=True, slots=True)
class Point:
    """A point of a program.

    Attributes:
        group: Its group.
        name: Its name in that.
        kind: What it records.
        decoder: Of `data`: how its bytes are unpacked.
        about: What it stands for.
        low: Of a histogram: the least value that is counted in a bucket.
        high: Likewise the first that is not any more.
        buckets: Likewise their number, of one width each.
    """

    group: str
    name: str
    kind: Kind
    decoder: str
    about: str
    low: int
    high: int
    buckets: int

    @property
    def full_name(self) -> str:
        """Return GROUP.NAME."""
        return f"{self.group}.{self.name}"


@dataclass(frozen=True, slots=True)
class ClockReading:
    """A clock of the machine between two readings of the counter.

    Attributes:
        clock: `realtime`, `monotonic`, `monotonic-raw`.
        before_ticks: The counter before.
        after_ticks: The counter after.
        clock_ns: What it showed.
        tai_utc_s: TAI less UTC as the kernel has it; 0: it does not know.
    """

    clock: str
    before_ticks: int
    after_ticks: int
    clock_ns: int
    tai_utc_s: int


@dataclass(frozen=True, slots=True, eq=False)
class Total:
    """What a counter or a histogram had come to at the end of a recording.

    Attributes:
        total: The sum of what was added.
        count: How many values were added.
        cells: Of a histogram, shape (buckets + 2,): below, each bucket, above.
    """

    total: int
    count: int
    cells: NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Trigger:
    """Why a history was written.

    Attributes:
        ticks: The counter then; 0: at the end.
        tag: Of the event that triggered.
        cause: `event`, `command`; `end`: of the program or of the recording.
    """

    ticks: int
    tag: int
    cause: str


@dataclass(frozen=True, slots=True)
class RingEnd:
    """What a ring has come to: slots handed out, events that had no room, slots that nobody finished."""

    slots: int
    lost: int
    unfinished: int


@dataclass(frozen=True, slots=True, eq=False)
class EventStream:
    """The events of a program in one stream, ring by ring in the order in which they got their places.

    Attributes:
        program: Its name.
        stream: Name of the stream.
        pid: Number of the process that opened it; its children have the same.
        counter: `tsc`, `cntvct`; `none`: ticks are ns of the raw monotonic clock.
        counter_hz: Ticks a second as the architecture says; 0: it does not.
        points: By number.
        ticks: Shape (n,): the counter when it happened.
        tag: Shape (n,).
        thread: Shape (n,).
        point: Shape (n,): number of the point.
        ring: Shape (n,): number of the ring, one a processor.
        lost_before: Shape (n,): events of its ring that had no room, since the one before it.
        size_bytes: Shape (n,): of what came with it.
        clocks: Of the machine.
        totals: By number of the point.
        triggers: Of a history: why it was written, once each time.
        ends: By ring; empty: the recording was not ended, or the file is cut.
        damaged_bytes: At the end of the file, which are no whole block.
        incomplete: Events of which not all slots are there: the program or the recording ended in between.
        slots: All slots, shape (m, 32).
        first_slot: Shape (n,): where in them each event begins.
    """

    program: str
    stream: str
    pid: int
    counter: str
    counter_hz: int
    points: tuple[Point, ...]
    ticks: NDArray[np.uint64]
    tag: Words
    thread: NDArray[np.uint32]
    point: NDArray[np.uint16]
    ring: NDArray[np.uint16]
    lost_before: Words
    size_bytes: NDArray[np.uint16]
    clocks: tuple[ClockReading, ...]
    totals: dict[int, Total]
    triggers: tuple[Trigger, ...]
    ends: dict[int, RingEnd]
    damaged_bytes: int
    incomplete: int
    slots: NDArray[np.uint8] = field(repr=False)
    first_slot: Words = field(repr=False)

    @property
    def lost(self) -> int:
        """Return how many events had no room, as far as the file says."""
        counted = int(self.lost_before.sum())
        return max(counted, sum(end.lost for end in self.ends.values()))

    def number(self, full_name: str) -> int:
        """Return the number of a point.

        Args:
            full_name: GROUP.NAME.

        Raises:
            RecordError: There is no such point.
        """
        for number, point in enumerate(self.points):
            if point.full_name == full_name:
                return number
        names = ", ".join(sorted(point.full_name for point in self.points))
        raise RecordError(f"{self.program}: no point {full_name}; it has {names}")

    def of(self, full_name: str) -> Words:
        """Return the numbers of a point's events, in order of their time."""
        found = np.flatnonzero(self.point == self.number(full_name))
        return found[np.argsort(self.ticks[found], kind="stable")]

    def data(self, numbers: Words) -> NDArray[np.uint8]:
        """Return the bytes of events that have as many each, shape (events, bytes).

        Args:
            numbers: Of the events.

        Raises:
            ValueError: They have not as many each.
        """
        if not numbers.size:
            return np.empty((0, 0), np.uint8)
        sizes = np.unique(self.size_bytes[numbers])
        if sizes.size > 1:
            raise ValueError(f"events of {sizes[0]} to {sizes[-1]} bytes")
        pieces = -(-int(sizes[0]) // PIECE_BYTES)
        rows = self.first_slot[numbers][:, None] + 1 + np.arange(pieces)
        return self.slots[rows, :PIECE_BYTES].reshape(len(numbers), -1)[:, : int(sizes[0])]

    def lengths_ticks(self, numbers: Words) -> NDArray[np.uint64]:
        """Return the lengths of intervals, in ticks.

        Args:
            numbers: Of their events.
        """
        if not numbers.size:
            return np.empty(0, np.uint64)
        return np.ascontiguousarray(self.data(numbers)).view("<u8").reshape(-1)
