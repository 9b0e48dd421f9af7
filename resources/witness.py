# SPDX-License-Identifier: Apache-2.0
"""The stall witness: it records when the bench itself stood still."""

from __future__ import annotations

from pathlib import Path

from hw.bench import WitnessSpec
from hw.protocols import Job
from hw.session import Bench
from resources.jobs import READY_S

PRIORITY = 90
PERIOD_US = 2000


def start_witness(
    bench: Bench, spec: WitnessSpec, stem: Path, duration_ms: int, *, backlog: bool = False
) -> Job:
    """Start a witness; it is ready when this returns.

    Args:
        bench: An open bench.
        spec: Where it runs.
        stem: Its answers go to `stem`.ndjson.
        duration_ms: How long.
        backlog: Watch with the lowest real-time priority instead of the highest (reports/stalls.py says why).
    """
    argv = [bench.tool(spec.node), "witness", "--cpu", ",".join(str(cpu) for cpu in spec.cpus)]
    argv += ["--duration-ms", str(duration_ms), "--period-us", str(PERIOD_US)]
    argv += ["--threshold-us", str(PERIOD_US if backlog else spec.threshold_us)]
    argv += ["--priority", str(1 if backlog else PRIORITY)]
    job = bench.node(spec.node).start(argv, stem)
    job.wait_ready(READY_S)
    return job
