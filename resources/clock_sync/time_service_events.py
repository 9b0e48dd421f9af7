# SPDX-License-Identifier: Apache-2.0
"""What happens to the time service while programs read it: their bound stays true, or they are told.

In one trial, held against the timecard, whatever the timecard itself lives through: the service killed and
started anew, its server lost and back, the system's clock put off by an hour. In trials of their own, held
against the target's own counter, because they take the timecard along: the server's time stepped, the target
paused. A target that is rebooted has no trial: its readers are gone with it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Self, cast

from hw.errors import MeasurementError
from hw.protocols import Node
from reports.clock_sync.disturbance import Disturbance, Event, write_disturbance
from reports.clock_sync.trial import ClockTrial, Lock, Timecard
from reports.requirements import Requirement
from reports.units import NS_PER_S, format_value
from resources.clock_sync.disturbed_trial import EventLog, measure_disturbed
from resources.clock_sync.lab import ClockLab, lock_deadline_s
from resources.clock_sync.stack import ClockStack
from resources.clock_sync.time_service import has_shell
from resources.clock_sync.time_service_times import TimeServiceTimes
from resources.clock_sync.trial import TrialSettings

HOUR_NS = 3600 * NS_PER_S
SERVER_STEP_NS = 250_000_000
"""Far beyond what is slewed, and below what counts as a server that is wrong (`max_change_s`)."""
PAUSE_S = 10
OWN_COUNTER = Timecard("monotonic-raw", 0, "the target's own counter: of its server's time it knows nothing")
TOLD_WITHIN_S = 10.0
"""A step of the server is found by the next exchange; batches that confirm it follow."""


class ClockPutOff:
    """Puts the clock of a node off while the context lasts, and then back by as much as it still is."""

    def __init__(self, node: Node) -> None:
        """Take a node that is on and has bw-setclock; nothing is done yet."""
        self._node = node
        self._off_ns = 0

    def __enter__(self) -> Self:
        """Return it."""
        return self

    def __exit__(self, *_: object) -> None:
        """Put it back; a node without power has lost its time anyway."""
        if self._off_ns and self._node.powered:
            self.step(-self._off_ns)

    def step(self, step_ns: int) -> None:
        """Step it."""
        self._node.run(["bw-setclock", "--step-ns", str(step_ns)])
        self._off_ns += step_ns


class TimeServiceEvents:
    """Lets things happen to a time service that has locked."""

    def __init__(self, lab: ClockLab, times: TimeServiceTimes) -> None:
        """Take a lab that is open, and what is to happen."""
        self.lab = lab
        self.times = times

    def trial(self, requirement: Requirement) -> tuple[ClockTrial, Disturbance]:
        """Measure through all events of the profile of which the timecard knows nothing.

        Raises:
            MeasurementError: The service did not lock again in time.
        """
        acts = {"killed": self._kill, "server-lost": self._lose_server, "system-clock": self._step_system}
        folder = self.lab.folder / f"{requirement.of}-events"
        with self.lab.locked(requirement, folder, self.times.interval_s) as (stack, lock, _):

            def during(log: EventLog) -> None:
                for name, act in acts.items():
                    if name in self.times.events and (name == "server-lost" or has_shell(self.lab)):
                        act(stack, requirement, log)

            settings = TrialSettings(self.times.events_s, sequential=False)
            return self._measured(stack, lock, "events", settings, during)

    def server_stepped(self, requirement: Requirement) -> tuple[ClockTrial, Disturbance, int]:
        """Step the server's time; readers have to be told of it, and have the new time then.

        When the trial has ended, however it did, the server gets its time back.

        Returns:
            Trial, what was done, and the step in ns.
        """
        put_off = ClockPutOff(self.lab.bench.node(self.lab.server.node))

        def act(log: EventLog, stack: ClockStack) -> None:
            begun_s = log.now_s()
            put_off.step(SERVER_STEP_NS)
            what = f"server's time stepped by {format_value(SERVER_STEP_NS, 'ns')}"
            self._note(log, stack, requirement, what, begun_s)

        with put_off:
            return (*self._by_own_counter(requirement, "server-stepped", act), SERVER_STEP_NS)

    def paused(self, requirement: Requirement) -> tuple[ClockTrial, Disturbance, int]:
        """Pause the target with its counter; readers have to be told, as soon as the service can know.

        Raises:
            CapabilityError: The target is no guest that could be paused.
        """

        def act(log: EventLog, stack: ClockStack) -> None:
            begun_s = log.now_s()
            # It will be behind by as much, and its server is right all the same.
            stack.settings = replace(stack.settings, max_change_s=stack.settings.max_change_s + 2 * PAUSE_S)
            self.lab.bench.virtual.pause(self.lab.target.node, PAUSE_S)
            self._note(log, stack, requirement, f"target paused for {PAUSE_S} s", begun_s)

        return (*self._by_own_counter(requirement, "paused", act), PAUSE_S * NS_PER_S)

    def rebooted(self, requirement: Requirement) -> Disturbance:
        """Take the target's power away and give it back; the service has to lock as if nothing had been.

        Raises:
            MeasurementError: It did not lock, or something of the time before the reboot is left.
        """
        lab, node = self.lab, self.lab.target.node
        folder = lab.folder / f"{requirement.of}-rebooted"
        folder.mkdir(parents=True, exist_ok=True)
        with lab.locked(requirement, folder, self.times.interval_s) as (stack, _, _):
            begun_s = time.monotonic()
            lab.bench.cut_power(node)
            lab.bench.power_on([node])
            booted_s = time.monotonic() - begun_s
            page = "/run/benchwright/time/page"
            if lab.bench.node(node).run(["test", "-e", page], check=False).exit_code == 0:
                raise MeasurementError(f"{requirement.of}: {page} has outlived the reboot")
            stack.start()
            lock = stack.wait_locked(lock_deadline_s(requirement, stack))
        event = Event("target rebooted", 0, lock, f"up again after {booted_s:.1f} s; the page was gone")
        done = Disturbance(requirement.of, "rebooted", (event,))
        write_disturbance(folder, done)
        return done

    # -- what happens

    def _kill(self, stack: ClockStack, requirement: Requirement, log: EventLog) -> None:
        begun_s = log.now_s()
        node = self.lab.bench.node(self.lab.target.node)
        node.run(["pkill", "-KILL", "-x", stack.spec.daemon])
        stack.resume()
        self._note(log, stack, requirement, "service killed, and started anew", begun_s)

    def _lose_server(self, stack: ClockStack, requirement: Requirement, log: EventLog) -> None:
        lost_s = log.now_s()
        stack.silence_server()
        stack.keep_running(self.times.lost_s)
        log.events.append(Event("server lost", round(lost_s, 1), None, f"for {self.times.lost_s} s"))
        begun_s = log.now_s()
        stack.bring_back_server()
        self._note(log, stack, requirement, "server back", begun_s)

    def _step_system(self, stack: ClockStack, requirement: Requirement, log: EventLog) -> None:
        with ClockPutOff(self.lab.bench.node(self.lab.target.node)) as put_off:
            for sign in (1, -1):
                begun_s = log.now_s()
                put_off.step(sign * HOUR_NS)
                self._note(log, stack, requirement, f"system's clock put off by {sign:+d} h", begun_s)

    def _note(
        self, log: EventLog, stack: ClockStack, requirement: Requirement, what: str, begun_s: float
    ) -> None:
        """Wait until it has locked again, and note what its log says of what was done."""
        done_s = log.now_s()
        lock = stack.wait_locked(lock_deadline_s(requirement, stack))
        log.add(what, begun_s, done_s, lock, _told(stack.servo_text()))

    def _by_own_counter(
        self, requirement: Requirement, kind: str, act: Callable[[EventLog, ClockStack], None]
    ) -> tuple[ClockTrial, Disturbance]:
        folder = self.lab.folder / f"{requirement.of}-{kind}"
        with self.lab.locked(requirement, folder, self.times.interval_s) as (stack, lock, _):
            settings = TrialSettings(
                round(TOLD_WITHIN_S) + requirement.lock_within_s, sequential=False, two_way=False
            )
            return self._measured(stack, lock, kind, settings, lambda log: act(log, stack), OWN_COUNTER)

    def _measured(
        self,
        stack: ClockStack,
        lock: Lock,
        kind: str,
        settings: TrialSettings,
        act: Callable[[EventLog], None],
        reference: Timecard | None = None,
    ) -> tuple[ClockTrial, Disturbance]:
        facts = self.lab.facts(stack, kind, lock)
        if reference is not None:
            facts = replace(facts, timecard=reference)
        self.lab.progress(f"{stack.name}: locked; things happen to it: {kind}")
        folder = self.lab.folder / f"{stack.name}-{kind}"
        return measure_disturbed(self.lab, stack, facts, settings, folder, act)


def _told(text: str) -> str:
    """Return what the service's log says last of its state, or of a step."""
    for line in reversed(text.splitlines()):
        try:
            found: object = json.loads(line)
        except ValueError:
            continue  # a torn line
        answer = cast("dict[str, object]", found) if isinstance(found, dict) else {}
        if answer.get("type") in ("state", "step"):
            words = [f"{key} {answer[key]}" for key in ("state", "reason", "step_ns") if key in answer]
            return f"{answer['type']}: {', '.join(words)}"
    return ""
