# SPDX-License-Identifier: Apache-2.0
"""Requirements on timed edges: how a method's delays may scatter, and how far off a clock's edges may be."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hw.errors import ConfigError
from reports.timed_edges.trial import METHODS
from reports.timed_edges.verdict import OFFSET_QUANTITY, OFFSET_STATISTICS, QUANTITY, STATISTICS
from resources.requirements_file import read_requirements_file

SCHEMA = "benchwright.timed_edge_requirements/1"


@dataclass(frozen=True)
class TimedEdgeRequirement:
    """A limit on one statistic of the edges of a method, or of those of a clock.

    Attributes:
        quantity: `edge_delay` of a method, or `sync_offset` of a clock by its edges.
        method: Way to make the edges; empty of a clock.
        clock: Clock stack; empty of a method.
        statistic: `mean`, `standard_deviation` or `peak_to_peak` of a method; `mean` or `max_abs` of a clock.
        limit_ns: What it may be at most; a mean to either side.
        n_required: Edges that it has to rest on; a peak to peak is that of so many.
        lost_percent_max: Share of the edges asked for that may be missing.
        source: Where the limit comes from.
    """

    id: str
    quantity: str
    method: str
    clock: str
    statistic: str
    limit_ns: int
    n_required: int
    lost_percent_max: float
    source: str

    def allowed_lost(self, wanted: int) -> int:
        """Return how many of the edges that were asked for may be missing."""
        return int(wanted * self.lost_percent_max / 100)


@dataclass(frozen=True)
class TimedEdgeRequirements:
    """All requirements of a file, in its order."""

    path: Path
    name: str
    all: tuple[TimedEdgeRequirement, ...]

    def of_method(self, method: str) -> tuple[TimedEdgeRequirement, ...]:
        """Return the requirements on a method; empty where it is only to be shown beside the others."""
        return tuple(each for each in self.all if each.method == method)

    def of_clock(self, clock: str) -> tuple[TimedEdgeRequirement, ...]:
        """Return the requirements on a clock's edges; raises ConfigError where the file has none."""
        found = tuple(each for each in self.all if each.clock == clock)
        if not found:
            known = sorted({each.clock for each in self.all} - {""})
            raise ConfigError(
                f"{self.path}: no requirement on clock {clock!r}; there are: {', '.join(known) or 'none'}"
            )
        return found


def load_timed_edge_requirements(path: Path) -> TimedEdgeRequirements:
    """Read and check a requirements file on timed edges.

    Raises:
        ConfigError: Names file, requirement, field and allowed range.
    """
    head, items = read_requirements_file(path, SCHEMA, ("name",))
    found: list[TimedEdgeRequirement] = []
    for number, table in enumerate(items, start=1):
        quantity = table.text("quantity", choices=(QUANTITY, OFFSET_QUANTITY))
        of_method = quantity == QUANTITY
        requirement = TimedEdgeRequirement(
            id=table.text("id"),
            quantity=quantity,
            method=table.text("method", choices=METHODS) if of_method else "",
            clock="" if of_method else table.text("clock"),
            statistic=table.text("statistic", choices=STATISTICS if of_method else OFFSET_STATISTICS),
            limit_ns=table.integer("limit_ns", 1, 1_000_000_000),
            n_required=table.integer("n_required", 4, 1_000_000_000),
            lost_percent_max=table.number("lost_percent_max", 0.0, 100.0, default=0.0),
            source=table.text("source"),
        )
        table.finish()
        where = f"{path}: requirement[{number}]"
        same = (requirement.method, requirement.clock, requirement.statistic)
        if same in {(known.method, known.clock, known.statistic) for known in found}:
            subject = requirement.method or requirement.clock
            raise ConfigError(
                f"{where}.statistic: {subject} has a requirement on {requirement.statistic} already"
            )
        found.append(requirement)
    return TimedEdgeRequirements(path, head["name"], tuple(found))
