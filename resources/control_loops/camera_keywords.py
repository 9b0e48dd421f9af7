# SPDX-License-Identifier: Apache-2.0
"""Keywords that let a tracker follow a target with a camera, and judge what the loop takes."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from hw.errors import CapabilityError, ConfigError, MeasurementError
from reports import Conditions, Subject, current_run
from reports.control_loops.camera_evidence import CAMERA_FILE, CAMERA_FOLDER, load_camera_facts
from reports.control_loops.camera_loop import CameraLoop, load_camera_loop
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
from reports.control_loops.capability import DELAYS, OUT_OF_PICTURE, STRETCH, WHOLE
from reports.control_loops.ring_evidence import FOLDER
from reports.control_loops.stretch_verdict import stretch_measurement, stretch_uncertainty
from reports.errors import ReportError
from reports.record.context import Context
from reports.record.measurement import AxisValue, Measurement, NumberedCondition
from reports.requirements import Requirement
from reports.run.current import judges
from reports.timeline.leg import quantile_ns
from reports.units import format_value
from resources.control_loops.camera_path import camera_path
from resources.control_loops.camera_trial import CameraRun, measure_camera
from resources.control_loops.settings import CAMERA_TIMES, camera_times
from resources.keywords.bench import bench_library, say
from resources.keywords.judged import keep, require_passed, running_test
from resources.keywords.requirement_scope import RequirementScope
from resources.keywords.robot_api import keyword, library
from resources.moved import present
from resources.names import Profile
from resources.profiles import times_of
from resources.requirements_file import load_requirements_file

JUDGING = "Loops Of The Camera Should Be Within Their Limits"
AT = re.compile(r"(.+) at (\d+) ms")


def at(stretch: str, delay_ms: int) -> str:
    """Return a stretch of the loop at a delay, as records and requirements name it."""
    return f"{stretch} at {delay_ms} ms"


@library(scope="SUITE", version="1", listener="SELF")
class ControlLoopsCameraLibrary(RequirementScope):
    """Let a tracker on a producer follow a moving target with a camera on the target of the bench.

    After the paper on distributed control loops, 3.4: pictures to the tracker, commands back, boxed
    pictures to a display, the router of the bench between camera and tracker. Commands say where to look, so
    that the pictures themselves tell the loop's delay: when was the target there?
    """

    def __init__(self, requirements: Path) -> None:
        """Name the requirements.

        Args:
            requirements: File such as `robot/control_loops/requirements/control_camera_virtual.toml`.
        """
        self._path = present(requirements)
        self._profile = ""
        self._folder = Path()
        self._loops: dict[int, CameraLoop] = {}

    def selected(self, named: Collection[str]) -> Iterable[tuple[Path, Collection[str]]]:
        """Say that a suite that judges loops asks every requirement on one of the file."""
        if JUDGING in named:
            yield self._path, [each.id for each in self._requirements()]

    @keyword
    def let_the_tracker_follow_the_target(
        self, target: str, profile: Profile, pictures_per_s: int = 25
    ) -> None:
        """Let a tracker follow a target of constant speed, once at each of the profile's delays of the path.

        A bench without a router has the first delay alone, which is 0.

        Args:
            target: Name of the target under `benchwright.targets` of the bench file: the camera is there.
            profile: `ci`, `nightly`, …: how long, and which delays.
            pictures_per_s: How often the camera takes a picture.
        """
        library = bench_library()
        bench, spec = library.bench, library.target(target)
        times = times_of(profile, CAMERA_TIMES, camera_times)
        self._profile = profile
        self._folder = current_run().evidence_folder(FOLDER, target) / CAMERA_FOLDER
        run = CameraRun(times.seconds * pictures_per_s, pictures_per_s, speed_px_s=times.speed_px_s)
        with ExitStack() as stack:
            try:
                path = stack.enter_context(camera_path(bench, spec))
            except CapabilityError as error:
                say(f"no delay is put into the path: {error}")
                path = None
            for delay_ms in times.delays_ms if path else (0,):
                folder = self._folder / f"{delay_ms}-ms"
                if path:
                    path.set(delay_ms * 1000)
                measured = measure_camera(bench, spec, run, folder, path).delay
                if measured:
                    there, back, u = (
                        f"{us / 1000:.2f}" for us in (measured.there_us, measured.back_us, measured.u_us)
                    )
                    say(f"{delay_ms} ms asked each way: {there} ms there, {back} ms back, U = {u} ms")
                self._loops[delay_ms] = self._read(folder)
                self._say(delay_ms)

    def _say(self, delay_ms: int) -> None:
        found = self._loops[delay_ms]
        for each in found.stretches:
            if len(each):
                median, u = (
                    format_value(ns, "ns")
                    for ns in (quantile_ns(each.time_ns, 0.5), stretch_uncertainty(each, "median").expanded)
                )
                say(f"  {at(each.name, delay_ms)}: median {median}, U = {u}, of {len(each)} pictures")
        for reason, count in found.reasons.items():
            say(f"  {count} pictures without a loop delay: {reason}")
        en, difference_ns, u_ns, _ = witnesses_en(found)
        difference, u = (format_value(ns, "ns") for ns in (difference_ns, u_ns))
        say(f"  by the pictures themselves {difference} more, U = {u}: E_n {en:.2f}")
        say(f"  the target was out of the picture in {100 * found.out_of_picture:.1f} % of the pictures")

    @keyword
    def loops_of_the_camera_should_be_within_their_limits(self) -> None:
        """Judge each stretch, and how often the target is out of the picture, by the file's requirements.

        A requirement names the delay of the path, as in `stretch = "whole at 50 ms"`; one of a delay that the
        profile does not have is left unset.
        """
        requirements = self._requirements()
        judges(*(each.id for each in requirements))
        records = [record for each in requirements if (record := self._judged(each)) is not None]
        keep(records)
        require_passed(records)

    @keyword
    def nothing_of_the_loop_should_come_before_it_was_sent(self) -> None:
        """Check the bench: beyond the clocks' bounds no picture or command may arrive before it left."""
        self._check(ORDER_CHECK, order_measurement)

    @keyword
    def parts_of_the_loop_should_add_up_to_the_whole(self) -> None:
        """Check the bench: the camera's own counter has measured the whole, which the three parts come to."""
        self._every_has_one()
        judges(*(name(each, delay) for delay in self._loops for each in (OUTSIDE_CHECK, U_CHECK)))
        records = [
            record
            for delay_ms, found in self._loops.items()
            for record in named(sum_measurements(found, self._context(delay_ms)), delay_ms)
        ]
        keep(records, "they do")
        require_passed(records)

    @keyword
    def every_picture_should_be_accounted_for(self) -> None:
        """Check the bench: each picture has one loop delay, or one reason why it has none."""
        self._check(ACCOUNT_CHECK, account_measurement)

    @keyword
    def pictures_should_tell_the_same_delay(self) -> None:
        """Check the bench: by the pictures the loop takes as long as by events, E_n is at most 1."""
        self._check(WITNESS_CHECK, witness_measurement)

    @keyword
    def the_loop_should_have_the_delay_of_the_path_twice(self) -> None:
        """Check the bench: against the path's measured delay the loop's median has a slope of 2.

        A bench without a router has no slope: the check is skipped.
        """
        self._every_has_one()
        if len(self._loops) < len(("least", "most")):
            raise CapabilityError("the path has one delay alone")
        judges(SLOPE_CHECK)
        records = [slope_measurement(list(self._loops.values()), self._context(max(self._loops)))]
        keep(records, "it has")
        require_passed(records)

    def _check(self, check: str, judge: Callable[[CameraLoop, Context], Measurement]) -> None:
        self._every_has_one()
        judges(*(name(check, delay) for delay in self._loops))
        records = [
            record
            for delay_ms, found in self._loops.items()
            for record in named([judge(found, self._context(delay_ms))], delay_ms)
        ]
        keep(records, "none")
        require_passed(records)

    def _every_has_one(self) -> None:
        if not self._loops:
            raise MeasurementError("nothing was followed: call `Let The Tracker Follow The Target` first")

    def _judged(self, requirement: Requirement) -> Measurement | None:
        self._every_has_one()
        found = AT.fullmatch(requirement.of)
        if found is None:
            raise ConfigError(
                f"{self._path}: {requirement.id}.stretch: {requirement.of!r}; needed: such as"
                " 'whole at 50 ms'"
            )
        stretch, delay_ms = found[1], int(found[2])
        if delay_ms not in self._loops:
            return None
        loop, context = self._loops[delay_ms], self._context(delay_ms, stretch)
        if requirement.quantity == OUT_OF_PICTURE:
            return in_picture_measurement(loop, requirement, context)
        try:
            return stretch_measurement(loop, requirement, context, stretch)
        except ReportError as error:
            raise MeasurementError(f"{requirement.id}: {error}") from error

    def _requirements(self) -> tuple[Requirement, ...]:
        return load_requirements_file(self._path, *DELAYS, OUT_OF_PICTURE).requirements

    @staticmethod
    def _read(folder: Path) -> CameraLoop:
        try:
            return load_camera_loop(folder)
        except ReportError as error:
            raise MeasurementError(str(error)) from error

    def _context(self, delay_ms: int, stretch: str = WHOLE) -> Context:
        run, bench = current_run(), bench_library().bench.spec
        folder = self._folder / f"{delay_ms}-ms"
        facts = load_camera_facts(folder)
        numbers = [NumberedCondition("delay_asked_us", delay_ms * 1000)]
        if facts.delay:
            numbers += [
                NumberedCondition("delay_there_us", round(facts.delay.there_us)),
                NumberedCondition("delay_back_us", round(facts.delay.back_us)),
            ]
        return Context(
            run_id=run.run_id,
            test=running_test(),
            subject=Subject(bench.name, facts.target, axes=(AxisValue(STRETCH, at(stretch, delay_ms)),)),
            conditions=Conditions(self._profile, numbers=tuple(numbers)),
            simulated=bench.simulated,
            evidence=tuple(run.evidence(folder / each) for each in (CAMERA_FILE, *facts.files)),
        )


def name(check: str, delay_ms: int) -> str:
    """Return the name of a check at a delay."""
    return f"{check}-{delay_ms}"


def named(records: Iterable[Measurement], delay_ms: int) -> list[Measurement]:
    """Return records of checks at a delay, each by its name there."""
    return [replace(each, requirement=name(each.requirement, delay_ms)) for each in records]
