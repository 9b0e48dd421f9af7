# SPDX-License-Identifier: Apache-2.0
"""A loop of camera and tracker: what it takes from picture to command, by two witnesses.

By the programs' points: the whole reaches from the capture of a picture to the receipt of the command that
answers it, both on the camera's machine; its parts, pictures to the tracker, the tracker itself, commands
back, lie on the timeline of both machines.

By the pictures themselves: a command says where to look, which is where the tracker saw the target. The truth
file, which has met no clock but the camera's, says when the target was there. That knows nothing of picture
numbers, of the tracker's clock, or of events.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from reports.control_loops.camera_evidence import (
    Q8,
    CameraFacts,
    Truth,
    load_camera_facts,
    read_places,
    read_truth,
)
from reports.control_loops.capability import WHOLE
from reports.control_loops.load import AchievedLoad, read_load
from reports.control_loops.loop import Stretch, leg_stretch, named_stretch, own_stretch, point_ns
from reports.control_loops.warm_up import VALUES_MIN, warm_up
from reports.control_loops.wire import PicturesOnTheWire, pictures_on_the_wire
from reports.dependence import Floats
from reports.errors import RecordError
from reports.timeline.clock_record import NS_PER_S, Times
from reports.timeline.contradictions import Causality, Messages, causality
from reports.timeline.event_stream import EventStream
from reports.timeline.event_stream_file import read_event_stream
from reports.timeline.leg import Leg, PlacedEnd, matched_leg
from reports.timeline.recorded_end import event_places

PICTURES, TRACKER, COMMANDS = "camera to tracker", "tracker", "tracker to camera"
DISPLAY, TO_DISPLAY = "tracker to display", "camera to display"
LOOK_BACK_NS = 3 * NS_PER_S
"""So long before a command the target may have been where it says."""
TRACKER_PX = 0.3
"""Error of the tracker against pictures whose truth is known, rms (tests/traffic_gen/loop/test_track.c)."""
TURN_SHARE = 0.02
"""Where steps of the path differ by more, in place or speed, it is no straight line there."""


@dataclass(frozen=True, eq=False)
class PixelDelay:
    """The loop's delay by the pictures alone.

    Attributes:
        picture: Shape (n,): that the command answers; of no use for the delay.
        delay_ns: Shape (n,): from when the target was where a command says, to when the motor was told; where
            it never is, to when the command came.
        speed_px_s: Of the target, median.
        across_px: How far commands lie beside the path: standard deviation, robust.
        left_out: Commands near a turn of the path, or before it begins.
        motor_ns: Shape (n,): from the receipt of a command to when the motor was told; -1: never.
    """

    picture: Times
    delay_ns: Times
    speed_px_s: float
    across_px: float
    left_out: int
    motor_ns: Times

    @property
    def u_ns(self) -> int:
        """Return U of the median (k = 2): how far the tracker may be off along the path.

        No less than its error against known pictures, since what it is off all the time does not show across.
        """
        off_px = max(self.across_px, TRACKER_PX)
        return round(2 * off_px / self.speed_px_s * NS_PER_S) if self.speed_px_s else 0


@dataclass(frozen=True, eq=False)
class CameraLoop:
    """What was found.

    Attributes:
        pictures: From the capture of a picture to when the tracker has it whole.
        tracking: What the tracker takes, by its own counter.
        commands: From when a command is sent to when it came.
        display: From tracker to display; None: there is none.
        to_display: From the capture to the display; None likewise.
        whole: From the capture to the command, by the camera's own counter.
        whole_on_timeline_ns: The sum of the three parts, of the same pictures, shape of `whole`.
        whole_u_ns, whole_bound_ns: Of that; -1: a part is missing.
        reasons: Of pictures without a loop delay how many, by why.
        pixels: The second witness; None: the path is no straight line, or no command came.
        wire: What captures on both sides of the router show; None: there are none.
        waiting_ns: Of its pictures that count: from the last datagram behind the router to when the tracker
            has it whole, shape (m,).
        place_q8: Shape (pictures, 2): where the target was then, in 1/256 pixel of the world.
        in_picture: Shape (pictures,): whether the target's centre was in the picture.
        load: What a load meanwhile came to; None: there was none.
    """

    facts: CameraFacts
    truth: Truth
    pictures: Leg
    tracking: Stretch
    commands: Leg
    display: Leg | None
    to_display: Leg | None
    whole: Stretch
    whole_on_timeline_ns: Times
    whole_u_ns: Times
    whole_bound_ns: Times
    reasons: dict[str, int]
    pixels: PixelDelay | None
    wire: PicturesOnTheWire | None
    waiting_ns: Times
    place_q8: Times
    in_picture: NDArray[np.bool_]
    lost_events: int
    complete: bool
    load: AchievedLoad | None = None

    @property
    def causality(self) -> Causality:
        """Return pictures and commands that came before they were sent."""
        there, back = self.facts.least_ns
        return causality(
            [
                Messages(leg.sender, leg.receiver, leg.sent, leg.received, least_ns)
                for leg, least_ns in ((self.pictures, there), (self.commands, back))
            ]
        )

    @property
    def stretches(self) -> tuple[Stretch, ...]:
        """Return the whole and its parts, and those to the display."""
        found = [self.whole, leg_stretch(self.pictures), self.tracking, leg_stretch(self.commands)]
        found += [leg_stretch(each) for each in (self.display, self.to_display) if each is not None]
        return tuple(found)

    def stretch(self, quantity: str, name: str) -> Stretch:
        """Return a stretch by its name; raises RecordError: says which there are."""
        return named_stretch(self.stretches, quantity, name)

    def missing(self, stretch: Stretch) -> int:
        """Return 0: a picture without a loop delay has a reason, which is counted."""
        del stretch
        return 0

    def unstamped(self, stretch: Stretch) -> int:
        """Return 0: nothing is measured on the wire."""
        del stretch
        return 0

    @property
    def unaccounted(self) -> int:
        """Return pictures that have neither one loop delay nor one reason."""
        return abs(self.truth.captured_ns.size - len(self.whole) - sum(self.reasons.values()))

    @property
    def out_of_picture(self) -> float:
        """Return the share of pictures, of 1, that do not have the target's centre; NaN: there are none."""
        return 1 - float(self.in_picture.mean()) if self.in_picture.size else float("nan")


