# SPDX-License-Identifier: Apache-2.0
"""Keywords that put clocks on a target and measure them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

from robot.api import SkipExecution
from robot.libraries.BuiltIn import BuiltIn

from hw.errors import MeasurementError
from reports import Conditions, current_run
from reports.clock_sync.disturbance import DISTURBANCE, load_disturbance
from reports.clock_sync.path_shift import SHIFT_PAIRS_MIN
from reports.clock_sync.trial import TRIAL
from reports.requirements import AS_FOUND, Requirement
from reports.run.current import judges
from reports.units import format_measured, format_value
from resources.clock_sync.asymmetry import asymmetry_trials
from resources.clock_sync.judge import ClockJudge
from resources.clock_sync.lab import ClockLab
from resources.clock_sync.requirements import ClockRequirements, load_clock_requirements
from resources.clock_sync.stack_tests import (
    make_stack_tests,
    simulated_stacks_of_variables,
    stacks_of_variables,
)
from resources.clock_sync.stack_trials import (
    as_found_trial,
    holdover_trial,
    interval_trials,
    load_trials,
    locked_trial,
    relock,
    wrong_clock_trial,
)
from resources.keywords.bench import bench_library, say
from resources.keywords.converters import Nanoseconds
from resources.keywords.requirement_scope import RequirementScope, of_subjects
from resources.keywords.robot_api import keyword, library
from resources.moved import present
from resources.names import ClockStack, Profile
from resources.profiles import load_profile


@library(scope="SUITE", version="1", listener="SELF", converters={Nanoseconds: Nanoseconds.convert})
class ClockSyncLibrary(RequirementScope):
    """Put clock stacks on a target by turns, and judge its clock against the timecard in it.

    Limits come from a requirements file, one for each stack. Offsets are target - time server.
    """

    def __init__(self, requirements: Path) -> None:
        """Name the requirements.

        Args:
            requirements: File such as `robot/clock_sync/requirements/clock_sync_virtual.toml`.
        """
        self._path = present(requirements)
        self._requirements: ClockRequirements | None = None
        self._lab: ClockLab | None = None

    def make_tests(self, suite: Any) -> None:
        """Put one test for each clock stack in the place of a row that stands for all."""
        make_stack_tests(suite, stacks_of_variables)

    def selected(self, named: Collection[str]) -> Iterable[tuple[Path, Collection[str]]]:
        """Say that the suite asks the requirements on clocks that its tests name."""
        loaded = load_clock_requirements(self._path, simulated_stacks_of_variables())
        chosen = of_subjects({each.id: clock for clock, each in loaded.by_clock.items()}, named)
        for file, ids in loaded.of_file.items():
            yield file, [each for each in ids if each in chosen]

    @keyword
    def start_clock_references(self, target: str, profile: Profile, folder: str = "") -> None:
        """Power the time server on, let its clock wander, and serve the timecards.

        A target without timecard is measured by two-way time transfer over the control network; the time
        server is powered on as soon as a stack follows it.

        Args:
            target: Name of the target under `benchwright.targets` of the bench file.
            profile: `ci`, `acceptance` or `soak`: how long each trial takes.
            folder: Of the evidence, below `clock_sync/TARGET`; empty: that one itself. Suites share none.
        """
        self._requirements = load_clock_requirements(self._path, simulated_stacks_of_variables())
        library = bench_library()
        place = current_run().evidence_folder("clock_sync", target, *([folder] if folder else []))
        lab = ClockLab(library.bench, library.target(target), load_profile(profile), place, say)
        self._lab = lab.__enter__()

    @keyword
    def stop_clock_references(self) -> None:
        """End what `Start Clock References` has started; harmless when it was not."""
        lab, self._lab = self._lab, None
        if lab is not None:
            lab.__exit__(None, None, None)

    @keyword
    def clock_should_stay_within_its_limit(self, clock: ClockStack) -> None:
        """Put a clock stack on the target, wait for its lock, measure, and judge the offset farthest from 0.

        Fails unless the outcome is `pass`; the message begins with `FAIL:`, `INCONCLUSIVE:` or `UNSET:`.

        Args:
            clock: `chrony`, `ntp-user`, `ptp-software`, `ptp-hardware`, `phc2sys`; `w32time`; `as-found`: the
                clock as the machine itself keeps it. Skipped where the target cannot have it, or the
                requirements file has none on it.
        """
        if clock not in self._loaded.by_clock:
            raise SkipExecution(f"{self._path}: no requirement on clock {clock}")
        requirement = self.requirement(clock)
        if clock == AS_FOUND:
            with self.judge.unset_on_error(requirement, "sync"):
                trial = as_found_trial(self.lab, requirement)
            say(f"{clock}: at most {format_measured(trial.filtered.extreme_ns, 'ns')} off")
            self.judge.judge([trial], requirement)
            return
        with self.judge.unset_on_error(requirement, "sync", locks=True):
            trial = locked_trial(self.lab, requirement)
        locks = [trial.facts.lock] if trial.facts.lock is not None else []
        conditions = self.judge.conditions_of(trial)
        lock = self.judge.lock_record(locks, requirement, 1, conditions, [trial.folder / TRIAL])
        self.judge.judge([trial], requirement, [lock])

    @keyword
    def clock_should_stay_within_its_limit_at_each_interval(self, clock: ClockStack) -> None:
        """Measure a clock at each synchronisation interval of the profile, as Table 2 of the DAQ paper does.

        Skipped where the profile names none.

        Args:
            clock: A stack whose interval can be chosen: `chrony`, `ntp-user`.
        """
        requirement = self.requirement(clock)
        if not self.lab.times.intervals_s:
            raise SkipExecution(f"profile {self.lab.profile.name} varies no synchronisation interval")
        with self.judge.unset_on_error(requirement, "interval"):
            trials = interval_trials(self.lab, requirement)
        self.judge.judge(trials, requirement)

    @keyword
    def clock_should_stay_within_its_limit_under_load(self, clock: ClockStack) -> None:
        """Measure a clock under each load of the profile: CPU, disk, network; skipped where it names none.

        Args:
            clock: The stack.
        """
        requirement = self.requirement(clock)
        lab = self.lab
        if not lab.times.loads:
            raise SkipExecution(f"profile {lab.profile.name} measures no clock under load")
        with self.judge.unset_on_error(requirement, "load"):
            trials = load_trials(lab, requirement)
        self.judge.judge(trials, requirement)

    @keyword
    def reference_should_see_an_asymmetric_path(self, clock: ClockStack, asymmetry: Nanoseconds) -> None:
        """Delay what the time server sends, and nothing that comes back: the clock is off by half of it.

        The reference has to show the shift: the 95 % interval of its mean over all pairs of trials, without
        and with the delay, must hold minus half the asymmetry and not 0. The servo's own figures stand beside
        it in the report. Skipped where the profile has no alternations.

        Args:
            clock: The stack.
            asymmetry: With its unit, a whole number of microseconds.
        """
        requirement = self._offered(clock)
        lab = self.lab
        if lab.times.alternations < SHIFT_PAIRS_MIN:
            raise SkipExecution(f"profile {lab.profile.name} has fewer than {SHIFT_PAIRS_MIN} alternations")
        with self.judge.unset_on_error(requirement, "asymmetry"):
            pairs = asymmetry_trials(lab, requirement, asymmetry.value_ns // 1000)
        record = self.judge.shift_record(pairs, asymmetry.value_ns, requirement)
        say(f"{clock}: {record.reason}")
        self.judge.judge([], requirement, [record])

    @keyword
    def measure_holdover(self, clock: ClockStack) -> None:
        """Synchronise the target, cut it off from its server and measure; the report shows how it drifts.

        Nothing is judged: holdover has no limit here. An answer that is invalid fails all the same.

        Args:
            clock: The stack that has synchronised it.
        """
        trial = holdover_trial(self.lab, self._offered(clock))
        invalid = trial.filtered.invalid()
        if invalid:
            raise MeasurementError("; ".join(invalid))
        farthest = trial.filtered.extreme_ns
        say(f"{clock}: at most {format_value(farthest, 'ns')} off in holdover")

    @keyword
    def clock_should_lock_again(self, clock: ClockStack, step: Nanoseconds) -> None:
        """Step the target's clock to and fro, start the stack after each step, and judge the times to lock.

        Args:
            clock: The stack.
            step: How far, with its unit.
        """
        requirement = self.requirement(clock)
        with self.judge.unset_on_error(requirement, "relock", offset=False, locks=True):
            folder = relock(self.lab, requirement, step.value_ns)
        locks = found.locks if (found := load_disturbance(folder)) is not None else []
        say(
            f"{clock}: locked {len(locks)} times, after "
            + ", ".join(f"{lock.after_s:.1f} s" for lock in locks)
        )
        conditions = Conditions(self.lab.profile.name, "relock")
        wanted = self.lab.times.relocks
        record = self.judge.lock_record(locks, requirement, wanted, conditions, [folder / DISTURBANCE])
        self.judge.judge([], requirement, [record])

    @keyword
    def wrong_clock_should_be_found(self, clock: ClockStack, node: str, error: Nanoseconds) -> None:
        """Measure a clock that is known to be wrong, as the target's is: it has to fail, by its error.

        A check of the bench; nothing is recorded, the trial is in the evidence. Skipped on real benches: no
        clock of theirs is known to be wrong.

        Args:
            clock: The stack whose limit it has to break.
            node: Whose clock is wrong.
            error: By how much, with its unit; positive: it is ahead. It may differ by half of it.
        """
        requirement = self._offered(clock)
        if not self.lab.bench.spec.simulated:
            raise SkipExecution("no clock of a real bench is known to be wrong")
        trial = wrong_clock_trial(self.lab, node)
        say(f"{node}: {format_measured(trial.filtered.extreme_ns, 'ns')} off")
        self.judge.require_known_error(trial, requirement, error.value_ns)

    def requirement(self, clock: str) -> Requirement:
        """Return the requirement on a clock stack, which the running test judges.

        Raises:
            CapabilityError: This target cannot have it.
            ConfigError: The file has none.
        """
        if clock in self._loaded.by_clock:
            judges(self._loaded.by_clock[clock].id)
        return self._offered(clock)

    def _offered(self, clock: str) -> Requirement:
        """Return the requirement on a clock stack that the target can have; raises as `requirement`."""
        self.lab.require_offered(clock)
        return self._loaded.of(clock)

    @property
    def _loaded(self) -> ClockRequirements:
        if self._requirements is None:
            self._requirements = load_clock_requirements(self._path, simulated_stacks_of_variables())
        return self._requirements

    @property
    def judge(self) -> ClockJudge:
        """Return who judges the trials of this lab."""
        return ClockJudge(self.lab, self._loaded.masks)

    @property
    def lab(self) -> ClockLab:
        """Return the lab that `Start Clock References` has opened."""
        if self._lab is None:
            raise MeasurementError("no reference: call `Start Clock References` first")
        return self._lab


def clock_library() -> ClockSyncLibrary:
    """Return the instance that the suite has imported: libraries built on it share its lab."""
    instance: Any = BuiltIn().get_library_instance("resources.clock_sync.keywords.ClockSyncLibrary")
    return instance
