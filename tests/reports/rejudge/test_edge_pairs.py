# SPDX-License-Identifier: Apache-2.0
"""The order of two trials, and a mistake between them, are judged alike, and what was changed is named."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from reports.record.context import Context
from reports.timed_edges.trial import EdgeTrial
from reports.timed_edges.verdict import order_measurement, shift_measurement
from tests.reports.rejudge.edge_trials import LATCH, Change, JudgedRun, drawn_budgets, folder_of, judged, of
from tests.reports.sample_edges import add_trial

PART = {"name": "noise", "kind": "bound", "value": 1}


def two_trials(results: Path) -> JudgedRun:
    """Return a run with the order of two methods, and a mistake of 200 ns that shows."""
    run, rng = folder_of(results), np.random.default_rng(5)
    made: list[tuple[EdgeTrial, Context]] = []
    for name, method, mean_ns, spread_ns in (
        ("right", LATCH, 0.0, 8.0),
        ("wrong", LATCH, 200.0, 8.0),
        ("worse", "gettime-software", 900.0, 300.0),
    ):
        budgets, trial = drawn_budgets(rng, rng.normal(mean_ns, spread_ns, 1000), method)
        mistake = 200 if name == "wrong" else 0
        trial = replace(trial, name=name, budgets=budgets, correlation_error_ns=mistake)
        made.append(add_trial(run, trial))
    (right, one), (wrong, two), (worse, three) = made
    records = judged(
        run,
        [
            order_measurement(
                right, worse, "EDGE-ORDER", "a paper", 100, of(one, f"{LATCH}/gettime-software", three)
            ),
            shift_measurement(right, wrong, "BENCH-EDGE-ERROR", 200, of(one, LATCH, two)),
        ],
    )
    assert [record["outcome"] for record in records.records] == ["pass", "pass"]
    assert records.discrepancies() == ([], 2)
    return records


PAIR_CHANGES: list[tuple[int, Change, str]] = [
    (0, lambda record: record.update(value=1.0), "value is 1.0"),
    (0, lambda record: record.update(n=999), "n is 999"),
    (0, lambda record: record.update(outcome="fail"), "fail, the edges come to pass"),
    (0, lambda record: record["limit"].update(lower=-9), "lower limit is -9"),
    (0, lambda record: record["limit"].update(upper=9), "upper limit is 9"),
    (0, lambda record: record["uncertainty"]["parts"].pop(), "parts of U are"),
    (0, lambda record: record["subject"].update(method=LATCH), "method is tgpio-latch"),
    (0, lambda record: record["evidence"].reverse(), "value is"),
    (1, lambda record: record.update(value=0.0), "value is 0.0"),
    (1, lambda record: record["limit"].update(upper=99.0), "limit is 99.0"),
    (1, lambda record: record["limit"].update(lower=-99.0), "lower limit is -99.0"),
    (1, lambda record: record.update(outcome="fail"), "fail, the edges come to pass"),
    (1, lambda record: record["subject"].update(method="clock-edge"), "is of clock-edge, its trials of"),
    (1, lambda record: record["uncertainty"]["parts"].append(PART), "parts of U are"),
]


@pytest.mark.parametrize(("place", "change", "said"), PAIR_CHANGES)
def test_a_changed_record_of_two_trials_is_named(
    tmp_path: Path, place: int, change: Change, said: str
) -> None:
    run = two_trials(tmp_path)
    change(run.records[place])
    problems, count = run.discrepancies(run.records[place])
    assert count == 1
    assert any(said in problem for problem in problems), problems


TRIAL_OF_TWO_CHANGES: list[tuple[str, Change, tuple[int, ...]]] = [
    ("right", lambda trial: trial.update(doubts=["expired"]), (0, 1)),
    ("wrong", lambda trial: trial.update(correlation_error_ns=100), (1,)),
    ("worse", lambda trial: trial["delays"].update(deviation_ns=5.0), (0,)),
    ("wrong", lambda trial: trial.update(correction_ns=50.0), (1,)),
]


@pytest.mark.parametrize(("trial", "change", "places"), TRIAL_OF_TWO_CHANGES)
def test_a_trial_of_two_that_was_changed_is_named(
    tmp_path: Path, trial: str, change: Change, places: tuple[int, ...]
) -> None:
    run = two_trials(tmp_path)
    run.rewrite(trial, change)
    for place in places:
        problems, _ = run.discrepancies(run.records[place])
        assert any("the edges" in problem for problem in problems)
