# SPDX-License-Identifier: Apache-2.0
"""What was done to a clock while it was measured, and how soon its servo had locked again.

The folder of a trial that was disturbed holds `disturbance.json` beside what every trial has. What is judged
of it besides the offset: the time to lock (`lock_time`, in s), and, as a check of the bench, that a step of
the clock is seen with its size (`clock_step`, in ns) and lets nothing pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from reports.clock_sync.trial import ClockTrial, Lock
from reports.clock_sync.verdict import judge_sync, sync_uncertainty
from reports.record.context import Context, Sample, build_record
from reports.record.document import read_document, write_document
from reports.record.measurement import Limit, Measurement, Number, Uncertainty, UncertaintyPart
from reports.record.verdict import Verdict, judge
from reports.units import format_value

SCHEMA = "benchwright.clock_disturbance/1"
DISTURBANCE = "disturbance.json"
LOCK_QUANTITY = "lock_time"
STEP_QUANTITY = "clock_step"
STEP_REQUIREMENT = "BENCH-CLOCK-STEP"
STEP_TOLERANCE_NS = 100_000
"""The smallest change of level that `bw-clock compare` takes for a step: so much it may miss of one."""


@dataclass(frozen=True)
class Event:
    """One thing that was done to a clock.

    Attributes:
        what: In words, such as `oscillator +200 ppm`.
        at_s: When, since the measurement began.
        lock: How soon the servo had locked again; None: that was not asked.
        found: What was seen of it, such as the grandmasters before and after; empty: nothing.
    """

    what: str
    at_s: Number
    lock: Lock | None
    found: str


@dataclass(frozen=True)
class Disturbance:
    """All that was done to a clock in one trial.

    Attributes:
        clock: Clock stack on the target.
        kind: `relock`, `oscillator`, `step`, `grandmaster`, `impaired`: as that of the trial.
    """

    clock: str
    kind: str
    events: tuple[Event, ...]
    schema: str = SCHEMA

    @property
    def locks(self) -> list[Lock]:
        """Return the times to lock, in the order of the events."""
        return [event.lock for event in self.events if event.lock is not None]


def write_disturbance(folder: Path, disturbance: Disturbance) -> Path:
    """Write `disturbance.json` and return its path."""
    return write_document(folder / DISTURBANCE, disturbance)


def load_disturbance(folder: Path) -> Disturbance | None:
    """Read the disturbance of a trial; None where it has none.

    Raises:
        RecordError: The file is damaged; names the key.
    """
    path = folder / DISTURBANCE
    if not path.exists():
        return None
    return read_document(Disturbance, path, SCHEMA)


def lock_time_measurement(
    locks: Sequence[Lock],
    requirement: str,
    deadline: Limit,
    n_required: int,
    context: Context,
    reason: str = "",
) -> Measurement:
    """Return the record of the longest time to lock, in s.

    U is the time between the two looks at the servo's log within which it locked. Where that is not known,
    the lock may have been at any time before: all of the time counts.

    Args:
        locks: All times to lock under the same conditions.
        requirement: Its id.
        deadline: Upper limit in s, with its source.
        n_required: Locks that were to be seen.
        context: Of which run, test and subject.
        reason: Why there is none, where there is none.
    """
    longest = max(locks, key=lambda lock: lock.after_s, default=None)
    parts: list[UncertaintyPart] = []
    if longest is not None:
        bound_s = longest.after_s if longest.bound_s is None else longest.bound_s
        parts.append(UncertaintyPart("poll_interval", "bound", bound_s))
    uncertainty = Uncertainty.from_parts(parts)
    value = None if longest is None else longest.after_s
    verdict = judge(
        value, deadline, uncertainty, n=len(locks), n_required=n_required, statistic="max", unit="s"
    )
    if verdict.outcome == "unset" and reason:
        verdict = Verdict("unset", None, reason)
    sample = Sample(LOCK_QUANTITY, "max", value, len(locks), n_required)
    return build_record(requirement, sample, deadline, uncertainty, verdict, context)


def step_measurement(
    trial: ClockTrial, step_ns: int, limit: Limit, n_required: int, context: Context
) -> Measurement:
    """Return the record of the check that a step is seen, and that no trial passes in which a clock stepped.

    Args:
        trial: Its clock was stepped while it was measured.
        step_ns: By how much; positive: it was put ahead.
        limit: Of the requirement on the clock's offset: by it the trial must not pass.
        n_required: Samples that this requirement asks for.
        context: Of which run, test and subject.
    """
    uncertainty = step_uncertainty(trial)
    steps_ns = [size_ns for _time_ns, size_ns in trial.filtered.steps]
    found_ns = min(steps_ns, key=lambda size_ns: abs(size_ns - step_ns), default=None)
    allowed = Limit(
        step_ns + STEP_TOLERANCE_NS + uncertainty.expanded,
        step_ns - STEP_TOLERANCE_NS - uncertainty.expanded,
        f"the step that was set, {format_value(step_ns, 'ns')}, the smallest step that the tool looks for,"
        f" {format_value(STEP_TOLERANCE_NS, 'ns')}, and U",
    )
    n = len(steps_ns)
    verdict = judge(found_ns, allowed, uncertainty, n=n, n_required=1, statistic="mean", unit="ns")
    offset, _ = judge_sync(trial, limit, n_required)
    if offset.outcome == "pass":
        verdict = Verdict(
            "inconclusive", verdict.margin, "the clock stepped, and the trial would have passed"
        )
    elif verdict.outcome == "unset":
        verdict = Verdict("inconclusive", None, "the clock was stepped, and no step was seen")
    elif verdict.outcome == "fail":
        # It is the bench that does not see; the target has not failed by that.
        verdict = Verdict("inconclusive", verdict.margin, verdict.reason)
    sample = Sample(STEP_QUANTITY, "nearest", found_ns, n, 1)
    return build_record(STEP_REQUIREMENT, sample, allowed, uncertainty, verdict, context)


def step_uncertainty(trial: ClockTrial) -> Uncertainty:
    """Return U of a step in ns: it is a difference of two offsets."""
    once = sync_uncertainty(trial).parts
    return Uncertainty.from_parts(UncertaintyPart(part.name, part.kind, 2 * part.value) for part in once)
