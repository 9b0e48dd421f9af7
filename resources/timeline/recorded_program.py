# SPDX-License-Identifier: Apache-2.0
"""A verb of a native tool that runs beside the recorder of its points, and what that leaves behind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hw.bench import BenchSpec, ProducerSpec, TargetSpec
from hw.errors import CapabilityError, MeasurementError
from hw.protocols import Job
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
) -> RecordedProgram:
    """Start a program with its recorder; it is ready when this returns.

    Args:
        experiment: That it is part of.
        name: As of `RecordedProgram`.
        node: Where it runs.
        points: Of which its recorder takes the events.
        words: The verb, and its options.
        folder: Its answers go there.
        tool: Whose verb.

    Raises:
        BenchError: It did not start.
    """
    bench = experiment.bench
    place = f"{bench.node(node).fresh_folder(f'{words[0]}-{name}')}/events"
    argv = [bench.tool(node, RECORDER), "record", "--output", place]
    argv += [word for point in points for word in ("--points", point)]
    job = experiment.start(node, [*argv, "--", bench.tool(node, tool), *words], folder / name)
    job.wait_ready()
    return RecordedProgram(name, node, place, job)


def collect_recorded(
    experiment: Experiment, program: RecordedProgram, within_s: float, folder: Path
) -> tuple[str, str]:
    """Wait for its end, fetch what was recorded, and return the names of its answer and of its stream.

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
    return f"{program.name}.ndjson", stream


def producer_besides(spec: BenchSpec, target: TargetSpec, sends: str) -> ProducerSpec:
    """Return the first producer of a bench that is not on the target's node.

    Raises:
        CapabilityError: There is none; says that nobody `sends`.
    """
    for _, producer in sorted(spec.producers.items()):
        if producer.node != target.node:
            return producer
    raise CapabilityError(f"bench {spec.name}: no producer besides {target.node}: nobody sends {sends}")
