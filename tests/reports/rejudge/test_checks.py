# SPDX-License-Identifier: Apache-2.0
"""The known delay and the largest pattern, judged a second time."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from random import Random
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from bench.verdicts.bench_verify import Way, hash_anew, is_named, list_anew
from bench.verdicts.bench_verify_fields import change_document, changes_of_fields
from reports.rejudge.known_delay import SECTIONS, known_delay_discrepancies
from reports.rejudge.largest_pattern import largest_pattern_discrepancies
from reports.rejudge.latency import decided
from reports.rejudge.run import rejudge
from tests.reports.rejudge.known_delay_run import make_checked_run
from tests.reports.sample_run import Disturbance, make_run

ROOT = Path(__file__).resolve().parents[3]
MS = 1_000_000
APPLIED_NS = 5 * MS
DELAY = "evidence/daq_replay/attempt-1/known_delay"
LARGEST = "evidence/daq_replay/largest_pattern"


# -- the known delay


def known_delay(run: Path, u_ns: int = 250_000, outcome: str = "pass", reason: str = "") -> dict[str, Any]:
    """Write a check that found 5.2 ms, as the bench does, and return its record."""
    rows: list[str] = []
    sections: dict[str, tuple[int, int]] = {}
    for number, (name, latency_ns) in enumerate(zip(SECTIONS, (MS, 6_300_000, 1_200_000), strict=True)):
        begin_ns = 1_000 * number
        sections[name] = (begin_ns, begin_ns + 41)
        rows += [f"{begin_ns + n},{latency_ns + 100 * (n - 20) + 7_000},7000" for n in range(41)]
        rows.append(f"{begin_ns + 41},99000000,7000")  # while the delay changed
    (run / DELAY).mkdir(parents=True)
    (run / DELAY / "sections.json").write_text(json.dumps({"scheduled_tai_ns": sections}))
    text = "\n".join(["scheduled_tai_ns,received_minus_scheduled_ns,lateness_ns", *rows])
    (run / DELAY / "messages.csv").write_text(f"{text}\n")
    # Of 41 messages, 100 ns apart, the 14th and the 28th enclose the median.
    values = {"median_without": 700, "median_with": 700, "target_drift": 100_000}
    values["clock_wander"] = u_ns - sum(values.values())
    clocks = [
        {"bound_ns": values["clock_wander"] // 2 - 4_300, "residual_ns": 4_300},
        {"bound_ns": None, "residual_ns": None},
    ]
    answer = {"type": "result", "clocks": clocks, "streams": [{"id": 33, "producer": 3}]}
    (run / DELAY / "recv.ndjson").write_text(json.dumps(answer) + "\n")
    parts = [{"name": name, "kind": "bound", "value": value} for name, value in values.items()]
    found = {
        "schema": "benchwright.known_delay/1",
        "producers": [3],
        "applied_ns": APPLIED_NS,
        "measured_ns": 5_200_000,
        "n": 41,
        "uncertainty": {"expanded": u_ns, "parts": parts},
        "outcome": outcome,
        "reason": reason,
    }
    (run / f"{DELAY}.json").write_text(json.dumps(found))
    return {
        "requirement": "BENCH-KNOWN-DELAY",
        "quantity": "known_delay_error",
        "value": 200_000,
        "n": 41,
        "limit": {"upper": u_ns, "lower": -u_ns},
        "outcome": outcome,
        "evidence": [{"path": f"{DELAY}.json"}],
    }


def test_a_delay_that_was_found_is_found_again(tmp_path: Path) -> None:
    assert known_delay_discrepancies(tmp_path, [known_delay(tmp_path)]) == ([], 1)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"value": 100_000}, "value is 100000, the messages say 200000"),
        ({"n": 40}, "n is 40, the messages say 41"),
        ({"limit": {"upper": 300_000, "lower": -250_000}}, "limit is 300000"),
        ({"outcome": "fail"}, "fail, an error of 200000 with U = 250000"),
    ],
)
def test_a_changed_check_is_named(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    problems, count = known_delay_discrepancies(tmp_path, [known_delay(tmp_path) | changes])
    assert count == 1
    assert any(said in problem for problem in problems)


def test_a_pass_with_a_u_as_large_as_the_delay_is_named(tmp_path: Path) -> None:
    record = known_delay(tmp_path, APPLIED_NS, "inconclusive", "it cannot be told from none")
    assert known_delay_discrepancies(tmp_path, [record]) == ([], 1)
    problems, _ = known_delay_discrepancies(tmp_path, [record | {"outcome": "pass"}])
    assert f"BENCH-KNOWN-DELAY: pass, an error of 200000 with U = {APPLIED_NS:g}" in problems


@pytest.mark.parametrize(
    ("way", "value", "said"),
    [
        (("producers",), [4], "its producers are [4], the replay had [3]"),
        (("n",), 42, "n of known_delay.json is 42, the messages say 41"),
        (("schema",), None, "known_delay.json has no schema"),
        (("uncertainty", "expanded"), 1, "U is 1, its parts come to 250000"),
        (("uncertainty", "parts", 0, "value"), 699, "'median_without': 699"),
        (("uncertainty", "parts", 0, "name"), "median_within", "'median_within': 700"),
        (("uncertainty", "parts", 0, "kind"), "standard", "a part of U is no bound"),
    ],
)
def test_what_the_check_says_of_itself_is_held_against_its_messages(
    tmp_path: Path, way: Way, value: Any, said: str
) -> None:
    record = known_delay(tmp_path)
    file = tmp_path / f"{DELAY}.json"
    change_document(file, way, None if value is None else lambda _: value)
    problems, _ = known_delay_discrepancies(tmp_path, [record])
    assert any(said in problem for problem in problems), problems


@pytest.mark.parametrize(
    ("name", "moments", "said"),
    [
        ("without", (-(10**15), 41), "not of its replay"),
        ("again", (2_000, 10**15), "not of its replay"),
        ("with", (20, 1_041), "not one behind the other"),
    ],
)
def test_sections_lie_in_the_replay_one_behind_the_other(
    tmp_path: Path, name: str, moments: tuple[int, int], said: str
) -> None:
    record = known_delay(tmp_path)
    file = tmp_path / DELAY / "sections.json"
    sections = json.loads(file.read_text())
    sections["scheduled_tai_ns"][name] = moments
    file.write_text(json.dumps(sections))
    problems, _ = known_delay_discrepancies(tmp_path, [record])
    assert any(said in problem for problem in problems), problems


@pytest.mark.parametrize(
    ("seed", "seen", "found_ns"), [(1, True, APPLIED_NS), (2, False, APPLIED_NS), (3, True, 9 * MS)]
)
def test_what_the_first_judge_found_is_found_again(
    tmp_path: Path, seed: int, seen: bool, found_ns: int
) -> None:
    run = make_checked_run(tmp_path, seed, seen=seen, found_ns=found_ns).path
    assert rejudge(run).problems == ()


def test_changes_of_the_check_are_named_where_other_evidence_holds_them(tmp_path: Path) -> None:
    """By who makes list of files, hashes and seal anew."""
    sound, key = make_checked_run(tmp_path).path, Ed25519PrivateKey.generate()
    list_anew(sound)
    hash_anew(sound, key, "")
    assert not is_named(sound, None, pages=False)
    changes = [each for each in changes_of_fields(sound, Random(1)) if each.field.held_by]
    named = 0
    for number, change in enumerate(changes):
        run = tmp_path / str(number)
        shutil.copytree(sound, run)
        change.make(run)
        list_anew(run)
        hash_anew(run, key, "")
        named += is_named(run, None, pages=False)
        shutil.rmtree(run)
    assert named >= 0.9 * len(changes)
    assert len(changes) > 30


def test_messages_that_say_something_else_are_named(tmp_path: Path) -> None:
    record = known_delay(tmp_path)
    path = tmp_path / DELAY / "messages.csv"
    path.write_text(path.read_text().replace(",63", ",93"))
    problems, _ = known_delay_discrepancies(tmp_path, [record])
    assert any("the delay found is 5200000, the messages say 8200000" in problem for problem in problems)


def test_a_check_of_the_version_before_has_a_replay_for_each_section(tmp_path: Path) -> None:
    record = known_delay(tmp_path)
    folder = tmp_path / DELAY
    head, *rows = (folder / "messages.csv").read_text().splitlines()
    for number, name in enumerate(SECTIONS):
        (folder / name).mkdir()
        own = [row for row in rows if 0 <= int(row.split(",")[0]) - 1_000 * number < 41]
        (folder / name / "messages.csv").write_text("\n".join([head, *own]) + "\n")
    (folder / "sections.json").unlink()
    assert known_delay_discrepancies(tmp_path, [record]) == ([], 1)
    problems, _ = known_delay_discrepancies(tmp_path, [record | {"value": 100_000}])
    assert any("value is 100000, the messages say 200000" in problem for problem in problems)
    shutil.rmtree(folder / "again")
    assert known_delay_discrepancies(tmp_path, [record]) == ([], 0)


# -- the largest pattern


def largest(run: Path, outcome: str = "within", **changes: Any) -> dict[str, Any]:
    """Write a search that the suite's own replay has ended, and return its record."""
    folder = run / LARGEST
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / "robot" / "daq_replay" / "requirements" / "daq12.toml", folder / "budgets.toml")
    order = list(range(1, 13))
    trial = {
        "producers": order,
        "outcome": outcome,
        "place": "evidence/daq_replay/attempt-1",
        "is_own": True,
        "n_required": 99,
        "replays": 1,
        "streams": [{"id": 10, "n": 300}, {"id": 31, "n": 600}],
    }
    found = {"order": order, "found": 12, "low": 12, "high": 13, "n_required": 59, "boundary_trials": 1}
    (folder / "largest_pattern.json").write_text(json.dumps(found | {"trials": [trial]} | changes))
    return {
        "requirement": "DAQ-LARGEST",
        "quantity": "largest_pattern",
        "value": 12,
        "n": 300,
        "limit": {"upper": None, "lower": 1},
        "outcome": "pass",
        "simulated": True,
        "evidence": [{"path": f"{LARGEST}/largest_pattern.json"}],
    }


