# SPDX-License-Identifier: Apache-2.0
"""What provisioning leaves different: a count of facts and settings."""

from __future__ import annotations

from enum import StrEnum

from reports.capability import VERDICT, Capability, Quantity
from reports.requirement_keys import text, whole

QUANTITY = "provisioning_difference"
STATISTIC = "max"
UNIT = "facts"


class Event(StrEnum):
    """After what differences are counted."""

    TWICE = "twice"
    """Provisioning a second time: settings that this changed, and facts."""
    RESTORE = "restore"
    """`restore`: facts, against those before anything was changed."""
    POWER_CUT = "power-cut"
    """A power cut of the provisioned target: facts after the next start, and provisioned again."""
    RESTART = "restart"
    """The same after a restart of its system."""


CAPABILITY = Capability(
    position=80,
    quantities={QUANTITY: Quantity(UNIT, VERDICT)},
    requirements={
        QUANTITY: (
            {"method": text(*Event), "statistic": text(STATISTIC)} | {"upper_facts": whole(0, 1_000_000)},
        ),
    },
)