def load_camera_loop(folder: Path, run_up: int | None = None) -> CameraLoop:
    """Read the evidence, place all events and ask the pictures; raises RecordError, which names the file.

    Args:
        folder: Of the evidence.
        run_up: So many pictures at the beginning do not count; None: as the evidence says.
    """
    facts = load_camera_facts(folder)
    run_up = facts.warm_up if run_up is None else run_up
    truth = read_truth(folder / facts.truth)
    streams = {end.events: read_event_stream(folder / end.events) for end in facts.ends}

    def placed(end_events: str) -> PlacedEnd:
        [end] = [each for each in facts.ends if each.events == end_events]
        stream = streams[end_events]
        time = end.time(folder, stream, facts.tai_utc_s, is_corrected=facts.is_corrected(end))
        return PlacedEnd(end, stream, event_places(stream, time))

    camera, tracker = placed(facts.camera.events), placed(facts.tracker.events)
    pictures = matched_leg(PICTURES, (camera, "camera.captured"), (tracker, "tracker.picture"), run_up)
    commands = matched_leg(
        COMMANDS, (tracker, "tracker.command_send"), (camera, "camera.command_received"), run_up
    )
    tracking = own_stretch(TRACKER, tracker.stream, "tracker.picture", "tracker.command_send", run_up)
    whole = own_stretch(WHOLE, camera.stream, "camera.captured", "camera.command_received", run_up)
    display = to_display = None
    if facts.display is not None:
        shown = placed(facts.display.events)
        display = matched_leg(DISPLAY, (tracker, "tracker.forward"), (shown, "display.picture"), run_up)
        to_display = matched_leg(TO_DISPLAY, (camera, "camera.captured"), (shown, "display.picture"), run_up)
    sent, _ = point_ns(camera.stream, "camera.sent")
    wire = pictures_on_the_wire(folder, facts, truth, sent)
    sums = _sums(whole, pictures, tracking, commands)
    at_ns, place_q8 = read_places(folder / facts.places)
    if (at_ns.shape != truth.captured_ns.shape) or (at_ns != truth.captured_ns).any():
        raise RecordError(f"{facts.places}: is not of the pictures of {facts.truth}")
    return CameraLoop(
        facts,
        truth,
        pictures,
        tracking,
        commands,
        display,
        to_display,
        whole,
        *sums,
        _reasons(camera.stream, tracker.stream, truth, run_up),
        _by_pixels(truth, at_ns, place_q8, run_up),
        wire,
        _waiting_ns(wire, pictures, facts.tai_utc_s),
        place_q8,
        _in_picture(truth, place_q8),
        sum(each.lost for each in streams.values()),
        truth.complete,
        read_load(folder, facts.load) if facts.load else None,
    )


