# SPDX-License-Identifier: Apache-2.0
"""A loop whose camera looks beside its target in one picture, with the pictures around that moment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from reports.control_loops.camera_evidence import WORST_FOLDER, write_camera
from reports.control_loops.camera_loop import CameraLoop, load_camera_loop
from reports.control_loops.worst import WorstMoment, load_worst, picture_name, worst_numbers
from tests.reports.control_loops.camera_sample import write_sample_camera

Json = dict[str, Any]
Change = Callable[[list[Json]], list[Json]]
WIDTH, HEIGHT = 320, 240
HEAD = b"P5\n320 240\n255\n"
WORST = 40
LOOKS_BESIDE_PX = (30, -40)
"""Of the camera in the worst picture: it looks so much right and above of the target."""


def pixels_of(number: int) -> bytes:
    return bytes((number + place * 7) % 256 for place in range(WIDTH * HEIGHT))


def turned_away(lines: list[Json]) -> list[Json]:
    """Let the camera look beside the target in one picture, and with a zoom of two in the one after it."""
    for line in lines:
        if line["type"] == "picture" and line["number"] == WORST:
            line["pose"]["x_q8"] += LOOKS_BESIDE_PX[0] * 256
            line["pose"]["y_q8"] += LOOKS_BESIDE_PX[1] * 256
        if line["type"] == "picture" and line["number"] == WORST + 1:
            line["pose"]["x_q8"] -= 10 * 256
            line["pose"]["zoom_q8"] = 512
    return lines


def write_worst(folder: Path, truth: Change = turned_away, **sample: Any) -> CameraLoop:
    """Write a loop with its five pictures, and return it."""
    facts = write_sample_camera(folder, truth=truth, **sample)
    numbers = worst_numbers(load_camera_loop(folder), facts.warm_up)
    (folder / WORST_FOLDER).mkdir()
    for number in numbers:
        (folder / WORST_FOLDER / picture_name(number)).write_bytes(HEAD + pixels_of(number))
    write_camera(folder, replace(facts, worst=tuple(map(picture_name, numbers))))
    return load_camera_loop(folder)


def loaded(folder: Path, **sample: Any) -> WorstMoment:
    moment = load_worst(folder, write_worst(folder, **sample))
    assert moment is not None
    return moment
