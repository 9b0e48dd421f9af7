# SPDX-License-Identifier: Apache-2.0
"""Evidence of a camera, a tracker and a display in its documented form, of delays that a test states."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from reports.control_loops.camera_evidence import CameraFacts, MeasuredDelay, write_camera
from reports.timeline.recorded_end import RecordedEnd
from tests.reports.control_loops.ring_sample import MACHINES, TARGET
from tests.reports.timeline.legs_sample import (
    BEGIN_NS,
    TAI_UTC_S,
    Machine,
    exchanges_answer,
    stream_bytes,
)

PERIOD_NS = 40_000_000
SPEED_PX_S = 120
POINTS = {
    "camera": ("camera.captured", "camera.sent", "camera.command_received"),
    "tracker": ("tracker.picture", "tracker.command_send", "tracker.forward"),
    "display": ("display.picture",),
}
NODES = {"camera": TARGET, "tracker": "p01", "display": "p02"}
TRACKER_NS, DISPLAY_NS = 500_000, 300_000


def place_q8(at_ns: int) -> tuple[int, int]:
    """Return where the target is, a straight line."""
    along = SPEED_PX_S * 256 * at_ns / 1e9
    return 200_000 + round(along * math.cos(0.6)), 150_000 + round(along * math.sin(0.6))


def write_sample_camera(
    folder: Path,
    *,
    pictures: int = 80,
    there_ns: Callable[[int], int] = lambda number: 4_000_000 + number % 5 * 10_000,
    back_ns: Callable[[int], int] = lambda number: 1_200_000 + number % 3 * 10_000,
    added_ns: int = 0,
    motor_ns: int = 100_000,
    answered: Callable[[int], bool] = lambda _: True,
    stops_at: Mapping[str, int] | None = None,
    off_px: float = 0.0,
    shift: int = 0,
    delay: MeasuredDelay | None = None,
    machines: Mapping[str, Machine] | None = None,
    follows: bool = True,
    truth: Callable[[list[dict[str, Any]]], list[dict[str, Any]]] = lambda lines: lines,
) -> CameraFacts:
    """Write evidence, and return what `camera.json` says.

    Args:
        folder: It is made.
        pictures: How many.
        there_ns: From the capture to the tracker, by the picture's number.
        back_ns: Of its command.
        added_ns: To either.
        motor_ns: From a command's arrival to the motor.
        answered: Whether a picture has a command.
        stops_at: Of one picture each on what point it stops: `queued`, `sent`, `received`, `came`.
        off_px: How far the tracker is off along the path.
        shift: By how much the numbers in commands are wrong.
        delay: Of the path.
        machines: Other than those of rings, by node.
        follows: The camera looks where the target is; else it stays where it is at the beginning.
        truth: Changes the lines of the truth file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    every = {**MACHINES, **(machines or {})}
    stops = {number: where for where, number in (stops_at or {}).items()}
    events: dict[str, list[tuple[int, int, int]]] = {name: [] for name in POINTS}
    lines: list[dict[str, Any]] = [
        {"type": "camera", "tool": "bw-loop camera", "width_px": 320, "height_px": 240, "options": []}
    ]
    commands: list[dict[str, Any]] = []
    end_ns = BEGIN_NS
    for number in range(pictures):
        captured_ns = 5_000_000 + number * PERIOD_NS
        at_ns = BEGIN_NS + captured_ns
        x, y = place_q8(captured_ns if follows else 0)
        stop = stops.get(number, "")
        pose = {"x_q8": x, "y_q8": y, "zoom_q8": 256}
        lines.append(
            {
                "type": "picture", "number": number, "captured_ns": captured_ns, "pose": pose,
                "queued": stop != "queued",
            }
        )  # fmt: skip
        events["camera"].append((0, number, at_ns))
        if stop in ("queued", "sent"):
            continue
        events["camera"].append((1, number, at_ns + 1000))
        if stop == "received":
            continue
        tracker_ns = at_ns + there_ns(number) + added_ns
        events["tracker"].append((0, number, tracker_ns))
        sent_ns = tracker_ns + TRACKER_NS
        events["tracker"].append((2, number, sent_ns + 1000))
        events["display"].append((0, number, sent_ns + DISPLAY_NS))
        if not answered(number):
            continue
        events["tracker"].append((1, number, sent_ns))
        if stop == "came":
            continue
        came_ns = sent_ns + back_ns(number) + added_ns
        events["camera"].append((2, number + shift, came_ns))
        x, y = place_q8(captured_ns + round(off_px / SPEED_PX_S * 1e9))
        commands.append(
            {
                "type": "command", "number": len(commands), "came_ns": came_ns - BEGIN_NS, "refused": None,
                "picture": number + shift, "look": {"x_q8": x, "y_q8": y, "zoom_q8": 256}, "obeyed": True,
                "motor_ns": came_ns - BEGIN_NS + motor_ns,
            }
        )  # fmt: skip
        end_ns = max(end_ns, came_ns)
    lines += [*commands, {"type": "end", "pictures": pictures, "commands": len(commands), "lacks": 0}]
    (folder / "truth.ndjson").write_text("".join(json.dumps(each) + "\n" for each in truth(lines)))
    places: list[dict[str, Any]] = []
    for line in lines:
        if line["type"] == "picture":
            x, y = place_q8(line["captured_ns"])
            places.append({"type": "place", "t_ns": line["captured_ns"], "x_q8": x, "y_q8": y})
    (folder / "places.ndjson").write_text("".join(json.dumps(each) + "\n" for each in places))
    ends: dict[str, RecordedEnd] = {}
    for name, node in NODES.items():
        own = sorted(events[name], key=_when)
        raw = stream_bytes(f"bw-loop-{name}", every[node], POINTS[name], own, end_ns)
        (folder / f"{name}.bwevents").write_bytes(raw)
        (folder / f"{name}.ndjson").write_text(json.dumps({"type": "result", "complete": True}) + "\n")
        exchanges = None
        if every[node].ahead_ns or every[node].rate_ppm:
            exchanges = f"offset-{node}.ndjson"
            asked = exchanges_answer(every[node], 20_000, end_ns)
            (folder / exchanges).write_text(json.dumps(asked) + "\n")
        ends[name] = RecordedEnd(node, f"{name}.ndjson", f"{name}.bwevents", exchanges)
    found = CameraFacts(
        target=TARGET,
        camera=ends["camera"],
        tracker=ends["tracker"],
        truth="truth.ndjson",
        places="places.ndjson",
        pictures=pictures,
        period_us=PERIOD_NS // 1000,
        commands="always",
        open_loop=False,
        tai_utc_s=TAI_UTC_S,
        least_ns=(0, 0),
        display=ends["display"],
        delay=delay,
    )
    write_camera(folder, found)
    return found


def _when(event: tuple[int, int, int]) -> int:
    return event[2]
