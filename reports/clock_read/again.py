# SPDX-License-Identifier: Apache-2.0
"""Readings of clocks, as the second judge knows them."""

from __future__ import annotations

from reports.rejudge.again import Again, Kind
from reports.rejudge.read_latency import read_latency_discrepancies

AGAIN = Again(
    quantities={"clock_read_latency": Kind("ns", ("mean", "max"), ("readings.json",))},
    judges=(read_latency_discrepancies,),
    schemas={"readings.json": "benchwright.read_latency/1"},
)
