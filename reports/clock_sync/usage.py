# SPDX-License-Identifier: Apache-2.0
"""What a clock stack costs its target: CPU of its daemon, and a reading of the clock that it keeps.

The folder of a trial of several stacks side by side holds `usage.json` (this file's dataclass), and of each
clock that was read the answer of `bw-clock latency`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from reports.clock_read.readings import ReadCost, read_cost
from reports.clock_sync.trial import ClockTrial
from reports.record.document import read_document, write_document
from reports.record.measurement import Number
from reports.tools.answers import last_result

SCHEMA = "benchwright.clock_usage/1"
USAGE = "usage.json"
READ_COST = "read-{clock}.ndjson"
SYSTEM_CLOCK = "realtime"


@dataclass(frozen=True)
class Usage:
    """What a stack's daemon took.

    Attributes:
        clock: Clock stack.
        daemon: Who keeps its clock.
        cpu_s: What it had of a CPU while its clock was measured; None: the target does not say.
        elapsed_s: How long that was.
    """

    clock: str
    daemon: str
    cpu_s: Number | None
    elapsed_s: Number
    schema: str = SCHEMA

    @property
    def cpu_share(self) -> float | None:
        """Return its share of a CPU."""
        return None if self.cpu_s is None or not self.elapsed_s else self.cpu_s / self.elapsed_s


@dataclass(frozen=True)
class UsageRow:
    """A stack among others on the same target, against the same server."""

    trial: ClockTrial
    usage: Usage
    read: ReadCost | None
    """A reading of the clock that it keeps."""
    system_read: ReadCost | None
    """A reading of the system's clock, at the same time."""


def write_usage(folder: Path, usage: Usage) -> Path:
    """Write `usage.json` and return its path."""
    return write_document(folder / USAGE, usage)


def usage_row(trial: ClockTrial) -> UsageRow | None:
    """Read what a trial's stack costs; None where that was not asked.

    Raises:
        RecordError: A file is damaged; names the key.
    """
    path = trial.folder / USAGE
    if not path.exists():
        return None
    usage = read_document(Usage, path, SCHEMA)
    return UsageRow(trial, usage, _cost(trial, trial.facts.device), _cost(trial, SYSTEM_CLOCK))


def _cost(trial: ClockTrial, clock: str) -> ReadCost | None:
    path = trial.folder / READ_COST.format(clock=clock)
    return read_cost(last_result(path)) if path.exists() else None
