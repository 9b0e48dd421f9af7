# SPDX-License-Identifier: Apache-2.0
"""Lines of offset and rate between the clocks of a bench, by two-way time transfer on the control network."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from hw.bench import BenchSpec, TargetSpec
from hw.errors import BenchError, MeasurementError
from hw.open_bench import Nodes
from hw.protocols import Job
from resources.tools.experiment import Experiment, last_result

INTERVAL_MS = 100
CLOCK_MEASURING_MS = 2500
PPB = 1_000_000_000
"""Parts per billion in one."""


@dataclass(frozen=True)
class ClockLine:
    """Where a clock stands against the reference clock of the bench; positive: it is ahead.

    offset_ns holds at at_reference_tai_ns; bound_ns bounds its error there.
    """

    name: str
    at_reference_tai_ns: int
    offset_ns: int
    rate_ppb: int
    bound_ns: int

    def local_ns(self, reference_tai_ns: int) -> int:
        """Return what this clock shows when the reference shows the given time."""
        elapsed_ns = reference_tai_ns - self.at_reference_tai_ns
        return reference_tai_ns + self.offset_ns + _divide(elapsed_ns * self.rate_ppb, PPB)

    def reference_ns(self, local_tai_ns: int) -> int:
        """Return what the reference shows when this clock shows the given time."""
        elapsed_local_ns = local_tai_ns - self.offset_ns - self.at_reference_tai_ns
        return self.at_reference_tai_ns + _divide(elapsed_local_ns * PPB, PPB + self.rate_ppb)


def _divide(numerator: int, denominator: int) -> int:
    """Return the nearest integer; a float would lose nanoseconds of a time since 1970."""
    return (2 * numerator + denominator) // (2 * denominator)


def serve_clocks(
    bench: Nodes, names: Iterable[str], duration_ms: int, folder: Path, *, below: int = 0
) -> list[Job]:
    """Start the responders of clocks; each ends by itself after `duration_ms`.

    Args:
        bench: An open bench.
        names: Clocks of it.
        duration_ms: How long.
        folder: Where the answers go.
        below: So much below the priority of their nodes' programs: 0, they take turns with these.
    """
    folder.mkdir(parents=True, exist_ok=True)
    jobs: list[Job] = []
    for name in names:
        clock = bench.spec.clocks[name]
        node = bench.node(clock.node)
        argv = [bench.tool(clock.node), "offset", "--serve", f"{clock.address}:{clock.port}"]
        argv += ["--duration-ms", str(duration_ms), "--priority", str(max(0, node.priority - below))]
        jobs.append(node.start(argv, folder / f"offset-serve-{name}"))
    for job in jobs:
        job.wait_ready()
    return jobs


def ask_clock(bench: Nodes, name: str, duration_ms: int, interval_ms: int, stem: Path) -> Job:
    """Start asking a clock of another node, from the node of the reference clock.

    Args:
        bench: An open bench.
        name: Clock of the bench whose responder runs.
        duration_ms: How long.
        interval_ms: Between bursts of exchanges, the shortest of which counts.
        stem: Where the answers go, without the ending.
    """
    clock = bench.spec.clocks[name]
    client = bench.node(bench.spec.clocks[bench.spec.reference_clock].node)
    argv = [bench.tool(client.name), "offset", "--peer", f"{clock.address}:{clock.port}"]
    argv += ["--duration-ms", str(duration_ms), "--interval-ms", str(interval_ms)]
    return client.start([*argv, "--priority", str(client.priority)], stem)


def measure_clock_lines(
    bench: Nodes, names: Iterable[str], duration_ms: int, folder: Path
) -> dict[str, ClockLine]:
    """Measure clocks against the reference clock, all at once.

    Args:
        bench: An open bench.
        names: Clocks whose responders run; the reference itself needs none.
        duration_ms: How long; longer gives a better rate.
        folder: Where the raw answers go.

    Returns:
        A line for each clock, the reference included (zero by definition).

    Raises:
        BenchError: A clock did not answer.
        MeasurementError: A clock stepped, or the answers contradict each other.
    """
    folder.mkdir(parents=True, exist_ok=True)
    reference = bench.spec.clocks[bench.spec.reference_clock]
    lines = {reference.name: ClockLine(reference.name, 0, 0, 0, 0)}
    jobs: dict[str, Job] = {}
    for name in names:
        if name == reference.name:
            continue
        jobs[name] = ask_clock(bench, name, duration_ms, INTERVAL_MS, folder / f"offset-{name}")
    for name, job in jobs.items():
        code = job.wait(duration_ms / 1000 + 20.0)
        result = last_result(job.fetch())
        if code == 4:
            raise MeasurementError(f"clock {name}: {result.get('invalid_reasons')}")
        if code != 0:
            raise BenchError(f"clock {name}: {job.name} ended with exit code {code}")
        lines[name] = ClockLine(
            name=name,
            at_reference_tai_ns=int(result["at_local_tai_ns"]),
            offset_ns=int(result["offset_ns"]),
            rate_ppb=int(result["rate_ppb"]),
            bound_ns=int(result["bound_ns"]),
        )
    return lines


def clocks_of(spec: BenchSpec, target: TargetSpec, nodes: Iterable[str], more: str = "") -> list[str]:
    """Return the clocks of a bench that stamp in a replay: the target's, other nodes', one more."""
    wanted = {*(spec.nodes[node].clock for node in nodes), spec.nodes[target.node].clock, more}
    return sorted(wanted.intersection(spec.clocks))


def served_clock_lines(
    experiment: Experiment, names: Sequence[str], life_ms: int, folder: Path
) -> dict[str, ClockLine]:
    """Let responders run in an experiment, and measure their clocks; raises as `measure_clock_lines`."""
    bench = experiment.bench
    for job in serve_clocks(bench, dict.fromkeys([*names, bench.spec.reference_clock]), life_ms, folder):
        experiment.add(job)
    return measure_clock_lines(bench, names, CLOCK_MEASURING_MS, folder / "before")
