# SPDX-License-Identifier: Apache-2.0
"""A step of the clock is worked out again alike, and what was changed in it is named."""

from __future__ import annotations

from typing import Any

import pytest

from reports.clock_sync.disturbance import (
    DISTURBANCE,
    Disturbance,
    Event,
    step_measurement,
    write_disturbance,
)
from reports.clock_sync.trial import FILTERED, TRIAL, Lock
from reports.record.measurement import Limit
from reports.rejudge.clock_step import clock_step_discrepancies
from reports.run.folder import RunFolder
from tests.reports.rejudge.clock_trials import Json, context, named, trial_of
from tests.reports.sample_clock import SECOND_NS, START_TAI_NS, compare_answer

STEP_NS = 500_000


def step(run: RunFolder, *steps_ns: int, **changes: Any) -> Json:
    """Write a trial in which the tool has found these steps, and return its record."""
    steps = [{"time_tai_ns": START_TAI_NS + SECOND_NS, "step_ns": step_ns} for step_ns in steps_ns]
    trial = trial_of(run, "chrony-step", compare_answer(steps=steps, **changes), kind="step")
    event = Event("clock put ahead by 500 us", 1.0, Lock(5.8, "rule", 1.4), "")
    write_disturbance(trial.folder, Disturbance("chrony", "step", (event,)))
    limit = Limit(4 * STEP_NS, -4 * STEP_NS, "a test")
    where = context(run, trial, (TRIAL, FILTERED))
    return step_measurement(trial, STEP_NS, limit, 99, where).to_json()


@pytest.mark.parametrize(
    ("steps_ns", "outcome"),
    [
        ((STEP_NS + 4,), "pass"),
        ((-150_000, STEP_NS + 90_000), "pass"),
        ((STEP_NS - 100_900,), "inconclusive"),
        ((STEP_NS // 2,), "inconclusive"),
        ((), "inconclusive"),
    ],
)
def test_a_step_is_judged_alike(run: RunFolder, steps_ns: tuple[int, ...], outcome: str) -> None:
    record = step(run, *steps_ns)
    assert record["outcome"] == outcome
    assert clock_step_discrepancies(run.path, [record]) == ([], 1)


def test_a_step_that_is_not_the_one_found_is_named(run: RunFolder) -> None:
    record = step(run, STEP_NS // 2)
    named(clock_step_discrepancies, run, record | {"value": STEP_NS}, "value is 500000, the comparison says")
    named(clock_step_discrepancies, run, record | {"outcome": "pass"}, "pass, its steps come to inconclusive")
    moved = {"upper": 250_000 + 101_700, "lower": 250_000 - 101_700, "source": ""}
    named(
        clock_step_discrepancies,
        run,
        record | {"limit": moved},
        "around a step of 250000 ns, disturbance.json",
    )
    wide = {"upper": STEP_NS + 400_000, "lower": STEP_NS - 400_000, "source": ""}
    named(clock_step_discrepancies, run, record | {"limit": wide}, "upper limit is 900000")
    twice = {"expanded": 850, "parts": [{"name": "reference", "kind": "bound", "value": 850}]}
    named(clock_step_discrepancies, run, record | {"uncertainty": twice}, "parts of U are")


def test_a_step_without_a_note_of_it_is_worked_out(run: RunFolder) -> None:
    record = step(run, STEP_NS)
    folder = run.path / "evidence" / "clock_sync" / "linux-rt" / "chrony-step"
    (folder / DISTURBANCE).unlink()
    assert clock_step_discrepancies(run.path, [record]) == ([], 1)
