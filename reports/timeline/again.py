# SPDX-License-Identifier: Apache-2.0
"""Legs on a timeline, as the second judge knows them."""

from __future__ import annotations

from reports.rejudge.again import Again, Kind
from reports.rejudge.legs import leg_discrepancies

LEGS = ("legs.json",)

AGAIN = Again(
    quantities={
        "leg_time": Kind("ns", ("median", "p99"), LEGS),
        "timeline_contradictions": Kind("", ("count",), LEGS, is_check=True, is_selected=False),
        "places_outside": Kind("", ("count",), LEGS, is_check=True, is_selected=False),
        "places_beyond_u": Kind("%", ("share",), LEGS, is_check=True, is_selected=False),
        "leg_delay_error": Kind("ns", ("median",), LEGS, is_check=True, is_selected=False),
    },
    judges=(leg_discrepancies,),
    schemas={"legs.json": "benchwright.timeline_legs/1"},
    loose=LEGS,
)
