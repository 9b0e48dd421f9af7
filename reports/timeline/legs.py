# SPDX-License-Identifier: Apache-2.0
"""The legs of stimulus and response: each message from program to program, on the timeline of both machines.

Points at both ends stamp each message by its machine's counter. Readings of that machine's clock beside the
counter, and of that clock against the reference, say where on TAI a stamp lies, how far off it can be at
most, and its U. No card and no counter that both machines see takes part.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from reports.timeline.capability import FROM_TARGET, LEGS, TO_TARGET
from reports.timeline.clock_record import ClockRecord
from reports.timeline.contradictions import Causality, Messages, causality
from reports.timeline.event_stream_file import read_event_stream
from reports.timeline.global_time import Break
from reports.timeline.leg import Leg, PlacedEnd, matched_leg
from reports.timeline.legs_evidence import StimulusResponse, load_end, load_legs
from reports.timeline.recorded_end import event_places

RUN_UP = 10
"""Messages at the beginning that do not count: a connection and its caches are cold."""
_ENDS = {
    TO_TARGET: ("stimulus.sent", "stimulus.received"),
    FROM_TARGET: ("response.sent", "response.received"),
}


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
    times = [each.time(folder, stream, facts.tai_utc_s) for each, stream in zip(ends, streams, strict=True)]
    placed = [
        PlacedEnd(end, stream, event_places(stream, time))
        for end, stream, time in zip(ends, streams, times, strict=True)
    ]
    legs = [
        matched_leg(name, (placed[one], _ENDS[name][0]), (placed[other], _ENDS[name][1]), RUN_UP)
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
