# SPDX-License-Identifier: Apache-2.0
"""Single messages through a network stack: latency and throughput by size, and what other load adds."""

from __future__ import annotations

import re

from reports.capability import VERDICT, Capability, Quantity, Series
from reports.requirement_keys import COUNT, SAMPLES, UP_TO_A_SECOND, Key, text, whole

MESSAGE_LATENCY = "message_latency"
BULK_RISE = "bulk_rise"
MESSAGE_THROUGHPUT = "message_throughput"
RECEIVE_RISE = "receive_rise"
RISES = BULK_RISE, RECEIVE_RISE
QUANTILES = {"median": 0.5, "p99": 0.99}
"""Statistics of latencies."""
MEAN = "mean"


def _is_size(value: object) -> bool:
    digits, space, unit = value.partition(" ") if isinstance(value, str) else ("", "", "")
    is_whole = bool(re.fullmatch("[1-9][0-9]{0,4}", digits)) and (space, unit) == (" ", "B")
    return is_whole and 4 <= int(digits) <= 65_507


_SIZE = Key("a size such as '64 B', 4..65507", _is_size)
_OF_LATENCIES = {"statistic": text(*QUANTILES), "samples": SAMPLES, "lost": COUNT}

CAPABILITY = Capability(
    position=60,
    axes={"size": ""},
    series={
        "messages": Series(
            "Single messages", "Latency by size through a network stack: half of a round trip.", "size"
        ),
    },
    quantities={
        MESSAGE_LATENCY: Quantity(series="messages"),
        BULK_RISE: Quantity("%", VERDICT),
        RECEIVE_RISE: Quantity("%", VERDICT),
        MESSAGE_THROUGHPUT: Quantity("bytes/s", VERDICT, "lower"),
    },
    requirements={
        MESSAGE_LATENCY: ({"size": _SIZE} | _OF_LATENCIES | UP_TO_A_SECOND,),
        **dict.fromkeys(RISES, (_OF_LATENCIES | {"upper_percent": whole(1, 1_000_000)},)),
        MESSAGE_THROUGHPUT: (
            {"size": _SIZE, "statistic": text(MEAN), "samples": SAMPLES}
            | {"lower_bytes_per_s": whole(1, 10**12)},
        ),
    },
    part_meanings={
        "rounds": "How far one round of trials alone is off the value of all of them, at most.",
        "buckets": "Width of the buckets of the tool's histogram, of each distribution that the value is of.",
    },
)
