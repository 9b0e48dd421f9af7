# SPDX-License-Identifier: Apache-2.0
"""Keywords that put clocks on a target and measure them."""

from __future__ import annotations

from pathlib import Path

from robot.api import logger
from robot.libraries.BuiltIn import BuiltIn

from hw.errors import MeasurementError
from reports import Conditions, Limit, Measurement, Subject, current_run
from reports.clock_trial import FILTERED, SEQUENTIAL, TRIAL, WITNESS, ClockTrial
from reports.sampling import required_samples
from reports.sync_offset import Context, sync_measurement, witness_measurement
from reports.units import format_value
from resources.clock_requirements import ClockRequirement, ClockRequirements, load_clock_requirements
from resources.clock_sync import ClockLab
from resources.keywords.bench import bench_library, say
from resources.keywords.converters import Nanoseconds
from resources.keywords.robot_api import keyword, library
from resources.profiles import load_profile

WITNESS_REQUIREMENT = "BENCH-CLOCK-WITNESSES"


@library(scope="SUITE", version="1", converters={Nanoseconds: Nanoseconds.convert})
class ClockSyncLibrary:
    """Put clock stacks on a target by turns, and judge its clock against the timecard in it.

    Limits come from a requirements file, one for each stack. Offsets are target - time server.
    """

    def __init__(self, requirements: Path) -> None:
        """Name the requirements.

        Args:
            requirements: File such as `robot/requirements/clock_sync_virtual.toml`.
        """
        self._path = requirements
        self._requirements: ClockRequirements | None = None
        self._lab: ClockLab | None = None

    @keyword
    def start_clock_references(self, target: str, profile: str) -> None:
        """Power the time server on, let its clock wander, and serve the timecards.

        Args:
            target: Name of the target under `benchwright.targets` of the bench file.
            profile: `ci`, `acceptance` or `soak`: how long each trial takes.
        """
        self._requirements = load_clock_requirements(self._path)
        library = bench_library()
        folder = current_run().evidence_folder("clock_sync", "time-server").parent
        lab = ClockLab(library.bench, library.target(target), load_profile(profile), folder, say)
        self._lab = lab.__enter__()

    @keyword
    def stop_clock_references(self) -> None:
        """End what `Start Clock References` has started; harmless when it was not."""
        lab, self._lab = self._lab, None
        if lab is not None:
            lab.__exit__(None, None, None)

    @keyword
    def clock_should_stay_within_its_limit(self, clock: str) -> None:
        """Put a clock stack on the target, wait for its lock, measure, and judge the offset farthest from 0.

        Fails unless the outcome is `pass`; the message begins with `FAIL:`, `INCONCLUSIVE:` or `UNSET:`.

        Args:
            clock: `chrony`, `ntp-user`, `ptp-software`, `ptp-hardware`, `phc2sys`.
        """
        requirement = self._requirement(clock)
        trial = self._current().locked_trial(requirement)
        self._judge([trial], requirement)

    @keyword
    def clock_should_stay_within_its_limit_at_each_interval(self, clock: str) -> None:
        """Measure a clock at each synchronisation interval of the profile, as Table 2 of the DAQ paper does.

        Args:
            clock: A stack whose interval can be chosen: `chrony`, `ntp-user`.
        """
        requirement = self._requirement(clock)
        self._judge(self._current().interval_trials(requirement), requirement)

    @keyword
    def measure_holdover(self, clock: str) -> None:
        """Synchronise the target, cut it off from its server and measure; the report shows how it drifts.

        Nothing is judged: holdover has no limit here. An answer that is invalid fails all the same.

        Args:
            clock: The stack that has synchronised it.
        """
        trial = self._current().holdover_trial(self._requirement(clock))
        invalid = trial.filtered.invalid()
        if invalid:
            raise MeasurementError("; ".join(invalid))
        farthest = trial.filtered.extreme_ns
        say(f"{clock}: at most {format_value(farthest, 'ns')} off in holdover")

    @keyword
    def clock_should_lock_again(self, clock: str, step: Nanoseconds) -> None:
        """Step the target's clock to and fro; after each step the stack must lock before its deadline.

        Args:
            clock: The stack.
            step: How far, with its unit.
        """
        locks = self._current().lock_times(self._requirement(clock), step.value_ns)
        say(
            f"{clock}: locked {len(locks)} times, after "
            + ", ".join(f"{lock.after_s:.1f} s" for lock in locks)
        )

    def _judge(self, trials: list[ClockTrial], requirement: ClockRequirement) -> None:
        """Write a record for each trial; raise AssertionError unless all of them pass."""
        records: list[Measurement] = []
        for trial in trials:
            records += self._records(trial, requirement)
        left = [record for record in records if record.outcome != "pass"]
        if left:
            raise AssertionError(
                "; ".join(
                    f"{record.outcome.upper()}: {record.requirement}: {record.reason}" for record in left
                )
            )

    def _records(self, trial: ClockTrial, requirement: ClockRequirement) -> list[Measurement]:
        run = current_run()
        lab = self._current()
        names = (TRIAL, FILTERED, SEQUENTIAL, WITNESS)
        facts = trial.facts
        phase = facts.kind if facts.interval_s is None else f"{facts.kind} {facts.interval_s:g} s"
        context = Context(
            run_id=run.run_id,
            test=str(BuiltIn().get_variable_value("${TEST NAME}")),
            subject=Subject(lab.bench.spec.name, lab.target.kind, clock=facts.clock),
            conditions=Conditions(lab.profile.name, phase, facts.load, facts.impairment),
            simulated=lab.bench.spec.simulated,
            evidence=tuple(
                run.evidence(trial.folder / name) for name in names if (trial.folder / name).exists()
            ),
        )
        limit = Limit(requirement.limit_ns, -requirement.limit_ns, requirement.source)
        n_required = required_samples(lab.profile.excluded_miss_probability)
        records = [sync_measurement(trial, requirement.id, limit, n_required, context)]
        witnesses = witness_measurement(trial, WITNESS_REQUIREMENT, context)
        if witnesses is not None:
            records.append(witnesses)
        for record in records:
            run.append(record)
            logger.info(f"{record.requirement}: {record.outcome}: {record.reason or 'within its limit'}")
        return records

    def _requirement(self, clock: str) -> ClockRequirement:
        if self._requirements is None:
            self._requirements = load_clock_requirements(self._path)
        return self._requirements.of(clock)

    def _current(self) -> ClockLab:
        if self._lab is None:
            raise MeasurementError("no reference: call `Start Clock References` first")
        return self._lab
