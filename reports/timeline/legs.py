# SPDX-License-Identifier: Apache-2.0
"""The legs of stimulus and response: each message from program to program, on the timeline of both machines.

Points at both ends stamp each message by its machine's counter. Readings of that machine's clock beside the
counter, and of that clock against the reference, say where on TAI a stamp lies, how far off it can be at
most, and its U. No card and no counter that both machines see takes part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from reports.errors import RecordError
from reports.timeline.capability import FROM_TARGET, LEGS, TO_TARGET
from reports.timeline.clock_record import ClockRecord, Times, nominal_ns
from reports.timeline.contradictions import Causality, Messages, causality
from reports.timeline.event_stream import EventStream
from reports.timeline.event_stream_file import read_event_stream
from reports.timeline.global_time import Break, GlobalTime, Places
from reports.timeline.legs_evidence import LegEnd, StimulusResponse, load_end, load_legs
from reports.timeline.processing.stream_events import BEYOND_NS, clock_record, frequency_hz, readings_of
from reports.timeline.sources import chained_record, read_two_way_record

RUN_UP = 10
"""Messages at the beginning that do not count: a connection and its caches are cold."""
_ENDS = {
    TO_TARGET: ("stimulus.sent", "stimulus.received"),
    FROM_TARGET: ("response.sent", "response.received"),
}


@dataclass(frozen=True, slots=True, eq=False)
class Leg:
    """One way of all messages that have a place at both ends and count.

    Attributes:
        name: TO_TARGET or FROM_TARGET.
        sender: Its node.
        receiver: Likewise.
        number: Shape (n,), of the messages.
        sent: Shape (n,).
        received: Shape (n,).
    """

    name: str
    sender: str
    receiver: str
    number: Times
    sent: Places
    received: Places

    @property
    def time_ns(self) -> Times:
        """Return what each message took, shape (n,)."""
        return self.received.tai_ns - self.sent.tai_ns

    @property
    def u_ns(self) -> Times:
        """Return U of that, shape (n,): both ends' errors may have one cause."""
        return self.received.u_ns + self.sent.u_ns

    def __len__(self) -> int:
        """Return how many messages count."""
        return self.number.size


@dataclass(frozen=True, eq=False)
class Legs:
    """What was found.

    Attributes:
        facts: Of the measurement.
        legs: TO_TARGET, FROM_TARGET.
        clocks: Of each end its record on the reference, server first.
        breaks: What happened to a clock meanwhile, with its node.
        lost_events: That a ring had no room for.
        negative: Of each leg by its receiver's own clock.
        complete: Neither program was stopped before its end.
        put_ns: What a known delay really took, from stamp to sending, with it less without; None: none was.
    """

    facts: StimulusResponse
    legs: tuple[Leg, Leg]
    clocks: tuple[ClockRecord, ClockRecord]
    breaks: tuple[tuple[str, Break], ...]
    lost_events: int
    negative: tuple[int, int]
    complete: bool
    put_ns: int | None

    @property
    def causality(self) -> Causality:
        """Return effects that lie before their causes."""
        least_ns = self.facts.least_ns
        return causality(
            [Messages(leg.sender, leg.receiver, leg.sent, leg.received, least_ns) for leg in self.legs]
        )

    def leg(self, name: str) -> Leg:
        """Return a leg by its name."""
        return self.legs[LEGS.index(name)]

    def missing(self, leg: Leg) -> int:
        """Return how many messages that should count have no place at both ends."""
        return max(0, self.facts.count - RUN_UP) - len(leg)


