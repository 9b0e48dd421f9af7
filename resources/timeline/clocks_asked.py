# SPDX-License-Identifier: Apache-2.0
"""The clocks of machines, asked by the reference clock's node for as long as something is measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hw.protocols import Job
from resources.clock_sync.lines import ask_clock, serve_clocks
from resources.tools.experiment import Experiment

ASKING_MS = 50
"""Between two bursts of exchanges with a clock."""
LONGEST_MS = 604_800_000
"""Of what is stopped when the measurement is through."""
ENDING_S = 60.0


@dataclass(frozen=True)
class ClocksAsked:
    """What asks.

    Attributes:
        exchanges: Of each node whose clock is not the reference: the file of its clock's exchanges.
    """

    experiment: Experiment
    exchanges: dict[str, str]
    jobs: tuple[Job, ...]

    def end(self) -> None:
        """Stop asking, and fetch the exchanges; raises BenchError, MeasurementError."""
        for job in self.jobs:
            job.stop()
            self.experiment.collect(job, ENDING_S).require_done()


def ask_clocks(experiment: Experiment, nodes: Sequence[str], folder: Path) -> ClocksAsked:
    """Start asking the clock of each node that is not the bench's reference; the programs there go first.

    Args:
        experiment: That ends what is started.
        nodes: They are on; several may share a clock.
        folder: Of the answers.

    Raises:
        BenchError: A responder did not start.
    """
    bench = experiment.bench
    spec = bench.spec
    clocks = {node: spec.nodes[node].clock for node in nodes}
    asked = sorted({clock for clock in clocks.values() if clock != spec.reference_clock})
    # What is measured goes first: of a burst that was held up the shortest exchange counts.
    for job in serve_clocks(bench, asked, LONGEST_MS, folder, below=1):
        experiment.add(job)
    jobs = [
        experiment.add(ask_clock(bench, clock, LONGEST_MS, ASKING_MS, folder / f"offset-{clock}"))
        for clock in asked
    ]
    exchanges = {node: f"offset-{clock}.ndjson" for node, clock in clocks.items() if clock in asked}
    return ClocksAsked(experiment, exchanges, tuple(jobs))
