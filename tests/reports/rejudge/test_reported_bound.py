# SPDX-License-Identifier: Apache-2.0
"""What a clock told of its error is worked out again alike; what was changed in it afterwards is named."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from reports.clock_sync.capability import HOLDOVER, LEFT_OUT, MISSED, U_MISSED, WIDTH
from reports.clock_sync.capability import STATED_BOUND_STATISTICS as STATISTICS
from reports.clock_sync.reported_bound import reported_bound_measurement
from reports.clock_sync.trial import EVIDENCE_FILES, FILTERED, ClockTrial, load_trial, write_trial
from reports.record.context import Context
from reports.record.measurement import Conditions, Subject
from reports.rejudge.reported_bound import reported_bound_discrepancies
from reports.run.folder import RunFolder
from tests.reports.clock_sync.test_reported_bound import LIMITS, ramp, told
from tests.reports.sample_clock import compare_answer, write_clock_trial

Json = dict[str, Any]


def trial_in(run: RunFolder, answer: Json) -> ClockTrial:
    folder = run.evidence_folder("clock_sync", "linux-rt", "timeservice")
    write_clock_trial(folder, answer)
    facts = dataclasses.replace(load_trial(folder).facts, clock="timeservice", device="timeservice")
    write_trial(folder, facts)
    return load_trial(folder)


def record_of(run: RunFolder, trial: ClockTrial, quantity: str) -> Json:
    files = [trial.folder / name for name in EVIDENCE_FILES if (trial.folder / name).exists()]
    evidence = tuple(run.evidence(file) for file in files)
    subject = Subject("virtual", "linux-rt", clock="timeservice")
    context = Context(run.run_id, "a test", subject, Conditions("ci", "sync 1 s"), True, evidence)
    return reported_bound_measurement(trial, quantity, "CLK-1", LIMITS[quantity], 50, context).to_json()


U_NS = 18_000
"""No error of the sample is beyond it."""
ANSWERS = {
    "as it should be": told(compare_answer(), u_ns=U_NS),
    "missed": told(compare_answer(), u_ns=U_NS, bound_missed=3, bound_missed_beyond_window=2),
    "padded": told(compare_answer(), bound_ns=123_457, u_ns=99_999),
    "U missed": told(compare_answer(), u_missed=7, u_missed_beyond_window=3),
    "too small to tell": told(compare_answer(mean_ns=0, deviation_ns=300)),
    "never a bound": compare_answer(),
    "not valid": told(compare_answer(), u_ns=U_NS) | {"valid": False, "invalid_reasons": ["drifted"]},
    "drifts": told(ramp(37)),
    "drifts away": told(ramp(-3_700), bound_ns=400_000, u_ns=390_000),
    "too short": told(ramp(1, seconds=2)),
}


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("quantity", STATISTICS)
def test_it_is_worked_out_alike(run: RunFolder, name: str, quantity: str) -> None:
    trial = trial_in(run, ANSWERS[name])
    assert reported_bound_discrepancies(run.path, [record_of(run, trial, quantity)]) == ([], 1)


@pytest.mark.parametrize(
    ("quantity", "key", "value", "said"),
    [
        (MISSED, "bound_missed", 1, "value is 0.0, the comparison says 500.0"),
        (MISSED, "bound_missed_beyond_window", 1, "0 missed of 2000, 1 of them beyond the window"),
        (MISSED, "bound_checked", 1999, "1999 bounds checked of 2000 samples"),
        (MISSED, "bound_missed", -1, "-1 missed of 2000"),
        (LEFT_OUT, "without_bound", -1, "0 missed of 2000"),
        (U_MISSED, "u_missed", 3, "value is 0.0, the comparison says 1500.0"),
        (U_MISSED, "u_missed_beyond_window", 1, "0 missed of 2000, 1 of them beyond the window"),
    ],
)
def test_what_was_changed_afterwards_is_named(
    run: RunFolder, quantity: str, key: str, value: int, said: str
) -> None:
    trial = trial_in(run, told(compare_answer()))
    record = record_of(run, trial, quantity)
    file = trial.folder / FILTERED
    answer: Json = json.loads(file.read_text().splitlines()[-1])
    answer["device_bound"][key] = value
    file.write_text(json.dumps(answer) + "\n")
    problems, count = reported_bound_discrepancies(run.path, [record])
    assert count == 1
    assert any(said in problem for problem in problems), problems


@pytest.mark.parametrize(("quantity", "change"), [(WIDTH, {"value": 1.0}), (HOLDOVER, {"outcome": "pass"})])
def test_a_record_that_was_changed_is_named(run: RunFolder, quantity: str, change: Json) -> None:
    trial = trial_in(run, told(ramp(-3_700)) if quantity == HOLDOVER else told(compare_answer()))
    problems, count = reported_bound_discrepancies(run.path, [record_of(run, trial, quantity) | change])
    assert count == 1
    assert problems
