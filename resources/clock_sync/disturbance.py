# SPDX-License-Identifier: Apache-2.0
"""Disturbances of a clock whose stack runs: of its oscillator, its time, its grandmaster, its path.

A servo sets the frequency of the kernel's clock again within a second: to set another one would be undone
before it is seen. So the oscillator is changed beneath it: `bw-wander --steps-ms` steps the clock every 20 ms
by what the change amounts to meanwhile (4 us at 200 ppm), whatever frequency the servo sets. The time server,
and the reference in the target, which follows it, are left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from hw.errors import MeasurementError
from hw.paths import time_server_path
from hw.protocols import READY_S
from reports.clock_sync.disturbance import Disturbance, Event
from reports.clock_sync.trial import ClockTrial, Lock
from reports.requirements import Requirement
from resources.clock_sync.config import STANDBY
from resources.clock_sync.disturbance_settings import DisturbanceSettings
from resources.clock_sync.disturbed_trial import EventLog, keep_events, measure_disturbed
from resources.clock_sync.lab import ClockLab
from resources.clock_sync.lock import RateGoal, selected_grandmaster
from resources.clock_sync.servo_watch import wait_grandmaster, wait_settled
from resources.clock_sync.stack import LOOK_S, ClockStack
from resources.clock_sync.trial import TrialSettings
from resources.tools.jobs import end_and_fetch

STEP_TRIAL_S = 8
OSCILLATOR_STEPS_MS = 20
FOUND_SHARE = 0.25
"""A servo has found a change of the oscillator when its frequency has moved by it, but for this share."""


class ClockDisturber:
    """Disturbs the clock of a lab's target; a stack runs on from trial to trial until another is asked."""

    def __init__(self, lab: ClockLab, settings: DisturbanceSettings) -> None:
        """Take a lab that is open.

        Args:
            lab: Its target's clock is disturbed.
            settings: Sizes and times.
        """
        self.lab = lab
        self.settings = settings
        self._stack: ClockStack | None = None
        self._lock: Lock | None = None  # its last one, after which nothing was done to it

    def close(self) -> None:
        """Take the stack off the target; harmless when none runs."""
        stack, self._stack = self._stack, None
        if stack is not None:
            stack.__exit__(None, None, None)

    def oscillator_trial(self, requirement: Requirement) -> tuple[ClockTrial, Disturbance]:
        """Change the frequency of the target's oscillator and back, as often as the profile says.

        Locked again means: the servo's frequency has moved by the change, and its offsets meet the rule.

        Raises:
            MeasurementError: The servo did not follow in time.
        """
        tolerance_ppb = FOUND_SHARE * self.settings.oscillator_ppb
        deadline_s = requirement.lock_within_s
        folder = self._folder(requirement, "oscillator")
        with self._running(requirement) as (stack, lock):
            goal = RateGoal(wait_settled(stack, tolerance_ppb, deadline_s), tolerance_ppb)

            def disturb(log: EventLog) -> None:
                for number in range(self.settings.repeats):
                    change_ppb = self.settings.oscillator_ppb * (-1 if number % 2 else 1)
                    what = f"oscillator {change_ppb / 1000:+g} ppm"
                    found = f"servo before: {goal.freq_ppb / 1000:+.1f} ppm"
                    changed = replace(goal, freq_ppb=goal.freq_ppb + change_ppb)
                    begun_s = log.now_s()
                    with self._oscillator(change_ppb, deadline_s, folder / f"oscillator-{number + 1}"):
                        done_s = log.now_s()
                        log.add(what, begun_s, done_s, stack.wait_locked(deadline_s, changed), found)
                        begun_s = log.now_s()
                    done_s = log.now_s()
                    log.add(f"{what}, taken back", begun_s, done_s, stack.wait_locked(deadline_s, goal))

            return self._disturbed(stack, lock, "oscillator", self.settings.oscillator_s, folder, disturb)

    def step_trial(self, requirement: Requirement) -> tuple[ClockTrial, Disturbance, int]:
        """Step the target's clock ahead while it is measured.

        Returns:
            The trial, what was done, and the step in ns.

        Raises:
            MeasurementError: The servo did not lock again in time.
        """
        step_ns = round(self.settings.step_share * requirement.upper_ns)
        node = self.lab.bench.node(self.lab.target.node)
        with self._running(requirement) as (stack, lock):

            def disturb(log: EventLog) -> None:
                begun_s = log.now_s()
                node.run(["bw-setclock", "--step-ns", str(step_ns)])
                done_s = log.now_s()
                what = f"clock put ahead by {step_ns / 1000:g} us"
                log.add(what, begun_s, done_s, stack.wait_locked(requirement.lock_within_s))

            folder = self._folder(requirement, "step")
            trial, disturbance = self._disturbed(stack, lock, "step", STEP_TRIAL_S, folder, disturb)
            return trial, disturbance, step_ns

    def grandmaster_trial(self, requirement: Requirement) -> tuple[ClockTrial, Disturbance]:
        """Let the grandmaster vanish and come back; a standby of worse priority serves the same clock.

        Raises:
            MeasurementError: The target chose neither the standby nor the grandmaster again, or did not lock.
        """
        deadline_s = requirement.lock_within_s
        standby = STANDBY["clock_identity"]
        with self._running(requirement, standby=True) as (stack, lock):
            leader = selected_grandmaster(stack.servo_text())
            if leader in ("", standby):
                raise MeasurementError(
                    f"{stack.name}: the target follows {leader or 'nobody'}, not the better grandmaster"
                )

            def disturb(log: EventLog) -> None:
                for _ in range(self.settings.repeats):
                    turns = (
                        ("grandmaster lost", stack.silence_server, standby),
                        ("grandmaster back", stack.bring_back_server, leader),
                    )
                    for what, act, wanted in turns:
                        before = selected_grandmaster(stack.servo_text())
                        begun_s = log.now_s()
                        act()
                        done_s = log.now_s()
                        wait_grandmaster(stack, wanted, deadline_s)
                        found = f"{before} → {wanted} after {log.now_s() - begun_s:.1f} s"
                        # Observations count from the look that has found the other grandmaster.
                        lock = stack.wait_locked(deadline_s - (log.now_s() - begun_s))
                        log.add(what, begun_s, done_s + LOOK_S, lock, found)

            folder = self._folder(requirement, "grandmaster")
            return self._disturbed(stack, lock, "grandmaster", self.settings.grandmaster_s, folder, disturb)

    def impaired_trial(self, requirement: Requirement) -> tuple[ClockTrial, Disturbance]:
        """Measure over a path that delays, scatters and loses what the time server sends; then fix it.

        Raises:
            CapabilityError: The bench has no impairment node on the path of its time server.
            MeasurementError: The stack did not keep its lock.
        """
        path = self.settings.path
        router = self.lab.bench.router()
        server = time_server_path(self.lab.bench.spec, self.lab.target.node)
        folder = self._folder(requirement, "impaired")
        with self._running(requirement) as (stack, _):
            try:
                router.configure([server], path.settings())
                lock = stack.wait_locked(requirement.lock_within_s)
                self.lab.progress(f"{stack.name}: {path.text()}; measuring")
                facts = replace(self.lab.facts(stack, "impaired", lock), impairment=path.text())
                settings = TrialSettings(self.settings.impaired_s, sequential=False, two_way=False)
                trial = self.lab.measured(stack, facts, settings, folder)
            finally:
                router.clear()
        return trial, keep_events(trial, [Event(path.text(), 0, lock, "")])

    def _folder(self, requirement: Requirement, kind: str) -> Path:
        return self.lab.folder / f"{requirement.of}-{kind}"

    @contextmanager
    def _running(
        self, requirement: Requirement, *, standby: bool = False
    ) -> Generator[tuple[ClockStack, Lock], None, None]:
        """Give the stack, locked: the one that runs, or a new one; after an error it is taken off."""
        stack = self._stack
        if stack is None or (stack.name, stack.settings.standby) != (requirement.of, standby):
            self.close()
            folder = self._folder(requirement, "stack")
            stack = self.lab.running(requirement.of, folder, standby=standby).__enter__()
            self._stack, self._lock = stack, None
        try:
            lock, self._lock = self._lock or stack.wait_locked(requirement.lock_within_s), None
            yield stack, lock
        except BaseException as error:
            self._stack = None
            stack.__exit__(type(error), error, error.__traceback__)
            raise

    @contextmanager
    def _oscillator(self, change_ppb: int, deadline_s: float, stem: Path) -> Generator[None, None, None]:
        """Let the target's oscillator be faster; it ends by itself should nobody end it."""
        stem.parent.mkdir(parents=True, exist_ok=True)
        argv = [self.lab.bench.tool(self.lab.target.node, "bw-wander"), "--base-ppb", str(change_ppb)]
        argv += ["--steps-ms", str(OSCILLATOR_STEPS_MS)]
        argv += ["--duration-ms", str(round((deadline_s + READY_S) * 1000))]
        job = self.lab.bench.node(self.lab.target.node).start(argv, stem)
        try:
            job.wait_ready()
            yield
        finally:
            end_and_fetch(job)

    def _disturbed(
        self,
        stack: ClockStack,
        lock: Lock,
        kind: str,
        duration_s: int,
        folder: Path,
        disturb: Callable[[EventLog], None],
    ) -> tuple[ClockTrial, Disturbance]:
        """Measure while the clock is disturbed, and keep what was done."""
        self.lab.progress(f"{stack.name}: locked; disturbing it: {kind}")
        settings = TrialSettings(duration_s, sequential=False, two_way=False)
        facts = self.lab.facts(stack, kind, lock)
        trial, done = measure_disturbed(self.lab, stack, facts, settings, folder, disturb)
        self._lock = done.events[-1].lock
        return trial, done
