# SPDX-License-Identifier: Apache-2.0
"""Software latency, as the second judge knows it."""

from __future__ import annotations

from reports.rejudge.again import Again, Kind
from reports.rejudge.software_latency import software_latency_discrepancies

TRIPS = ("round_trips.json",)

AGAIN = Again(
    quantities={
        "software_latency": Kind("ns", ("mean",), TRIPS),
        "software_latency_closure": Kind("ns", ("max",), TRIPS, is_check=True),
        # of the version before: it has no second judge
        "software_latency_en": Kind("", ("en",), TRIPS, is_check=True, is_selected=False, is_judged=False),
    },
    judges=(software_latency_discrepancies,),
    schemas={"round_trips.json": "benchwright.round_trips/1"},
    loose=TRIPS,
)
