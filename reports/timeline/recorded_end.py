# SPDX-License-Identifier: Apache-2.0
"""A program that recorded its points on a machine whose clock was asked meanwhile, and where its events lie.

The program's answer, the stream of its points, and, of a machine whose clock is not the reference, the
answer of `bw-traffic offset` lie in one folder.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from reports.errors import RecordError
from reports.record.codec import omit_none
from reports.timeline.clock_record import NS_PER_S, Times, nominal_ns
from reports.timeline.event_stream import EventStream
from reports.timeline.global_time import GlobalTime, Places
from reports.timeline.processing.stream_events import BEYOND_NS, clock_record, frequency_hz, readings_of
from reports.timeline.sources import chained_record, read_two_way_record

LAST_TICKS = 1 << 62


@dataclass(frozen=True)
class RecordedEnd:
    """One program.

    Attributes:
        node: Where it ran.
        answer: File of what it answered.
        events: File of its points.
        exchanges: File of `bw-traffic offset`; None: the node's clock is the reference.
    """

    node: str
    answer: str
    events: str
    exchanges: str | None = omit_none()

    @property
    def files(self) -> tuple[str, ...]:
        """Return the names of its files."""
        return tuple(name for name in (self.answer, self.events, self.exchanges) if name)

    def time(self, folder: Path, stream: EventStream, tai_utc_s: int) -> GlobalTime:
        """Return TAI by the counter of its machine; raises RecordError."""
        own = self.own_time(stream, tai_utc_s)
        if self.exchanges is None:
            return own
        clock = GlobalTime(read_two_way_record(folder / self.exchanges, self.node))
        return GlobalTime(chained_record(own.record, clock))

    def own_time(self, stream: EventStream, tai_utc_s: int) -> GlobalTime:
        """Return what its machine's clock showed, TAI, by the counter; raises RecordError."""
        return GlobalTime(clock_record(self.node, stream, "realtime", tai_utc_s))

    def stamp_places(self, folder: Path, realtime_ns: Times, tai_utc_s: int) -> Places:
        """Return where stamps of its machine's CLOCK_REALTIME lie, shape (n,); raises RecordError."""
        shown_ns = realtime_ns + tai_utc_s * NS_PER_S
        if self.exchanges is not None:
            return GlobalTime(read_two_way_record(folder / self.exchanges, self.node)).place(shown_ns)
        zero = shown_ns * 0
        return Places(shown_ns, shown_ns, shown_ns, zero, zero == 0)


def counter_ns(stream: EventStream) -> Times:
    """Return the counter at each event, shape (n,), in ns from its start; raises RecordError."""
    hz, _ = frequency_hz(stream, readings_of(stream, "realtime"))
    if stream.ticks.size and int(stream.ticks.max()) >= LAST_TICKS:
        raise RecordError(f"{stream.program}: an event at a time that cannot be")
    return nominal_ns(stream.ticks, hz)


def event_places(stream: EventStream, time: GlobalTime) -> Places:
    """Return the places of all events of a stream, shape (n,); raises RecordError."""
    return time.place(counter_ns(stream), BEYOND_NS)


def require_plain(names: Iterable[str], document: str) -> None:
    """Refuse names that are no file of the document's own folder; raises RecordError."""
    for name in names:
        if Path(name).name != name:
            raise RecordError(f"{document}: {name!r} is no file of this folder")
