# SPDX-License-Identifier: Apache-2.0
"""A leg: one way of messages from program to program, matched by their numbers, on one timeline."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reports.errors import RecordError
from reports.record.measurement import Uncertainty, UncertaintyPart
from reports.timeline.clock_record import Times
from reports.timeline.event_stream import EventStream
from reports.timeline.global_time import Places
from reports.timeline.recorded_end import RecordedEnd


@dataclass(frozen=True, slots=True, eq=False)
class PlacedEnd:
    """A program, what it recorded, and the places of that, shape (n,)."""

    end: RecordedEnd
    stream: EventStream
    places: Places


@dataclass(frozen=True, slots=True, eq=False)
class Leg:
    """One way of all messages that have a place at both ends and count.

    Attributes:
        name: Which way.
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


def matched_leg(name: str, sent: tuple[PlacedEnd, str], received: tuple[PlacedEnd, str], run_up: int) -> Leg:
    """Match both ends of a leg by the messages' numbers.

    Args:
        name: Of the leg.
        sent: The sender, and its point whose tag is the number.
        received: Likewise.
        run_up: So many messages at the beginning do not count.

    Raises:
        RecordError: A message is there twice; names the file.
    """
    (sender, out_point), (receiver, back_point) = sent, received
    out, back = sender.stream.of(out_point), receiver.stream.of(back_point)
    for placed, numbers in ((sender, out), (receiver, back)):
        if np.unique(placed.stream.tag[numbers]).size < numbers.size:
            raise RecordError(f"{placed.end.events}: {name}: a message is there twice")
    number, at_out, at_back = np.intersect1d(
        sender.stream.tag[out], receiver.stream.tag[back], assume_unique=True, return_indices=True
    )
    first, last = out[at_out], back[at_back]
    counts = sender.places.known[first] & receiver.places.known[last] & (number >= run_up)
    return Leg(
        name,
        sender.end.node,
        receiver.end.node,
        number[counts].astype(np.int64),
        places_at(sender.places, first[counts]),
        places_at(receiver.places, last[counts]),
    )


def places_at(places: Places, at: Times) -> Places:
    """Return some of the places, by their numbers, shape (m,)."""
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


def quantile_uncertainty(times_ns: Times, u_ns: Times, share: float) -> Uncertainty:
    """Return U of a quantile of times: their places' on the timeline, and how far any quarter is off all.

    Args:
        times_ns: Shape (n,), at least one.
        u_ns: Shape (n,): U of each (k = 2).
        share: Such as 0.5.
    """
    timeline_ns = math.ceil(quantile_ns(u_ns, 0.5) / 2)
    return Uncertainty.from_parts(
        [
            UncertaintyPart("timeline", "standard", timeline_ns),
            UncertaintyPart("quarters", "bound", off_in_quarters_ns(times_ns, share)),
        ]
    )
