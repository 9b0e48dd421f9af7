# SPDX-License-Identifier: Apache-2.0
"""Provisioning, as the second judge knows it."""

from __future__ import annotations

from reports.rejudge.again import Again, Kind
from reports.rejudge.applied import applied_discrepancies
from reports.rejudge.provisioning import provisioning_discrepancies

AGAIN = Again(
    quantities={"provisioning_difference": Kind("facts", ("max",), ("facts-*.json",))},
    judges=(provisioning_discrepancies, applied_discrepancies),
)