def test_a_search_is_made_out_again(tmp_path: Path) -> None:
    run = make_run(tmp_path).path
    assert largest_pattern_discrepancies(run, [largest(run)]) == ([], 1)


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ({"value": 11}, "value is 11, its trials show 12"),
        ({"n": 600}, "n is 600, the stream with fewest messages has 300"),
        ({"limit": {"upper": None, "lower": 13}}, "pass with 12, at least 13 are asked"),
    ],
)
def test_a_changed_number_is_named(tmp_path: Path, record: dict[str, Any], said: str) -> None:
    run = make_run(tmp_path).path
    problems, _ = largest_pattern_discrepancies(run, [largest(run) | record])
    assert problems == [f"DAQ-LARGEST: {said}"]


def test_a_trial_that_its_replays_contradict_is_named(tmp_path: Path) -> None:
    run = make_run(tmp_path, Disturbance(path_delay_ns={33: 15 * MS})).path
    problems, _ = largest_pattern_discrepancies(run, [largest(run)])
    assert problems == ["DAQ-LARGEST: trial 1: within, its replays come to no verdict"]


def test_one_trial_is_not_the_five_that_were_asked(tmp_path: Path) -> None:
    run = make_run(tmp_path).path
    problems, _ = largest_pattern_discrepancies(run, [largest(run, boundary_trials=5)])
    assert problems == [
        "DAQ-LARGEST: value is 12, its trials show None",
        "DAQ-LARGEST: pass with None, at least 1 are asked",
    ]


def test_one_clean_replay_beside_one_that_the_machine_explains_is_luck() -> None:
    """The version before took it for a pass."""
    assert decided(["explained", "clean"], 0, 3) == "no verdict"
    assert decided(["explained", "clean"], 0, 3, lone_passes=True) == "pass"
    assert decided(["clean", "explained", "clean"], 0, 3) == "pass"
    assert decided(["clean"], 0, 3) == "pass"
