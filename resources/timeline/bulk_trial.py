# SPDX-License-Identifier: Apache-2.0
"""Bulk data from a producer's node to a target, recorded at both ends by the programs and their kernels.

Of one kernel under both ends, as of network namespaces, each has an instance of tracefs of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from hw.bench import TargetSpec
from hw.errors import CapabilityError, MeasurementError
from hw.open_bench import OpenBench
from hw.protocols import Job
from reports.timeline.bulk_evidence import (
    RETRANSMISSION_EVENT,
    SEGMENT_EVENT,
    BulkEnd,
    BulkTransfer,
    write_bulk,
)
from resources.timeline.kernel_recorder import KernelEvents, KernelRecorder, kernel_recorded
from resources.tools.experiment import Experiment
from resources.tools.fetched import plain_names

PORT = 9641
RECORDER = "bw-events"
SUFFIX = ".bwevents"
KERNEL = "-kernel.gz"
TIMEOUT_MS = 10_000
SLOWEST_MBIT = 4
"""Of an emulated machine on a busy one."""
ENDING_S = 60.0
SEGMENTS = KernelEvents((SEGMENT_EVENT,), buffer_kb=24_576, name="bulk-segments")
"""100 MB in segments of 1448 bytes are 70,000 events of 150 bytes, on one CPU or all."""
RETRANSMISSIONS = KernelEvents((RETRANSMISSION_EVENT,), buffer_kb=1_024, name="bulk-retransmissions")


@dataclass(frozen=True)
class BulkData:
    """What is sent."""

    bytes: int
    block_bytes: int
    rate_mbit: int


@dataclass(frozen=True)
class _Lab:
    bench: OpenBench
    experiment: Experiment
    folder: Path

    def start(self, name: str, node: str, words: Sequence[str]) -> tuple[Job, str]:
        """Start an end with its recorder; return its job and where its stream will be."""
        place = f"{self.bench.node(node).fresh_folder(f'bulk-{name}')}/events"
        argv = [self.bench.tool(node, RECORDER), "record", "--output", place, "--points", "bulk"]
        argv += ["--", self.bench.tool(node), "bulk", *words, "--timeout-ms", str(TIMEOUT_MS)]
        job = self.experiment.start(node, argv, self.folder / name)
        job.wait_ready()
        return job, place

    def collect(self, name: str, node: str, started: tuple[Job, str], within_s: float) -> None:
        """Wait for an end, and fetch what it has recorded."""
        job, place = started
        self.experiment.collect(job, within_s).require_done()
        on = self.bench.node(node)
        found = [each for each in plain_names(on.files(place)) if each.endswith(SUFFIX)]
        if len(found) != 1:
            raise MeasurementError(f"{node}: {RECORDER} has left {len(found)} streams, not one")
        on.get(f"{place}/{found[0]}", self.folder / f"{name}{SUFFIX}")


def measure_bulk(bench: OpenBench, target: TargetSpec, data: BulkData, folder: Path) -> BulkTransfer:
    """Send bulk data from a producer's node to the target, and write the evidence.

    Args:
        bench: An open bench.
        target: Where it is received.
        data: How much, and how fast.
        folder: Evidence goes here.

    Raises:
        CapabilityError: The bench has no producer besides the target, or a node cannot record its programs.
        BenchError: A node or a tool does not work.
        MeasurementError: A tool came to no result.
    """
    folder.mkdir(parents=True, exist_ok=True)
    producers = sorted(bench.spec.producers.items())
    producer = next((each for _, each in producers if each.node != target.node), None)
    if producer is None:
        raise CapabilityError(
            f"bench {bench.spec.name}: no producer besides {target.node}: nobody sends data"
        )
    sender, receiver = producer.node, target.node
    bench.power_on([sender, receiver])
    kernels = {"receiver": f"receiver{KERNEL}", "sender": f"sender{KERNEL}"}
    with ExitStack() as recorded:
        recorders, refused = _recorders(recorded, bench, sender, receiver)
        with Experiment(bench) as experiment:
            lab = _Lab(bench, experiment, folder)
            place = f"{target.test_address}:{PORT}"
            receiving = lab.start("receiver", receiver, ["--serve", place])
            words = ["--bytes", str(data.bytes), "--block-bytes", str(data.block_bytes)]
            words += ["--rate-mbit", str(data.rate_mbit)]
            sending = lab.start("sender", sender, ["--peer", place, *words])
            within_s = data.bytes * 8 / 1e6 / min(data.rate_mbit or SLOWEST_MBIT, SLOWEST_MBIT) + ENDING_S
            lab.collect("sender", sender, sending, within_s)
            lab.collect("receiver", receiver, receiving, ENDING_S)
        for name, recorder in recorders.items():
            recorder.end(folder / kernels[name])
    ends = [
        BulkEnd(node, address, f"{name}.ndjson", f"{name}{SUFFIX}", kernels[name] if not refused else None)
        for name, node, address in (
            ("sender", sender, producer.address),
            ("receiver", receiver, target.test_address),
        )
    ]
    found = BulkTransfer(
        target.kind, ends[0], ends[1], PORT, data.bytes, data.block_bytes, data.rate_mbit, refused
    )
    write_bulk(folder, found)
    return found


def _recorders(
    recorded: ExitStack, bench: OpenBench, sender: str, receiver: str
) -> tuple[dict[str, KernelRecorder], str]:
    """Begin to record both kernels; where one refuses, say why, and record neither."""
    found: dict[str, KernelRecorder] = {}
    try:
        for name, node, what in (
            ("receiver", receiver, SEGMENTS),
            ("sender", sender, RETRANSMISSIONS),
        ):
            found[name] = recorded.enter_context(kernel_recorded(bench.node(node), what))
    except CapabilityError as error:
        return {}, str(error)
    return found, ""
