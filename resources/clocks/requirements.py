# SPDX-License-Identifier: Apache-2.0
"""Requirements on clocks: how far a clock stack may be off, and how long it may take to lock."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hw.errors import ConfigError
from reports.clock_sync.mask import CURVES, load_mask, mask_file
from reports.clock_sync.mask_verdict import MaskRange
from reports.errors import RecordError
from reports.requirements import Requirement
from resources.requirements_file import load_requirements_file


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
    found = load_requirements_file(path, "sync_offset", needs="lock_within_s")
    by_clock = {
        each.of: ClockRequirement(
            each.id,
            each.of,
            each.upper_ns,
            each.lock_within_s,
            each.limit.source,
            _mask(each, path, f"{path}: requirement[{number}]"),
        )
        for number, each in enumerate(found.requirements, start=1)
    }
    return ClockRequirements(path, found.name, by_clock)


def _mask(requirement: Requirement, path: Path, where: str) -> ClockMask | None:
    """Load the mask of a requirement: one of the project, or a file, its path counted from this one."""
    if not requirement.mask:
        return None
    from_s, to_s = requirement.mask_from_tau_s, requirement.mask_to_tau_s
    try:
        file = mask_file(requirement.mask, path.parent)
        mask = load_mask(file)
    except RecordError as error:
        raise ConfigError(f"{where}.mask: {error}") from error
    if (from_s is not None or to_s is not None) and not {*mask.quantities} & {*CURVES, "cte"}:
        raise ConfigError(
            f"{where}.mask_to_tau_s: mask {requirement.mask} limits nothing over tau; leave it out"
        )
    return ClockMask(file, MaskRange(mask, from_s, to_s))
