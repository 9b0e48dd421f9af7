# SPDX-License-Identifier: Apache-2.0
"""The largest number of producers with which every stream stays within its budget."""

from __future__ import annotations

from reports.capability import VERDICT, Capability, Quantity
from reports.requirement_keys import text, whole

QUANTITY = "largest_pattern"
UNIT = "producers"

CAPABILITY = Capability(
    position=20,
    quantities={QUANTITY: Quantity(UNIT, VERDICT, "lower")},
    requirements={QUANTITY: ({"statistic": text("max"), "lower_producers": whole(0, 655)},)},
)
