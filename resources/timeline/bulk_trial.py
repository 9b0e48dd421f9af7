# SPDX-License-Identifier: Apache-2.0
"""Bulk data from a producer's node to a target, recorded at both ends by the programs and their kernels.

Of one kernel under both ends, as of network namespaces, each has an instance of tracefs of its own.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from hw.bench import TargetSpec
from hw.errors import CapabilityError
from hw.open_bench import OpenBench
from reports.timeline.bulk_evidence import (
    RETRANSMISSION_EVENT,
    SEGMENT_EVENT,
    BulkEnd,
    BulkTransfer,
    write_bulk,
)
from resources.timeline.recorded_program import collect_recorded, producer_besides, start_recorded
from resources.tools.experiment import Experiment
from resources.tools.kernel_recorder import KernelEvents, KernelRecorder, kernel_recorded

PORT = 9641
POINTS = ("bulk",)
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
    producer = producer_besides(bench.spec, target, "data")
    sender, receiver = producer.node, target.node
    bench.power_on([sender, receiver])
    kernels = {"receiver": f"receiver{KERNEL}", "sender": f"sender{KERNEL}"}
    with ExitStack() as recorded:
        recorders, refused = _recorders(recorded, bench, sender, receiver)
        with Experiment(bench) as experiment:
            place, timeout = f"{target.test_address}:{PORT}", ["--timeout-ms", str(TIMEOUT_MS)]
            serve = ["bulk", "--serve", place, *timeout]
            receiving = start_recorded(experiment, "receiver", receiver, POINTS, serve, folder)
            send = ["bulk", "--peer", place, *timeout, "--bytes", str(data.bytes)]
            send += ["--block-bytes", str(data.block_bytes), "--rate-mbit", str(data.rate_mbit)]
            sending = start_recorded(experiment, "sender", sender, POINTS, send, folder)
            within_s = data.bytes * 8 / 1e6 / min(data.rate_mbit or SLOWEST_MBIT, SLOWEST_MBIT) + ENDING_S
            files = {
                "sender": collect_recorded(experiment, sending, within_s, folder),
                "receiver": collect_recorded(experiment, receiving, ENDING_S, folder),
            }
        for name, recorder in recorders.items():
            recorder.end(folder / kernels[name])
    ends = [
        BulkEnd(node, address, *files[name], kernels[name] if not refused else None)
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
