# SPDX-License-Identifier: Apache-2.0
"""Real-time baseline: how late threads of high priority wake up, and what the hardware takes."""

from __future__ import annotations

from reports.capability import Capability, Quantity, Series
from reports.requirement_keys import SAMPLES, UP_TO_A_SECOND, text

WAKEUP_LATENCY = "wakeup_latency"
HARDWARE_NOISE = "hardware_noise"
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
        "noise": Series(
            "Hardware noise",
            "How long somebody below the target's kernel had a CPU at a time, by what else the target does.",
            BESIDE,
        ),
    },
    quantities={WAKEUP_LATENCY: Quantity(series="wakeups"), HARDWARE_NOISE: Quantity(series="noise")},
    requirements={
        WAKEUP_LATENCY: (
            {BESIDE: text(), "statistic": text(MAX, P9999), "samples": SAMPLES} | UP_TO_A_SECOND,
        ),
        HARDWARE_NOISE: ({BESIDE: text(), "statistic": text(MAX), "samples": SAMPLES} | UP_TO_A_SECOND,),
    },
    part_meanings={
        "whole_us": "cyclictest counts whole microseconds, and drops what is over.",
        "noise_threshold": "Noise is looked for from this length on.",
        "order_statistic": "From the quantile to the upper end of its 95 % interval, by order statistics.",
    },
)
