# SPDX-License-Identifier: Apache-2.0
"""Whether a network stack carried a replay, worked out again from what its ends counted (docs/stacks.md)."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

COUNTED = "stack_proof.json"


def is_carried(folder: Path, recv: Mapping[str, Any]) -> bool:
    """Say whether counters of stack and kernel agree with a replay by the stack; True where nobody counted.

    Raises:
        ValueError, KeyError: The file is damaged, or lacks something.
    """
    file = folder / COUNTED
    if not file.exists():
        return True
    proof = json.loads(file.read_text("utf-8"))
    # By frames where it says what one carries, else by bytes of packets.
    in_frames = "frame_bytes" in proof
    carries = _whole(proof, "frame_bytes") if in_frames else 1
    if carries < 1:
        raise ValueError(f"{file}: frame_bytes: {carries}")
    units = payload = 0
    for stream in recv["streams"]:
        units += stream["received"] * math.ceil(stream["size_bytes"] / carries)
        payload += stream["received"] * stream["size_bytes"]
    whole = (recv["warmup_ms"] + recv["duration_ms"]) / recv["duration_ms"]
    counted = "delivered_frames" if in_frames else "delivered_bytes"
    for end in proof["ends"].values():
        if [key for key in end if key.startswith("delivered_")] != [counted]:
            raise ValueError(f"{file}: an end has something else than {counted}")
    delivered = _whole(proof["ends"][proof["receiver"]], counted)
    room = 1e6 + payload * whole / 10
    kernel = [_whole(end, f"kernel_{way}_bytes") for end in proof["ends"].values() for way in ("in", "out")]
    return delivered >= units and delivered >= int(0.98 * units * whole) and max(kernel) <= room


def _whole(counts: Mapping[str, Any], key: str) -> int:
    if type(counts[key]) is not int:
        raise ValueError(f"{COUNTED}: {key}: {counts[key]!r:.40}")
    return counts[key]
