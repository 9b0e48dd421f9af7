# SPDX-License-Identifier: Apache-2.0
"""Requirements on timed edges: how a method's delays may scatter, and how far off a clock's edges may be."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hw.errors import ConfigError
from reports.requirements import Requirement
from reports.timed_edges.capability import OFFSET_QUANTITY, QUANTITY
from resources.requirements_file import load_requirements_file


@dataclass(frozen=True)
class TimedEdgeRequirements:
    """All requirements of a file, in its order."""

    path: Path
    all: tuple[Requirement, ...]

    def of_method(self, method: str) -> tuple[Requirement, ...]:
        """Return the requirements on a method; empty where it is only to be shown beside the others."""
        return tuple(each for each in self.all if each.subject == ("method", method))

    def of_clock(self, clock: str) -> tuple[Requirement, ...]:
        """Return the requirements on a clock's edges; raises ConfigError where the file has none."""
        found = tuple(each for each in self.all if each.subject == ("clock", clock))
        if not found:
            known = sorted({each.of for each in self.all if each.quantity == OFFSET_QUANTITY})
            raise ConfigError(
                f"{self.path}: no requirement on clock {clock!r}; there are: {', '.join(known) or 'none'}"
            )
        return found


def load_timed_edge_requirements(path: Path) -> TimedEdgeRequirements:
    """Read a requirements file on timed edges; raises ConfigError."""
    found = load_requirements_file(path, QUANTITY, OFFSET_QUANTITY, needs="samples")
    return TimedEdgeRequirements(path, found.requirements)
