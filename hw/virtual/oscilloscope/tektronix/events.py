# SPDX-License-Identifier: Apache-2.0
"""The event queue of a 5 Series MSO: events can be read only after *ESR? has let them out."""

from __future__ import annotations

EVENTS_KEPT = 32
OVERFLOW = (350, "Queue overflow; ")
NOTHING = (0, "No events to report - queue empty")
NOT_YET = (1, "No events to report - new events pending *ESR?")


class EventQueue:
    """Events in the order in which they came. The 33rd says that more were lost."""

    def __init__(self) -> None:
        self._new: list[tuple[int, str]] = []
        self._readable: list[tuple[int, str]] = []

    def add(self, number: int, text: str) -> None:
        """Queue an event."""
        count = len(self._new) + len(self._readable)
        if count < EVENTS_KEPT:
            self._new.append((number, text))
        elif count == EVENTS_KEPT:
            self._new.append(OVERFLOW)

    def release(self) -> None:
        """Make new events readable; those released before and not read are erased (*ESR?)."""
        self._readable, self._new = self._new, []

    def next(self) -> tuple[int, str]:
        """Take one event out."""
        if self._readable:
            return self._readable.pop(0)
        return NOT_YET if self._new else NOTHING

    def take_all(self) -> list[tuple[int, str]]:
        """Take all readable events out; if there are none, the line that says so."""
        events, self._readable = self._readable, []
        return events or [NOT_YET if self._new else NOTHING]

    def readable(self) -> int:
        """Return the number of events that can be read."""
        return len(self._readable)

    def clear(self) -> None:
        """Forget everything (*CLS)."""
        self._new, self._readable = [], []
