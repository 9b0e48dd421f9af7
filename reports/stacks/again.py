# SPDX-License-Identifier: Apache-2.0
"""Network stacks against each other, as the second judge knows them."""

from __future__ import annotations

from reports.rejudge.again import Again, Kind
from reports.rejudge.stacks import stack_discrepancies

STACKS = ("stacks.json",)

AGAIN = Again(
    quantities={
        "stack_latency_difference": Kind("ns", ("median", "p99"), STACKS),
        "stack_over_budget_difference": Kind("%", ("share",), STACKS),
    },
    judges=(stack_discrepancies,),
    schemas={"stacks.json": "benchwright.stacks/1"},
    loose=STACKS,
)
