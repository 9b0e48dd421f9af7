# SPDX-License-Identifier: Apache-2.0
"""How many round trips a profile asks for."""

from __future__ import annotations

from dataclasses import dataclass

from hw.fields import Fields

TURN_PAUSE_US = 3000
"""Between two turns: what the clocks' lines leave open, and a trip that comes back late."""


@dataclass(frozen=True)
class RoundTripTimes:
    """How many round trips are made.

    Attributes:
        trips: In each direction.
        turn_trips: Of a turn: then the token goes to the next direction.
        interval_us: From one to the next.
        size_bytes: Of the payload, there and back.
    """

    trips: int
    turn_trips: int
    interval_us: int
    size_bytes: int

    @property
    def turns(self) -> int:
        """Return how many turns a direction has."""
        return -(-self.trips // self.turn_trips)

    @property
    def slot_us(self) -> int:
        """Return how long a turn takes, with the pause after it."""
        return self.turn_trips * self.interval_us + TURN_PAUSE_US

    def every_us(self, directions: int) -> int:
        """Return the time from one turn of a direction to its next."""
        return directions * self.slot_us

    def all_s(self, directions: int) -> float:
        """Return how long all turns of all directions take."""
        return self.turns * self.every_us(directions) / 1e6


def round_trip_times(table: Fields | None) -> RoundTripTimes | None:
    """Read the table of a profile; None: it has none. Raises ConfigError: a value is out of range."""
    if table is None:
        return None
    times = RoundTripTimes(
        trips=table.integer("trips", 100, 1_000_000),
        turn_trips=table.integer("turn_trips", 1, 10_000),
        interval_us=table.integer("interval_us", 100, 60_000_000),
        size_bytes=table.integer("size_bytes", 44, 65_507),
    )
    table.finish()
    return times
