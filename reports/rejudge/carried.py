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
    proof = json.loads(file.read_text())
    frames = payload = 0
    for stream in recv["streams"]:
        frames += stream["received"] * math.ceil(stream["size_bytes"] / proof["frame_bytes"])
        payload += stream["received"] * stream["size_bytes"]
    whole = (recv["warmup_ms"] + recv["duration_ms"]) / recv["duration_ms"]
    delivered = proof["ends"][proof["receiver"]]["delivered_frames"]
    room = 1e6 + payload * whole / 10
    kernel = [end[f"kernel_{way}_bytes"] for end in proof["ends"].values() for way in ("in", "out")]
    return delivered >= frames and delivered >= int(0.98 * frames * whole) and max(kernel) <= room
