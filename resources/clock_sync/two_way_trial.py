# SPDX-License-Identifier: Apache-2.0
"""Measure a clock by two-way time transfer over the control network alone: a target that has no timecard.

This machine asks the target, and at the same time the time server where the target's stack follows it. What
comes of it, reports/clock_sync/two_way_reference.py says.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from hw.bench import TargetSpec
from hw.errors import BenchError, CapabilityError
from hw.open_bench import Nodes
from reports.clock_sync.trial import WITNESS, ClockTrial, TrialFacts, load_trial, write_trial
from reports.clock_sync.two_way_reference import SERVER_FILE, TARGET_FILE
from resources.clock_sync.lines import ask_clock, serve_clocks
from resources.tools.experiment import Experiment
from resources.tools.witness import add_witness

INTERVAL_MS = 50
"""Between bursts of exchanges, the shortest of which counts."""
ENDING_S = 20.0


def measure_by_two_way(
    bench: Nodes,
    target: TargetSpec,
    facts: TrialFacts,
    duration_s: int,
    folder: Path,
    *,
    witness: bool = True,
) -> ClockTrial:
    """Measure a target's clock by two-way transfer and write the evidence.

    Where the trial's stack synchronises (`interval_s` is above 0) it is held against the time server, else
    against the bench's reference clock.

    Args:
        bench: An open bench; the nodes are on.
        target: Whose clock is measured.
        facts: What is known of the trial beforehand.
        duration_s: How long.
        folder: Evidence goes here.
        witness: Let the bench's stall witness watch meanwhile, where it has one.

    Raises:
        CapabilityError: A clock of the bench cannot be asked.
        BenchError: A tool did not start or end.
        MeasurementError: A tool came to no result.
    """
    folder.mkdir(parents=True, exist_ok=True)
    asked = {TARGET_FILE: target.node}
    if facts.interval_s and bench.spec.time_server is not None:
        asked[SERVER_FILE] = bench.spec.time_server.node
    with Experiment(bench) as experiment:
        stem = folder / Path(WITNESS).stem
        watching = add_witness(experiment, stem, duration_s * 1000) if witness else None
        ask_clocks(bench, asked, duration_s, folder)
        if watching is not None:
            with suppress(BenchError):
                watching.wait(ENDING_S)
    write_trial(folder, facts)
    return load_trial(folder)


def ask_clocks(bench: Nodes, asked: dict[str, str], duration_s: int, folder: Path) -> None:
    """Ask clocks of other nodes by two-way transfer, all at once, from the node of the reference clock.

    Args:
        bench: An open bench; the nodes are on.
        asked: File of the answer → node.
        duration_s: How long.
        folder: Answers go here.

    Raises:
        CapabilityError: A node's clock has no address on the control network.
        BenchError: A tool did not start or end.
        MeasurementError: It came to no result.
    """
    spec = bench.spec
    clocks = {file: spec.nodes[node].clock for file, node in asked.items()}
    for name in clocks.values():
        if name not in spec.clocks:
            raise CapabilityError(
                f"clock {name}: no way to ask it: add benchwright.clocks.{name} to {spec.path}"
            )
    with Experiment(bench) as experiment:
        for server in serve_clocks(bench, clocks.values(), duration_s * 1000 + 60_000, folder / "two-way"):
            experiment.add(server)
        jobs = [
            experiment.add(ask_clock(bench, name, duration_s * 1000, INTERVAL_MS, folder / Path(file).stem))
            for file, name in clocks.items()
        ]
        answers = [experiment.collect(job, duration_s + ENDING_S) for job in jobs]
    for answer in answers:
        answer.require_done()
