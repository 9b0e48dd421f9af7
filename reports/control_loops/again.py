# SPDX-License-Identifier: Apache-2.0
"""Rings of programs, cameras and trackers, as the second judge knows them."""

from __future__ import annotations

from reports.rejudge.again import Again, Kind
from reports.rejudge.cameras import camera_discrepancies
from reports.rejudge.rings import ring_discrepancies

RING = ("ring.json",)
CAMERA = ("camera.json",)
BOTH = (*RING, *CAMERA)

AGAIN = Again(
    quantities={
        "loop_delay": Kind("ns", ("median", "p99"), BOTH),
        "loop_wire_delay": Kind("ns", ("median", "p99"), RING),
        "loop_contradictions": Kind("", ("count",), BOTH, is_check=True, is_selected=False),
        "loop_whole_outside": Kind("", ("count",), BOTH, is_check=True, is_selected=False),
        "loop_whole_beyond_u": Kind("%", ("share",), BOTH, is_check=True, is_selected=False),
        "loop_unaccounted": Kind("", ("count",), BOTH, is_check=True, is_selected=False),
        "loop_out_of_picture": Kind("%", ("share",), CAMERA),
        "loop_witnesses_en": Kind("", ("en",), CAMERA, is_check=True, is_selected=False),
        "loop_slope_error": Kind("", ("slope",), CAMERA, is_check=True, is_selected=False),
        "loop_hold_error": Kind("ns", ("median",), RING, is_check=True, is_selected=False),
    },
    judges=(ring_discrepancies, camera_discrepancies),
    schemas={
        "ring.json": "benchwright.control_ring/1",
        "camera.json": "benchwright.control_camera/1",
        "load.json": "benchwright.load/1",
    },
    loose=BOTH,
)
