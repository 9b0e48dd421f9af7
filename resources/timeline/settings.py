# SPDX-License-Identifier: Apache-2.0
"""How many stimuli and how much bulk data a profile asks for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from hw.errors import ConfigError
from hw.fields import Fields

TIMES = Path(__file__).with_name("times.toml")
DELAYS_IN_AN_INTERVAL = 4


@dataclass(frozen=True)
class TimelineTimes:
    """How many messages go each way, and how much bulk data to the target.

    Attributes:
        count: Stimuli.
        interval_us: From one to the next; a trip that takes longer delays it.
        size_bytes: Of each message, either way.
        delay_us: A known delay that is put into each leg by turns, in measurements of its own.
        delay_count: Stimuli of each of these.
        delay_turn: It is there in each second turn of so many.
        bulk_bytes: Of payload.
        bulk_block_bytes: Of a call of its sender.
        bulk_rate_mbit: Of payload; 0: as fast as it goes.
    """

    count: int
    interval_us: int
    size_bytes: int
    delay_us: int
    delay_count: int
    delay_turn: int
    bulk_bytes: int
    bulk_block_bytes: int
    bulk_rate_mbit: int

    def delayed_by(self, delay_us: int) -> TimelineTimes:
        """Return the same with another delay; 0: as it is. Raises ConfigError: it is out of range."""
        if not delay_us:
            return self
        found = replace(self, delay_us=delay_us)
        found.require_room("delay_us")
        return found

    def require_room(self, where: str) -> None:
        """Refuse a delay that an interval has no room for; raises ConfigError, which begins with `where`."""
        largest_us = self.interval_us // DELAYS_IN_AN_INTERVAL
        if not 1 <= self.delay_us <= largest_us:
            raise ConfigError(f"{where}: {self.delay_us}; allowed: 1..{largest_us}, a quarter of interval_us")


def timeline_times(table: Fields) -> TimelineTimes:
    """Read the table of a profile; raises ConfigError: names file, field and allowed range."""
    times = TimelineTimes(
        count=table.integer("count", 100, 1_000_000),
        interval_us=table.integer("interval_us", 100, 10_000_000),
        size_bytes=table.integer("size_bytes", 48, 65_536),
        delay_us=table.integer("delay_us", 1, 100_000),
        delay_count=table.integer("delay_count", 100, 1_000_000),
        delay_turn=table.integer("delay_turn", 10, 10_000),
        bulk_bytes=table.integer("bulk_bytes", 1_000_000, 1_000_000_000),
        bulk_block_bytes=table.integer("bulk_block_bytes", 1, 1 << 20),
        bulk_rate_mbit=table.integer("bulk_rate_mbit", 0, 1_000_000),
    )
    where = f"{table.file}: {table.table}"
    times.require_room(f"{where}.delay_us")
    if times.delay_turn * 2 > times.delay_count:
        allowed = times.delay_count // 2
        raise ConfigError(
            f"{where}.delay_turn: {times.delay_turn}; allowed: 10..{allowed}, half of delay_count"
        )
    table.finish()
    return times
