# SPDX-License-Identifier: Apache-2.0
"""The time to lock is worked out again alike, and what was changed in it is named."""

from __future__ import annotations

from typing import Any

import pytest

from reports.clock_sync.disturbance import (
    DISTURBANCE,
    Disturbance,
    Event,
    lock_time_measurement,
    write_disturbance,
)
from reports.clock_sync.trial import TRIAL, Lock
from reports.record.measurement import Limit
from reports.rejudge.lock_time import lock_time_discrepancies
from reports.run.folder import RunFolder
from tests.reports.rejudge.clock_trials import Json, context, edit, named, trial_of
from tests.reports.sample_clock import compare_answer

EVENTS = (
    Event("oscillator +200 ppm", 1.0, Lock(15.6, "rule", 2.4), "servo before: -27.9 ppm"),
    Event("oscillator +200 ppm, taken back", 16.6, Lock(8.6, "rule", 1.6), ""),
)


def lock(run: RunFolder, events: tuple[Event, ...], deadline_s: float = 90, n_required: int = 2) -> Json:
    """Write a trial with events, and return the record of its locks."""
    trial = trial_of(run, "chrony-oscillator", compare_answer(), kind="oscillator")
    done = Disturbance("chrony", "oscillator", events)
    write_disturbance(trial.folder, done)
    limit = Limit(deadline_s, None, "lock_within_s of CLK-CHRONY")
    where = context(run, trial, (TRIAL, DISTURBANCE))
    return lock_time_measurement(done.locks, "CLK-CHRONY", limit, n_required, where, "no lock").to_json()


@pytest.mark.parametrize(
    ("events", "deadline_s", "n_required", "outcome"),
    [
        (EVENTS, 90, 2, "pass"),
        (EVENTS, 16, 2, "inconclusive"),
        (EVENTS, 12, 2, "fail"),
        (EVENTS, 90, 3, "inconclusive"),
        (EVENTS[:1], 12, 2, "fail"),
        ((Event("clock put ahead by 500 us", 1.0, Lock(30.0, "rule"), ""),), 90, 1, "pass"),
        ((Event("clock put ahead by 500 us", 1.0, Lock(50.0, "rule"), ""),), 90, 1, "inconclusive"),
        ((Event("clock put ahead by 500 us", 1.0, None, ""),), 90, 1, "unset"),
    ],
)
def test_a_time_to_lock_is_judged_alike(
    run: RunFolder, events: tuple[Event, ...], deadline_s: float, n_required: int, outcome: str
) -> None:
    record = lock(run, events, deadline_s, n_required)
    assert record["outcome"] == outcome
    assert lock_time_discrepancies(run.path, [record]) == ([], 1)


def test_the_lock_of_a_trial_in_steady_state_is_worked_out(run: RunFolder) -> None:
    trial = trial_of(run, "chrony", compare_answer(), lock=Lock(12.5, "rule", 1.1))
    limit = Limit(90, None, "lock_within_s of CLK-CHRONY")
    where = context(run, trial, (TRIAL,))
    record = lock_time_measurement([Lock(12.5, "rule", 1.1)], "CLK-CHRONY", limit, 1, where).to_json()
    assert lock_time_discrepancies(run.path, [record]) == ([], 1)
    edit(trial.folder / TRIAL, ("lock.after_s", 95.0))
    named(lock_time_discrepancies, run, record, "value is 12.5, its locks say 95.0")


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        ("events.0.lock.after_s", 14.6, "value is 15.6, its locks say 14.6"),
        (
            "events.0.lock.bound_s",
            0.4,
            "parts of U are {'poll_interval': 2.4}, its locks say {'poll_interval': 0.4}",
        ),
        ("events.1.lock", None, "n is 2, its locks say 1"),
        ("events.1.at_s", 9.0, "before the lock after 'oscillator +200 ppm'"),
        ("clock", "ptp-software", "disturbance.json is of ptp-software"),
        ("kind", "step", "phase is oscillator, disturbance.json is of step"),
    ],
)
def test_a_lock_that_was_changed_is_named(run: RunFolder, place: str, value: Any, said: str) -> None:
    record = lock(run, EVENTS)
    folder = run.path / "evidence" / "clock_sync" / "linux-rt" / "chrony-oscillator"
    edit(folder / DISTURBANCE, (place, value))
    named(lock_time_discrepancies, run, record, said)


def test_a_deadline_that_nobody_asked_for_is_named(run: RunFolder) -> None:
    kept = run.evidence_folder("requirements")
    (kept / "clocks.toml").write_text('[[requirement]]\nid = "CLK-CHRONY"\nlock_within_s = 90\n')
    (kept / "damaged.toml").write_text("[[requirement")
    assert lock_time_discrepancies(run.path, [lock(run, EVENTS)]) == ([], 1)
    named(lock_time_discrepancies, run, lock(run, EVENTS, 900), "judged against 900 s, lock_within_s is 90")
