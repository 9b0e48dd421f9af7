# SPDX-License-Identifier: Apache-2.0
"""Requirements on what provisioning may leave different."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from hw.errors import ConfigError
from reports.provisioning.verdict import QUANTITY, STATISTIC
from resources.requirements_file import read_requirements_file

SCHEMA = "benchwright.provisioning_requirements/1"


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


@dataclass(frozen=True)
class ProvisioningRequirement:
    """A limit on what may differ after an event.

    Attributes:
        event: After what; the record's `subject.method`.
        upper_facts: Facts and settings that may differ at most.
        source: Where the limit comes from.
    """

    id: str
    event: Event
    upper_facts: int
    source: str


def load_provisioning_requirements(path: Path) -> tuple[ProvisioningRequirement, ...]:
    """Read and check a requirements file on provisioning.

    Raises:
        ConfigError: Names file, requirement, field and allowed range.
    """
    _head, items = read_requirements_file(path, SCHEMA, ("name",))
    found: list[ProvisioningRequirement] = []
    for number, table in enumerate(items, start=1):
        table.text("quantity", choices=(QUANTITY,))
        table.text("statistic", choices=(STATISTIC,))
        requirement = ProvisioningRequirement(
            id=table.text("id"),
            event=Event(table.text("method", choices=tuple(Event))),
            upper_facts=table.integer("upper_facts", 0, 1_000_000),
            source=table.text("source"),
        )
        table.finish()
        for known in found:
            if known.event == requirement.event:
                raise ConfigError(
                    f"{path}: requirement[{number}].method: {requirement.event} has a requirement already"
                )
        found.append(requirement)
    return tuple(found)
