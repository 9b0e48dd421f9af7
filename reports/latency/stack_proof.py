# SPDX-License-Identifier: Apache-2.0
"""Whether a network stack has carried a replay: by its own counters, and by those of the kernel.

A replay by a stack that takes its streams past the kernel leaves `stack_proof.json`: at each end what it has
gained meanwhile of frames that the stack has delivered to programs, and of bytes of IP that the kernel has
received and sent. The frames of all messages that came, those of the warm-up too, must be among the former;
of the latter there is room for the bench's own traffic alone. Otherwise nothing of the replay may pass or
fail: it was not carried by the stack.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from reports.errors import RecordError
from reports.record.json_text import load_json
from reports.tools.answers import Reader, RecvResult

STACK_PROOF = "stack_proof.json"
OWN_BYTES, OWN_SHARE = 1_000_000, 0.1
"""Of IP that the bench's own traffic may have at an end: clock exchanges, the start of tools."""
WARM_UP_SHARE = 0.98
"""Of the frames of warm-up and counting together, by those that count: the first ones may be lost."""


@dataclass(frozen=True, slots=True)
class StackEnd:
    """What one end's counters have gained during a replay."""

    delivered_frames: int
    kernel_in_bytes: int
    kernel_out_bytes: int


@dataclass(frozen=True, slots=True)
class StackProof:
    """What is known of a replay by a stack.

    Attributes:
        stack: Its name.
        frame_bytes: Most bytes of a message that a frame carries.
        receiver: The node that receives.
        ends: By node.
    """

    stack: str
    frame_bytes: int
    receiver: str
    ends: Mapping[str, StackEnd]

    def write(self, folder: Path) -> None:
        """Keep it as evidence of a replay."""
        (folder / STACK_PROOF).write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")

    @staticmethod
    def read(path: Path) -> StackProof:
        """Read it back; raises RecordError."""
        try:
            reader = Reader(load_json(path.read_bytes()), path.name)
        except ValueError as error:
            raise RecordError(f"{path.name}: {error}") from error
        names = ("delivered_frames", "kernel_in_bytes", "kernel_out_bytes")
        ends = {
            node: StackEnd(**reader.child("ends").child(node).fields(dict.fromkeys(names, (int,))))
            for node in reader.get("ends", dict)
        }
        spec = {"stack": (str,), "frame_bytes": (int,), "receiver": (str,)}
        proof = StackProof(**reader.fields(spec), ends=ends)
        if proof.frame_bytes < 1 or proof.receiver not in ends:
            raise RecordError(f"{path.name}: frame_bytes must be 1 or more, receiver one of ends")
        return proof


def why_not_carried(proof: StackProof, recv: RecvResult) -> list[str]:
    """Return why the stack cannot be said to have carried a replay; empty: it has.

    Args:
        proof: Of the replay.
        recv: What the consumer says of it.
    """
    frames = sum(stream.received * -(-stream.size_bytes // proof.frame_bytes) for stream in recv.streams)
    warmed_up = 1 + recv.warmup_ms / recv.duration_ms
    wanted = max(frames, int(WARM_UP_SHARE * frames * warmed_up))
    payload_bytes = sum(stream.received * stream.size_bytes for stream in recv.streams) * warmed_up
    limit_bytes = OWN_BYTES + OWN_SHARE * payload_bytes
    delivered = proof.ends[proof.receiver].delivered_frames
    causes = [] if delivered >= wanted else [f"its counters have {delivered} of at least {wanted} frames"]
    for node, end in proof.ends.items():
        for did, count in (("received", end.kernel_in_bytes), ("sent", end.kernel_out_bytes)):
            if count > limit_bytes:
                causes.append(f"the kernel of {node} has itself {did} {count} bytes of IP")
    return [f"not carried by the stack {proof.stack}: {cause}" for cause in causes]
