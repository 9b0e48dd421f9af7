# SPDX-License-Identifier: Apache-2.0
"""What reading each clock of a target costs (paper on intra-process clock synchronisation, Table I)."""

from __future__ import annotations

from reports.capability import Capability, Quantity
from reports.requirement_keys import UP_TO_A_SECOND, text, whole

QUANTITY = "clock_read_latency"
STATISTICS = ("mean", "max")
KERNEL_CLOCKS = ("realtime", "realtime-coarse", "tai", "monotonic-raw", "tsc")
PHC_WAYS = ("gettime", "basic", "extended", "precise")
TIMECARD = "timecard"
CLOCKS = (*KERNEL_CLOCKS, *(f"phc-{way}" for way in PHC_WAYS), TIMECARD)
"""Clocks that a machine may offer."""

CAPABILITY = Capability(
    position=40,
    quantities={QUANTITY: Quantity(series="sync", has_distribution=True)},
    requirements={
        QUANTITY: (
            {"clock": text(*CLOCKS), "statistic": text(*STATISTICS)}
            | {"samples": whole(1, 10_000_000_000)}
            | UP_TO_A_SECOND,
        ),
    },
    part_meanings={
        "counter_pair": "What two readings of the processor's counter cost: they stand around each reading "
        "of a clock, and are in its time.",
        "counter_resolution": "A tick of the processor's counter, and rounding to whole nanoseconds.",
        "scatter": "Standard deviation of the mean of all readings.",
    },
)
