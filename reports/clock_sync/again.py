# SPDX-License-Identifier: Apache-2.0
"""Clocks, as the second judge knows them."""

from __future__ import annotations

from reports.rejudge.again import Again, Kind
from reports.rejudge.clock_answer import clock_answer_discrepancies
from reports.rejudge.clock_step import clock_step_discrepancies
from reports.rejudge.clock_sync import clock_sync_discrepancies
from reports.rejudge.clock_witnesses import clock_witness_discrepancies
from reports.rejudge.lock_time import lock_time_discrepancies
from reports.rejudge.masks import mask_discrepancies
from reports.rejudge.path_shift import path_shift_discrepancies
from reports.rejudge.reported_bound import reported_bound_discrepancies

CLOCK = ("trial.json", "filtered.ndjson", "two-way-target.ndjson", "disturbance.json")
MASK = ("mask.csv",)

AGAIN = Again(
    quantities={
        "sync_offset": Kind(
            "ns", ("max_abs", "mean"), ("filtered.ndjson", "two-way-target.ndjson", "edges.json")
        ),
        "lock_time": Kind("s", ("max",), CLOCK),
        "te": Kind("ns", ("max_abs",), MASK),
        "te_l": Kind("ns", ("max_abs",), MASK),
        "cte": Kind("ns", ("mean",), MASK),
        "mtie": Kind("ns", ("max",), MASK),
        "tdev": Kind("ns", ("deviation",), MASK),
        "dte_l_mtie": Kind("ns", ("max",), MASK),
        "dte_l_tdev": Kind("ns", ("deviation",), MASK),
        "bound_missed": Kind("ppm", ("share",), CLOCK),
        "bound_width": Kind("", ("median",), CLOCK),
        "u_missed": Kind("ppm", ("share",), CLOCK),
        "u_width": Kind("", ("median",), CLOCK),
        "reads_left_out": Kind("ppm", ("share",), CLOCK),
        "holdover_rate": Kind("ppb", ("slope",), CLOCK),
        "clock_step": Kind("ns", ("nearest",), CLOCK, is_check=True, is_selected=False),
        "clock_witness_difference": Kind("ns", ("mean",), CLOCK, is_check=True, is_selected=False),
        "path_shift": Kind("ns", ("mean",), CLOCK, is_check=True, is_selected=False),
    },
    judges=(
        clock_sync_discrepancies,
        mask_discrepancies,
        clock_step_discrepancies,
        clock_witness_discrepancies,
        path_shift_discrepancies,
        lock_time_discrepancies,
        reported_bound_discrepancies,
        clock_answer_discrepancies,
    ),
    schemas={
        "disturbance.json": "benchwright.clock_disturbance/1",
        "trial.json": "benchwright.clock_trial/1",
    },
)
