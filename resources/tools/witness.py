# SPDX-License-Identifier: Apache-2.0
"""The witness of the machine: it records how much time that took from the bench, and when."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from hw.bench import WitnessSpec
from hw.open_bench import Nodes
from hw.protocols import Job
from resources.tools.experiment import Experiment

PRIORITY = 90
PERIOD_US = 250
SERIES = ".series"


def start_witness(
    bench: Nodes,
    spec: WitnessSpec,
    stem: Path,
    duration_ms: int,
    emulated: Mapping[str, int] | None = None,
    target: Path | None = None,
) -> Job:
    """Start the witness; it is ready when this returns.

    On a virtual bench it keeps the processors awake besides: one that has nothing to do is given back to the
    hypervisor, and comes back up to ten milliseconds late without any counter that says so.

    Args:
        bench: An open bench.
        spec: Where it runs.
        stem: Its answers go to `stem`.ndjson.
        duration_ms: How long.
        emulated: Threads of this machine that emulate a guest, whose CPU time it reads as well; all that it
            saw goes to `stem`.series then.
        target: What targets that share its CPUs run there (`VirtualBench.target_account`).
    """
    argv = [bench.tool(spec.node), "witness", "--cpu", ",".join(str(cpu) for cpu in spec.cpus)]
    argv += ["--duration-ms", str(duration_ms), "--period-us", str(PERIOD_US)]
    argv += ["--threshold-us", str(spec.threshold_us), "--priority", str(PRIORITY)]
    if bench.spec.virtual is not None:
        argv.append("--awake")
    if target is not None:
        argv += ["--target", str(target)]
    if emulated:
        argv += [
            "--thread",
            ",".join(map(str, emulated.values())),
            "--series",
            str(stem.with_suffix(SERIES).resolve()),
        ]
    job = bench.node(spec.node).start(argv, stem)
    job.wait_ready()
    return job


def add_witness(
    experiment: Experiment,
    stem: Path,
    duration_ms: int,
    emulated: Mapping[str, int] | None = None,
    target: Path | None = None,
) -> Job | None:
    """Let the bench's witness watch an experiment; None: the bench has none. Arguments as `start_witness`."""
    bench = experiment.bench
    if bench.spec.witness is None:
        return None
    return experiment.add(start_witness(bench, bench.spec.witness, stem, duration_ms, emulated, target))
