# SPDX-License-Identifier: Apache-2.0
"""What `bw-events` has written, as traffic-gen/events/stream_file.h says it: a plain reader."""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterator, Sequence

REALTIME, MONOTONIC = 0, 3
"""Clocks, by their numbers in the file."""
_FIRST = 0x80000000
Pairs = Sequence[tuple[int, int]]
"""What was shown, and what it stands for, in order."""


def on_line(pairs: Pairs, shown: int) -> int:
    """Return what a value stands for, by the line between its neighbours; beyond the ends by the last two."""
    if len(pairs) < 2:
        raise ValueError("fewer than two readings of a clock")
    at = min(max(bisect_right(pairs, (shown, 0)), 1), len(pairs) - 1)
    (low, from_), (high, to) = pairs[at - 1], pairs[at]
    if high <= low:
        raise ValueError("readings of a clock that go backwards")
    # Whole nanoseconds since 1970 do not fit a float: the difference alone is one.
    return from_ + round((shown - low) * ((to - from_) / (high - low)))


class Stream:
    """One file.

    Attributes:
        lost: Events that had no room.
        is_whole: It was ended, and holds nothing besides whole blocks.
        points: Their names, by number.
        events: Of each point tag and ticks.
    """

    def __init__(self, raw: bytes) -> None:
        if raw[:8] != b"BWSTREAM":
            raise ValueError("no stream of bw-events")
        self.lost = 0
        self.is_whole = False
        self.points: list[str] = []
        self.events: dict[str, list[tuple[int, int]]] = {}
        self._clocks: dict[int, list[tuple[int, int]]] = {}
        self._slots: dict[tuple[int, int], bytes] = {}
        at = 8
        while at + 24 <= len(raw):
            _, kind, ring, position, size = struct.unpack_from("<IHHQQ", raw, at)
            try:
                self._block(kind, ring, position, raw[at + 24 : at + 24 + size])
            except struct.error as error:
                raise ValueError(f"byte {at}: a block that is too short: {error}") from error
            at += 24 + size
        self.is_whole = self.is_whole and at == len(raw)

    def readings(self, clock: int) -> list[tuple[int, int]]:
        """Return ticks and ns of each reading of a clock: REALTIME is UTC."""
        return sorted(self._clocks.get(clock, []))

    def numbers(self, point: str) -> list[tuple[int, int, int]]:
        """Return tag, ticks and data of each event of a point that has a number of four bytes as its data."""
        return list(self._data(point, "<I"))

    def stamps(self, point: str) -> list[tuple[int, int]]:
        """Return tag and data of each event of a point that has a number of eight bytes with a sign."""
        return [(tag, number) for tag, _, number in self._data(point, "<q")]

    def _data(self, point: str, form: str) -> Iterator[tuple[int, int, int]]:
        for (ring, position), slot in self._slots.items():
            ticks, tag, _, _, number, size, commit = struct.unpack("<QqIIHHI", slot)
            if commit != _commit(position) | _FIRST or self.points[number] != point:
                continue
            data = self._slots.get((ring, position + 1), bytes(32))
            if size == struct.calcsize(form) and struct.unpack_from("<I", data, 28)[0] == _commit(
                position + 1
            ):
                yield tag, ticks, struct.unpack_from(form, data)[0]

    def _block(self, kind: int, ring: int, position: int, body: bytes) -> None:
        if kind == 1:
            (count,) = struct.unpack_from("<I", body, 64 + 32 + 8 + 8 + 4)
            for at in range(128, 128 + 256 * count, 256):
                group, name = struct.unpack_from("<24s40s", body, at)
                self.points.append(".".join(each.split(b"\0")[0].decode() for each in (group, name)))
            self.events = {name: [] for name in self.points}
        elif kind == 2:
            for number in range(len(body) // 32):
                self._slots[ring, position + number] = body[32 * number : 32 * number + 32]
                ticks, tag, _, _, point, _, commit = struct.unpack_from("<QqIIHHI", body, 32 * number)
                if commit == _commit(position + number) | _FIRST:
                    self.events[self.points[point]].append((tag, ticks))
        elif kind == 3:
            clock, _, before, after, clock_ns = struct.unpack("<IiQQq", body)
            self._clocks.setdefault(clock, []).append(((before + after) // 2, clock_ns))
        elif kind == 5:
            self.lost += struct.unpack("<QQQ", body)[1]
            self.is_whole = True


def _commit(position: int) -> int:
    return (position + 1) & 0x7FFFFFFF
