# SPDX-License-Identifier: Apache-2.0
"""Clocks on a target, measured against their time server: stacks by turns, intervals, holdover, lock times.

The time server's clock is wrong and wanders, unknown to the target (`bw-wander`): under emulation all guests
share one oscillator, and holdover against one's own oscillator would prove nothing.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import TracebackType

import numpy as np

from hw.bench import TargetSpec, TimeServerSpec
from hw.errors import CapabilityError, ConfigError
from hw.session import Bench
from reports.clock_disturbance import Disturbance, Event, write_disturbance
from reports.clock_logs import ServoSeries
from reports.clock_section import servo_of
from reports.clock_trial import PHC_READS, ClockTrial, Lock, Servo, Timecard, TrialFacts, write_trial
from reports.phc_read_table import while_measured
from reports.units import NS_PER_S
from resources.capture import capture_file, median_transit_ns, start_capture
from resources.clock_requirements import ClockRequirement
from resources.clock_settings import BASE_PPB_MAX, WALK_PPB_PER_SQRT_S, ClockSettings
from resources.clock_stack import ClockStack
from resources.clock_trial import TrialSettings, measure_trial, timecard_of
from resources.competing_load import competing_load
from resources.jobs import READY_S, end_and_fetch, end_job
from resources.profiles import ClockTimes, Profile
from resources.tai_utc import common_tai_utc_s
from resources.timecard import serve_timecards

Progress = Callable[[str], None]

ASYMMETRY_INTERVAL_S = 0.125
"""Between synchronisations over an asymmetric path: often, so that noise does not hide half of 50 us.

