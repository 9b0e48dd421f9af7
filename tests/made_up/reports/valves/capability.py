# SPDX-License-Identifier: Apache-2.0
"""Valves: an axis, a quantity, a series and a form of requirement that nothing else has."""

from __future__ import annotations

from reports.capability import Capability, Quantity, Series
from reports.requirement_keys import UP_TO_A_SECOND, text

QUANTITY = "valve_delay"
SCHEMA = "benchwright.valves/1"
FOLDER = "valves"
DELAYS = "delays.json"

CAPABILITY = Capability(
    position=35,
    axes={"valve": "valve"},
    series={"valves": Series("Valves", "How late a valve opens.", "valve")},
    quantities={QUANTITY: Quantity(series="valves", has_distribution=True)},
    requirements={QUANTITY: ({"valve": text(), "statistic": text("max")} | UP_TO_A_SECOND,)},
)
