# SPDX-License-Identifier: Apache-2.0
"""How often a profile has a target provisioned, cut off and restarted, and which faults it is given."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hw.faults import Fault
from hw.fields import Fields

TIMES = Path(__file__).with_name("times.toml")


@dataclass(frozen=True)
class ProvisioningTimes:
    """How often, and what.

    Attributes:
        repeats: Provisioned, provisioned again and restored, in a row.
        power_cuts: The first while a tool runs on the provisioned target, the others at random instants of
            provisioning.
        restarts: Of the provisioned target, while a tool runs on it.
        faults: Those that a target is given.
        seed: Of the random instants.
    """

    repeats: int
    power_cuts: int
    restarts: int
    faults: tuple[Fault, ...]
    seed: int


def provisioning_times(table: Fields) -> ProvisioningTimes:
    """Read the table of a profile; raises ConfigError: names file, field and allowed range."""
    times = ProvisioningTimes(
        repeats=table.integer("repeats", 1, 1000),
        power_cuts=table.integer("power_cuts", 0, 1000),
        restarts=table.integer("restarts", 0, 1000),
        faults=tuple(Fault(name) for name in table.texts("faults", tuple(Fault))),
        seed=table.integer("seed", 0, 2**31 - 1),
    )
    table.finish()
    return times
