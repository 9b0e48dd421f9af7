# SPDX-License-Identifier: Apache-2.0
"""What a device's software takes to send and to receive, together, from round trips between devices."""

from __future__ import annotations

from reports.capability import Capability, Quantity, Series
from reports.requirement_keys import UP_TO_A_SECOND, text, whole

QUANTITY = "software_latency"
CLOSURE = "software_latency_closure"
STATISTIC = "mean"

CAPABILITY = Capability(
    position=50,
    axes={"device": ""},
    series={
        "software": Series(
            "Software latency",
            "Each device's own: what its software takes to send and to receive, together, from round trips.",
            "device",
        ),
    },
    quantities={
        QUANTITY: Quantity(series="software"),
        CLOSURE: Quantity(is_check=True),
        "software_latency_en": Quantity("", is_check=True),
    },
    requirements={
        QUANTITY: (
            {"device": text(), "statistic": text(STATISTIC), "samples": whole(100, 1_000_000_000)}
            | UP_TO_A_SECOND,
        ),
    },
    part_meanings={
        "clock_wander": "How far two clocks moved against each other while they were compared.",
        "device_dependence": "How far a device's latency moves with the devices that it is measured with.",
        "block_variation": "How far a device's latency moves from one quarter of the measurement to another.",
        "hardware": "Latency of cables and switches that was taken off the round trips, by their data "
        "sheets.",
        "round_trips": "Scatter of the round trips that tell a device's latency: moving-block bootstrap.",
    },
)
