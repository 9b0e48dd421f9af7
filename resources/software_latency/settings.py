# SPDX-License-Identifier: Apache-2.0
"""How many round trips a profile asks for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from hw.errors import ConfigError
from hw.fields import Fields

TIMES = Path(__file__).with_name("times.toml")
TURN_PAUSE_US = 3000
"""Between two turns: what the clocks' lines leave open, and a trip that comes back late."""
RUN_UP_TRIPS = 4
"""At the beginning of each turn, which do not count: who has not been asked for long is cold."""
DELAYS_IN_AN_INTERVAL = 3
"""An interval has room for the echo's sleep and for the rest of a trip, each as long as its largest delay."""
REQUESTS_MAX = 1_000_000
"""Of one direction: they are in memory until the end."""
SIZE_RANGE_BYTES = 44, 65_507
"""A STAMP packet at least, a datagram of IPv4 at most."""


@dataclass(frozen=True)
class RoundTripTimes:
    """How many round trips are made.

    Attributes:
        trips: In each direction.
        turn_trips: Of a turn: then the token goes to the next direction.
        interval_us: From one to the next.
        sizes_bytes: Of the payload, there and back; each is a measurement of its own.
        icmp_echoes: Of `ping` between each two devices, after the turns of each size; 0: none.
    """

    trips: int
    turn_trips: int
    interval_us: int
    sizes_bytes: tuple[int, ...]
    icmp_echoes: int = 0

    @property
    def size_bytes(self) -> int:
        """Return the first size."""
        return self.sizes_bytes[0]

    def each_size(self) -> Iterator[RoundTripTimes]:
        """Yield what is measured of each size alone."""
        for size_bytes in self.sizes_bytes:
            yield replace(self, sizes_bytes=(size_bytes,))

    @property
    def hold_us(self) -> int:
        """Return how long an echo sleeps before its reply; the slowest trip has to end within the rest."""
        return self.interval_us // 3

    @property
    def delay_max_us(self) -> int:
        """Return the largest delay of an echo: a slower trip takes the slots of those that do not count."""
        return self.interval_us // DELAYS_IN_AN_INTERVAL

    @property
    def turns(self) -> int:
        """Return how many turns a direction has."""
        return -(-self.trips // self.turn_trips)

    @property
    def slot_us(self) -> int:
        """Return how long a turn takes, with its run-up and the pause after it."""
        return (RUN_UP_TRIPS + self.turn_trips) * self.interval_us + TURN_PAUSE_US

    def every_us(self, directions: int) -> int:
        """Return the time from one turn of a direction to its next."""
        return directions * self.slot_us

    def all_s(self, directions: int) -> float:
        """Return how long all turns of all directions take."""
        return self.turns * self.every_us(directions) / 1e6


def round_trip_times(table: Fields) -> RoundTripTimes:
    """Read the table of a profile; raises ConfigError: names file, field and allowed range."""
    times = RoundTripTimes(
        trips=table.integer("trips", 100, 1_000_000),
        turn_trips=table.integer("turn_trips", 1, 10_000),
        interval_us=table.integer("interval_us", 100, 60_000_000),
        sizes_bytes=_sizes_bytes(table),
        icmp_echoes=table.integer("icmp_echoes", 0, 100_000, default=200),
    )
    requests = times.turns * (RUN_UP_TRIPS + times.turn_trips)
    if requests > REQUESTS_MAX:
        where = f"{table.file}: {table.table}.trips"
        raise ConfigError(
            f"{where}: {requests} requests, {RUN_UP_TRIPS} of run-up in each turn; allowed: {REQUESTS_MAX}"
        )
    table.finish()
    return times


def _sizes_bytes(table: Fields) -> tuple[int, ...]:
    """Read `size_bytes`, or `sizes_bytes` for several; raises ConfigError."""
    where = f"{table.file}: {table.table}"
    if table.has("size_bytes") == table.has("sizes_bytes"):
        raise ConfigError(f"{where}: needs one of size_bytes (one size) and sizes_bytes (a list of sizes)")
    if table.has("size_bytes"):
        return (table.integer("size_bytes", *SIZE_RANGE_BYTES),)
    sizes_bytes = table.integers("sizes_bytes", *SIZE_RANGE_BYTES)
    if not sizes_bytes or len(set(sizes_bytes)) < len(sizes_bytes):
        raise ConfigError(f"{where}.sizes_bytes: needs at least one size, none twice; found {sizes_bytes}")
    return sizes_bytes
