# SPDX-License-Identifier: Apache-2.0
"""A camera, a tracker and a display that close a loop: the evidence.

The folder holds `camera.json` (this file's dataclasses); of each program the files of `RecordedEnd`; the
camera's truth file, which nobody else has read, and `places.ndjson`, where by `bw-loop where` the target was
when each picture was captured.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np

from reports.control_loops.load import LOAD_FILE, KnownLoad
from reports.errors import RecordError
from reports.record.codec import omit_none
from reports.record.document import read_document, write_document
from reports.record.json_text import load_json
from reports.timeline.clock_record import Times
from reports.timeline.recorded_end import RecordedEnd, require_plain

SCHEMA = "benchwright.control_camera/1"
CAMERA_FILE = "camera.json"
CAMERA_FOLDER = "camera"
"""Beside the ring's evidence: a folder for each delay of the path, `50-ms`."""
WORST_FOLDER = "worst"
"""Beside `camera.json`: pictures around the worst moment, made again from the seed."""
Q8 = 256
"""Parts of a pixel."""


@dataclass(frozen=True)
class MeasuredDelay:
    """What the path from the camera to the tracker, and back, took longer than without the router's delay.

    Attributes:
        asked_us: Each way.
        there_us, back_us: By captures on both sides of the router.
        u_us: Of either (k = 2).
    """

    asked_us: int
    there_us: float
    back_us: float
    u_us: float


@dataclass(frozen=True)
class Captures:
    """Captures of both sides of the router, in the folder `path`.

    Attributes:
        before, behind: Files: on the camera's side, and on the tracker's.
        address, port: From which the pictures come.
    """

    before: str
    behind: str
    address: str
    port: int


@dataclass(frozen=True)
class CameraFacts:
    """What `camera.json` holds.

    Attributes:
        target: Its kind; the camera is there, or the tracker.
        truth, places: Files.
        pictures: That the camera was asked for.
        commands: Whether the tracker sends a command for every picture, or near an edge only.
        open_loop: The camera obeys no command.
        least_ns: What cables and switches take at least: camera to tracker, tracker to camera.
        warm_up: So many pictures at the beginning do not count, as `warm_up` has found.
        display: None: there is none.
        delay, wire: None: the path has no router.
        load: Meanwhile; None: there was none.
        unsettled: True: the whole still changes in the second half of the pictures; None: as far as anybody
            knows it does not, and so in what an earlier version has written.
        clock: What corrected the clock of clock_node meanwhile; None: nothing that is known.
        worst: Pictures around the worst moment, in the folder `worst`; None: they were not made again.
    """

    target: str
    camera: RecordedEnd
    tracker: RecordedEnd
    truth: str
    places: str
    pictures: int
    period_us: int
    commands: Literal["always", "edge"]
    open_loop: bool
    tai_utc_s: int
    least_ns: tuple[int, ...]
    warm_up: int = 0
    display: RecordedEnd | None = omit_none()  # noqa: RUF009 - a field
    delay: MeasuredDelay | None = omit_none()  # noqa: RUF009 - a field
    wire: Captures | None = omit_none()  # noqa: RUF009 - a field
    load: KnownLoad | None = omit_none()  # noqa: RUF009 - a field
    worst: tuple[str, ...] | None = omit_none()
    unsettled: bool | None = omit_none()
    clock: str | None = omit_none()
    clock_node: str | None = omit_none()
    schema: str = SCHEMA

    @property
    def ends(self) -> tuple[RecordedEnd, ...]:
        """Return the programs."""
        return tuple(each for each in (self.camera, self.tracker, self.display) if each is not None)

    def is_corrected(self, end: RecordedEnd) -> bool:
        """Tell whether something corrects the clock of a program's machine meanwhile."""
        return self.clock is not None and end.node == self.clock_node

    @property
    def files(self) -> tuple[str, ...]:
        """Return the names of all files beside `camera.json`, each once."""
        names = [name for each in self.ends for name in each.files]
        names += [self.truth, self.places, *([LOAD_FILE] if self.load else [])]
        return tuple(dict.fromkeys(names))


@dataclass(frozen=True, eq=False)
class Truth:
    """What the camera alone knew; times are ns since its start, places in 1/256 pixel of the world.

    Attributes:
        width_px, height_px: Of pictures.
        captured_ns: Shape (pictures,), in the order of their numbers from 0.
        pose_q8: Shape (pictures, 3): where it looked then, x, y and zoom.
        queued: Shape (pictures,): whether a picture waited to be sent.
        came_ns: Shape (commands,): when a command came, of those that are commands.
        answers: Shape (commands,): the picture that it answers.
        look_q8: Shape (commands, 2).
        told_ns: Shape (commands,): when the motor was told; -1: never.
        clamped: Shape (commands,): whether the mount went to the edge of the world instead.
        refused: Lines that were no command.
        complete: It has its end, and lacks no line.
        options: Words of a command line for the same scene.
        congestion: Congestion control of the pictures' connection; empty: its system does not say.
    """

    width_px: int
    height_px: int
    captured_ns: Times
    pose_q8: Times
    queued: np.ndarray[Any, np.dtype[np.bool_]]
    came_ns: Times
    answers: Times
    look_q8: Times
    told_ns: Times
    clamped: np.ndarray[Any, np.dtype[np.bool_]]
    refused: int
    complete: bool
    options: tuple[str, ...]
    congestion: str = ""


