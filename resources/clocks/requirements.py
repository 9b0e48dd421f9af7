# SPDX-License-Identifier: Apache-2.0
"""Requirements on clocks: how far a clock stack may be off, and how long it may take to lock."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hw.errors import ConfigError
from hw.fields import Fields
from reports.clock_sync.mask import CURVES, load_mask, mask_file
from reports.clock_sync.mask_verdict import MaskRange
from reports.errors import RecordError
from resources.requirements_file import read_requirements_file

SCHEMA = "benchwright.clock_requirements/1"


TAU_S_MAX = 1_000_000.0


@dataclass(frozen=True)
class ClockMask:
    """A mask that a clock has to keep, with its file and the taus that it must be judged at."""

    path: Path
    range: MaskRange


@dataclass(frozen=True)
class ClockRequirement:
    """A limit on the error of one clock stack.

    Attributes:
        clock: Name of the stack, such as `chrony`.
        limit_ns: Largest offset to either side.
        lock_within_s: Deadline for its lock.
        source: Where the limit comes from.
        mask: A mask besides the limit; None: none.
    """

    id: str
    clock: str
    limit_ns: int
    lock_within_s: int
    source: str
    mask: ClockMask | None = None


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
        requirement = _requirement(item, path)
        if requirement.clock in by_clock:
            raise ConfigError(f"{path}: requirement[{number}].clock: {requirement.clock!r} stands twice")
        by_clock[requirement.clock] = requirement
    return ClockRequirements(path, head["name"], by_clock)


def _requirement(table: Fields, path: Path) -> ClockRequirement:
    table.text("quantity", choices=("sync_offset",))
    table.text("statistic", choices=("max_abs",))
    requirement = ClockRequirement(
        id=table.text("id"),
        clock=table.text("clock"),
        limit_ns=table.integer("limit_ns", 1, 1_000_000_000),
        lock_within_s=table.integer("lock_within_s", 1, 86_400),
        source=table.text("source"),
        mask=_mask(table, path),
    )
    table.finish()
    return requirement


def _mask(table: Fields, path: Path) -> ClockMask | None:
    """Read `mask`, the name of a mask of the project or a file, and the taus that it is asked for at.

    A file's path counts from the requirements file.
    """
    name = table.text("mask", default="")
    from_s = table.number("mask_from_tau_s", 0.0, TAU_S_MAX) if table.has("mask_from_tau_s") else None
    to_s = table.number("mask_to_tau_s", 0.0, TAU_S_MAX) if table.has("mask_to_tau_s") else None
    where = f"{path}: {table.table}"
    if not name:
        if from_s is not None or to_s is not None or table.has("mask"):
            raise ConfigError(
                f"{where}.mask: mask_from_tau_s and mask_to_tau_s need the mask that they are of"
            )
        return None
    try:
        file = mask_file(name, path.parent)
        mask = load_mask(file)
    except RecordError as error:
        raise ConfigError(f"{where}.mask: {error}") from error
    if (from_s is not None or to_s is not None) and not {*mask.quantities} & {*CURVES, "cte"}:
        raise ConfigError(f"{where}.mask_to_tau_s: mask {name} limits nothing over tau; leave it out")
    if from_s is not None and to_s is not None and from_s >= to_s:
        raise ConfigError(
            f"{where}.mask_to_tau_s: must be above mask_from_tau_s = {from_s:g}, found {to_s:g}"
        )
    return ClockMask(file, MaskRange(mask, from_s, to_s))
