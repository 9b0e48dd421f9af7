# SPDX-License-Identifier: Apache-2.0
"""The edges around a record that is being taken: bounded, in order, with the levels that went before."""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hw.virtual.oscilloscope.edges import Edge

EDGES_KEPT = 100_000
"""Of each input; then the older half becomes a level."""


@dataclass(frozen=True)
class Arrivals:
    """Edges of one input near an instant.

    Attributes:
        high_before: Level before the first of them.
        times_ps: Relative to the instant, ascending.
        rising: Level after each.
    """

    high_before: bool
    times_ps: NDArray[np.float64]
    rising: NDArray[np.bool_]


class Track:
    """The edges of one input that may still belong to a record."""

    def __init__(self) -> None:
        self._times_ps: list[int] = []
        self._rising: list[bool] = []
        self._high_before = False

    def __len__(self) -> int:
        return len(self._times_ps)

    def add(self, time_ps: int, rising: bool) -> None:
        """Keep an edge; one that comes late is put in its place."""
        place = bisect.bisect_right(self._times_ps, time_ps)
        self._times_ps.insert(place, time_ps)
        self._rising.insert(place, rising)
        if len(self._times_ps) > EDGES_KEPT:
            self._forget(EDGES_KEPT // 2)

    def first_from(self, time_ps: int) -> tuple[int, bool] | None:
        """Return time and direction of the first edge at or after an instant."""
        place = bisect.bisect_left(self._times_ps, time_ps)
        return (self._times_ps[place], self._rising[place]) if place < len(self._times_ps) else None

    def near(self, zero_ps: int, from_ps: float, to_ps: float, late_ps: float) -> Arrivals:
        """Return the edges that arrive in a span.

        Args:
            zero_ps: Instant that all times are relative to.
            from_ps: Begin of the span.
            to_ps: Its end.
            late_ps: How much later than it happened an edge arrives.
        """
        begin = bisect.bisect_left(self._times_ps, zero_ps + math.floor(from_ps - late_ps))
        end = bisect.bisect_right(self._times_ps, zero_ps + math.ceil(to_ps - late_ps))
        return Arrivals(
            self._rising[begin - 1] if begin else self._high_before,
            np.array([time_ps - zero_ps for time_ps in self._times_ps[begin:end]], np.float64) + late_ps,
            np.array(self._rising[begin:end], np.bool_),
        )

    def forget_before(self, time_ps: int) -> None:
        """Turn the edges before an instant into a level."""
        self._forget(bisect.bisect_left(self._times_ps, time_ps))

    def settle(self, rising: bool) -> None:
        """Forget all edges, and take the level of one that was not seen."""
        self._forget(len(self._times_ps))
        self._high_before = rising

    def _forget(self, count: int) -> None:
        if count:
            self._high_before = self._rising[count - 1]
            del self._times_ps[:count], self._rising[:count]


class Timeline:
    """The tracks of all inputs.

    Attributes:
        tracks: By channel.
        known_until_ps: No edge before this is still to come, but for small disorder.
    """

    def __init__(self, channels: int) -> None:
        self.tracks = {number: Track() for number in range(1, channels + 1)}
        self.known_until_ps = 0

    def add(self, edge: Edge) -> None:
        """Keep an edge. One of an input that the instrument does not have is left out."""
        if edge.channel in self.tracks:
            self.known_until_ps = max(self.known_until_ps, edge.time_ps)
            self.tracks[edge.channel].add(edge.time_ps, edge.rising)

    def forget_before(self, time_ps: int) -> None:
        """Turn the edges before an instant into levels."""
        for track in self.tracks.values():
            track.forget_before(time_ps)

    def settle(self, last: Sequence[Edge]) -> None:
        """Forget all edges; the last ones that were not seen give the levels."""
        for edge in last:
            if edge.channel in self.tracks:
                self.tracks[edge.channel].settle(edge.rising)
