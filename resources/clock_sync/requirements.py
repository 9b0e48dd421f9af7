# SPDX-License-Identifier: Apache-2.0
"""Requirements on clocks: how far a clock stack may be off, and how long it may take to lock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hw.errors import ConfigError
from reports.clock_sync.capability import STATED_BOUND_STATISTICS
from reports.clock_sync.mask import CURVES, load_mask, mask_file
from reports.clock_sync.mask_verdict import MaskRange
from reports.errors import RecordError
from reports.requirements import Requirement
from resources.requirements_file import load_requirements_file

OFFSET = "sync_offset"


@dataclass(frozen=True)
class ClockMask:
    """A mask that a clock has to keep, with its file and the taus that it must be judged at."""

    path: Path
    range: MaskRange


@dataclass(frozen=True)
class ClockRequirements:
    """All requirements of a file, by clock stack."""

    path: Path
    by_clock: dict[str, Requirement]
    masks: dict[str, ClockMask]
    """By the ids of the requirements that have one."""

    def of(self, clock: str) -> Requirement:
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
    """Read a requirements file on clocks with its masks; raises ConfigError."""
    found = load_requirements_file(path, OFFSET, needs="lock_within_s").requirements
    masks = {
        each.id: _mask(each, path, f"{path}: requirement[{number}]")
        for number, each in enumerate(found, start=1)
        if each.mask
    }
    return ClockRequirements(path, {each.of: each for each in found}, masks)


def lock_requirement(paths: Sequence[Path], clock: str) -> Requirement:
    """Return the requirement by which a clock stack has to lock: the first of some files on its offset.

    Args:
        paths: Requirements files on clocks, of those that tell their own error, too.
        clock: The stack.

    Raises:
        ConfigError: No file has one, or one is wrong.
    """
    for path in paths:
        for each in load_requirements_file(path, OFFSET, *STATED_BOUND_STATISTICS).requirements:
            if each.of == clock and each.quantity == OFFSET and each.lock_within_s:
                return each
    names = ", ".join(str(path) for path in paths)
    raise ConfigError(f"{names}: no requirement on {OFFSET} of clock {clock!r} with lock_within_s")


def _mask(requirement: Requirement, path: Path, where: str) -> ClockMask:
    """Load the mask of a requirement: one of the project, or a file, its path counted from this one."""
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
