# SPDX-License-Identifier: Apache-2.0
"""Edges as they happen at the instrument's inputs, and where they come from."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

LIVE_EDGES_KEPT = 100_000
PS_PER_NS = 1000


@dataclass(frozen=True, order=True)
class Edge:
    """A change of level at an input.

    Attributes:
        time_ps: Picoseconds on the instrument's true time axis, of the middle of the edge; not negative.
        channel: Input, from 1.
        rising: The level after the edge; an edge to the level that the input already has changes nothing.
    """

    time_ps: int
    channel: int
    rising: bool


@dataclass(frozen=True)
class Progress:
    """A promise of the source: no edge before `time_ps` comes any more."""

    time_ps: int


class EdgeSource(Protocol):
    """Where edges come from, in the order of time (small disorder is put right within a record)."""

    def take(self, timeout_s: float) -> Edge | Progress | None:
        """Return what happened next, or None when nothing did within the time-out.

        Raises:
            EndOfEdges: Nothing will ever happen any more.
        """
        ...

    def restart(self) -> tuple[Edge, ...]:
        """Forget what happened before the arming; return the last edge forgotten of each input."""
        ...


class EndOfEdges(Exception):  # noqa: N818 - an end, not an error
    """The source has no more edges."""


class ReplayedEdges:
    """Edges of a list, a generator or a file: time stops while the instrument is not armed."""

    def __init__(self, edges: Iterable[Edge | Progress]) -> None:
        self._edges: Iterator[Edge | Progress] = iter(edges)

    def take(self, timeout_s: float) -> Edge | Progress | None:  # noqa: ARG002 - the next one is always there
        """Return the next edge."""
        for edge in self._edges:
            return edge
        raise EndOfEdges

    def restart(self) -> tuple[Edge, ...]:
        """Keep everything: nothing happens while nobody looks."""
        return ()


class LiveEdges:
    """Edges that other threads put in as they happen; those of before the arming are not seen.

    At most LIVE_EDGES_KEPT wait to be taken; then the oldest is forgotten and counted in `lost`.
    """

    def __init__(self, kept: int = LIVE_EDGES_KEPT) -> None:
        self._waiting: deque[Edge | Progress] = deque()
        self._kept = kept
        self._changed = threading.Condition()
        self._ended = False
        self.lost = 0

    def put(self, event: Edge | Progress) -> None:
        """Add what has just happened."""
        with self._changed:
            if len(self._waiting) >= self._kept:
                self._waiting.popleft()
                self.lost += 1
            self._waiting.append(event)
            self._changed.notify_all()

    def end(self) -> None:
        """Say that nothing will happen any more."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def take(self, timeout_s: float) -> Edge | Progress | None:
        """Return the oldest event that was not taken."""
        deadline_s = time.monotonic() + timeout_s
        with self._changed:
            while not self._waiting:
                if self._ended:
                    raise EndOfEdges
                remaining_s = deadline_s - time.monotonic()
                if remaining_s <= 0:
                    return None
                self._changed.wait(remaining_s)
            return self._waiting.popleft()

    def restart(self) -> tuple[Edge, ...]:
        """Forget all that waits, but not the level that each input has come to."""
        with self._changed:
            last = {event.channel: event for event in self._waiting if isinstance(event, Edge)}
            self._waiting.clear()
            return tuple(last.values())
