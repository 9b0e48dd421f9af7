# SPDX-License-Identifier: Apache-2.0
"""Rings of programs, as the second judge knows them."""

from __future__ import annotations

from reports.rejudge.again import Again, Kind
from reports.rejudge.rings import ring_discrepancies

RING = ("ring.json",)

AGAIN = Again(
    quantities={
        "loop_delay": Kind("ns", ("median", "p99"), RING),
        "loop_wire_delay": Kind("ns", ("median", "p99"), RING),
        "loop_contradictions": Kind("", ("count",), RING, is_check=True, is_selected=False),
        "loop_whole_outside": Kind("", ("count",), RING, is_check=True, is_selected=False),
        "loop_whole_beyond_u": Kind("%", ("share",), RING, is_check=True, is_selected=False),
        "loop_unaccounted": Kind("", ("count",), RING, is_check=True, is_selected=False),
        "loop_hold_error": Kind("ns", ("median",), RING, is_check=True, is_selected=False),
    },
    judges=(ring_discrepancies,),
    schemas={"ring.json": "benchwright.control_ring/1"},
    loose=RING,
)
