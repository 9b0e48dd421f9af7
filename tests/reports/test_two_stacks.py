# SPDX-License-Identifier: Apache-2.0
"""A run with two network stacks of one target: outcome, page, store, second judge, and what is missing."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dashboards.points import run_points
from reports.daq_replay.section import LatencySection
from reports.dossier.attempts import Candidate
from reports.dossier.conclusion import row_words
from reports.dossier.traceability import TargetTrials, matrix
from reports.dossier.waivers import NONE
from reports.page.model import gather_run
from reports.page.not_passed import not_passed
from reports.page.render import PAGE, render_pages
from reports.record.measurement import Measurement
from reports.rejudge.latency import latency_discrepancies
from reports.rejudge.missing import missing_discrepancies
from reports.rejudge.selected import selected_discrepancies
from reports.requirement_forms import read_set
from reports.run.failed_tests import FailedTest, beyond_records, in_words
from reports.run.folder import MANIFEST, MEASUREMENTS, RunFolder
from reports.run.outcome import outcome_of
from reports.run.selected import SelectedFile, with_selected
from tests.reports.sample_run import ROOT, Disturbance, add_attempt, make_run_of_targets

TARGET, SUITE = "linux-rt", "daq_replay/latency_budgets.robot"
STACKS = ("kernel", "user")
STREAMS = tuple(f"DAQ-{stream:03d}" for stream in (10, 11, 12, 13))


def made(results: Path, *measured: str) -> RunFolder:
    """Make a run that asks producer 1 of a target with two stacks, and measures it with some of them."""
    run = RunFolder.create(results, "virtual", "ci", simulated=True, commit="0" * 40)
    kept = run.evidence_folder("requirements") / "daq12.toml"
    kept.write_bytes((ROOT / "robot" / "daq_replay" / "requirements" / "daq12.toml").read_bytes())
    asked = run.manifest.asked or ()
    for stack in STACKS:
        asked = with_selected(asked, TARGET, SUITE, SelectedFile(kept.name, STREAMS), stack)
    run.update(asked=asked)
    for seed, stack in enumerate(measured):
        slow = Disturbance(path_delay_ns={13: 2_000_000} if stack == "user" else {})
        for number in (1, 2):
            drawn = Disturbance() if stack == "kernel" else slow
            options: dict[str, Any] = {"simulated": True, "target": TARGET, "producers": (1,), "stack": stack}
            add_attempt(run, number, drawn, 10 * seed + number, **options)
    for check in run.path.rglob("known_delay.json"):
        check.unlink()  # nobody judges it here
    run.update(outcome="pass")
    run.close()
    return run


def judged_again(run: RunFolder) -> list[str]:
    """Return what the second judge says of what is asked, of what is missing and of the latencies."""
    manifest = json.loads((run.path / MANIFEST).read_text())
    records = [json.loads(line) for line in (run.path / MEASUREMENTS).read_text().splitlines()]
    found, count = latency_discrepancies(run.path, records)
    assert count == len(records)
    found += [
        *selected_discrepancies(run.path, manifest, records),
        *missing_discrepancies(run.path, manifest, records),
    ]
    return [each for each in found if ".err is not beside it" not in each]


def test_both_stacks_have_their_values_their_evidence_and_their_points(tmp_path: Path) -> None:
    run = made(tmp_path, *STACKS)
    found = outcome_of(run, finalising=True)
    assert found.outcome == "pass"
    assert found.states == {"pass": 8}
    assert judged_again(run) == []
    points = run_points(run, "main").points
    tagged = {
        (point.tags["stack"], point.tags["requirement"]) for point in points if "requirement" in point.tags
    }
    assert tagged == {(stack, name) for stack in STACKS for name in STREAMS}


def test_the_page_shows_streams_beside_each_other_by_stack(tmp_path: Path) -> None:
    run = made(tmp_path, *STACKS)
    [section] = [
        shown for _section, each in gather_run(run.path).whole.sections for shown in each
        if isinstance(shown, LatencySection)
    ]  # fmt: skip
    [compared] = section.comparisons
    assert compared.stacks == STACKS
    assert [row.stream for row in compared.rows] == ["10", "11", "12", "13"]
    values = [[cell and cell.record.value for cell in row.cells] for row in compared.rows]
    kernel, user = values[3]
    assert kernel is not None
    assert user is not None
    assert user > kernel + 1_000_000
    page = render_pages(run.path)[PAGE]
    assert "kernel: p99" in page
    assert "one way latency \u00b7 user" in page
    assert "user: p99" in page
    assert "daq_replay/linux-rt/user/attempt-2" in page


def test_a_run_with_one_stack_compares_none(tmp_path: Path) -> None:
    pages = render_pages(make_run_of_targets(tmp_path).path)
    assert not [name for name, text in pages.items() if "by network stack" in text]


def test_the_page_over_several_targets_compares_each_with_several_stacks(tmp_path: Path) -> None:
    run = made(tmp_path, *STACKS)
    add_attempt(run_again := RunFolder.open(run.path), 1, Disturbance(), 3, simulated=True, target="windows")
    pages = render_pages(run_again.path)
    assert pages[PAGE].count("Latency by network stack") == 1
    assert 'href="qualification-linux-rt.html#streams">linux-rt</a>' in pages[PAGE]
    assert f"{STREAMS[0]} \u00b7 user" in pages[PAGE]


def test_a_stack_without_a_value_is_named_by_page_outcome_and_second_judge(tmp_path: Path) -> None:
    run = made(tmp_path, "kernel")
    found = outcome_of(run, finalising=True)
    assert found.states == {"pass": 4, "untested": 4}
    assert found.requirements[f"{STREAMS[0]} \u00b7 user"].state == "untested"
    assert f"{STREAMS[0]} \u00b7 user" in render_pages(run.path)[PAGE]
    assert judged_again(run) == [
        f"run.json: asked: {name} of {TARGET} with stack user has no record, and the run passed"
        for name in STREAMS
    ]


def test_a_stack_that_nobody_asked_is_named(tmp_path: Path) -> None:
    run = made(tmp_path, *STACKS)
    file = run.path / MANIFEST
    manifest = json.loads(file.read_text())
    for suite in manifest["asked"]:
        suite["stack"] = "kernel"
    file.write_text(json.dumps(manifest))
    said = judged_again(run)
    assert any(
        f"{STREAMS[0]} was measured of {TARGET} with stack user, and no suite asks it" in s for s in said
    )


def test_an_attempt_of_one_stack_that_has_gone_is_missed(tmp_path: Path) -> None:
    run = made(tmp_path, *STACKS)
    folder = run.path / "evidence" / "daq_replay" / TARGET / "user"
    for file in (folder / "attempt-2").iterdir():
        file.unlink()
    (folder / "attempt-2").rmdir()
    manifest = json.loads((run.path / MANIFEST).read_text())
    manifest["attempts"] += [each for each in manifest["attempts"] if each["suite"].endswith("/user")][:1]
    said = list(missing_discrepancies(run.path, manifest, []))
    assert f"run.json: attempts: 3 of daq_replay/{TARGET}/user, its evidence has 1" in said
    loose = f"evidence/daq_replay/{TARGET}/kernel/attempt-1/recv.ndjson: a replay that no record names"
    assert loose in said


@pytest.fixture
def record(tmp_path: Path) -> Measurement:
    return made(tmp_path, "kernel").records().measurements[0]


def test_a_failed_test_of_one_stack_is_not_covered_by_the_record_of_another(record: Measurement) -> None:
    doubtful = replace(record, outcome="inconclusive")
    failed = FailedTest(TARGET, record.test, "MEASUREMENT ERROR: no answer", "user")
    assert beyond_records([failed], [doubtful]) == (failed,)
    assert beyond_records([replace(failed, stack="kernel")], [doubtful]) == ()
    assert beyond_records([replace(failed, stack=None)], [doubtful]) == ()
    assert in_words([failed]) == [f"{TARGET}, stack user: {record.test} failed: {failed.message}"]


@pytest.mark.parametrize(("skipped", "status"), [("", "untested"), ("it has none", "skipped")])
def test_the_dossier_misses_a_stack_without_a_value(record: Measurement, skipped: str, status: str) -> None:
    file = read_set(
        (ROOT / "robot" / "daq_replay" / "requirements" / "daq12.toml").read_bytes(), "daq12.toml"
    )
    [asked] = [each for each in file.requirements if each.id == record.requirement]
    tried = TargetTrials(
        "linux-rt on bench-1", [Candidate("run", 1, record, False, ())], NONE, lambda _attempt: None
    )

    def row(*stacks: str) -> str:
        of = {asked.id: stacks}
        [found] = matrix([(file, asked)], {asked.id: skipped} if skipped else {}, tried, frozenset(), of)
        assert found.missing == (("stack user",) if "user" in stacks else ())
        return row_words(found)

    assert row("kernel") == "pass"
    assert row() == "pass"
    assert row(*STACKS) == f"{status}: {skipped or 'stack user'}"
    failed = replace(record, outcome="fail", reason="too late")
    tried = TargetTrials(
        "linux-rt on bench-1", [Candidate("run", 1, failed, False, ())], NONE, lambda _attempt: None
    )
    assert row(*STACKS) == "fail: too late"


def test_what_did_not_pass_names_its_stack(tmp_path: Path) -> None:
    run = made(tmp_path, "kernel")
    rows = not_passed([gather_run(run.path).whole], {})
    assert [each.requirement for each in rows] == [f"{name} \u00b7 user" for name in STREAMS]
