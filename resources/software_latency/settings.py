# SPDX-License-Identifier: Apache-2.0
"""How many round trips a profile asks for."""

from __future__ import annotations

from dataclasses import dataclass

from hw.fields import Fields


@dataclass(frozen=True)
class RoundTripTimes:
    """How many round trips are made.

    Attributes:
        trips: In each direction.
        interval_us: From one to the next.
        size_bytes: Of the payload, there and back.
    """

    trips: int
    interval_us: int
    size_bytes: int

    @property
    def direction_s(self) -> float:
        """Return how long one direction takes."""
        return self.trips * self.interval_us / 1e6


def round_trip_times(table: Fields | None) -> RoundTripTimes | None:
    """Read the table of a profile; None: it has none. Raises ConfigError: a value is out of range."""
    if table is None:
        return None
    times = RoundTripTimes(
        trips=table.integer("trips", 100, 10_000_000),
        interval_us=table.integer("interval_us", 100, 60_000_000),
        size_bytes=table.integer("size_bytes", 44, 65_507),
    )
    table.finish()
    return times
