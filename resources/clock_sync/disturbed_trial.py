# SPDX-License-Identifier: Apache-2.0
"""A trial of a clock to which things happen meanwhile, and what happened when."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from reports.clock_sync.disturbance import Disturbance, Event, write_disturbance
from reports.clock_sync.trial import ClockTrial, Lock, TrialFacts
from resources.clock_sync.lab import ClockLab
from resources.clock_sync.stack import ClockStack
from resources.clock_sync.trial import TrialSettings

CALM_S = 1.0
"""Of each trial, before the first disturbance."""


@dataclass
class EventLog:
    """What happens to a clock while it is measured, with times since the measurement began."""

    began_s: float = field(default_factory=time.monotonic)
    events: list[Event] = field(default_factory=list[Event])

    def now_s(self) -> float:
        """Return the time since the measurement began."""
        return time.monotonic() - self.began_s

    def add(self, what: str, begun_s: float, done_s: float, lock: Lock, found: str = "") -> None:
        """Note an event after which the servo has just locked again.

        The time to lock counts from the begin of what was done to the clock; when in doing that the clock was
        disturbed is not known, and is no more exact than that.

        Args:
            what: It was done to the clock.
            begun_s: When it began, of `now_s`.
            done_s: When it was done.
            lock: The lock that followed.
            found: What was seen of it.
        """
        after_s = round(self.now_s() - begun_s, 1)
        bound_s = None if lock.bound_s is None else round(min(after_s, lock.bound_s + done_s - begun_s), 1)
        self.events.append(Event(what, round(begun_s, 1), Lock(after_s, lock.criterion, bound_s), found))


def measure_disturbed(
    lab: ClockLab,
    stack: ClockStack,
    facts: TrialFacts,
    settings: TrialSettings,
    folder: Path,
    act: Callable[[EventLog], None],
) -> tuple[ClockTrial, Disturbance]:
    """Measure a clock while things happen to it, and keep what happened beside the evidence.

    Args:
        lab: Open.
        stack: What runs on its target, locked.
        facts: What is known of the trial beforehand.
        settings: How it is measured.
        folder: Evidence goes here.
        act: Lets things happen once it has been calm for `CALM_S`, and notes them.

    Raises:
        MeasurementError: It could not be measured, or what was waited for did not come.
    """
    events: list[Event] = []

    def during() -> None:
        log = EventLog(events=events)
        time.sleep(CALM_S)
        act(log)

    trial = lab.measured(stack, facts, settings, folder, during)
    return trial, keep_events(trial, events)


def keep_events(trial: ClockTrial, events: Iterable[Event]) -> Disturbance:
    """Write what happened in a trial into its folder."""
    disturbance = Disturbance(trial.facts.clock, trial.facts.kind, tuple(events))
    write_disturbance(trial.folder, disturbance)
    return disturbance