def found_warm_up(found: CameraLoop) -> tuple[int, bool]:
    """Return how many pictures at the beginning belong to a warm-up, half of all at most; and if it settles.

    Of fewer than tell where one ends a third does not count; of these nobody knows that they do not settle.
    """
    whole = found.whole
    if len(whole) < VALUES_MIN:
        return found.truth.captured_ns.size // 3, True
    captured_s = found.truth.captured_ns[whole.number] / NS_PER_S
    warm = warm_up(captured_s, whole.time_ns.astype(np.float64))
    end = int(whole.number[warm.count]) if warm.count else 0
    return min(end, found.facts.pictures // 2), warm.settles


def _sums(whole: Stretch, pictures: Leg, tracking: Stretch, commands: Leg) -> tuple[Times, Times, Times]:
    """Return the three parts' sum of each picture with a loop delay, U and bound; -1: a part is missing."""
    total, u_ns, bound_ns = (np.full(len(whole), -1, np.int64) for _ in range(3))
    number = whole.number
    for part in (pictures.number, tracking.number, commands.number):
        number = np.intersect1d(number, part, assume_unique=True)
    at = np.searchsorted(whole.number, number)
    one, own, other = (
        np.searchsorted(part, number) for part in (pictures.number, tracking.number, commands.number)
    )
    total[at] = pictures.time_ns[one] + tracking.time_ns[own] + commands.time_ns[other]
    # The clock of each machine is read twice, within a second: what both readings are off is not the same.
    u_ns[at] = pictures.u_ns[one] + commands.u_ns[other]
    bounds = [
        leg.sent.bound_ns[place] + leg.received.bound_ns[place]
        for leg, place in ((pictures, one), (commands, other))
    ]
    bound_ns[at] = bounds[0] + bounds[1]
    return total, u_ns, bound_ns


def _reasons(camera: EventStream, tracker: EventStream, truth: Truth, run_up: int) -> dict[str, int]:
    """Return why pictures have no loop delay, each by the first reason on its way."""
    left = np.arange(truth.captured_ns.size)
    found = {"warm-up": int((left < run_up).sum())}
    left = left[left >= run_up]
    steps = (
        ("not queued: the queue was full", np.flatnonzero(truth.queued)),
        ("not sent: nobody was there, or it ended", camera.tag[camera.of("camera.sent")]),
        ("not received whole", tracker.tag[tracker.of("tracker.picture")]),
        ("answered by no command", tracker.tag[tracker.of("tracker.command_send")]),
        ("its command did not come", camera.tag[camera.of("camera.command_received")]),
    )
    for reason, passed in steps:
        is_on = np.isin(left, passed)
        found[reason] = int((~is_on).sum())
        left = left[is_on]
    return {reason: count for reason, count in found.items() if count}


def _by_pixels(truth: Truth, at_ns: Times, place_q8: Times, run_up: int) -> PixelDelay | None:
    """Return when the target was where each command says, along the path between the pictures' moments."""
    if at_ns.size < 3 or not truth.came_ns.size:
        return None
    step = np.diff(place_q8, axis=0).astype(np.float64)
    step_ns = np.diff(at_ns).astype(np.float64)
    velocity = step / step_ns[:, None]
    speed = np.hypot(velocity[:, 0], velocity[:, 1])
    median_speed = float(np.median(speed))
    if not median_speed:
        return None
    change = np.diff(velocity, axis=0)
    turn = np.hypot(change[:, 0], change[:, 1]) > TURN_SHARE * median_speed
    is_straight = np.concatenate(([False], ~turn)) & np.concatenate((~turn, [False]))
    rows: list[tuple[int, int, float, int]] = []
    left_out = 0
    for at in range(truth.came_ns.size):
        came_ns, answers, told_ns = (int(each[at]) for each in (truth.came_ns, truth.answers, truth.told_ns))
        if answers < run_up:
            continue
        low = int(np.searchsorted(at_ns, came_ns - LOOK_BACK_NS))
        high = int(np.searchsorted(at_ns, came_ns)) - 1
        if high <= low:
            left_out += 1
            continue
        part = slice(low, high)
        share, across = _nearest(place_q8[part], step[part], truth.look_q8[at])
        best = int(np.argmin(np.abs(across)))
        if not is_straight[low + best]:
            left_out += 1
            continue
        then_ns = int(at_ns[low + best] + share[best] * step_ns[low + best])
        signed = float(across[best])
        end_ns = told_ns if told_ns >= 0 else came_ns
        rows.append((answers, end_ns - then_ns, signed, told_ns - came_ns if told_ns >= 0 else -1))
    if not rows:
        return None
    columns = np.array(rows, np.float64)
    picture, delay_ns, beside, motor_ns = columns.T
    off = beside / Q8
    across_px = 1.4826 * float(np.median(np.abs(off - np.median(off)))) + abs(float(np.median(off)))
    return PixelDelay(
        picture.astype(np.int64),
        delay_ns.astype(np.int64),
        median_speed * NS_PER_S / Q8,
        across_px,
        left_out,
        motor_ns.astype(np.int64),
    )


def _nearest(
    begin_q8: Times, step: NDArray[np.float64], look_q8: Times
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return of each step of a path where on it, of 1, a place lies nearest, and how far beside, signed."""
    to = (look_q8 - begin_q8).astype(np.float64)
    length = np.hypot(step[:, 0], step[:, 1])
    safe = np.where(length > 0, length, 1.0)
    share = np.clip((to * step).sum(axis=1) / safe**2, 0.0, 1.0)
    apart = to - share[:, None] * step
    side = np.sign(step[:, 0] * to[:, 1] - step[:, 1] * to[:, 0])
    return share, np.where(side == 0, 1.0, side) * np.hypot(apart[:, 0], apart[:, 1])


def _waiting_ns(wire: PicturesOnTheWire | None, pictures: Leg, tai_utc_s: int) -> Times:
    """Return how long pictures waited in the receiver; the capture's clock is the reference."""
    if wire is None:
        return np.empty(0, np.int64)
    _, one, other = np.intersect1d(wire.number, pictures.number, assume_unique=True, return_indices=True)
    return pictures.received.tai_ns[other] - (wire.last_ns[one] + tai_utc_s * NS_PER_S)


def _in_picture(truth: Truth, place_q8: Times) -> NDArray[np.bool_]:
    """Return whether the target's centre was in each picture."""
    off = np.abs(from_centre_px(truth.pose_q8, place_q8))
    return (off[:, 0] <= truth.width_px / 2) & (off[:, 1] <= truth.height_px / 2)


def from_centre_px(pose_q8: Times, world_q8: Times) -> Floats:
    """Return how far places of the world lie from the centre of pictures, in their pixels, shape (n, 2).

    Args:
        pose_q8: Of the pictures: x, y and zoom, shape (n, 3).
        world_q8: In 1/256 pixel of the world, shape (n, 2).
    """
    return (world_q8 - pose_q8[:, :2]) * (pose_q8[:, 2:] / Q8) / Q8
