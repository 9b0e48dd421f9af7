# SPDX-License-Identifier: Apache-2.0
"""Timed edges, as the second judge knows them."""

from __future__ import annotations

from reports.rejudge.again import Again, Kind
from reports.rejudge.edges import edge_discrepancies

EDGES = ("edges.json",)

AGAIN = Again(
    quantities={
        "edge_delay": Kind("ns", ("mean", "standard_deviation", "peak_to_peak"), EDGES),
        "edge_deviation_difference": Kind("ns", ("standard_deviation",), EDGES, is_selected=False),
        "edge_error_shift": Kind("ns", ("mean",), EDGES, is_check=True, is_selected=False),
        "edge_witness_en": Kind("", ("en",), ("witnesses.json",), is_check=True, is_selected=False),
    },
    judges=(edge_discrepancies,),
    schemas={
        "edges.json": "benchwright.timed_edges/1",
        "witnesses.json": "benchwright.edge_witnesses/1",
    },
)
