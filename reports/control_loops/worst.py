# SPDX-License-Identifier: Apache-2.0
"""The worst moment of a loop: the target is furthest from the picture's centre; five pictures around it.

The folder `worst` beside `camera.json` has them as `bw-loop render` makes them again from the seed, `17.pgm`.
Two strides of pictures are at least one delay of the loop. So the first of the five is the one by which the
camera was turned to where it looks in the middle one, and the last shows what came of the middle one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from reports.control_loops.camera_evidence import Q8, WORST_FOLDER, Truth
from reports.control_loops.camera_loop import CameraLoop, from_centre_px
from reports.control_loops.case import Case
from reports.errors import RecordError
from reports.timeline.clock_record import Times

Floats = NDArray[np.float64]

EACH_SIDE = 2
"""Pictures before the worst moment, and after it."""
TARGET_RADIUS_PX = 12
"""Of the disc in its world, unless the camera's options say otherwise (traffic-gen/loop/camera/world.h)."""
NS_PER_US = 1000


@dataclass(frozen=True, eq=False)
class ShownPicture:
    """A picture with what is known of it; places in its pixels, the centre of the first one is (0, 0).

    Attributes:
        captured_ns: Since the camera's start.
        off_px: How far the target is from the picture's centre.
        is_out: Its centre is not in the picture.
        is_warm_up: The picture does not count.
        is_at_edge: The camera could not look where it was last told: its world ends there.
        pixels: Shape (height, width).
        target_px: Where the target is, x and y.
        seen_px: Where the command that answers the picture says it is; None: no command does.
        half_px: Half a side of the box that the tracker draws round it.
    """

    number: int
    captured_ns: int
    off_px: float
    is_out: bool
    is_warm_up: bool
    is_at_edge: bool
    pixels: NDArray[np.uint8]
    target_px: tuple[float, float]
    seen_px: tuple[float, float] | None
    half_px: int


@dataclass(frozen=True, eq=False)
class WorstMoment:
    """The worst moment of a loop, and pictures around it in their order."""

    worst: ShownPicture
    pictures: tuple[ShownPicture, ...]


def off_centre_px(truth: Truth, place_q8: Times) -> Floats:
    """Return how far the target is from the centre of each picture, in pixels of it, shape (pictures,).

    Args:
        truth: What the camera knew.
        place_q8: Where the target was in the world, shape (pictures, 2).
    """
    off = from_centre_px(truth.pose_q8, place_q8)
    return np.hypot(off[:, 0], off[:, 1])


def worst_number(truth: Truth, place_q8: Times, run_up: int) -> int | None:
    """Return the picture behind the run-up in which the target is furthest off; None: there is no picture."""
    off_px = off_centre_px(truth, place_q8)[run_up:]
    return run_up + int(np.argmax(off_px)) if off_px.size else None


