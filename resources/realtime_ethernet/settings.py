# SPDX-License-Identifier: Apache-2.0
"""How many single messages a profile asks for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hw.errors import ConfigError
from hw.fields import Fields

TIMES = Path(__file__).with_name("times.toml")
SIZE_RANGE_BYTES = 4, 1472
"""The number of a round trip at least; at most a datagram of UDP in one frame."""
FRAGMENT_RANGE_BYTES = 1473, 65_507
"""Of messages of more than one frame; at most the largest datagram of UDP."""
PART_BYTES = 12
"""Of a message of a window at least."""


@dataclass(frozen=True)
class MessageTimes:
    """How many messages are sent in each round.

    Attributes:
        rounds: One trial of each kind and size in each.
        sizes_bytes: Of round trips.
        trips: Of each size.
        interval_us: From one to the next.
        probes: Round trips of the probe, with and without a bulk receiver beside.
        probe_interval_us: From one to the next.
        probe_bytes: Their size.
        throughput_sizes_bytes: Of messages sent in windows; the bulk receiver's is among them.
        throughput_ms: How long windows of a size are sent.
        bulk_bytes: Size of the bulk receiver's messages.
        fragment_sizes_bytes: Of messages of more than one frame, for targets that are asked for them: as many
            round trips of each as of the others, and windows as long.
        traced_trips: Probes beside a bulk receiver in the trial that is traced; 0: nothing is.
    """

    rounds: int
    sizes_bytes: tuple[int, ...]
    trips: int
    interval_us: int
    probes: int
    probe_interval_us: int
    probe_bytes: int
    throughput_sizes_bytes: tuple[int, ...]
    throughput_ms: int
    bulk_bytes: int
    fragment_sizes_bytes: tuple[int, ...] = ()
    traced_trips: int = 0


def message_times(table: Fields) -> MessageTimes:
    """Read the table of a profile; raises ConfigError: names file, field and allowed range."""
    times = MessageTimes(
        rounds=table.integer("rounds", 1, 1000),
        sizes_bytes=table.integers("sizes_bytes", *SIZE_RANGE_BYTES),
        trips=table.integer("trips", 1, 1_000_000),
        interval_us=table.integer("interval_us", 0, 1_000_000),
        probes=table.integer("probes", 1, 1_000_000),
        probe_interval_us=table.integer("probe_interval_us", 0, 1_000_000),
        probe_bytes=table.integer("probe_bytes", *SIZE_RANGE_BYTES),
        throughput_sizes_bytes=table.integers("throughput_sizes_bytes", PART_BYTES, SIZE_RANGE_BYTES[1]),
        throughput_ms=table.integer("throughput_ms", 10, 3_600_000),
        bulk_bytes=table.integer("bulk_bytes", PART_BYTES, SIZE_RANGE_BYTES[1]),
        traced_trips=table.integer("traced_trips", 0, 100_000, default=0),
        fragment_sizes_bytes=table.integers("fragment_sizes_bytes", *FRAGMENT_RANGE_BYTES, default=()),
    )
    where = f"{table.file}: {table.table}"
    for name in ("sizes_bytes", "throughput_sizes_bytes", "fragment_sizes_bytes"):
        sizes = getattr(times, name)
        is_missing = not sizes and name != "fragment_sizes_bytes"
        if is_missing or len(set(sizes)) < len(sizes):
            raise ConfigError(f"{where}.{name}: needs at least one size, none twice; found {sizes}")
    if times.bulk_bytes not in times.throughput_sizes_bytes:
        allowed = ", ".join(map(str, times.throughput_sizes_bytes))
        raise ConfigError(
            f"{where}.bulk_bytes: {times.bulk_bytes}; must be of throughput_sizes_bytes: {allowed}"
        )
    table.finish()
    return times
