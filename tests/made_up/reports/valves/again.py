# SPDX-License-Identifier: Apache-2.0
"""Valves, as the second judge knows them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from reports.rejudge.again import Again, Kind, Record

DELAYS = "delays.json"


def valve_discrepancies(run: Path, records: Sequence[Record]) -> tuple[list[str], int]:
    """Work out again how late each valve was."""
    found: list[str] = []
    judged = [each for each in records if each["quantity"] == "valve_delay"]
    for record in judged:
        latest = max(json.loads((run / record["evidence"][0]["path"]).read_text())["delays_ns"])
        if latest != record["value"]:
            found.append(f"{record['requirement']}: value is {record['value']}, the delays give {latest}")
    return found, len(judged)


AGAIN = Again(
    quantities={"valve_delay": Kind("ns", ("max",), (DELAYS,))},
    judges=(valve_discrepancies,),
    schemas={DELAYS: "benchwright.valves/1"},
    loose=(DELAYS,),
)
