# SPDX-License-Identifier: Apache-2.0
"""What verdicts ask of a loop, be it a ring or a camera and its tracker: its stretches, and its faults."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from reports.errors import RecordError
from reports.timeline.clock_record import Times
from reports.timeline.contradictions import Causality
from reports.timeline.event_stream import EventStream
from reports.timeline.leg import Leg
from reports.timeline.recorded_end import counter_ns


@dataclass(frozen=True, slots=True, eq=False)
class Stretch:
    """A part of the loop, or all of it, message by message.

    Attributes:
        name: `whole`, `hop 1`, `node 1`, `camera to tracker`, ….
        number: Shape (n,), of the messages or pictures, in their order.
        time_ns: Shape (n,): what each took.
        u_ns: Shape (n,): U of that by the timeline; None: one counter has measured it.
    """

    name: str
    number: Times
    time_ns: Times
    u_ns: Times | None

    def __len__(self) -> int:
        """Return how many messages count."""
        return self.number.size


class Loop(Protocol):
    """A loop that was measured."""

    @property
    def causality(self) -> Causality:
        """Return what was read before it can have been written."""
        ...

    @property
    def lost_events(self) -> int:
        """Return how many events a ring of bw-events had no room for."""
        ...

    @property
    def complete(self) -> bool:
        """Tell whether every program came to its end."""
        ...

    def stretch(self, quantity: str, name: str) -> Stretch:
        """Return a stretch of a quantity by its name; raises RecordError: says which there are."""
        ...

    def missing(self, stretch: Stretch) -> int:
        """Return how many messages that should count have no time there."""
        ...

    def unstamped(self, stretch: Stretch) -> int:
        """Return how many messages came, and were not measured on the wire."""
        ...


def leg_stretch(leg: Leg) -> Stretch:
    """Return a stretch that the timeline measures."""
    return Stretch(leg.name, leg.number, leg.time_ns, leg.u_ns)


def own_stretch(name: str, stream: EventStream, begin: str, end: str, run_up: int) -> Stretch:
    """Return what a program takes from one of its points to another, by its counter; raises RecordError.

    Args:
        name: Of the stretch.
        stream: What the program recorded.
        begin: A point whose tag is the message's number; the first event of each number counts.
        end: Likewise.
        run_up: So many messages at the beginning do not count.
    """
    (begun, begin_ns), (ended, end_ns) = point_ns(stream, begin), point_ns(stream, end)
    number, one, other = np.intersect1d(begun, ended, assume_unique=True, return_indices=True)
    counts = number >= run_up
    return Stretch(name, number[counts], (end_ns[other] - begin_ns[one])[counts], None)


def point_ns(stream: EventStream, point: str) -> tuple[Times, Times]:
    """Return number and counter in ns of a point's events, the first one of each number, in their order."""
    own = stream.of(point)
    number, first = np.unique(stream.tag[own].astype(np.int64), return_index=True)
    return number, counter_ns(stream)[own][first]


def named_stretch(every: Sequence[Stretch], quantity: str, name: str) -> Stretch:
    """Return one of the stretches of a quantity by its name; raises RecordError: says which there are."""
    for each in every:
        if each.name == name:
            return each
    there = ", ".join(each.name for each in every) or "none: no kernel has stamped"
    raise RecordError(f"{quantity}: no stretch {name!r}; there are: {there}")
