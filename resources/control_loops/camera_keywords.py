# SPDX-License-Identifier: Apache-2.0
"""Keywords that let a tracker follow a target with a camera, and judge what the loop takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from hw.bench import TargetSpec
from hw.errors import CapabilityError
from hw.fields import Fields
from hw.open_bench import OpenBench
from reports import Subject, current_run
from reports.control_loops.camera_evidence import CAMERA_FILE, CAMERA_FOLDER
from reports.control_loops.camera_loop import (
    COMMANDS,
    DISPLAY,
    PICTURES,
    TO_DISPLAY,
    TRACKER,
    CameraLoop,
    load_camera_loop,
)
from reports.control_loops.camera_verdict import (
    ACCOUNT_CHECK,
    ORDER_CHECK,
    OUTSIDE_CHECK,
    SLOPE_CHECK,
    U_CHECK,
    WITNESS_CHECK,
    account_measurement,
    in_picture_measurement,
    order_measurement,
    slope_measurement,
    sum_measurements,
    witness_measurement,
    witnesses_en,
)
from reports.control_loops.capability import LOOP_DELAY, OUT_OF_PICTURE, STRETCH, WHOLE
from reports.control_loops.case import Case
from reports.control_loops.ring_evidence import FOLDER
from reports.control_loops.stretch_verdict import stretch_uncertainty
from reports.control_loops.warm_up import UNSETTLED
from reports.record.context import Context
from reports.record.measurement import AxisValue, Measurement
from reports.requirements import Requirement
from reports.run.current import judges
from reports.timeline.leg import quantile_ns
from reports.units import format_value
from resources.control_loops.camera_path import CameraPath, TargetIs, camera_path
from resources.control_loops.camera_trial import CameraRun, measure_camera
from resources.control_loops.loop_library import LoopLibrary, read_loop
from resources.control_loops.settings import CAMERA_TIMES, camera_times
from resources.keywords.bench import bench_library, say
from resources.keywords.judged import keep, require_passed, running_test
from resources.keywords.robot_api import keyword, library
from resources.names import Profile
from resources.profiles import times_of

STRETCHES = {
    LOOP_DELAY: (WHOLE, PICTURES, TRACKER, COMMANDS, DISPLAY, TO_DISPLAY),
    OUT_OF_PICTURE: (WHOLE,),
}


@library(scope="SUITE", version="1", listener="SELF")
class ControlLoopsCameraLibrary(LoopLibrary[CameraLoop]):
    """Let a tracker on a producer follow a moving target with a camera on the target of the bench.

    After the paper on distributed control loops, 3.4: pictures to the tracker, commands back, boxed
    pictures to a display, the router of the bench between camera and tracker. Commands say where to look, so
    that the pictures themselves tell the loop's delay: when was the target there?
    """

    judging = "Loops Of The Camera Should Be Within Their Limits"
    stretches = STRETCHES
    times = CAMERA_TIMES
    nothing = "nothing was followed: call `Let The Tracker Follow The Target` first"
    unmeasured = "the bench has no router for its delay, or nothing corrected the target's clock"

    def __init__(self, requirements: Path) -> None:
        """Name the requirements.

        Args:
            requirements: File such as `robot/control_loops/requirements/control_camera_virtual.toml`.
        """
        super().__init__(requirements)

    @staticmethod
    def _cases(table: Fields) -> list[Case]:
        return camera_times(table).cases

    @keyword
    def let_the_tracker_follow_the_target(
        self,
        target: str,
        profile: Profile,
        pictures_per_s: int = 25,
        target_is: TargetIs = "camera",
        segment_bytes: int = 0,
    ) -> None:
        """Let a tracker follow a target of constant speed, once at each of the profile's delays of the path.

        Beside each load of the profile all of them come once more, and the first one while each of its
        daemons corrects the target's clock. A bench without a router has the first delay alone, which is 0.

        Args:
            target: Name of the target under `benchwright.targets` of the bench file.
            profile: `ci`, `nightly`, …: how long, and which delays.
            pictures_per_s: How often the camera takes a picture.
            target_is: `camera`, and a producer tracks, or `tracker`, and a producer is the camera. The
                router is on the camera's link, a load that builds on the target.
            segment_bytes: TCP's MSS on the pictures' connection, 88 to 32767: 1460 for frames of 1500 bytes.
                0: what the path takes.
        """
        library = bench_library()
        bench, spec = library.bench, library.target(target)
        times = times_of(profile, CAMERA_TIMES, camera_times)
        self._begin(profile, current_run().evidence_folder(FOLDER, target) / CAMERA_FOLDER)
        run = CameraRun(
            (times.rest_s + times.seconds) * pictures_per_s,
            pictures_per_s,
            speed_px_s=times.speed_px_s,
            rest_ms=times.rest_s * 1000,
            target_is=target_is,
            segment_bytes=segment_bytes,
        )
        with ExitStack() as stack:
            try:
                path = stack.enter_context(camera_path(bench, spec, target_is))
            except CapabilityError as error:
                say(f"no delay is put into the path: {error}")
                path = None

            def measure(case: Case) -> None:
                if path:
                    path.set(case.delay_us)
                elif case.delay_us:
                    return
                one = replace(run, load=case.load, load_mbit=times.load_mbit, clock=case.clock)
                self._measure(bench, spec, case, one, path)

            self._measure_each(bench, spec, times.cases, measure)

    def _measure(
        self, bench: OpenBench, spec: TargetSpec, case: Case, run: CameraRun, path: CameraPath | None
    ) -> None:
        folder = self._folder / case.folder
        measured = measure_camera(bench, spec, run, folder, path).delay
        if measured:
            there, back, u = (
                f"{us / 1000:.2f}" for us in (measured.there_us, measured.back_us, measured.u_us)
            )
            asked = f"{case.delay_ms} ms asked each way"
            say(f"{asked}: {there} ms there, {back} ms back, U = {u} ms")
        self._found[case] = read_loop(load_camera_loop, folder)
        self._say(case)

    def _say(self, case: Case) -> None:
        found = self._found[case]
        if found.load:
            say(f"  {found.load.kind} load on {found.load.node}: {found.load.words}")
        for each in found.stretches:
            if len(each):
                median, u = (
                    format_value(ns, "ns")
                    for ns in (quantile_ns(each.time_ns, 0.5), stretch_uncertainty(each, "median").expanded)
                )
                say(f"  {case.stretch(each.name)}: median {median}, U = {u}, of {len(each)} pictures")
        for reason, count in found.reasons.items():
            say(f"  {count} pictures without a loop delay: {reason}")
        if found.facts.unsettled:
            say(f"  {UNSETTLED}")
        en, difference_ns, u_ns, _ = witnesses_en(found)
        difference, u = (format_value(ns, "ns") for ns in (difference_ns, u_ns))
        say(f"  by the pictures themselves {difference} more, U = {u}: E_n {en:.2f}")
        say(f"  the target was out of the picture in {100 * found.out_of_picture:.1f} % of the pictures")

    @keyword
    def loops_of_the_camera_should_be_within_their_limits(self) -> None:
        """Judge each stretch, and how often the target is out of the picture, by the file's requirements.

        A requirement names the delay of the path, as in `stretch = "whole at 50 ms"`, and the load if there
        is one, `whole at 50 ms under network load`; one of what the profile does not have is not selected.
        """
        self._judge_requirements()

    @keyword
    def nothing_of_the_loop_should_come_before_it_was_sent(self) -> None:
        """Check the bench: beyond the clocks' bounds no picture or command may arrive before it left."""
        self._check_each(_one(order_measurement), "none", ORDER_CHECK)

    @keyword
    def parts_of_the_loop_should_add_up_to_the_whole(self) -> None:
        """Check the bench: the camera's own counter has measured the whole, which the three parts come to."""
        self._check_each(sum_measurements, "they do", OUTSIDE_CHECK, U_CHECK)

    @keyword
    def every_picture_should_be_accounted_for(self) -> None:
        """Check the bench: each picture has one loop delay, or one reason why it has none."""
        self._check_each(_one(account_measurement), "none", ACCOUNT_CHECK)

    @keyword
    def pictures_should_tell_the_same_delay(self) -> None:
        """Check the bench: by the pictures the loop takes as long as by events, E_n is at most 1."""
        self._check_each(_one(witness_measurement), "none", WITNESS_CHECK)

    @keyword
    def the_loop_should_have_the_delay_of_the_path_twice(self) -> None:
        """Check the bench: against the path's measured delay the loop's median has a slope of 2.

        A bench without a router has no slope: the check is skipped.
        """
        self._require_found()
        idle = {case.delay_us: case for case in self._found if not case.load and not case.clock}
        if len(idle) < len(("least", "most")):
            raise CapabilityError("the path has one delay alone")
        judges(SLOPE_CHECK)
        loops = [self._found[case] for case in idle.values()]
        records = [slope_measurement(loops, self._context(idle[max(idle)]))]
        keep(records, "it has")
        require_passed(records)

    def _measurement(
        self, found: CameraLoop, requirement: Requirement, context: Context, stretch: str
    ) -> Measurement:
        if requirement.quantity == OUT_OF_PICTURE:
            return in_picture_measurement(found, requirement, context)
        return super()._measurement(found, requirement, context, stretch)

    def _context(self, case: Case, stretch: str = WHOLE) -> Context:
        run, bench = current_run(), bench_library().bench.spec
        folder = self._folder / case.folder
        found = self._found[case]
        facts = found.facts
        numbers = {"delay_asked_us": case.delay_us}
        if facts.delay:
            numbers["delay_there_us"] = round(facts.delay.there_us)
            numbers["delay_back_us"] = round(facts.delay.back_us)
        return Context(
            run_id=run.run_id,
            test=running_test(),
            subject=Subject(bench.name, facts.target, axes=(AxisValue(STRETCH, case.stretch(stretch)),)),
            conditions=self._conditions(found.load, numbers),
            simulated=bench.simulated,
            evidence=tuple(run.evidence(folder / each) for each in (CAMERA_FILE, *facts.files)),
        )


def _one(
    judge: Callable[[CameraLoop, Context], Measurement],
) -> Callable[[CameraLoop, Context], Iterable[Measurement]]:
    return lambda found, context: [judge(found, context)]