def stride_of(loop_ns: float, period_ns: int) -> int:
    """Return by how many pictures those shown are apart: two steps are one delay of the loop at least."""
    return max(1, -int(-loop_ns // (EACH_SIDE * period_ns)))


def worst_numbers(found: CameraLoop, run_up: int) -> tuple[int, ...]:
    """Return the numbers of up to five pictures around the worst moment of a loop, in their order.

    Args:
        found: The loop; without its whole truth there are none.
        run_up: So many pictures at the beginning do not count.
    """
    worst = worst_number(found.truth, found.place_q8, run_up)
    if worst is None or not found.truth.complete:
        return ()
    loop_ns = found.whole.time_ns[found.whole.number >= run_up]
    median_ns = float(np.median(loop_ns)) if loop_ns.size else 0.0
    stride = stride_of(median_ns, found.facts.period_us * NS_PER_US)
    numbers = (worst + step * stride for step in range(-EACH_SIDE, EACH_SIDE + 1))
    return tuple(each for each in numbers if 0 <= each < found.truth.captured_ns.size)


def picture_name(number: int) -> str:
    """Return the name of a picture's file in the folder `worst`."""
    return f"{number}.pgm"


def load_worst(folder: Path, found: CameraLoop) -> WorstMoment | None:
    """Return the worst moment of a loop with its pictures; None: they were not made again.

    Args:
        folder: Of `camera.json`.
        found: The loop.

    Raises:
        RecordError: A picture is missing, of another size, or none of the worst moment; names the file.
    """
    if not found.facts.worst:
        return None
    worst = worst_number(found.truth, found.place_q8, found.facts.warm_up)
    numbers = [_number_of(name, found.truth.captured_ns.size) for name in found.facts.worst]
    if worst is None or worst not in numbers:
        raise RecordError(f"{WORST_FOLDER}: picture {worst}, the worst moment, is not among {numbers}")
    shown = {number: _shown(folder, found, number) for number in sorted(numbers)}
    return WorstMoment(shown[worst], tuple(shown.values()))


def worst_of_all(
    loops: Sequence[tuple[Case, Path, CameraLoop]], problems: list[str]
) -> tuple[Case, WorstMoment] | None:
    """Return the worst moment of all loops, and of which; None: its pictures are not there.

    Args:
        loops: What they are of, folder of `camera.json`, and loop.
        problems: What cannot be read is added.
    """
    moments: dict[Case, WorstMoment] = {}
    off_px: dict[Case, float] = {}
    for case, folder, found in loops:
        if not found.facts.worst:
            continue
        every_px = off_centre_px(found.truth, found.place_q8)[found.facts.warm_up :]
        off_px[case] = float(every_px.max(initial=0))
        try:
            moment = load_worst(folder, found)
        except RecordError as error:
            problems.append(f"{folder.name}: {error}")
        else:
            moments.update({case: moment} if moment else {})
    furthest = max(off_px, key=lambda case: off_px[case], default=None)
    return (furthest, moments[furthest]) if furthest is not None and furthest in moments else None


def _number_of(name: str, pictures: int) -> int:
    stem = name.removesuffix(".pgm")
    if not (stem.isascii() and stem.isdecimal() and len(stem) < 10) or picture_name(int(stem)) != name:
        raise RecordError(f"{WORST_FOLDER}: {name!r}; needed: the number of a picture, such as 17.pgm")
    if int(stem) >= pictures:
        raise RecordError(f"{WORST_FOLDER}/{name}: there are {pictures} pictures")
    return int(stem)


def _shown(folder: Path, found: CameraLoop, number: int) -> ShownPicture:
    truth = found.truth
    answers = np.flatnonzero(truth.answers == number)
    pose_q8 = truth.pose_q8[[number]]
    target = from_centre_px(pose_q8, found.place_q8[[number]])
    seen = from_centre_px(pose_q8, truth.look_q8[answers[:1]]) if answers.size else None
    return ShownPicture(
        number,
        int(truth.captured_ns[number]),
        float(np.hypot(*target[0])),
        not found.in_picture[number],
        number < found.facts.warm_up,
        _is_at_edge(truth, number),
        read_pgm(folder / WORST_FOLDER / picture_name(number), truth.width_px, truth.height_px),
        _in_picture_px(truth, target),
        None if seen is None else _in_picture_px(truth, seen),
        # As the tracker does: half as much again as the disc's radius, in whole pixels.
        _radius_px(truth) * int(truth.pose_q8[number, 2]) * 3 // (2 * Q8),
    )


def _is_at_edge(truth: Truth, number: int) -> bool:
    known = np.flatnonzero((truth.told_ns >= 0) & (truth.told_ns <= truth.captured_ns[number]))
    return bool(known.size) and bool(truth.clamped[known[np.argmax(truth.told_ns[known])]])


def _in_picture_px(truth: Truth, off_px: Floats) -> tuple[float, float]:
    x, y = off_px[0]
    return float(x) + (truth.width_px - 1) / 2, float(y) + (truth.height_px - 1) / 2


def _radius_px(truth: Truth) -> int:
    words = dict(zip(truth.options, truth.options[1:], strict=False))
    said = words.get("--radius-px", "")
    return int(said) if said.isascii() and said.isdecimal() and len(said) < 4 else TARGET_RADIUS_PX


def read_pgm(path: Path, width_px: int, height_px: int) -> NDArray[np.uint8]:
    """Read what `bw-loop render` writes, a grey picture of a known size; raises RecordError: names it."""
    head = f"P5\n{width_px} {height_px}\n255\n".encode()
    size = len(head) + width_px * height_px
    try:
        content = path.read_bytes() if path.stat().st_size == size else b""
    except OSError as error:
        raise RecordError(f"{WORST_FOLDER}/{path.name}: {error.strerror}") from error
    if len(content) != size or not content.startswith(head):
        raise RecordError(f"{WORST_FOLDER}/{path.name}: is no PGM of {width_px} x {height_px} pixels")
    return np.frombuffer(content, np.uint8, offset=len(head)).reshape(height_px, width_px)
