# SPDX-License-Identifier: Apache-2.0
"""Keywords that disturb a clock whose stack runs, and judge how it takes it."""

from __future__ import annotations

from collections.abc import Sequence

from robot.api import SkipExecution

from reports.clock_sync.disturbance import DISTURBANCE, Disturbance
from reports.clock_sync.trial import TRIAL, ClockTrial
from reports.record.measurement import Measurement
from reports.requirements import Requirement
from reports.units import format_measured
from resources.clock_sync.disturbance import ClockDisturber
from resources.clock_sync.disturbance_settings import load_disturbances
from resources.clock_sync.keywords import clock_library
from resources.keywords.bench import say
from resources.keywords.robot_api import keyword, library
from resources.names import ClockStack


@library(scope="SUITE", version="1")
class ClockDisturbanceLibrary:
    """Disturb a clock whose stack runs. Needs `ClockSyncLibrary`, whose references have been started.

    Sizes and times are in `resources/clock_sync/clock_disturbances.toml`. A stack runs on from one keyword to
    the next until another is asked for. Every keyword fails unless all that it judges is `pass`; its message
    begins with `FAIL:`, `INCONCLUSIVE:` or `UNSET:`.
    """

    def __init__(self) -> None:
        """Start with nothing disturbed."""
        self._disturber: ClockDisturber | None = None

    @keyword
    def clock_should_follow_its_oscillator(self, clock: ClockStack) -> None:
        """Change the frequency of the target's oscillator and back; judge the times to lock, and the offset.

        Args:
            clock: `chrony`, `ptp-software`; skipped where the profile disturbs it not.
        """
        requirement = self._chosen(clock, self.disturber.settings.stacks)
        with clock_library().judge.unset_on_error(requirement, "oscillator", locks=True):
            trial, done = self.disturber.oscillator_trial(requirement)
        self._judge(trial, done, requirement, 2 * self.disturber.settings.repeats)

    @keyword
    def step_of_the_clock_should_be_seen(self, clock: ClockStack) -> None:
        """Step the target's clock while it is measured: the step is found with its size, and nothing passes.

        The check is one of the bench; the trial's own verdict, which is none, is not recorded. The time to
        lock again is judged.

        Args:
            clock: `chrony`, `ptp-software`; skipped where the profile disturbs it not.
        """
        requirement = self._chosen(clock, self.disturber.settings.stacks)
        judge = clock_library().judge
        with judge.unset_on_error(requirement, "step", offset=False, locks=True):
            trial, done, step_ns = self.disturber.step_trial(requirement)
        locks = self._lock_record(trial, done, requirement, 1)
        judge.judge([], requirement, [locks, judge.step_record(trial, step_ns, requirement)])

    @keyword
    def clock_should_follow_the_grandmasters(self, clock: ClockStack = "ptp-software") -> None:
        """Let the grandmaster vanish and come back beside a standby; judge the times to lock, and the offset.

        Args:
            clock: `ptp-software`, `ptp-hardware`; skipped where the profile disturbs it not.
        """
        requirement = self._chosen(clock, self.disturber.settings.grandmaster)
        with clock_library().judge.unset_on_error(requirement, "grandmaster", locks=True):
            trial, done = self.disturber.grandmaster_trial(requirement)
        self._judge(trial, done, requirement, 2 * self.disturber.settings.repeats)

    @keyword
    def clock_should_stay_within_its_limit_over_an_impaired_path(self, clock: ClockStack) -> None:
        """Delay, scatter and lose what the time server sends; judge the time to lock again, and the offset.

        Args:
            clock: `chrony`, `ptp-software`; skipped where the profile disturbs it not.
        """
        requirement = self._chosen(clock, self.disturber.settings.impaired)
        with clock_library().judge.unset_on_error(requirement, "impaired", locks=True):
            trial, done = self.disturber.impaired_trial(requirement)
        self._judge(trial, done, requirement, 1)

    @keyword
    def stop_disturbing_clocks(self) -> None:
        """Take the stack that runs off the target; harmless when none does."""
        disturber, self._disturber = self._disturber, None
        if disturber is not None:
            disturber.close()

    @property
    def disturber(self) -> ClockDisturber:
        """Return what disturbs the clock of the lab."""
        if self._disturber is None:
            lab = clock_library().lab
            settings = load_disturbances(lab.profile.name, lab.bench.spec.simulated)
            self._disturber = ClockDisturber(lab, settings)
        return self._disturber

    def _chosen(self, clock: str, stacks: Sequence[str]) -> Requirement:
        requirement = clock_library().requirement(clock)
        if clock not in stacks:
            raise SkipExecution(f"profile {self.disturber.lab.profile.name} does not disturb {clock} so")
        return requirement

    def _judge(
        self, trial: ClockTrial, done: Disturbance, requirement: Requirement, locks_required: int
    ) -> None:
        locks = self._lock_record(trial, done, requirement, locks_required)
        clock_library().judge.judge([trial], requirement, [locks])

    def _lock_record(
        self, trial: ClockTrial, done: Disturbance, requirement: Requirement, required: int
    ) -> Measurement:
        for event in done.events:
            again = "" if event.lock is None else f"locked again after {event.lock.after_s:.1f} s"
            say(f"{requirement.of}: " + "; ".join(text for text in (event.what, again, event.found) if text))
        farthest = trial.filtered.extreme_ns
        say(f"{requirement.of}: at most {format_measured(farthest, 'ns')} off meanwhile")
        judge = clock_library().judge
        files = [trial.folder / name for name in (TRIAL, DISTURBANCE)]
        return judge.lock_record(done.locks, requirement, required, judge.conditions_of(trial), files)
