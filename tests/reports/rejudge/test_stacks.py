# SPDX-License-Identifier: Apache-2.0
"""Differences of network stacks worked out again: honest records stand, and contradictions are named."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reports.record.context import Context
from reports.record.measurement import Conditions, Limit, Subject
from reports.rejudge.arithmetic import discrepancies
from reports.rejudge.stacks import stack_discrepancies
from reports.run.folder import RunFolder
from reports.stacks.capability import LATENCY_DIFFERENCE, OVER_BUDGET_DIFFERENCE
from reports.stacks.evidence import FOLDER
from reports.stacks.verdict import asked, axes_of, difference_measurement, load_comparison
from tests.reports.stacks.sample import TARGET, write_sample_turns

Json = dict[str, Any]
ASKED = (
    (LATENCY_DIFFERENCE, "median", 20_000),
    (LATENCY_DIFFERENCE, "p99", 100_000),
    (OVER_BUDGET_DIFFERENCE, "share", 0.5),
)


def made(tmp_path: Path, rounds: int = 10) -> tuple[Path, list[Json]]:
    """Return a run with a record of each comparison."""
    run = RunFolder.create(tmp_path / "results", "native", "ci", simulated=True, commit="0" * 40)
    folder = run.evidence_folder(FOLDER, TARGET)
    write_sample_turns(folder, rounds)
    evidence = tuple(run.evidence(path) for path in sorted(folder.iterdir()))
    found = load_comparison(folder)
    for condition in ("idle", "lossy"):
        for quantity, statistic, upper in ASKED:
            limit = Limit(upper, None, "a test")
            for each in asked(found, quantity, statistic, condition):
                subject = Subject("native", TARGET, axes=axes_of(each))
                context = Context(run.run_id, "test", subject, Conditions("ci"), True, evidence)
                run.append(difference_measurement(each, f"S-{statistic}", limit, 1000, context))
    return run.path, [json.loads(line) for line in (run.path / "measurements.jsonl").read_text().splitlines()]


def test_what_was_measured_stands(tmp_path: Path) -> None:
    run, records = made(tmp_path)
    assert stack_discrepancies(run, records) == ([], 12)
    assert [list(discrepancies(record)) for record in records] == [[]] * 12
    outcomes = {(r["statistic"], r["subject"]["axes"][2]["value"]): r["outcome"] for r in records}
    assert outcomes["median", "type 0"] == outcomes["median", "type 1"] == "pass"
    assert outcomes["p99", "type 1"] == "inconclusive"
    assert [r["value"] for r in records if r["statistic"] == "p99"].count(None) == 2


LOSSY = "lossy_10000_ppm"


def _unchanged(_turn: Json, _loss: Json, _stack: str) -> None:
    """Change nothing."""


def lossy(tmp_path: Path, change: Callable[[Json, Json, str], None] = _unchanged) -> list[str]:
    """Return what is objected to in a run over a line that loses one frame in a hundred, after a change.

    What is changed are the facts of a turn and of what its line lost; the change is told the turn's stack.
    """
    run, records = made(tmp_path)
    folder = run / "evidence" / FOLDER / TARGET
    facts = json.loads((folder / "stacks.json").read_text())
    for turn in facts["turns"]:
        if turn["condition"] != "lossy":
            continue
        turn |= {"condition": LOSSY, "frames": 10_200, "frames_lost": 95}
        ports = [{"port": "p01", "seen": 10_000, "dropped": 94}, {"port": "linux", "seen": 200, "dropped": 1}]
        loss = {"asked_ppm": 10_000, "seed": 7 + turn["round"], "ports": ports}
        change(turn, loss, turn["stack"])
        if loss:
            place = folder / Path(turn["file"]).stem / "condition"
            place.mkdir(parents=True)
            (place / "loss.json").write_text(json.dumps(loss))
    (folder / "stacks.json").write_text(json.dumps(facts))
    renamed = [json.loads(json.dumps(record).replace('"lossy"', f'"{LOSSY}"')) for record in records]
    problems, judged = stack_discrepancies(run, renamed)
    assert judged == 12
    return problems


def test_what_a_line_lost_stands(tmp_path: Path) -> None:
    assert lossy(tmp_path) == []


def _told_less(turn: Json, _loss: Json, _stack: str) -> None:
    turn["frames_lost"] = 94


def _missing(_turn: Json, loss: Json, _stack: str) -> None:
    loss.clear()


def _asked_for_less(_turn: Json, loss: Json, _stack: str) -> None:
    loss["asked_ppm"] = 1000


def _of_another_seed(_turn: Json, loss: Json, stack: str) -> None:
    loss["seed"] = 3 if stack == "user" else 4


def _without_ports(turn: Json, loss: Json, _stack: str) -> None:
    turn["frames_lost"], loss["ports"] = 0, []


def _sound_for_one(turn: Json, loss: Json, stack: str) -> None:
    if stack == "user":
        turn["frames_lost"] = 0
        loss["ports"] = [port | {"dropped": 0} for port in loss["ports"]]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_told_less, "94 of 10200 frames, its loss.json says 95"),
        (_missing, "its loss.json is missing"),
        (_asked_for_less, "was asked for 1000 ppm"),
        (_of_another_seed, "stacks met other losses, by seeds [3, 4]"),
        (_without_ports, "0 of 10200 frames"),
        (_sound_for_one, "0 of 10200 frames is no chance of 10000 ppm"),
    ],
)
def test_a_line_that_lost_something_else_is_named(
    tmp_path: Path, change: Callable[[Json, Json, str], None], said: str
) -> None:
    assert any(said in each for each in lossy(tmp_path, change))


def test_too_few_rounds_have_no_value(tmp_path: Path) -> None:
    run, records = made(tmp_path, rounds=7)
    assert stack_discrepancies(run, records) == ([], 12)
    assert {(r["outcome"], r["value"]) for r in records} == {("inconclusive", None)}
    assert {r["reason"] for r in records} == {"too few rounds: 7 count, 8 are needed"}


def _narrower(record: Json) -> None:
    for part in record["uncertainty"]["parts"]:
        part["value"] *= 0.99
    record["uncertainty"]["expanded"] *= 0.99


CHANGES: list[tuple[Callable[[Json], object], str]] = [
    (lambda r: r.update(value=r["value"] - 2), "value is "),
    (_narrower, "U is "),
    (lambda r: r.update(n=r["n"] + 1), "n is "),
    (lambda r: r.update(lost=1, allowed_lost=1), "1 lost, 1 allowed"),
    (lambda r: r.update(outcome="fail"), "fail, its turns come to pass"),
    (lambda r: r.update(value=None), "value is None, the turns say "),
    (lambda r: r["subject"].update(target="board"), "target is board, stacks.json is of linux"),
    (
        lambda r: r["subject"]["axes"][1].update(value="kernel less user"),
        "have no comparison of kernel less",
    ),
    (lambda r: r["uncertainty"]["parts"][0].update(kind="bound"), "parts of U are "),
    (lambda r: r["evidence"].pop(), "turn-0039.csv is not among its evidence"),
]


@pytest.mark.parametrize(
    ("change", "said"),
    CHANGES,
)
def test_what_the_turns_contradict_is_named(
    change: Callable[[Json], object], said: str, tmp_path: Path
) -> None:
    run, records = made(tmp_path)
    record = copy.deepcopy(next(r for r in records if r["statistic"] == "median"))
    change(record)
    problems, count = stack_discrepancies(run, [record])
    assert count == 1
    assert any(said in problem for problem in problems), problems


def test_a_verdict_of_what_has_none_is_named(tmp_path: Path) -> None:
    run, records = made(tmp_path)
    record = next(r for r in records if r["value"] is None) | {"value": 5, "outcome": "pass"}
    problems, _count = stack_discrepancies(run, [record])
    assert [each.split(": ")[1] for each in problems] == [
        "value is 5, the turns say None",
        "pass, its turns come to inconclusive",
    ]


def test_another_latency_is_found(tmp_path: Path) -> None:
    run, records = made(tmp_path)
    [table] = run.rglob("turn-0000.csv")
    lines = table.read_text().splitlines()
    table.write_text("\n".join([lines[0], *(f"{x.rsplit(',', 2)[0]},900000,0" for x in lines[1:])]) + "\n")
    problems, _count = stack_discrepancies(run, records)
    assert any("value is " in each for each in problems)
    assert any("U is " in each for each in problems)
