# SPDX-License-Identifier: Apache-2.0
"""A verb of a native tool that runs beside the recorder of its points, and what that leaves behind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hw.bench import BenchSpec, ProducerSpec, TargetSpec
from hw.errors import CapabilityError, MeasurementError
from hw.protocols import Job
from reports.timeline.recorded_end import RecordedEnd
from resources.tools.experiment import Experiment
from resources.tools.fetched import plain_names

RECORDER = "bw-events"
SUFFIX = ".bwevents"


@dataclass(frozen=True)
class RecordedProgram:
    """One that was started.

    Attributes:
        name: Of its end, such as `server`: its files begin with it.
        place: On the node, where the recorder leaves its file.
    """

    name: str
    node: str
    place: str
    job: Job


def start_recorded(
    experiment: Experiment,
    name: str,
    node: str,
    points: Sequence[str],
    words: Sequence[str],
    folder: Path,
    tool: str = "bw-traffic",
    *,
    tai_utc_s: int,
    timeout_ms: int,
) -> RecordedProgram:
    """Start a program with its recorder, as its node schedules such; it is ready when this returns.

    Args:
        experiment: That it is part of.
        name: As of `RecordedProgram`.
        node: Where it runs.
        points: Of which its recorder takes the events.
        words: The verb, and its options.
        folder: Its answers go there.
        tool: Whose verb.
        tai_utc_s: TAI - UTC, for a kernel that does not know it.
        timeout_ms: How long it waits for the other end.

    Raises:
        BenchError: It did not start.
    """
    bench = experiment.bench
    place = f"{bench.node(node).fresh_folder(f'{words[0]}-{name}')}/events"
    argv = [bench.tool(node, RECORDER), "record", "--output", place]
    argv += [word for point in points for word in ("--points", point)]
    argv += ["--", bench.tool(node, tool), *words, "--priority", str(bench.node(node).priority)]
    argv += ["--tai-utc-s", str(tai_utc_s), "--timeout-ms", str(timeout_ms)]
    if cpus := bench.spec.nodes[node].cpus:
        argv += ["--cpu", str(cpus[0])]
    job = experiment.start(node, argv, folder / name)
    job.wait_ready()
    return RecordedProgram(name, node, place, job)


def collect_recorded(
    experiment: Experiment, program: RecordedProgram, within_s: float, exchanges: str | None, folder: Path
) -> RecordedEnd:
    """Wait for its end, fetch what was recorded, and return its part of the evidence.

    Args:
        experiment: That it is part of.
        program: As started.
        within_s: So long it may take.
        exchanges: File of its clock's exchanges; None: that is the reference.
        folder: Where its answers are; the stream goes there.

    Raises:
        BenchError: It did not end in time, or its node cannot be reached.
        MeasurementError: It came to no result, or left no stream.
    """
    experiment.collect(program.job, within_s).require_done()
    node = experiment.bench.node(program.node)
    found = [each for each in plain_names(node.files(program.place)) if each.endswith(SUFFIX)]
    if len(found) != 1:
        raise MeasurementError(f"{program.node}: {RECORDER} has left {len(found)} streams, not one")
    stream = f"{program.name}{SUFFIX}"
    node.get(f"{program.place}/{found[0]}", folder / stream)
    return RecordedEnd(program.node, f"{program.name}.ndjson", stream, exchanges)


def producer_besides(spec: BenchSpec, target: TargetSpec, sends: str) -> ProducerSpec:
    """Return the first producer of a bench that is not on the target's node.

    Raises:
        CapabilityError: There is none; says that nobody `sends`.
    """
    for _, producer in sorted(spec.producers.items()):
        if producer.node != target.node:
            return producer
    raise CapabilityError(f"bench {spec.name}: no producer besides {target.node}: nobody sends {sends}")
