# SPDX-License-Identifier: Apache-2.0
"""The requirement on the largest pattern that a target takes: how many producers it has to take at least."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hw.errors import ConfigError
from reports import Limit
from reports.largest_pattern.search import QUANTITY
from resources.requirements_file import read_requirements_file

SCHEMA = "benchwright.largest_pattern_requirements/1"


@dataclass(frozen=True)
class LargestPatternRequirement:
    """A lower limit on the number of producers."""

    id: str
    limit: Limit


def load_largest_pattern_requirement(path: Path) -> LargestPatternRequirement:
    """Read the file; it has one requirement.

    Raises:
        ConfigError: Names file, field and allowed range.
    """
    _, items = read_requirements_file(path, SCHEMA, ("name",))
    if len(items) != 1:
        raise ConfigError(f"{path}: requirement: must be one, found {len(items)}")
    [table] = items
    table.text("quantity", choices=(QUANTITY,))
    table.text("statistic", choices=("max",))
    lower = table.integer("lower_producers", 0, 655)
    found = LargestPatternRequirement(table.text("id"), Limit(None, lower, table.text("source")))
    table.finish()
    return found
