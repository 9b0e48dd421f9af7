# SPDX-License-Identifier: Apache-2.0
"""How a run came out is worked out again: no other word in the manifest, and no reason taken out of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reports.rejudge.run import rejudge
from reports.run.failed_tests import FailedTest
from reports.run.folder import MANIFEST, RunFolder
from reports.run.outcome import outcome_of
from reports.run.xunit import note_outcome
from tests.reports.sample_run import Disturbance, make_run, make_run_of_targets

LATE = Disturbance(path_delay_ns={33: 15_000_000})
LINE = "run.json: outcome is {}, and everything else in the run says {}"


def _ended(run: RunFolder, xunit: Path) -> Path:
    """End a run as the listener does."""
    run.close()
    xunit.write_text('<testsuite tests="0" failures="0" />')
    run.update(outcome=(came_out := outcome_of(run, finalising=True)).outcome)
    note_outcome(xunit, came_out)
    return run.path


def _said(run: Path) -> list[str]:
    return [each for each in rejudge(run).problems if "outcome is" in each]


def _change(run: Path, **changes: Any) -> None:
    manifest: dict[str, Any] = json.loads((run / MANIFEST).read_text())
    kept = {name: value for name, value in {**manifest, **changes}.items() if value is not None}
    (run / MANIFEST).write_text(json.dumps(kept))


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return make_run(tmp_path, close=False)


@pytest.mark.parametrize("outcome", ["fail", "error", "inconclusive", "unset"])
def test_another_word_is_named(run: RunFolder, outcome: str) -> None:
    path = _ended(run, run.path / "xunit.xml")
    assert _said(path) == []
    _change(path, outcome=outcome)
    assert _said(path) == [
        LINE.format(outcome, "pass"),
        f"run.json: outcome is {outcome}, xunit.xml has pass",
    ]


def test_a_fail_is_none_that_passed(tmp_path: Path) -> None:
    run = make_run(tmp_path, LATE, LATE, close=False)
    path = _ended(run, run.path / "xunit.xml")
    assert _said(path) == []
    _change(path, outcome="pass")
    assert LINE.format("pass", "fail") in _said(path)


def test_a_problem_cannot_be_taken_out(run: RunFolder) -> None:
    """Whether the outcome stays as it was, or becomes what the rest says: the xUnit file has it, too."""
    run.add_problem("check the measurements: no record of DAQ-999")
    path = _ended(run, run.path / "xunit.xml")
    assert _said(path) == []
    _change(path, problems=[])
    assert _said(path) == [LINE.format("error", "pass")]
    _change(path, outcome="pass")
    assert _said(path) == ["run.json: outcome is pass, xunit.xml has error"]


def test_a_run_whose_process_died_did_not_come_to_its_end(run: RunFolder) -> None:
    run.close()
    run.update(outcome="inconclusive")
    _change(run.path, finished_utc=json.loads((run.path / MANIFEST).read_text())["end_utc"])
    assert _said(run.path) == []
    _change(run.path, finished_utc=None)
    assert _said(run.path) == [LINE.format("inconclusive", "pass")]


def test_with_a_failed_test_it_may_be_worse_but_is_no_pass(run: RunFolder) -> None:
    run.update(failed_tests=(FailedTest("linux-rt", "Clock", "MEASUREMENT ERROR: nothing came"),))
    path = _ended(run, run.path / "xunit.xml")
    assert _said(path) == []
    (path / "xunit.xml").unlink()
    for outcome in ("fail", "error", "inconclusive"):
        _change(path, outcome=outcome)
        assert _said(path) == []
    _change(path, outcome="pass")
    assert _said(path) == [LINE.format("pass", "fail or error or inconclusive or unset")]


def test_of_several_targets_one_without_a_value_leaves_it_unset(tmp_path: Path) -> None:
    run = make_run_of_targets(tmp_path, close=False)
    run.update(target={"native": {"hostname": "native", "kernel": {"release": "6.12"}}})
    assert _said(_ended(run, tmp_path / "xunit.xml")) == []


@pytest.mark.parametrize("name", ["xunit.xml", "output.xml"])
def test_a_file_that_is_no_xml_is_damage(run: RunFolder, name: str) -> None:
    path = _ended(run, run.path / "xunit.xml")
    (path / name).write_text("<testsuite>")
    assert any("cannot be judged again: ParseError" in each for each in rejudge(path).problems)
