# SPDX-License-Identifier: Apache-2.0
"""Clocks on a target, measured against their time server: stacks by turns, intervals, holdover, lock times.

The time server's clock is wrong and wanders, unknown to the target (`bw-wander`): under emulation all guests
share one oscillator, and holdover against one's own oscillator would prove nothing.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from hw.bench import BenchSpec, TargetSpec, TimeServerSpec
from hw.errors import CapabilityError
from hw.open_bench import OpenBench
from hw.provisioning import TARGETS
from reports.clock_sync.disturbance import Disturbance, Event, write_disturbance
from reports.clock_sync.disturbance_section import DISTURBANCE_KINDS
from reports.clock_sync.hearing import ANSWER_FORMATS
from reports.clock_sync.trial import PHC_READS, ClockTrial, Hearing, Lock, Timecard, TrialFacts, write_trial
from reports.requirements import Requirement
from reports.units import NS_PER_S
from resources.clock_sync.competing_load import competing_load
from resources.clock_sync.kind import load_clock_kind
from resources.clock_sync.servo_summary import with_servo
from resources.clock_sync.settings import STACKS, SYSTEM_CLOCK, ClockSettings, StackSpec, Wander, load_stack
from resources.clock_sync.stack import ClockStack
from resources.clock_sync.tai_utc import common_tai_utc_s
from resources.clock_sync.timecard import make_page, serve_timecards
from resources.clock_sync.times import TIMES, ClockTimes, clock_times
from resources.clock_sync.trial import TrialSettings, measure_trial, reference_of
from resources.clock_sync.two_way_trial import measure_by_two_way
from resources.profiles import Profile, times_of
from resources.tools.capture import both_ways_ns, capture_file, start_capture
from resources.tools.jobs import end_and_fetch, end_job

Progress = Callable[[str], None]

ASYMMETRY_INTERVAL_S = 0.125
"""Between synchronisations over an asymmetric path: often, so that a trial's mean holds little noise.

