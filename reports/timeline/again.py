# SPDX-License-Identifier: Apache-2.0
"""Legs on a timeline and bulk data, as the second judge knows them."""

from __future__ import annotations

from reports.rejudge.again import Again, Kind
from reports.rejudge.bulk import bulk_discrepancies
from reports.rejudge.legs import leg_discrepancies

LEGS = ("legs.json",)
BULK = ("bulk.json",)

AGAIN = Again(
    quantities={
        "leg_time": Kind("ns", ("median", "p99"), LEGS),
        "timeline_contradictions": Kind("", ("count",), LEGS, is_check=True, is_selected=False),
        "places_outside": Kind("", ("count",), LEGS, is_check=True, is_selected=False),
        "places_beyond_u": Kind("%", ("share",), LEGS, is_check=True, is_selected=False),
        "leg_delay_error": Kind("ns", ("median",), LEGS, is_check=True, is_selected=False),
        "bulk_payload_difference": Kind("bytes", ("total",), BULK),
        "bulk_unmatched": Kind("segments", ("count",), BULK),
    },
    judges=(leg_discrepancies, bulk_discrepancies),
    schemas={"legs.json": "benchwright.timeline_legs/1", "bulk.json": "benchwright.timeline_bulk/1"},
    loose=(*LEGS, *BULK),
)
