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
STACKS_OWN = "requirements.toml"
"""In a clock stack's folder: what it has to keep on a simulated bench, where the suite's file has nothing."""


@dataclass(frozen=True)
class ClockMask:
    """A mask that a clock has to keep, with its file and the taus that it must be judged at."""

    path: Path
    range: MaskRange


@dataclass(frozen=True)
class ClockRequirements:
    """All requirements of a file, by clock stack, and those of stacks that it has nothing on."""

    path: Path
    by_clock: dict[str, Requirement]
    masks: dict[str, ClockMask]
    """By the ids of the requirements that have one."""
    of_file: dict[Path, tuple[str, ...]]
    """The ids of each file: of `path`, and of those that stacks have of their own."""

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


def load_clock_requirements(path: Path, stacks: Path | None = None) -> ClockRequirements:
    """Read a requirements file on clocks with its masks.

    Args:
        path: The file.
        stacks: `targets/KIND/clock` of a target of a simulated bench: a stack there that the file has
            nothing on is held to the `requirements.toml` in its folder, if it has one; None: to nothing.

    Raises:
        ConfigError: Names file, key and what is allowed; a stack's file is on another one, or its id is used.
    """
    found = _read(path)
    for file in sorted(stacks.glob(f"*/{STACKS_OWN}")) if stacks is not None else ():
        stack = file.parent.name
        if stack in found.by_clock:
            continue
        own = _read(file)
        if set(own.by_clock) != {stack}:
            raise ConfigError(f"{file}: requirement[1].clock: must be {stack}, as the folder; nothing else")
        if double := [
            name for names in found.of_file.values() for name in names if name in own.of_file[file]
        ]:
            raise ConfigError(f"{file}: requirement[1].id: {double[0]} is the id of another one")
        found = ClockRequirements(
            path,
            found.by_clock | own.by_clock,
            found.masks | own.masks,
            found.of_file | own.of_file,
        )
    return found


def _read(path: Path) -> ClockRequirements:
    found = load_requirements_file(path, OFFSET, needs="lock_within_s").requirements
    masks = {
        each.id: _mask(each, path, f"{path}: requirement[{number}]")
        for number, each in enumerate(found, start=1)
        if each.mask
    }
    by_clock = {each.of: each for each in found}
    return ClockRequirements(path, by_clock, masks, {path: tuple(each.id for each in found)})


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
