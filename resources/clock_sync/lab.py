# SPDX-License-Identifier: Apache-2.0
"""A bench on which clocks are measured against their time server, and the clock stack that is on its target.

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
from reports.clock_sync.disturbance_section import DISTURBANCE_KINDS
from reports.clock_sync.server_replies import ANSWER_FORMATS
from reports.clock_sync.trial import ClockTrial, Lock, ServerReplies, Timecard, TrialFacts
from reports.requirements import Requirement
from resources.clock_sync.kind import load_clock_kind
from resources.clock_sync.servo_summary import with_servo
from resources.clock_sync.settings import STACKS, SYSTEM_CLOCK, ClockSettings, StackSpec, Wander, load_stack
from resources.clock_sync.stack import ClockStack
from resources.clock_sync.tai_utc import common_tai_utc_s
from resources.clock_sync.timecard import make_page, serve_timecards
from resources.clock_sync.times import TIMES, ClockTimes, clock_times
from resources.clock_sync.trial import TrialSettings, measure_trial, reference_of
from resources.profiles import Profile, times_of
from resources.tools.jobs import end_and_fetch

Progress = Callable[[str], None]

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

    def require_offered(self, clock: str) -> None:
        """Check that this target can have a clock stack; raises CapabilityError: says why not."""
        kind = load_clock_kind(TARGETS / self.target.provisioning)
        kind.require_offered(clock, self.bench.node(self.target.node))

    def stack_spec(self, clock: str) -> StackSpec:
        """Return what is known of a clock stack of the target's kind; raises ConfigError: there is none."""
        path = TARGETS / self.target.provisioning / STACKS
        return load_stack(clock, self.bench.spec.simulated, path)

    def keep(self, stack: ClockStack, lock: Lock, locked_s: float, end: ExitStack) -> None:
        """Leave a stack on the target until another one is asked for.

        Args:
            stack: It runs.
            lock: Its lock.
            locked_s: Since when it has been locked, by the monotonic clock.
            end: Takes it off.
        """
        self._kept = _RunningStack(stack, lock, locked_s, end)

    def end_kept(self) -> None:
        """Take off the stack that was left running; harmless where there is none."""
        kept, self._kept = self._kept, None
        if kept is not None:
            kept.end.close()

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
        facts = trial_facts(stack.name, kind, timecard)
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
        trial = replace(trial, facts=replace(trial.facts, hearing=_server_replies(stack, trial)))
        name, log_format = stack.servo_log
        return with_servo(trial, _kept_log(stack, trial, name), log_format)


def _kept_log(stack: ClockStack, trial: ClockTrial, name: str) -> str:
    """Return a fetched log as a file of the trial's folder: of a stack of several trials each has a copy."""
    if not name or trial.folder == stack.folder:
        return name
    shutil.copy2(stack.folder / name, trial.folder / Path(name).name)
    return Path(name).name


def _server_replies(stack: ClockStack, trial: ClockTrial) -> ServerReplies | None:
    """Return by which log a trial shows that its server was heard; None: it cannot, or need not."""
    name, log_format = stack.answers_log
    if trial.facts.kind in CUT_OFF_KINDS or log_format not in ANSWER_FORMATS:
        return None
    return ServerReplies(_kept_log(stack, trial, name), log_format)


def trial_facts(clock: str, kind: str, timecard: Timecard) -> TrialFacts:
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
