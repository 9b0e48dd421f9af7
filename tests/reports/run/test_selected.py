# SPDX-License-Identifier: Apache-2.0
"""What is asked of a target, what was skipped and what was left untested: one definition."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from reports.dossier.gather import stacks_selected
from reports.record.measurement import Measurement, Outcome
from reports.run.folder import RunFolder
from reports.run.manifest import Manifest
from reports.run.selected import (
    KEPT,
    SKIPPED,
    UNTESTED,
    SelectedFile,
    SelectedSuite,
    SkippedTest,
    chosen_stack,
    count_states,
    selected_of,
    skipped_tests,
    stacks_of,
    standings,
    suite_name,
    with_nothing_selected,
    with_selected,
    with_skipped,
)
from reports.run.selected_before import selected_in
from tests.dashboards.runs import record

CLOCKS = "clock_sync/sync_error.robot"
EDGES = "timed_edges/clocks.robot"


def of(*requirements: str) -> tuple[SelectedFile]:
    return (SelectedFile("limits.toml", requirements),)


def test_a_suite_is_noted_once_and_says_what_it_asks_bit_by_bit() -> None:
    selected = with_selected((), "linux-rt", CLOCKS)
    selected = with_selected(selected, "windows", CLOCKS)
    selected = with_selected(selected, "linux-rt", CLOCKS, SelectedFile("a.toml", ("A", "B")))
    selected = with_selected(selected, "linux-rt", CLOCKS, SelectedFile("c.toml", ("C",)))
    selected = with_selected(selected, "linux-rt", CLOCKS, SelectedFile("c.toml", ("C", "B")))
    assert with_selected(selected, "linux-rt", CLOCKS) == selected
    files = (SelectedFile("a.toml", ("A", "B")), SelectedFile("c.toml", ("C", "B")))
    assert selected == (SelectedSuite("linux-rt", CLOCKS, files), SelectedSuite("windows", CLOCKS))
    assert selected[0].requirements == ("A", "B", "C")
    assert selected_of(selected, "linux-rt")["B"].file == "a.toml"


def test_a_suite_may_say_that_it_asks_nothing() -> None:
    """It then does not ask what it asks of others; what it has said before stays."""
    selected = with_selected((), "linux-rt", CLOCKS, *of("A"))
    selected = with_nothing_selected(with_selected(selected, "windows", CLOCKS), "windows", CLOCKS)
    assert selected[1] == SelectedSuite("windows", CLOCKS, ())
    assert selected_of(selected, "windows") == {}
    assert with_nothing_selected(selected, "linux-rt", CLOCKS) == selected


def test_a_suite_has_the_name_of_its_file() -> None:
    """Below `robot/` with every folder: two capabilities may have a suite of one name in one of that name."""
    assert suite_name(Path("/anywhere/timed_edges/clocks.robot")) == EDGES
    for name in (EDGES, "timed_edges/pins/slow.robot"):
        assert suite_name(Path("robot", name).resolve()) == name


def test_a_suite_that_never_came_so_far_asks_what_it_asks_of_others() -> None:
    selected = (
        SelectedSuite("linux-rt", CLOCKS, of("A", "B")),
        SelectedSuite("windows", CLOCKS),
        SelectedSuite("windows", EDGES, ()),
        SelectedSuite("linux-rt", EDGES, of("E")),
        SelectedSuite("embedded", "daq_replay/latency_budgets.robot"),
    )
    assert set(selected_of(selected, "windows")) == {"A", "B"}, (
        "the edges' suite asks nothing of it, and said so"
    )
    assert set(selected_of(selected, "linux-rt")) == {"A", "B", "E"}
    assert selected_of(selected, "embedded") == {}
    assert set(selected_of(selected, "")) == {"A", "B", "E"}


def test_a_skipped_test_leaves_its_reason() -> None:
    test = SkippedTest("Edges", "no oscilloscope", ("E",))
    selected = with_skipped(with_selected((), "linux-rt", EDGES, *of("E", "F")), "linux-rt", EDGES, test)
    assert {name: each.skipped for name, each in selected_of(selected, "linux-rt").items()} == {
        "E": "no oscilloscope",
        "F": "",
    }
    assert selected_of(selected, "windows") == {}
    assert skipped_tests(selected, "linux-rt") == skipped_tests(selected, "") == (test,)
    assert skipped_tests(selected, "windows") == ()
    assert with_selected(selected, "linux-rt", EDGES, *of("E"))[0].skipped == (), "the suite runs again"
    assert with_skipped((), "", "own/own.robot", test) == (SelectedSuite("", "own/own.robot", None, (test,)),)


@pytest.mark.parametrize(
    ("outcomes", "asks", "skips", "state"),
    [
        (["pass"], True, False, "pass"),
        (["pass", "inconclusive"], True, False, "inconclusive"),
        (["pass"], True, True, "pass"),
        (["unset"], True, True, "unset"),
        ([], True, True, "skipped"),
        ([], True, False, "untested"),
        (["fail"], False, False, "fail"),
    ],
)
def test_states(outcomes: list[Outcome], asks: bool, skips: bool, state: str) -> None:
    selected = with_selected((), "linux-rt", CLOCKS, *of(*(["R"] if asks else [])))
    if skips:
        selected = with_skipped(selected, "linux-rt", CLOCKS, SkippedTest("T", "why", ("R",)))
    records = [dataclasses.replace(record(), requirement="R", outcome=outcome) for outcome in outcomes]
    found = standings(selected, "linux-rt", records)
    assert (found["R"].state, found["R"].records) == (state, tuple(records))
    assert found["R"].reason == ("why" if state == "skipped" else "")
    assert count_states([found, found]) == {state: 2}
    assert "R" not in standings(selected, "windows", [])


def test_a_check_of_the_bench_that_a_file_asks_for_is_not_untested() -> None:
    """It is no requirement on the target; where it was not made it is missing as any other."""
    selected = with_selected((), "linux-rt", CLOCKS, *of("R", "BENCH-SUMS"))
    value, check = (dataclasses.replace(record(), requirement=name) for name in ("R", "BENCH-SUMS"))
    assert list(standings(selected, "linux-rt", [value], [check])) == ["R"]
    assert standings(selected, "linux-rt", [value])["BENCH-SUMS"].state == "untested"


def test_the_manifest_keeps_it(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path, "virtual", "ci")
    assert run.manifest.asked is None
    skipped = (SkippedTest("T", "why", ("A",)),)
    selected = (SelectedSuite("linux-rt", CLOCKS, of("A"), skipped), SelectedSuite("w", EDGES))
    run.update(asked=selected)
    assert RunFolder.open(run.path).manifest.asked == selected
    assert selected_in(run.path, run.manifest) == selected
    run.update(commit="0" * 40)
    assert run.manifest.asked == selected


@pytest.fixture
def older(tmp_path: Path) -> RunFolder:
    """A run of the version before: files, and a note of who has read them."""
    run = RunFolder.create(tmp_path, "virtual", "ci")
    kept = run.evidence_folder(KEPT.name)
    for name, ids in (("daq.toml", ("D1", "D2")), ("clocks.toml", ("C",)), ("loose.toml", ("L",))):
        (kept / name).write_text("".join(f'[[requirement]]\nid = "{each}"\n' for each in ids))
    (kept / "damaged.toml").write_text("[")
    noted: list[dict[str, object]] = [
        {"target": "linux-rt", "suites": "daq_replay", "files": ["daq.toml"]},
        {"target": "linux-rt", "suites": "clock_sync", "files": ["clocks.toml"]},
        {"target": "windows", "suites": "daq_replay", "files": []},
    ]
    (kept / "asked.json").write_text(json.dumps({"asked": noted, "schema": "benchwright.asked/1"}))
    return run


def test_a_run_of_the_version_before_asks_the_files_that_its_suites_read(older: RunFolder) -> None:
    selected = selected_in(older.path, older.manifest)
    assert set(selected_of(selected, "linux-rt")) == {"D1", "D2", "C", "L"}
    assert set(selected_of(selected, "windows")) == {"D1", "D2", "L"}, (
        "its suite broke off; no suite read the last"
    )


@pytest.mark.parametrize("damage", [None, "{"])
def test_where_nothing_says_what_was_asked_all_was(older: RunFolder, damage: str | None) -> None:
    note = older.path / KEPT / "asked.json"
    note.unlink()
    if damage is not None:
        note.write_text(damage)
    selected = selected_in(older.path, older.manifest)
    assert set(selected_of(selected, "windows")) == {"D1", "D2", "C", "L"}
    text = older.manifest.to_text()
    assert Manifest.from_text(text).asked is None


def measured(requirement: str, stack: str) -> Measurement:
    seen = record()
    subject = dataclasses.replace(seen.subject, target="arm", stack=stack)
    return dataclasses.replace(seen, requirement=requirement, subject=subject, outcome="pass")


def test_each_of_several_network_stacks_stands_for_itself(tmp_path: Path) -> None:
    selected: tuple[SelectedSuite, ...] = ()
    for stack in ("kernel", "user"):
        selected = with_selected(selected, "arm", "latency.robot", stack=stack)
    selected = with_selected(selected, "arm", "clocks.robot", SelectedFile("clocks.toml", ("C-1",)))
    selected = with_selected(
        selected, "arm", "latency.robot", SelectedFile("daq.toml", ("R-1", "R-2")), "kernel"
    )
    selected = with_skipped(selected, "arm", "latency.robot", SkippedTest("b", "has none", ("R-2",)), "user")
    assert stacks_of(selected, "arm") == ("kernel", "user")
    assert chosen_stack(selected, "arm", "latency.robot", "user") == "user"
    assert chosen_stack(selected, "arm", "clocks.robot", "user") is None

    seen = measured("R-1", "kernel")
    found = standings(selected, "arm", [seen])
    assert {name: each.state for name, each in found.items()} == {
        "R-1 \u00b7 kernel": "pass",
        "R-2 \u00b7 kernel": UNTESTED,
        "R-1 \u00b7 user": UNTESTED,  # it never came to say what it asks
        "R-2 \u00b7 user": SKIPPED,
        "C-1": UNTESTED,
    }
    assert found["R-1 \u00b7 kernel"].requirement == "R-1"
    assert selected_of(selected, "arm")["R-2"].skipped == "has none"
    assert stacks_selected([selected], "arm") == {"R-1": ("kernel", "user"), "R-2": ("kernel", "user")}

    run = RunFolder.create(tmp_path, "virtual", "ci")
    run.update(asked=selected)
    assert RunFolder.open(run.path).manifest.asked == selected


def test_one_network_stack_alone_is_not_named() -> None:
    selected = with_selected((), "arm", "latency.robot", SelectedFile("daq.toml", ("R-1",)), "user")
    found = standings(selected, "arm", [measured("R-1", "user")])
    assert {name: each.state for name, each in found.items()} == {"R-1": "pass"}
    assert stacks_selected([selected], "arm") == {}
