# SPDX-License-Identifier: Apache-2.0
"""Latencies of the replay of the data-acquisition pattern, stream by stream."""

from __future__ import annotations

from reports.capability import Capability, Quantity, Series
from reports.requirement_keys import COUNT, text, upper_time, whole
from reports.units import NS_PER_S, NS_PER_US

STREAM_QUANTITY = "one_way_latency"

CAPABILITY = Capability(
    position=10,
    axes={"stream": "stream"},
    series={
        "latency": Series(
            "Latency",
            "Each stream against its budget. A value passes where value + U stays under the limit.",
            "stream",
            ("p50_ns", "p99_ns"),  # one message decides a maximum: median and p99 of a stream say more of it
        ),
    },
    quantities={
        STREAM_QUANTITY: Quantity(series="latency", has_distribution=True),
        "round_trip_time": Quantity(series="latency"),
        "schedule_lateness": Quantity(series="latency"),
        "throughput": Quantity("bytes/s", worse="lower"),
        "known_delay_error": Quantity(worse="farther from zero", is_check=True),
    },
    requirements={
        STREAM_QUANTITY: (
            {"stream": whole(10, 6559), "statistic": text("max"), "lost": COUNT}
            | upper_time(NS_PER_US, 3600 * NS_PER_S),
        ),
    },
    part_meanings={
        "clock_offset": "Half the shortest round trips that carry the line of the producer's clock: no "
        "exchange can tell how a round trip divides into its two ways.",
        "clock_residual": "Largest distance between the clock line that was used while messages arrived and "
        "the fit over the whole run.",
        "own_clock_line": "Where the target stamps by another clock than the system's: what the line from "
        "one to the other was off, at most.",
        "target_clock": "What the target's own clock was off while messages arrived, measured meanwhile.",
        "host_jitter": "Spread of the time stamps of the machine that measures.",
    },
)
