# SPDX-License-Identifier: Apache-2.0
"""Whether a network stack has carried a replay: by its own counters, and by those of the kernel.

A replay by a stack that takes its streams past the kernel leaves `stack_proof.json`: at each end what it has
gained meanwhile of what the stack has delivered to programs, and of bytes of IP that the kernel has received
and sent. All messages that came, those of the warm-up too, must be among the former; of the latter there is
room for the bench's own traffic alone. Otherwise nothing of the replay may pass or fail: it was not carried
by the stack.

    {"stack": "rtdip", "frame_bytes": 1480, "receiver": "t1",
     "ends": {"t1": {"delivered_frames": 9, "kernel_in_bytes": 0, "kernel_out_bytes": 0}}}
    {"stack": "user", "receiver": "t1",
     "ends": {"t1": {"delivered_bytes": 9000, "kernel_in_bytes": 0, "kernel_out_bytes": 0}}}

What was delivered is counted in frames, where each message has its own, `frame_bytes` of it in each; or,
where segments join and split messages (TCP), in bytes of IP packets, whose headers come on top of the
messages.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from reports.errors import RecordError
from reports.record.json_text import load_json
from reports.tools.answers import Reader, RecvResult

STACK_PROOF = "stack_proof.json"
OWN_BYTES, OWN_SHARE = 1_000_000, 0.1
"""Of IP that the bench's own traffic may have at an end: clock exchanges, the start of tools."""
WARM_UP_SHARE = 0.98
"""Of what came in warm-up and counting together, by what counts: the first messages may be lost."""
DELIVERED = ("delivered_frames", "delivered_bytes")


@dataclass(frozen=True, slots=True)
class StackEnd:
    """What one end's counters have gained during a replay; what was delivered, in one of two units."""

    delivered_frames: int | None
    kernel_in_bytes: int
    kernel_out_bytes: int
    delivered_bytes: int | None = None

    @property
    def delivered(self) -> int:
        """Return what was delivered, in whichever unit it was counted."""
        return (self.delivered_frames if self.delivered_bytes is None else self.delivered_bytes) or 0

    def since(self, begun: StackEnd) -> StackEnd:
        """Return what the counters have gained since an earlier look at them, in the same unit."""
        delivered = self.delivered - begun.delivered
        return StackEnd(
            delivered if self.delivered_bytes is None else None,
            self.kernel_in_bytes - begun.kernel_in_bytes,
            self.kernel_out_bytes - begun.kernel_out_bytes,
            None if self.delivered_bytes is None else delivered,
        )


@dataclass(frozen=True, slots=True)
class StackProof:
    """What is known of a replay by a stack.

    Attributes:
        stack: Its name.
        frame_bytes: Most bytes of a message that a frame carries; None: the ends have counted bytes.
        receiver: The node that receives.
        ends: By node.
    """

    stack: str
    frame_bytes: int | None
    receiver: str
    ends: Mapping[str, StackEnd]

    def write(self, folder: Path) -> None:
        """Keep it as evidence of a replay."""
        whole = _known(asdict(self)) | {
            "ends": {node: _known(asdict(end)) for node, end in self.ends.items()}
        }
        (folder / STACK_PROOF).write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")

    @staticmethod
    def read(path: Path) -> StackProof:
        """Read it back; raises RecordError."""
        try:
            reader = Reader(load_json(path.read_bytes()), path.name)
        except ValueError as error:
            raise RecordError(f"{path.name}: {error}") from error
        in_frames = reader.has("frame_bytes")
        ends = {node: _end(reader.child("ends").child(node), in_frames) for node in reader.get("ends", dict)}
        proof = StackProof(
            stack=reader.get("stack", str),
            frame_bytes=reader.get("frame_bytes", int) if in_frames else None,
            receiver=reader.get("receiver", str),
            ends=ends,
        )
        if (proof.frame_bytes is not None and proof.frame_bytes < 1) or proof.receiver not in ends:
            raise RecordError(f"{path.name}: frame_bytes must be 1 or more, receiver one of ends")
        return proof


def _known(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def _end(reader: Reader, in_frames: bool) -> StackEnd:
    counted, other = DELIVERED if in_frames else DELIVERED[::-1]
    if reader.has(other):
        raise RecordError(
            f"{reader.where}.{other}: what was delivered must be counted once:"
            " in delivered_frames with frame_bytes, or in delivered_bytes without"
        )
    names = (counted, "kernel_in_bytes", "kernel_out_bytes")
    return StackEnd(**{other: None}, **reader.fields(dict.fromkeys(names, (int,))))


def why_not_carried(proof: StackProof, recv: RecvResult) -> list[str]:
    """Return why the stack cannot be said to have carried a replay; empty: it has.

    Args:
        proof: Of the replay.
        recv: What the consumer says of it.
    """
    counted_bytes = sum(stream.received * stream.size_bytes for stream in recv.streams)
    counted, unit = counted_bytes, "bytes"
    if proof.frame_bytes is not None:
        counted = sum(stream.received * -(-stream.size_bytes // proof.frame_bytes) for stream in recv.streams)
        unit = "frames"
    warmed_up = 1 + recv.warmup_ms / recv.duration_ms
    wanted = max(counted, int(WARM_UP_SHARE * counted * warmed_up))
    limit_bytes = OWN_BYTES + OWN_SHARE * counted_bytes * warmed_up
    delivered = proof.ends[proof.receiver].delivered
    causes = [] if delivered >= wanted else [f"its counters have {delivered} of at least {wanted} {unit}"]
    for node, end in proof.ends.items():
        for did, count in (("received", end.kernel_in_bytes), ("sent", end.kernel_out_bytes)):
            if count > limit_bytes:
                causes.append(f"the kernel of {node} has itself {did} {count} bytes of IP")
    return [f"not carried by the stack {proof.stack}: {cause}" for cause in causes]
