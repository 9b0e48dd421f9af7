# SPDX-License-Identifier: Apache-2.0
"""Real-time baseline: how late threads of high priority wake up, idle and beside loads."""

from __future__ import annotations

from reports.capability import Capability, Quantity, Series
from reports.requirement_keys import SAMPLES, UP_TO_A_SECOND, text

WAKEUP_LATENCY = "wakeup_latency"
BESIDE = "beside"
NOTHING = "nothing"
"""The value of the axis where no load is there."""
MAX, P9999 = "max", "p9999"
QUANTILE = 0.9999

CAPABILITY = Capability(
    position=85,
    axes={BESIDE: "beside"},
    series={
        "wakeups": Series(
            "Wake-ups",
            "How late cyclictest's threads wake up, by what else the target does; of its worst CPU.",
            BESIDE,
        ),
    },
    quantities={WAKEUP_LATENCY: Quantity(series="wakeups")},
    requirements={
        WAKEUP_LATENCY: (
            {BESIDE: text(), "statistic": text(MAX, P9999), "samples": SAMPLES} | UP_TO_A_SECOND,
        ),
    },
    part_meanings={
        "whole_us": "cyclictest counts whole microseconds, and drops what is over.",
        "order_statistic": "From the quantile to the upper end of its 95 % interval, by order statistics.",
    },
)
