# SPDX-License-Identifier: Apache-2.0
"""What several instruments say of one clock's edges is worked out from what they saw."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hw.edges import CapturedEdges
from reports.clock_sync.trial import load_trial
from reports.timed_edges.trial import CLOCK_EDGE, WITNESSES, write_witnesses
from reports.timed_edges.verdict import witness_measurements
from resources.timed_edges.trials import EdgeRun
from resources.timed_edges.witnesses import clock_witnesses
from tests.reports.rejudge.edge_trials import FOLDER, Change, JudgedRun, drawn_budgets, folder_of, judged
from tests.reports.sample_clock import START_TAI_NS, compare_answer, write_clock_trial
from tests.reports.sample_edges import add_trial

PERIOD_NS = 10_000_000


def witnessed_run(results: Path, seed: int, *, captured: int = 300, offset_ns: int = -90) -> JudgedRun:
    """Return a run whose clock three witnesses saw, as the suite writes it."""
    run, rng = folder_of(results), np.random.default_rng(seed)
    delays_ns = rng.normal(-offset_ns, 6.0, 200)
    budgets, trial = drawn_budgets(rng, delays_ns, CLOCK_EDGE)
    trial = replace(trial, budgets=budgets, clock="phc2sys", period_ns=PERIOD_NS, correction_ns=1.5)
    written, context = add_trial(run, trial)
    folder = run.path / FOLDER / trial.name
    compared = compare_answer(mean_ns=offset_ns - 700, deviation_ns=900, seconds=5)
    write_clock_trial(folder / "compare", compared)
    first = START_TAI_NS // PERIOD_NS * PERIOD_NS + 100 * PERIOD_NS
    late = np.rint(rng.normal(-offset_ns, 5.0, captured)).astype(int).tolist()
    edges = tuple((k, first + k * PERIOD_NS + each) for k, each in enumerate(late))
    answer = {"type": "result", "valid": True, "captures": [list(edge) for edge in edges]}
    (folder / "edge-capture-1.ndjson").write_text(json.dumps(answer) + "\n")
    seen = EdgeRun(written, folder, None, CapturedEdges(edges, len(edges)))
    witnesses = clock_witnesses(seen, load_trial(folder / "compare"))
    write_witnesses(folder, witnesses)
    files = (*context.evidence, run.evidence(folder / WITNESSES))
    context = replace(context, evidence=files)
    return judged(run, witness_measurements(witnesses, "BENCH-EDGE-WITNESSES", 100, context))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("captured", "offset_ns"), [(300, -90), (300, 40_000), (3, 12), (0, 0)])
def test_witnesses_are_worked_out_from_what_they_saw(
    tmp_path: Path, seed: int, captured: int, offset_ns: int
) -> None:
    run = witnessed_run(tmp_path, seed, captured=captured, offset_ns=offset_ns)
    assert len(run.records) == 3
    assert run.discrepancies() == ([], 3)
    unset = sum(record["outcome"] == "unset" for record in run.records)
    assert unset == (0 if captured > 3 else 2)


WITNESS_CHANGES: list[tuple[Change, str]] = [
    (lambda record: record.update(value=0.9), "E_n is 0.9"),
    (lambda record: record.update(n=7), "of 7, the witnesses say"),
    (lambda record: record.update(outcome="fail"), "fail, the witnesses come to pass"),
    (lambda record: record["limit"].update(upper=2), "is not held against 1"),
    (lambda record: record.update(n_required=5_000), "pass, the witnesses come to inconclusive"),
    (lambda record: record["subject"].update(method="one/other"), "is of one and other"),
]


@pytest.mark.parametrize(("change", "said"), WITNESS_CHANGES)
def test_a_changed_record_of_witnesses_is_named(tmp_path: Path, change: Change, said: str) -> None:
    run = witnessed_run(tmp_path, 1)
    assert run.records[0]["outcome"] == "pass"
    change(run.records[0])
    problems, _ = run.discrepancies(run.records[0])
    assert any(said in problem for problem in problems), problems


@pytest.mark.parametrize("place", range(3))
@pytest.mark.parametrize("member", ["offset_ns", "n"])
def test_a_witness_that_says_what_it_did_not_see_is_named(tmp_path: Path, place: int, member: str) -> None:
    run = witnessed_run(tmp_path, 2)
    path = run.path / FOLDER / CLOCK_EDGE / WITNESSES
    document = json.loads(path.read_text())
    name = document["witnesses"][place]["name"]
    document["witnesses"][place][member] += 5
    path.write_text(json.dumps(document))
    problems, _ = run.discrepancies()
    assert any(f"{name} says" in problem and "it saw" in problem for problem in problems), problems


@pytest.mark.parametrize("place", range(3))
def test_a_witness_of_other_uncertainty_is_named(tmp_path: Path, place: int) -> None:
    run = witnessed_run(tmp_path, 2)
    path = run.path / FOLDER / CLOCK_EDGE / WITNESSES
    before = json.loads(path.read_text())
    for number in range(len(before["witnesses"][place]["parts"])):
        document = json.loads(json.dumps(before))
        document["witnesses"][place]["parts"][number]["value_ns"] += 500
        path.write_text(json.dumps(document))
        problems, _ = run.discrepancies()
        assert any("parts of U of" in problem for problem in problems), number


OF_WITNESSES: list[tuple[Change, str]] = [
    (lambda document: document.update(clock="chrony"), "the witnesses of chrony"),
    (
        lambda document: document["witnesses"][2]["parts"][0].update(value_ns=-1),
        "of oscilloscope is below 0",
    ),
]


@pytest.mark.parametrize(("change", "said"), OF_WITNESSES)
def test_clock_and_parts_of_witnesses_are_held_against_the_record(
    tmp_path: Path, change: Change, said: str
) -> None:
    run = witnessed_run(tmp_path, seed=1)
    file = run.path / FOLDER / CLOCK_EDGE / WITNESSES
    document = json.loads(file.read_text())
    change(document)
    file.write_text(json.dumps(document))
    problems, _ = run.discrepancies()
    assert any(said in problem for problem in problems), problems
