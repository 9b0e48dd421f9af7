# SPDX-License-Identifier: Apache-2.0
"""What libraries share that measure a loop under several cases, and judge it by one requirements file."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import ClassVar, Generic, TypeVar

from hw.bench import TargetSpec
from hw.errors import CapabilityError, MeasurementError
from hw.fields import Fields
from hw.open_bench import OpenBench
from reports import Conditions
from reports.control_loops.case import Case, case_of_stretch
from reports.control_loops.load import AchievedLoad
from reports.control_loops.loop import Loop
from reports.control_loops.stretch_verdict import stretch_measurement
from reports.errors import ReportError
from reports.record.context import Context
from reports.record.measurement import Measurement, NumberedCondition
from reports.requirements import Requirement
from reports.run.current import judges
from reports.run.robot_variable import robot_variable
from resources.control_loops.asked import asked_requirements
from resources.control_loops.clocks import corrected_clock
from resources.control_loops.loads import IDLE
from resources.keywords.bench import say
from resources.keywords.judged import keep, keep_judged, require_passed
from resources.keywords.requirement_scope import RequirementScope
from resources.moved import present

CLOCK_LOGS = "clock"
Found = TypeVar("Found", bound=Loop)


class LoopLibrary(RequirementScope, Generic[Found]):
    """A library of loops.

    Attributes:
        judging: The keyword that judges by the file.
        stretches: Of each quantity that the file may have a limit of, those that there are.
        times: What each profile does.
        nothing: What is said where nothing was measured.
        unmeasured: Why a case of the profile may not be there.
    """

    judging: ClassVar[str]
    stretches: ClassVar[Mapping[str, Sequence[str]]]
    times: ClassVar[Path]
    nothing: ClassVar[str]
    unmeasured: ClassVar[str]

    def __init__(self, requirements: Path) -> None:
        """Name the requirements."""
        self._path = present(requirements)
        self._profile = ""
        self._folder = Path()
        self._found: dict[Case, Found] = {}

    @staticmethod
    @abstractmethod
    def _cases(table: Fields) -> list[Case]:
        """Read a profile's table: under what it measures."""
        raise NotImplementedError

    @abstractmethod
    def _context(self, case: Case, stretch: str = "") -> Context:
        """Return what a record of a case has besides its verdict; `stretch`: what it is of."""
        raise NotImplementedError

    def selected(self, named: Collection[str]) -> Iterable[tuple[Path, Collection[str]]]:
        """Say that a suite that judges loops asks every requirement of the file that its profile measures."""
        if self.judging in named:
            asked, _ = self._asked(robot_variable("PROFILE"))
            yield self._path, [each.id for each in asked]

    def _begin(self, profile: str, folder: Path) -> None:
        """Take profile and folder; a mistake in the file is told before anything is measured."""
        self._profile, self._folder = profile, folder
        _, others = self._asked(profile)
        if others:
            say(f"not of profile {profile}: {', '.join(others)}")

    def _measure_each(
        self, bench: OpenBench, target: TargetSpec, cases: Iterable[Case], measure: Callable[[Case], None]
    ) -> None:
        """Measure every case while its daemon corrects the target's clock, if the target can have it."""
        for clock, those in groupby(cases, lambda case: case.clock):
            logs = self._folder / Case(clock=clock).folder / CLOCK_LOGS
            with ExitStack() as ending:
                try:
                    ending.enter_context(corrected_clock(bench, target, clock, logs))
                except CapabilityError as error:
                    say(f"no clock is corrected: {error}")
                    continue
                for case in those:
                    measure(case)

    def _judge_requirements(self) -> None:
        """Judge each requirement that the profile measures."""
        self._require_found()
        requirements, _ = self._asked(self._profile)
        judges(*(each.id for each in requirements))
        keep_judged([self._judged(each) for each in requirements], self._profile)

    def _check_each(
        self, judge: Callable[[Found, Context], Iterable[Measurement]], passed: str, *checks: str
    ) -> None:
        """Judge every loop by checks of the bench."""
        self._require_found()
        judges(*(case.check(check) for case in self._found for check in checks))
        records = [
            replace(record, requirement=case.check(record.requirement))
            for case, found in self._found.items()
            for record in judge(found, self._context(case))
        ]
        keep(records, passed)
        require_passed(records)

    def _require_found(self) -> None:
        if not self._found:
            raise MeasurementError(self.nothing)

    def _asked(self, profile: str) -> tuple[list[Requirement], list[str]]:
        return asked_requirements(self._path, self.stretches, profile, self.times, self._cases)

    def _judged(self, requirement: Requirement) -> Measurement | str:
        """Return the record of a requirement, or why there is none."""
        name, case = case_of_stretch(requirement.of)
        if case not in self._found:
            return f"{requirement.id}: {requirement.of}: {self.unmeasured}"
        try:
            return self._measurement(self._found[case], requirement, self._context(case, name), name)
        except ReportError as error:
            return f"{requirement.id}: {error}"

    def _measurement(
        self, found: Found, requirement: Requirement, context: Context, stretch: str
    ) -> Measurement:
        return stretch_measurement(found, requirement, context, stretch)

    def _conditions(self, load: AchievedLoad | None, numbers: Mapping[str, int]) -> Conditions:
        """Return profile, load and numbers, with what the load achieved."""
        every = {**numbers, **(load.numbers if load else {})}
        return Conditions(
            self._profile,
            load=load.kind if load else IDLE,
            numbers=tuple(NumberedCondition(*each) for each in every.items()),
        )


def read_loop(load: Callable[[Path], Found], folder: Path) -> Found:
    """Read the evidence of a loop; raises MeasurementError: says what is wrong with it."""
    try:
        return load(folder)
    except ReportError as error:
        raise MeasurementError(str(error)) from error
