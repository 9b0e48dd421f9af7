# SPDX-License-Identifier: Apache-2.0
"""Latencies of the replay, as the second judge knows them."""

from __future__ import annotations

from reports.rejudge.again import Again, Kind
from reports.rejudge.known_delay import known_delay_discrepancies

AGAIN = Again(
    quantities={
        "one_way_latency": Kind("ns", ("max",), ("recv.ndjson",)),
        "known_delay_error": Kind("ns", ("median",), ("known_delay.json",), is_check=True, is_selected=False),
    },
    judges=(known_delay_discrepancies,),
    schemas={
        "known_delay.json": "benchwright.known_delay/1",
        "role.json": "benchwright.replay_role/1",
    },
)
"""Streams are judged apart: `reports/rejudge/latency.py` takes more than a run and its records."""
