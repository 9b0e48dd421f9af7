# SPDX-License-Identifier: Apache-2.0
"""Bulk data from a producer to a target: who takes part in `bulk.toml`, and what it leaves as evidence."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from hw.bench import TargetSpec
from hw.errors import MeasurementError
from hw.open_bench import OpenBench
from reports.timeline.bulk_evidence import BulkEnd, BulkTransfer, write_bulk
from resources.experiment.procedure import measure_experiment
from resources.timeline.recorded_program import SUFFIX, producer_besides

EXPERIMENT = Path(__file__).with_name("bulk.toml")
PORT = 9641
SLOWEST_MBIT = 4
"""Of an emulated machine on a busy one."""
ENDING_S = 60.0


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
    nodes = {"sender": producer.node, "receiver": target.node}
    slowest_mbit = min(data.rate_mbit or SLOWEST_MBIT, SLOWEST_MBIT)
    parameters = {
        "port": PORT,
        "bytes": data.bytes,
        "block_bytes": data.block_bytes,
        "rate_mbit": data.rate_mbit,
        "send_s": data.bytes * 8 / 1e6 / slowest_mbit + ENDING_S,
    }
    point = measure_experiment(bench, EXPERIMENT, nodes, parameters, folder)
    said = {name: json.loads((point / f"{name}-kernel.json").read_text()) for name in nodes}
    refused = "; ".join(each["refused"] for each in said.values() if "refused" in each)
    ends = {
        name: _end(name, node, address, point, folder, is_recorded=not refused)
        for (name, node), address in zip(nodes.items(), (producer.address, target.test_address), strict=True)
    }
    found = BulkTransfer(
        target.kind,
        ends["sender"],
        ends["receiver"],
        PORT,
        data.bytes,
        data.block_bytes,
        data.rate_mbit,
        refused,
    )
    write_bulk(folder, found)
    return found


def _end(name: str, node: str, address: str, point: Path, folder: Path, *, is_recorded: bool) -> BulkEnd:
    """Move what an end has left to the evidence, and return their names there."""
    streams = list(point.glob(f"{name}-*{SUFFIX}"))
    if len(streams) != 1:
        raise MeasurementError(f"{node}: bw-events has left {len(streams)} streams, not one")
    answer, stream, kernel = f"{name}.ndjson", f"{name}{SUFFIX}", f"{name}-kernel.gz"
    (point / f"{name}.out").rename(folder / answer)
    streams[0].rename(folder / stream)
    if is_recorded:
        (point / f"{name}-kernel-kernel.gz").rename(folder / kernel)
    return BulkEnd(node, address, answer, stream, kernel if is_recorded else None)
