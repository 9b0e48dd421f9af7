# SPDX-License-Identifier: Apache-2.0
"""The largest pattern, as the second judge knows it."""

from __future__ import annotations

from reports.rejudge.again import Again, Kind
from reports.rejudge.largest_pattern import largest_pattern_discrepancies

AGAIN = Again(
    quantities={"largest_pattern": Kind("producers", ("max",), ("largest_pattern.json",))},
    judges=(largest_pattern_discrepancies,),
    schemas={"largest_pattern.json": "benchwright.largest_pattern/1"},
)