chrony only does so where a round trip takes less than 10 ms (chrony.conf(5), minpoll).
"""
ASYMMETRY_SETTLING_S = 10
WRONG_CLOCK_S = 3
CUT_OFF_KINDS = ("holdover", *DISTURBANCE_KINDS)
"""Trials in which the server may be silent: they disturb the stack. In all others it has to be heard."""


@dataclass(frozen=True)
class _RunningStack:
    """A stack that runs and is locked, since when by the monotonic clock, and what ends it."""

    stack: ClockStack
    lock: Lock
    locked_s: float
    end: ExitStack

    def is_of(self, clock: str, interval_s: float | None) -> bool:
        """Tell whether it is the stack that is asked for; None: at any interval."""
        return self.stack.name == clock and interval_s in (None, self.stack.settings.sync_interval_s)


class ClockLab:
    """A bench on which clocks are measured: time server wandering, timecards served. Use with `with`."""

    def __init__(
        self,
        bench: OpenBench,
        target: TargetSpec,
        profile: Profile,
        folder: Path,
        progress: Progress,
        wander: Wander | None = None,
    ) -> None:
        """Prepare; nothing is started.

        Args:
            bench: An open bench.
            target: Whose clock is measured.
            profile: Says how long.
            folder: Evidence goes here.
            progress: Called with a line of text now and then.
            wander: How wrong the time server's clock is made; None: as for all stacks.

        Raises:
            CapabilityError: The target has a timecard, and the bench no time server that it could follow.
            ConfigError: The profile does not say how long clocks are measured.
        """
        self.bench = bench
        self.target = target
        self.profile = profile
        self.times: ClockTimes = times_of(profile.name, TIMES, clock_times)
        self.timecard = reference_of(target)
        self.folder = folder
        self.progress = progress
        self.wander = wander or Wander()
        self._stack = ExitStack()
        self._kept: _RunningStack | None = None
        self._serves = False
        if target.timecard is not None:
            _time_server(bench.spec)

    @property
    def server(self) -> TimeServerSpec:
        """Return what targets synchronise with.

        Raises:
            CapabilityError: The bench has none.
        """
        return _time_server(self.bench.spec)

    def __enter__(self) -> ClockLab:
        """Power on what is needed from the start.

        For a timecard that is the time server, made to wander where it is a guest, and what serves
        timecards. A target without one needs a time server as soon as a stack follows it.
        """
        if self.target.timecard is None:
            self.bench.power_on([self.target.node])
            common_tai_utc_s(self.bench, [self.target.node], self.folder)
            return self
        folder = self.folder / "time-server"
        folder.mkdir(parents=True, exist_ok=True)
        try:
            self._serve_time(folder)
            make_page(self.bench, self.target.node, self.timecard.clock)
            self._stack.enter_context(
                serve_timecards(self.bench, [self.target.node], self.server.node, folder)
            )
        except BaseException:
            self._stack.close()
            raise
        return self

    def _serve_time(self, folder: Path) -> None:
        """Power the time server on and make its clock wander where it is a guest."""
        self.bench.power_on([self.target.node, self.server.node])
        common_tai_utc_s(self.bench, [self.target.node, self.server.node], self.folder)
        if self.bench.virtual.timecard_page(self.server.node) is not None:
            argv = [
                self.bench.tool(self.server.node, "bw-wander"),
                "--base-ppb-max",
                str(self.wander.base_ppb_max),
            ]
            argv += ["--walk-ppb-per-sqrt-s", str(self.wander.walk_ppb_per_sqrt_s)]
            wander = self.bench.node(self.server.node).start(argv, folder / "wander")
            self._stack.callback(end_and_fetch, wander)
            wander.wait_ready()

    def __exit__(self, *_: object) -> None:
        """End what was started; logs stay in the folder."""
        with self._stack:
            self.end_kept()

    def as_found_trial(self, requirement: Requirement) -> ClockTrial:
        """Measure the clock as the machine itself keeps it; nothing is put on it.

        Without a timecard it is held against the bench's reference clock.
        """
        self.end_kept()
        self.progress(f"{requirement.of}: measuring")
        facts = _facts(requirement.of, "sync", self.timecard)
        settings = TrialSettings(self.times.measure_s, sequential=False)
        return measure_trial(self.bench, self.target, facts, settings, self.folder / requirement.of)

    def wrong_clock_trial(self, node: str) -> ClockTrial:
        """Measure another node's clock, known to be wrong, as that of a target without timecard.

        Raises:
            CapabilityError: The bench has no such node.
        """
        spec = self.bench.spec
        if node not in spec.nodes:
            raise CapabilityError(f"bench {spec.name}: no node {node!r}, whose clock would be wrong")
        self.bench.power_on([node])
        other = replace(self.target, node=node, timecard=None)
        facts = _facts(spec.nodes[node].clock, "known error", reference_of(other))
        folder = self.folder / "known-error"
        return measure_by_two_way(self.bench, other, facts, WRONG_CLOCK_S, folder, witness=False)

    def require_offered(self, clock: str) -> None:
        """Check that this target can have a clock stack; raises CapabilityError: says why not."""
        kind = load_clock_kind(TARGETS / self.target.provisioning)
        kind.require_offered(clock, self.bench.node(self.target.node))

    def stack_spec(self, clock: str) -> StackSpec:
        """Return what is known of a clock stack of the target's kind; raises ConfigError: there is none."""
        path = TARGETS / self.target.provisioning / STACKS
        return load_stack(clock, self.bench.spec.simulated, path)

    def locked_trial(
        self,
        requirement: Requirement,
        interval_s: float | None = None,
        settings: TrialSettings | None = None,
        during: Callable[[], None] | None = None,
    ) -> ClockTrial:
        """Put a stack on the target, wait for its lock, and measure; it stays until another one is put on.

        Args:
            requirement: Names the stack, and by when it has to lock.
            interval_s: Between synchronisations; None: the stack's own.
            settings: How it is measured; None: for as long as the profile says.
            during: Called while it is measured.

        Raises:
            MeasurementError: It did not lock in time, or a daemon died; the text names the cause.
        """
        folder = self.folder / requirement.of
        with ExitStack() as own:
            stack = own.enter_context(self.running(requirement.of, folder, interval_s))
            lock = stack.wait_locked(lock_deadline_s(requirement, stack))
            locked_s = time.monotonic()
            self.progress(f"{requirement.of}: locked after {lock.after_s:.1f} s; measuring")
            facts = self.facts(stack, "sync", lock)
            settings = settings or TrialSettings(self.times.measure_s)
            # It follows the PHC, of which two-way transfer with the server knows nothing.
            if stack.spec.follows_phc:
                settings = replace(settings, two_way=False, phc_reads=PHC_READS)
            trial = self.measured(stack, facts, settings, folder, during)
            self._kept = _RunningStack(stack, lock, locked_s, own.pop_all())
            return trial

    def end_kept(self) -> None:
        """Take off the stack that `locked_trial` has left running; harmless where there is none."""
        kept, self._kept = self._kept, None
        if kept is not None:
            kept.end.close()

    def load_trials(self, requirement: Requirement) -> list[ClockTrial]:
        """Measure one stack under each load of the profile (paper on control loops, 4.3.2.2)."""
        trials: list[ClockTrial] = []
        for load in self.times.loads:
            folder = self.folder / f"{requirement.of}-under-{load}-load"
            with self.running(requirement.of, folder) as stack:
                lock = stack.wait_locked(requirement.lock_within_s)
                with competing_load(self.bench, self.target, load, self.times.measure_s + 60, folder):
                    self.progress(f"{requirement.of}: locked; measuring under {load} load")
                    facts = replace(self.facts(stack, "load", lock), load=load)
                    trials.append(self.measured(stack, facts, TrialSettings(self.times.measure_s), folder))
        return trials

    def asymmetry_trials(
        self, requirement: Requirement, asymmetry_us: int
    ) -> list[tuple[ClockTrial, ClockTrial]]:
        """Measure by turns without and with a delay on the way from the time server alone.

        The stack starts anew for each turn: a servo that knows its path rejects answers that suddenly take
        longer (chrony.conf(5), maxdelaydevratio).

        Returns:
            Pairs of trials, without and with it.
        """
        self.end_kept()
        impairment = self.bench.impairment()
        folder = self.folder / f"{requirement.of}-asymmetry"
        delays_us = (0, asymmetry_us)
        trials: dict[tuple[int, int], ClockTrial] = {}
        turns = [(number, delay_us) for number in range(self.times.alternations) for delay_us in delays_us]
        try:
            for number, delay_us in turns:
                impairment.apply_to_time_server(delay_us)
                place = folder / f"pair-{number + 1}-{delay_us}-us"
                with self.running(requirement.of, place, ASYMMETRY_INTERVAL_S) as stack:
                    lock = stack.wait_locked(requirement.lock_within_s)
                    stack.keep_running(ASYMMETRY_SETTLING_S)
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
        ends = self.bench.virtual.capture_ends(self.server.node, self.target)
        with ExitStack() as captures:
            for interface in ends:
                captures.callback(end_job, start_capture(self.bench, interface, place))
            trial = self.measured(stack, facts, settings, place)
        if not ends:
            return trial
        transit_ns, asymmetry_ns = both_ways_ns(*(capture_file(place, interface) for interface in ends))
        facts = replace(trial.facts, server_to_target_ns=transit_ns, asymmetry_ns=asymmetry_ns)
        write_trial(trial.folder, facts)
        return replace(trial, facts=facts)

    def interval_trials(self, requirement: Requirement) -> list[ClockTrial]:
        """Measure one stack at each synchronisation interval of the profile (DAQ paper, Table 2)."""
        trials: list[ClockTrial] = []
        for interval_s in self.times.intervals_s:
            folder = self.folder / f"{requirement.of}-every-{interval_s}-s"
            with self.running(requirement.of, folder, interval_s) as stack:
                lock = stack.wait_locked(lock_deadline_s(requirement, stack))
                real_s = stack.settings.sync_interval_s
                self.progress(f"{requirement.of}: locked, synchronising every {real_s:g} s; measuring")
                facts = self.facts(stack, "interval", lock)
                settings = TrialSettings(self.times.interval_measure_s, two_way=False)
                trials.append(self.measured(stack, facts, settings, folder))
        return trials

    def holdover_trial(
        self,
        requirement: Requirement,
        synchronised_s: int = 0,
        settings: TrialSettings | None = None,
        interval_s: float | None = None,
    ) -> ClockTrial:
        """Synchronise for a while, cut the target off from its server, and measure (Table 2, `No sync`).

        Args:
            requirement: Names the stack, and by when it has to lock.
            synchronised_s: How long it is synchronised; 0: as the profile says.
            settings: How it is measured then; None: for as long as the profile says.
            interval_s: Between synchronisations; None: the stack's own.
        """
        folder = self.folder / f"{requirement.of}-holdover"
        settings = settings or TrialSettings(self.times.holdover_s)
        synchronised_s = synchronised_s or self.times.synchronised_s
        with self.locked(requirement, folder, interval_s) as (stack, lock, locked_s):
            self.progress(f"{requirement.of}: locked; synchronised for {synchronised_s} s")
            stack.keep_running(max(0.0, locked_s + synchronised_s - time.monotonic()))
            stack.cut_off()
            self.progress(f"{requirement.of}: cut off; holdover for {settings.duration_s} s")
            facts = replace(self.facts(stack, "holdover", lock), interval_s=None)
            return self.measured(stack, facts, replace(settings, two_way=False), folder)

    @contextmanager
    def locked(
        self, requirement: Requirement, folder: Path, interval_s: float | None = None
    ) -> Generator[tuple[ClockStack, Lock, float]]:
        """Go on with the stack that was left running where it is the one, else start it and let it lock.

        Yields:
            Stack, lock, and the monotonic time in s since which it has been locked.
        """
        if self._kept is not None and self._kept.is_of(requirement.of, interval_s):
            kept, self._kept = self._kept, None
            kept.stack.folder = folder  # the logs of the trial before stay as they are
            with kept.end:
                yield kept.stack, kept.lock, kept.locked_s
            return
        with self.running(requirement.of, folder, interval_s) as stack:
            lock = stack.wait_locked(lock_deadline_s(requirement, stack))
            yield stack, lock, time.monotonic()

    def relock(self, requirement: Requirement, step_ns: int) -> Path:
        """Step the target's clock, start the stack and wait for its lock, as often as the profile says.

        Returns:
            The folder with the times to lock (`disturbance.json`).

        Raises:
            MeasurementError: It did not lock again in time.
        """
        self.end_kept()
        folder = self.folder / f"{requirement.of}-relock"
        node = self.bench.node(self.target.node)
        events: list[Event] = []
        for number in range(self.times.relocks):
            size_ns = step_ns if number % 2 else -step_ns
            node.run(["bw-setclock", "--step-ns", str(size_ns)])
            with self.running(requirement.of, folder) as stack:
                lock = stack.wait_locked(requirement.lock_within_s)
            events.append(Event(f"clock put off by {size_ns / NS_PER_S:+g} s, stack started", 0, lock, ""))
        write_disturbance(folder, Disturbance(requirement.of, "relock", tuple(events)))
        return folder

    def running(
        self, clock: str, folder: Path, interval_s: float | None = None, *, standby: bool = False
    ) -> ClockStack:
        """Return a clock stack for the target, to be entered with `with`; its logs go to the folder.

        Raises:
            CapabilityError: This target cannot have it, or the bench has no time server.
        """
        self.end_kept()
        self.require_offered(clock)
        if self.target.timecard is None and not self._serves:
            folder = self.folder / "time-server"
            folder.mkdir(parents=True, exist_ok=True)
            self._serve_time(folder)
            self._serves = True
        self.progress(f"{clock}: starting on {self.target.node}")
        settings = ClockSettings(sync_interval_s=interval_s, standby=standby)
        return ClockStack(self.bench, self.target, clock, settings, folder, self.progress)

    def facts(self, stack: ClockStack, kind: str, lock: Lock | None) -> TrialFacts:
        """Return what is known of a trial before it is measured."""
        timecard = self.timecard
        if stack.spec.follows_phc:
            source = f"the PHC itself, the source of {stack.name}"
            timecard = Timecard(f"phc:{self.target.ptp_clock}", 0, source)
        facts = _facts(stack.name, kind, timecard)
        return replace(facts, interval_s=stack.settings.sync_interval_s, lock=lock, device=stack.device)

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
        if facts.device != SYSTEM_CLOCK:  # nobody can ask another clock over the network
            settings = replace(settings, two_way=False)
        trial = measure_trial(self.bench, self.target, facts, settings, folder, during)
        stack.require_running()
        stack.fetch_logs()
        trial = replace(trial, facts=replace(trial.facts, hearing=_hearing(stack, trial)))
        name, log_format = stack.servo_log
        return with_servo(trial, _kept_log(stack, trial, name), log_format)


