# SPDX-License-Identifier: Apache-2.0
"""One timeline of several machines: what a message takes each way, and bulk data by user and kernel."""

from __future__ import annotations

from reports.capability import VERDICT, Capability, Quantity, Series
from reports.requirement_keys import COUNT, SAMPLES, UP_TO_A_SECOND, text

LEG_TIME = "leg_time"
CONTRADICTIONS = "timeline_contradictions"
DELAY_ERROR = "leg_delay_error"
PLACES_BEYOND_U = "places_beyond_u"
PLACES_OUTSIDE = "places_outside"
BULK_DIFFERENCE = "bulk_payload_difference"
BULK_UNMATCHED = "bulk_unmatched"
TO_TARGET, FROM_TARGET = "to the target", "from the target"
LEGS = TO_TARGET, FROM_TARGET
QUANTILES = {"median": 0.5, "p99": 0.99}

CAPABILITY = Capability(
    position=70,
    axes={"leg": ""},
    series={
        "legs": Series(
            "Legs", "What a message takes from one program to the other, each way by itself.", "leg"
        ),
    },
    quantities={
        LEG_TIME: Quantity(series="legs"),
        CONTRADICTIONS: Quantity("", is_check=True),
        PLACES_BEYOND_U: Quantity("%", is_check=True),
        PLACES_OUTSIDE: Quantity("", is_check=True),
        DELAY_ERROR: Quantity(series="legs", worse="farther from zero", is_check=True),
        BULK_DIFFERENCE: Quantity("bytes", VERDICT),
        BULK_UNMATCHED: Quantity("segments", VERDICT),
    },
    requirements={
        LEG_TIME: (
            {"leg": text(*LEGS), "statistic": text(*QUANTILES), "samples": SAMPLES, "lost": COUNT}
            | UP_TO_A_SECOND,
        ),
        BULK_DIFFERENCE: ({"statistic": text("total"), "samples": SAMPLES, "upper_bytes": COUNT},),
        BULK_UNMATCHED: ({"statistic": text("count"), "samples": SAMPLES, "upper_segments": COUNT},),
    },
    part_meanings={
        "timeline": "U of the places of both ends of a leg on the timeline, of the message in the middle.",
        "turns": "Scatter of what a known delay came to, from one delayed turn to the next.",
        "quarters": "How far the value of any quarter of the messages is off the value of all.",
    },
)
