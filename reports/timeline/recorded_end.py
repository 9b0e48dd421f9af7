# SPDX-License-Identifier: Apache-2.0
"""A program that recorded its points on a machine whose clock was asked meanwhile, and where its events lie.

The program's answer, the stream of its points, and, of a machine whose clock is not the reference, the
answer of `bw-traffic offset` lie in one folder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from reports.errors import RecordError
from reports.record.codec import omit_none
from reports.timeline.clock_record import NS_PER_S, ClockLimits, Times, nominal_ns
from reports.timeline.event_stream import EventStream
from reports.timeline.global_time import GlobalTime, Places
from reports.timeline.processing.stream_events import BEYOND_NS, clock_record, frequency_hz, readings_of
from reports.timeline.sources import chained_record, read_two_way_record

LAST_TICKS = 1 << 62
CORRECTED = ClockLimits(rate_ppb=1_000_000, drift_ppb=500_000)
"""Of a clock that a daemon slews: by 500 ppm, as adjtime(3) and the kernel's own loop do at most."""


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

    def time(
        self, folder: Path, stream: EventStream, tai_utc_s: int, *, is_corrected: bool = False
    ) -> GlobalTime:
        """Return TAI by the counter of its machine; raises RecordError.

        Args:
            folder: Of its files.
            stream: Its points.
            tai_utc_s: TAI - UTC.
            is_corrected: Its clock is slewed meanwhile, more than an oscillator ever changes.
        """
        own = self.own_time(stream, tai_utc_s, is_corrected=is_corrected)
        if self.exchanges is None:
            return own
        return GlobalTime(chained_record(own.record, self._asked(folder, is_corrected)))

    def own_time(self, stream: EventStream, tai_utc_s: int, *, is_corrected: bool = False) -> GlobalTime:
        """Return what its machine's clock showed, TAI, by the counter; raises RecordError."""
        record = clock_record(self.node, stream, "realtime", tai_utc_s)
        return GlobalTime(replace(record, limits=CORRECTED) if is_corrected else record)

    def stamp_places(
        self, folder: Path, realtime_ns: Times, tai_utc_s: int, *, is_corrected: bool = False
    ) -> Places:
        """Return where stamps of its machine's CLOCK_REALTIME lie, shape (n,); raises RecordError."""
        return self.stamp_placer(folder, tai_utc_s, is_corrected=is_corrected)(realtime_ns)

    def stamp_placer(
        self, folder: Path, tai_utc_s: int, *, is_corrected: bool = False
    ) -> Callable[[Times], Places]:
        """Return what places such stamps, as often as it is asked; raises RecordError."""
        asked = None if self.exchanges is None else self._asked(folder, is_corrected)

        def places(realtime_ns: Times) -> Places:
            shown_ns = realtime_ns + tai_utc_s * NS_PER_S
            if asked is not None:
                return asked.place(shown_ns)
            zero = shown_ns * 0
            return Places(shown_ns, shown_ns, shown_ns, zero, zero == 0)

        return places

    def _asked(self, folder: Path, is_corrected: bool) -> GlobalTime:
        """Return TAI by the clock that was asked."""
        assert self.exchanges is not None
        record = read_two_way_record(folder / self.exchanges, self.node)
        return GlobalTime(replace(record, limits=CORRECTED) if is_corrected else record)


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
