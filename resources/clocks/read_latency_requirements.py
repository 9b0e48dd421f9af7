# SPDX-License-Identifier: Apache-2.0
"""Requirements on what reading a clock of the target may cost."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hw.errors import ConfigError
from reports.clock_read.verdict import QUANTITY, STATISTICS
from resources.clocks.read_latency import CLOCKS
from resources.requirements_file import read_requirements_file

SCHEMA = "benchwright.read_latency_requirements/1"


@dataclass(frozen=True)
class ReadLatencyRequirement:
    """A limit on the cost of reading one clock of the target.

    Attributes:
        clock: Which: `realtime`, `timecard`, `phc-basic`, …
        statistic: `mean` or `max` of the readings.
        limit_ns: What it may be at most.
        reads_min: Readings that it has to rest on.
        source: Where the limit comes from.
    """

    id: str
    clock: str
    statistic: str
    limit_ns: int
    reads_min: int
    source: str


def load_read_latency_requirements(path: Path) -> tuple[ReadLatencyRequirement, ...]:
    """Read and check a requirements file on what reading clocks costs.

    Raises:
        ConfigError: Names file, requirement, field and allowed range.
    """
    _head, items = read_requirements_file(path, SCHEMA, ("name",))
    found: list[ReadLatencyRequirement] = []
    for number, table in enumerate(items, start=1):
        table.text("quantity", choices=(QUANTITY,))
        requirement = ReadLatencyRequirement(
            id=table.text("id"),
            clock=table.text("clock", choices=CLOCKS),
            statistic=table.text("statistic", choices=STATISTICS),
            limit_ns=table.integer("limit_ns", 1, 1_000_000_000),
            reads_min=table.integer("reads_min", 1, 10_000_000_000),
            source=table.text("source"),
        )
        table.finish()
        same = (requirement.clock, requirement.statistic)
        if same in {(known.clock, known.statistic) for known in found}:
            raise ConfigError(
                f"{path}: requirement[{number}].clock: {' '.join(same)} has a requirement already"
            )
        found.append(requirement)
    return tuple(found)
