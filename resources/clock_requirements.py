# SPDX-License-Identifier: Apache-2.0
"""Requirements on clocks: how far a clock stack may be off, and how long it may take to lock."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hw.errors import ConfigError
from hw.fields import Fields
from resources.requirements_file import read_requirements_file

SCHEMA = "benchwright.clock_requirements/1"


@dataclass(frozen=True)
class ClockRequirement:
    """A limit on the error of one clock stack.

    Attributes:
        clock: Name of the stack, such as `chrony`.
        limit_ns: Largest offset to either side.
        lock_within_s: Deadline for its lock.
        source: Where the limit comes from.
    """

    id: str
    clock: str
    limit_ns: int
    lock_within_s: int
    source: str


@dataclass(frozen=True)
class ClockRequirements:
    """All requirements of a file, by clock stack."""

    path: Path
    name: str
    by_clock: dict[str, ClockRequirement]

    def of(self, clock: str) -> ClockRequirement:
        """Return the requirement on a clock stack.

        Raises:
            ConfigError: The file has none.
        """
        if clock not in self.by_clock:
            raise ConfigError(
                f"{self.path}: no requirement on clock {clock!r}; there are: {', '.join(self.by_clock)}"
            )
        return self.by_clock[clock]


def load_clock_requirements(path: Path) -> ClockRequirements:
    """Read and check a requirements file on clocks.

    Raises:
        ConfigError: Names file, requirement, field and allowed range.
    """
    head, items = read_requirements_file(path, SCHEMA, ("name",))
    by_clock: dict[str, ClockRequirement] = {}
    for number, item in enumerate(items, start=1):
        requirement = _requirement(item)
        if requirement.clock in by_clock:
            raise ConfigError(f"{path}: requirement[{number}].clock: {requirement.clock!r} stands twice")
        if requirement.id in {known.id for known in by_clock.values()}:
            raise ConfigError(f"{path}: requirement[{number}].id: {requirement.id!r} stands twice")
        by_clock[requirement.clock] = requirement
    return ClockRequirements(path, head["name"], by_clock)


def _requirement(table: Fields) -> ClockRequirement:
    table.text("quantity", choices=("sync_offset",))
    table.text("statistic", choices=("max_abs",))
    requirement = ClockRequirement(
        id=table.text("id"),
        clock=table.text("clock"),
        limit_ns=table.integer("limit_ns", 1, 1_000_000_000),
        lock_within_s=table.integer("lock_within_s", 1, 86_400),
        source=table.text("source"),
    )
    table.finish()
    return requirement