def write_camera(folder: Path, found: CameraFacts) -> Path:
    """Write `camera.json` and return its path."""
    return write_document(folder / CAMERA_FILE, found)


def load_camera_facts(folder: Path) -> CameraFacts:
    """Read `camera.json`; raises RecordError: names the key."""
    found = read_document(CameraFacts, folder / CAMERA_FILE, SCHEMA)
    require_plain((*found.files, *(found.worst or ())), CAMERA_FILE)
    if found.wire:
        require_plain((found.wire.before, found.wire.behind), CAMERA_FILE)
    if min(found.pictures, found.period_us) < 1 or len(found.least_ns) != len(("there", "back")):
        raise RecordError(f"{CAMERA_FILE}: need pictures, period_us >= 1, and least_ns of two ways")
    if min(found.least_ns) < 0:
        raise RecordError(f"{CAMERA_FILE}: least_ns: must be 0 and more")
    if not 0 <= found.warm_up <= found.pictures // 2:
        raise RecordError(f"{CAMERA_FILE}: warm_up: must be in 0..{found.pictures // 2}, half of pictures")
    if found.camera.node == found.tracker.node:
        raise RecordError(f"{CAMERA_FILE}: camera and tracker are both on {found.camera.node}")
    return found


def read_truth(path: Path) -> Truth:
    """Read a truth file; raises RecordError: names the file and the line."""
    head: dict[str, Any] = {}
    pictures: list[tuple[int, ...]] = []
    commands: list[tuple[int, ...]] = []
    refused = 0
    end: dict[str, Any] = {}
    for number, line in _lines(path):
        try:
            match line["type"]:
                case "camera":
                    head = line
                case "picture":
                    pose = line["pose"]
                    row = (line["number"], line["captured_ns"], pose["x_q8"], pose["y_q8"], pose["zoom_q8"])
                    pictures.append((*row, line["queued"]))
                case "command" if line["refused"]:
                    refused += 1
                case "command":
                    look = line["look"]
                    row = (line["came_ns"], line["picture"], look["x_q8"], look["y_q8"])
                    row += (line["motor_ns"] if line["obeyed"] else -1, bool(line.get("clamped")))
                    commands.append(row)
                case "end":
                    end = line
                case _:
                    pass  # of a later version
        except (KeyError, TypeError) as error:
            raise RecordError(f"{path.name}, line {number}: {type(error).__name__}: {error}") from error
    if not head:
        raise RecordError(f"{path.name}: has no line of its camera")
    rows = np.array(sorted(pictures), np.int64).reshape(-1, 6)
    answers = np.array(sorted(commands), np.int64).reshape(-1, 6)
    is_whole = bool((rows[:, 0] == np.arange(len(rows))).all())
    return Truth(
        int(head["width_px"]),
        int(head["height_px"]),
        rows[:, 1],
        rows[:, 2:5],
        rows[:, 5].astype(np.bool_),
        answers[:, 0],
        answers[:, 1],
        answers[:, 2:4],
        answers[:, 4],
        answers[:, 5].astype(np.bool_),
        refused,
        bool(end) and is_whole and not end.get("lacks") and end.get("pictures") == len(rows),
        _words(head.get("options")),
        str(head.get("congestion", "")),
    )


def read_places(path: Path) -> tuple[Times, Times]:
    """Read where the target was: times in ns since the camera's start, shape (n,), places, shape (n, 2)."""
    rows: list[tuple[int, int, int]] = []
    for number, line in _lines(path):
        try:
            rows.append((line["t_ns"], line["x_q8"], line["y_q8"]))
        except (KeyError, TypeError) as error:
            raise RecordError(f"{path.name}, line {number}: {type(error).__name__}: {error}") from error
    found = np.array(rows, np.int64).reshape(-1, 3)
    if (np.diff(found[:, 0]) <= 0).any():
        raise RecordError(f"{path.name}: its times do not rise")
    return found[:, 0], found[:, 1:]


def _words(options: object) -> tuple[str, ...]:
    return tuple(map(str, cast("list[object]", options))) if isinstance(options, list) else ()


def _lines(path: Path) -> list[tuple[int, dict[str, Any]]]:
    try:
        text = path.read_text("utf-8")
        return [(number, load_json(line)) for number, line in enumerate(text.splitlines(), 1)]  # type: ignore[misc]
    except (OSError, ValueError) as error:
        raise RecordError(f"{path.name}: {error}") from error