def load_stimulus_response(folder: Path) -> Legs:
    """Read the evidence and place all events; raises RecordError, which names the file."""
    facts = load_legs(folder)
    ends = facts.server, facts.client
    answers = [load_end(folder, each, facts) for each in ends]
    streams = [read_event_stream(folder / each.events) for each in ends]
    times = [_global_time(folder, each, stream, facts) for each, stream in zip(ends, streams, strict=True)]
    placed = [_places(*each) for each in zip(streams, times, strict=True)]
    legs = [
        _leg(name, ends[one], ends[other], streams[one], streams[other], placed[one], placed[other])
        for name, one, other in ((TO_TARGET, 0, 1), (FROM_TARGET, 1, 0))
    ]
    put_ns = None
    sender = answers[0] if facts.delay is None or facts.delay.leg == TO_TARGET else answers[1]
    if facts.delay is not None and sender.sending_ns is not None and sender.sending_delayed_ns is not None:
        put_ns = sender.sending_delayed_ns - sender.sending_ns
    return Legs(
        facts,
        (legs[0], legs[1]),
        (times[0].record, times[1].record),
        tuple((each.record.node, one) for each in times for one in each.breaks),
        sum(each.lost for each in streams),
        (answers[1].negative, answers[0].negative),
        all(each.complete for each in answers),
        put_ns,
    )


def _global_time(folder: Path, end: LegEnd, stream: EventStream, facts: StimulusResponse) -> GlobalTime:
    own = clock_record(end.node, stream, "realtime", facts.tai_utc_s)
    if end.exchanges is None:
        return GlobalTime(own)
    clock = GlobalTime(read_two_way_record(folder / end.exchanges, end.node))
    return GlobalTime(chained_record(own, clock))


def timeline_places(folder: Path, end: LegEnd, stream: EventStream, facts: StimulusResponse) -> Places:
    """Return the places of all events of an end; raises RecordError."""
    return _places(stream, _global_time(folder, end, stream, facts))


def own_places(end: LegEnd, stream: EventStream, facts: StimulusResponse) -> Places:
    """Return what the end's own clock showed at all its events, TAI; raises RecordError."""
    return _places(stream, GlobalTime(clock_record(end.node, stream, "realtime", facts.tai_utc_s)))


def _places(stream: EventStream, time: GlobalTime) -> Places:
    hz, _ = frequency_hz(stream, readings_of(stream, "realtime"))
    if stream.ticks.size and int(stream.ticks.max()) >= 1 << 62:
        raise RecordError(f"{stream.program}: an event at a time that cannot be")
    return time.place(nominal_ns(stream.ticks, hz), BEYOND_NS)


def _leg(
    name: str,
    from_end: LegEnd,
    to_end: LegEnd,
    sender: EventStream,
    receiver: EventStream,
    sent: Places,
    received: Places,
) -> Leg:
    """Match the two ends of a leg by the messages' numbers; one that is there twice is refused."""
    out, back = sender.of(_ENDS[name][0]), receiver.of(_ENDS[name][1])
    for stream, numbers, end in ((sender, out, from_end), (receiver, back, to_end)):
        if np.unique(stream.tag[numbers]).size < numbers.size:
            raise RecordError(f"{end.events}: {name}: a message is there twice")
    number, at_out, at_back = np.intersect1d(
        sender.tag[out], receiver.tag[back], assume_unique=True, return_indices=True
    )
    first, last = out[at_out], back[at_back]
    counts = sent.known[first] & received.known[last] & (number >= RUN_UP)
    return Leg(
        name,
        from_end.node,
        to_end.node,
        number[counts].astype(np.int64),
        _of(sent, first[counts]),
        _of(received, last[counts]),
    )


def _of(places: Places, at: Times) -> Places:
    return Places(
        places.tai_ns[at], places.earliest_ns[at], places.latest_ns[at], places.u_ns[at], places.known[at]
    )


def quantile_ns(times_ns: Times, share: float) -> int:
    """Return a quantile that is one of the times (inverse of the shares)."""
    return int(np.quantile(times_ns, share, method="inverted_cdf"))


def off_in_quarters_ns(times_ns: Times, share: float) -> int:
    """Return how far the quantile of any quarter of the messages is off that of all, at most."""
    whole_ns = quantile_ns(times_ns, share)
    quarters: Sequence[NDArray[np.int64]] = np.array_split(times_ns, 4)
    return max((abs(quantile_ns(each, share) - whole_ns) for each in quarters if each.size), default=0)
