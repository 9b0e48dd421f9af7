# SPDX-License-Identifier: Apache-2.0
"""A program's events on the timeline, read off in the simplest way: docs/timeline.md.

A line between the two readings of the counter around an event, and one between the two exchanges around that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reports.rejudge.answers import read_result
from reports.rejudge.event_stream import REALTIME, Stream, on_line

Json = Mapping[str, Any]

NS_PER_S = 1_000_000_000


@dataclass
class PlacedStream:
    """What a program recorded, and how its counter becomes TAI.

    Attributes:
        stream: Its file.
        readings: Ticks and TAI in ns, as its machine's clock had it, of each reading.
        exchanges: What that clock showed at the quickest quarter of exchanges, and TAI then, in ns; none: it
            is the reference.
        half_ns: Half of the shortest round trip of all exchanges; 0: there are none.
        longest_half_ns: Of the longest round trip among those that are used.
    """

    stream: Stream
    readings: list[tuple[int, int]]
    exchanges: list[tuple[int, int]]
    half_ns: int
    longest_half_ns: int

    def tai_ns(self, ticks: int) -> int:
        """Return TAI of a value of the counter."""
        return self.shown_tai_ns(on_line(self.readings, ticks))

    def shown_tai_ns(self, shown_ns: int) -> int:
        """Return TAI of what its machine's clock showed."""
        return on_line(self.exchanges, shown_ns) if self.exchanges else shown_ns

    @property
    def ns_per_tick(self) -> float:
        """Return what the first and the last reading say."""
        (first, first_ns), (last, last_ns) = self.readings[0], self.readings[-1]
        return (last_ns - first_ns) / (last - first)


def read_placed(facts: Json, end: Json, folder: Path) -> PlacedStream:
    """Read a program's stream and its machine's exchanges.

    Args:
        facts: The document that names them; its `tai_utc_s` counts.
        end: The program's part of it.
        folder: Of all files.

    Raises:
        ValueError: The exchanges have no result, or a file another form.
    """
    stream = Stream((folder / end["events"]).read_bytes())
    readings = [
        (ticks, clock_ns + facts["tai_utc_s"] * NS_PER_S) for ticks, clock_ns in stream.readings(REALTIME)
    ]
    if "exchanges" not in end:
        return PlacedStream(stream, readings, [], 0, 0)
    answer = read_result(folder / end["exchanges"])
    if answer is None:
        raise ValueError(f"{end['exchanges']}: no result")
    # Exchanges that were held up say little: the quickest quarter counts.
    halves = sorted(half for _, _, half in answer["series"])
    longest = halves[len(halves) // 4]
    exchanges = [(at + offset, at) for at, offset, half in answer["series"] if half <= longest]
    return PlacedStream(stream, readings, exchanges, halves[0], longest)
