# SPDX-License-Identifier: Apache-2.0
"""What verdicts ask of a loop, be it a ring or a camera and its tracker: its stretches, and its faults."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from reports.timeline.clock_record import Times
from reports.timeline.contradictions import Causality


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