def _kept_log(stack: ClockStack, trial: ClockTrial, name: str) -> str:
    """Return a fetched log as a file of the trial's folder: of a stack of several trials each has a copy."""
    if not name or trial.folder == stack.folder:
        return name
    shutil.copy2(stack.folder / name, trial.folder / Path(name).name)
    return Path(name).name


def _hearing(stack: ClockStack, trial: ClockTrial) -> Hearing | None:
    """Return by which log a trial shows that its server was heard; None: it cannot, or need not."""
    name, log_format = stack.answers_log
    if trial.facts.kind in CUT_OFF_KINDS or log_format not in ANSWER_FORMATS:
        return None
    return Hearing(_kept_log(stack, trial, name), log_format)


def _facts(clock: str, kind: str, timecard: Timecard) -> TrialFacts:
    """Return what is known of a trial of an idle target over an undisturbed path."""
    return TrialFacts(
        clock=clock,
        kind=kind,
        interval_s=None,
        load="idle",
        impairment="none",
        lock=None,
        two_way=None,
        servo=None,
        timecard=timecard,
    )


LOCK_INTERVALS = 8
"""A servo that is asked seldom gets so many intervals more: five observations in a row, three rejected."""


def lock_deadline_s(requirement: Requirement, stack: ClockStack) -> float:
    """Return by when a stack has to have locked at the interval that was chosen for it."""
    chosen_s = stack.settings.sync_interval_s or 0.0
    return requirement.lock_within_s + LOCK_INTERVALS * max(0.0, chosen_s - stack.own_interval_s)


def _time_server(spec: BenchSpec) -> TimeServerSpec:
    """Return the time server of a bench; raises CapabilityError where it has none."""
    if spec.time_server is None:
        raise CapabilityError(
            f"bench {spec.name}: no time server; add benchwright.time_server to {spec.path}"
        )
    return spec.time_server