chrony only does so where a round trip takes less than 10 ms (chrony.conf(5), minpoll).
"""
ASYMMETRY_SETTLING_S = 10
FOLLOWED_US = 1000
"""A servo that knows its path follows so small a change; answers that suddenly take longer it rejects."""


class ClockLab:
    """A bench on which clocks are measured: time server wandering, timecards served. Use with `with`."""

    def __init__(
        self, bench: Bench, target: TargetSpec, profile: Profile, folder: Path, progress: Progress
    ) -> None:
        """Prepare; nothing is started.

        Args:
            bench: An open bench.
            target: Whose clock is measured.
            profile: Says how long.
            folder: Evidence goes here.
            progress: Called with a line of text now and then.

        Raises:
            CapabilityError: The bench has no time server, or the target no timecard.
            ConfigError: The profile does not say how long clocks are measured.
        """
        if bench.spec.time_server is None:
            raise CapabilityError(
                f"bench {bench.spec.name}: no time server; add benchwright.time_server to {bench.spec.path}"
            )
        if profile.clocks is None:
            raise ConfigError(f"profile {profile.name}: no table {profile.name}.clocks")
        self.bench = bench
        self.target = target
        self.server: TimeServerSpec = bench.spec.time_server
        self.profile = profile
        self.times: ClockTimes = profile.clocks
        self.timecard = timecard_of(target)
        self.folder = folder
        self.progress = progress
        self._stack = ExitStack()

    def __enter__(self) -> ClockLab:
        """Power the time server on, make its clock wander where it is a guest, and serve the timecards."""
        folder = self.folder / "time-server"
        folder.mkdir(parents=True, exist_ok=True)
        try:
            self.bench.power_on([self.target.node, self.server.node])
            common_tai_utc_s(self.bench, [self.target.node, self.server.node], self.folder)
            if self.bench.timecard_page(self.server.node) is not None:
                argv = [self.bench.tool(self.server.node, "bw-wander"), "--base-ppb-max", str(BASE_PPB_MAX)]
                argv += ["--walk-ppb-per-sqrt-s", str(WALK_PPB_PER_SQRT_S)]
                wander = self.bench.node(self.server.node).start(argv, folder / "wander")
                self._stack.callback(end_and_fetch, wander)
                wander.wait_ready(READY_S)
            self._stack.enter_context(
                serve_timecards(self.bench, [self.target.node], self.server.node, folder)
            )
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End what was started; logs stay in the folder."""
        self._stack.close()

    def locked_trial(self, requirement: ClockRequirement) -> ClockTrial:
        """Put a stack on the target, wait for its lock, measure, take it off again.

        Raises:
            MeasurementError: It did not lock in time, or a daemon died; the text names the cause.
        """
        folder = self.folder / requirement.clock
        with self.running(requirement.clock, folder) as stack:
            lock = stack.wait_locked(requirement.lock_within_s)
            self.progress(f"{requirement.clock}: locked after {lock.after_s:.1f} s; measuring")
            facts = self.facts(stack, "sync", lock)
            settings = TrialSettings(self.times.measure_s)
            if (
                stack.name == "phc2sys"
            ):  # it follows the PHC, of which two-way transfer with the server knows nothing
                settings = replace(settings, two_way=False, phc_reads=PHC_READS)
            return self.measured(stack, facts, settings, folder)

    def load_trials(self, requirement: ClockRequirement) -> list[ClockTrial]:
        """Measure one stack under each load of the profile (paper on control loops, 4.3.2.2)."""
        trials: list[ClockTrial] = []
        for load in self.times.loads:
            folder = self.folder / f"{requirement.clock}-under-{load}-load"
            with self.running(requirement.clock, folder) as stack:
                lock = stack.wait_locked(requirement.lock_within_s)
                with competing_load(self.bench, self.target, load, self.times.measure_s + 60, folder):
                    self.progress(f"{requirement.clock}: locked; measuring under {load} load")
                    facts = replace(self.facts(stack, "load", lock), load=load)
                    trials.append(self.measured(stack, facts, TrialSettings(self.times.measure_s), folder))
        return trials

    def asymmetry_trials(
        self, requirement: ClockRequirement, asymmetry_us: int
    ) -> list[tuple[ClockTrial, ClockTrial]]:
        """Measure by turns without and with a delay on the way from the time server alone.

        Returns:
            Pairs of trials, without and with it.
        """
        impairment = self.bench.impairment()
        folder = self.folder / f"{requirement.clock}-asymmetry"
        delays_us = (0, asymmetry_us)
        trials: dict[tuple[int, int], ClockTrial] = {}
        turns = [(number, delay_us) for number in range(self.times.alternations) for delay_us in delays_us]
        try:
            if asymmetry_us > FOLLOWED_US:
                for number, delay_us in turns:
                    impairment.apply_to_time_server(delay_us)
                    place = folder / f"pair-{number + 1}-{delay_us}-us"
                    with self.running(requirement.clock, place, ASYMMETRY_INTERVAL_S) as stack:
                        lock = stack.wait_locked(requirement.lock_within_s)
                        trials[number, delay_us] = self._asymmetric(stack, lock, delay_us, place)
            else:
                impairment.apply_to_time_server(0)
                with self.running(requirement.clock, folder, ASYMMETRY_INTERVAL_S) as stack:
                    lock = stack.wait_locked(requirement.lock_within_s)
                    stack.keep_running(ASYMMETRY_SETTLING_S)
                    for number, delay_us in turns:
                        impairment.apply_to_time_server(delay_us)
                        stack.keep_running(ASYMMETRY_SETTLING_S)
                        place = folder / f"pair-{number + 1}-{delay_us}-us"
                        trials[number, delay_us] = self._asymmetric(stack, lock, delay_us, place)
        finally:
            impairment.clear()
        return [(trials[n, 0], trials[n, asymmetry_us]) for n in range(self.times.alternations)]

    def _asymmetric(self, stack: ClockStack, lock: Lock, delay_us: int, place: Path) -> ClockTrial:
        """Measure one turn; see what the delay really is, where both ends of the impairment node are seen."""
        self.progress(f"{stack.name}: path asymmetric by {delay_us} us; measuring")
        place.mkdir(parents=True, exist_ok=True)
        facts = replace(self.facts(stack, "asymmetry", lock), impairment=f"{delay_us} us one way")
        settings = TrialSettings(self.times.measure_s, sequential=False)
        ends: tuple[str, ...] = ()
        if self.bench.spec.virtual is not None and self.bench.spec.capture is not None:
            ends = (f"t-{self.server.node}", self.bench.spec.capture.interface)
        with ExitStack() as captures:
            for interface in ends:
                captures.callback(end_job, start_capture(self.bench, interface, place))
            trial = self.measured(stack, facts, settings, place)
        if not ends:
            return trial
        transit_ns = median_transit_ns(*(capture_file(place, interface) for interface in ends))
        facts = replace(trial.facts, server_to_target_ns=transit_ns)
        write_trial(trial.folder, facts)
        return replace(trial, facts=facts)

    def interval_trials(self, requirement: ClockRequirement) -> list[ClockTrial]:
        """Measure one stack at each synchronisation interval of the profile (DAQ paper, Table 2)."""
        trials: list[ClockTrial] = []
        for interval_s in self.times.intervals_s:
            folder = self.folder / f"{requirement.clock}-every-{interval_s}-s"
            with self.running(requirement.clock, folder, interval_s) as stack:
                lock = stack.wait_locked(requirement.lock_within_s + 4 * interval_s)
                real_s = stack.settings.sync_interval_s
                self.progress(f"{requirement.clock}: locked, synchronising every {real_s:g} s; measuring")
                facts = self.facts(stack, "interval", lock)
                settings = TrialSettings(self.times.interval_measure_s, two_way=False)
                trials.append(self.measured(stack, facts, settings, folder))
        return trials

    def holdover_trial(self, requirement: ClockRequirement) -> ClockTrial:
        """Synchronise for a while, cut the target off from its server, and measure (Table 2, `No sync`)."""
        folder = self.folder / f"{requirement.clock}-holdover"
        with self.running(requirement.clock, folder) as stack:
            lock = stack.wait_locked(requirement.lock_within_s)
            self.progress(f"{requirement.clock}: locked; synchronised for {self.times.synchronised_s} s")
            stack.keep_running(self.times.synchronised_s)
            stack.cut_off()
            self.progress(f"{requirement.clock}: cut off; holdover for {self.times.holdover_s} s")
            facts = replace(self.facts(stack, "holdover", lock), interval_s=None)
            settings = TrialSettings(self.times.holdover_s, two_way=False)
            return self.measured(stack, facts, settings, folder)

    def relock(self, requirement: ClockRequirement, step_ns: int) -> Path:
        """Step the target's clock, start the stack and wait for its lock, as often as the profile says.

        Returns:
            The folder with the times to lock (`disturbance.json`).

        Raises:
            MeasurementError: It did not lock again in time.
        """
        folder = self.folder / f"{requirement.clock}-relock"
        node = self.bench.node(self.target.node)
        events: list[Event] = []
        for number in range(self.times.relocks):
            size_ns = step_ns if number % 2 else -step_ns
            node.run(["bw-setclock", "--step-ns", str(size_ns)])
            with self.running(requirement.clock, folder) as stack:
                lock = stack.wait_locked(requirement.lock_within_s)
            events.append(Event(f"clock put off by {size_ns / NS_PER_S:+g} s, stack started", 0, lock, ""))
        write_disturbance(folder, Disturbance(requirement.clock, "relock", tuple(events)))
        return folder

    def running(
        self, clock: str, folder: Path, interval_s: float | None = None, *, standby: bool = False
    ) -> ClockStack:
        """Return a clock stack for the target, to be entered with `with`; its logs go to the folder."""
        self.progress(f"{clock}: starting on {self.target.node}")
        settings = ClockSettings(sync_interval_s=interval_s, standby=standby)
        return ClockStack(self.bench, self.target, clock, settings, folder, self.progress)

    def facts(self, stack: ClockStack, kind: str, lock: Lock | None) -> TrialFacts:
        """Return what is known of a trial before it is measured."""
        timecard = self.timecard
        if stack.name == "phc2sys":
            timecard = Timecard(f"phc:{self.target.ptp_clock}", 0, "the PHC itself, the source of phc2sys")
        return TrialFacts(
            clock=stack.name,
            kind=kind,
            interval_s=stack.settings.sync_interval_s,
            load="idle",
            impairment="none",
            lock=lock,
            two_way=None,
            servo=None,
            timecard=timecard,
        )

    def measured(
        self,
        stack: ClockStack,
        facts: TrialFacts,
        settings: TrialSettings,
        folder: Path,
        during: Callable[[], None] | None = None,
    ) -> ClockTrial:
        """Measure, make sure that the daemons lived through it, and add what the servo said meanwhile.

        Args:
            stack: What runs on the target.
            facts: What is known of the trial beforehand.
            settings: How it is measured.
            folder: Evidence goes here.
            during: Called while it is measured: what disturbs the clock.
        """
        trial = measure_trial(self.bench, self.target, facts, settings, folder, during)
        stack.require_running()
        stack.fetch_logs()
        name, log_format = stack.servo_log
        if name and trial.folder != stack.folder:
            shutil.copy2(stack.folder / name, trial.folder / Path(name).name)
            name = Path(name).name
        return with_servo(trial, name, log_format)


def with_servo(trial: ClockTrial, log: str, log_format: str) -> ClockTrial:
    """Add to a trial what the servo said of itself while it was measured, and write it anew.

    Args:
        trial: As measured.
        log: The servo's log in the trial's folder; empty: none.
        log_format: How it is read (reports/clock_section.py).
    """
    facts = replace(trial.facts, servo_log=log, servo_format=log_format)
    trial = replace(trial, facts=facts)
    series = servo_of(trial)
    if series is not None:
        trial = replace(trial, facts=replace(facts, servo=servo_summary(trial, series)))
    write_trial(trial.folder, trial.facts)
    return trial


def servo_summary(trial: ClockTrial, series: ServoSeries) -> Servo:
    """Return what a servo said while a trial was measured; of a log in monotonic time, at its end."""
    kept = while_measured(trial, series)
    offsets = series.offset_ns[kept]
    delays = series.path_delay_ns[kept]
    delays = delays[np.isfinite(delays)]
    if not len(offsets):
        return Servo(0, None, None, None)
    return Servo(
        observations=len(offsets),
        mean_ns=float(offsets.mean()),
        max_abs_ns=int(abs(offsets).max()),
        mean_path_delay_ns=float(delays.mean()) if len(delays) else None,
    )
