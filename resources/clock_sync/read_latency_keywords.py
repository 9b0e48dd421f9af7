# SPDX-License-Identifier: Apache-2.0
"""Keywords that measure what reading a clock costs."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

from robot.api import logger

from hw.errors import MeasurementError
from reports import Conditions, Measurement, Subject, current_run
from reports.clock_read.capability import QUANTITY
from reports.clock_read.readings import FOLDER, READINGS, TARGET, Reading, Readings, load_cost
from reports.clock_read.verdict import read_measurement, unread_measurement
from reports.record.context import Context
from reports.requirements import Requirement
from reports.run.current import judges
from reports.units import format_value
from resources.clock_sync.read_latency import measure_read_latency
from resources.clock_sync.times import TIMES, clock_times
from resources.keywords.bench import bench_library, say
from resources.keywords.judged import keep, require_passed, running_test
from resources.keywords.requirement_scope import RequirementScope
from resources.keywords.robot_api import keyword, library
from resources.moved import present
from resources.names import Profile
from resources.profiles import times_of
from resources.requirements_file import load_requirements_file


@library(scope="SUITE", version="1", listener="SELF")
class ClockReadLatencyLibrary(RequirementScope):
    """Measure what reading each clock of host and target costs, and judge the target's.

    Table I of the paper on intra-process clock synchronization: 10^6 readings of each clock, average and
    maximum. Limits come from a requirements file; the report has the clocks without a requirement too.
    """

    def __init__(self, requirements: Path) -> None:
        """Name the requirements.

        Args:
            requirements: File such as `robot/clock_sync/requirements/clock_read_latency_virtual.toml`.
        """
        self._path = present(requirements)
        self._requirements: tuple[Requirement, ...] = ()
        self._readings: Readings | None = None
        self._profile = ""
        self._target = ""

    def selected(self, named: Collection[str]) -> Iterable[tuple[Path, Collection[str]]]:  # noqa: ARG002 - all
        """Say that the suite asks every requirement of the file."""
        yield self._path, [each.id for each in load_requirements_file(self._path, QUANTITY).requirements]

    @keyword
    def read_every_clock(self, target: str, profile: Profile) -> None:
        """Read every clock that host and target offer, one after the other, with nothing else running.

        Args:
            target: Name of the target under `benchwright.targets` of the bench file.
            profile: `ci`, `acceptance` or `soak`: how many readings, and how long at most.
        """
        self._requirements = load_requirements_file(self._path, QUANTITY).requirements
        self._profile, self._target = profile, target
        times = times_of(profile, TIMES, clock_times)
        library = bench_library()
        self._readings = measure_read_latency(library.bench, library.target(target), times, self._folder, say)

    @keyword
    def every_clock_should_have_been_read(self) -> None:
        """Fail where a clock that is offered could not be read; others are only named."""
        failed: list[str] = []
        for reading in self._found.readings:
            name = f"{reading.clock} of the {reading.place}"
            cost = load_cost(self._folder, reading)
            if reading.not_offered:
                say(f"{name}: not offered: {reading.not_offered}")
            elif cost is None or cost.invalid():
                failed.append(f"{name}: {reading.failed or '; '.join(cost.invalid() if cost else ())}")
            else:
                summary = cost.undisturbed
                average, longest = format_value(summary.mean_ns, "ns"), format_value(summary.max_ns, "ns")
                logger.info(f"{name}: {average} on average, at most {longest}, {summary.n} readings")
        if failed:
            raise MeasurementError("; ".join(failed))

    @keyword
    def reading_should_cost_no_more_than_its_limits(self) -> None:
        """Judge the target's clocks by every requirement of the file.

        Fails unless all outcomes are `pass`; the message begins with `FAIL:`, `INCONCLUSIVE:` or `UNSET:`. A
        clock that could not be read leaves a record without a value.
        """
        judges(*(each.id for each in self._requirements))
        records = [self._record(requirement) for requirement in self._requirements]
        keep(records)
        require_passed(records)

    def _record(self, requirement: Requirement) -> Measurement:
        reading = self._reading(requirement.of)
        cost = load_cost(self._folder, reading)
        context = self._context(reading)
        wanted = (requirement.statistic, requirement.id, requirement.limit, requirement.samples, context)
        if cost is None:
            return unread_measurement(reading.not_offered or reading.failed, *wanted)
        return read_measurement(cost, *wanted)

    def _context(self, reading: Reading) -> Context:
        run, bench = current_run(), bench_library().bench.spec
        names = [READINGS, reading.file] if reading.file else [READINGS]
        return Context(
            run_id=run.run_id,
            test=running_test(),
            subject=Subject(bench.name, self._found.target, clock=reading.clock),
            conditions=Conditions(self._profile, load=self._found.load),
            simulated=bench.simulated,
            evidence=tuple(run.evidence(self._folder / name) for name in names),
        )

    def _reading(self, clock: str) -> Reading:
        found = self._found.readings
        return next(reading for reading in found if (reading.place, reading.clock) == (TARGET, clock))

    @property
    def _folder(self) -> Path:
        return current_run().evidence_folder(FOLDER, self._target)

    @property
    def _found(self) -> Readings:
        if self._readings is None:
            raise MeasurementError("nothing was read: call `Read Every Clock` first")
        return self._readings
