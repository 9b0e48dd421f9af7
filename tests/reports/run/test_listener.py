# SPDX-License-Identifier: Apache-2.0
"""The listener under a real `robot`: the run folder is complete, or the exit code says that it is not."""

from __future__ import annotations

import os
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from reports.page.render import render
from reports.rejudge.listed import listed_discrepancies
from reports.rejudge.run import rejudge
from reports.run.integrity import changed_files
from reports.run.left_out import LeftOut
from tests.reports.run.robot_runs import Robot
from tests.reports.sample_run import make_run


def test_a_run_that_passes_leaves_a_complete_verified_folder(robot: Robot):
    done = robot.run(
        "Measures\n    [Tags]    requirement:REQ-1\n    Record\nSkips\n    Skip    no hardware\n"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    run = robot.latest()
    assert run.path.name.endswith("-virtual-ci")
    for name in ("output.xml", "log.html", "report.html", "xunit.xml", "qualification.html", "SHA256SUMS"):
        assert (run.path / name).stat().st_size > 0, name
    assert changed_files(run.path) == []
    manifest = run.manifest
    assert (manifest.tests.passed, manifest.tests.failed, manifest.tests.skipped) == (1, 0, 1)
    assert manifest.counts["pass"] == 1
    assert manifest.simulated is True
    assert manifest.problems == ()
    assert manifest.host["cpus"] == os.cpu_count()
    assert manifest.tools["robotframework"].startswith("7.")
    assert str(run.path) in done.stdout
    assert sorted(p.name for p in robot.folder.glob("*.*ml")) == ["log.html", "output.xml", "report.html"]
    listed = manifest.file_sizes_bytes or {}
    assert {"output.xml", "log.html", "xunit.xml", "measurements.jsonl", "qualification.html"} <= set(listed)
    assert list(listed_discrepancies(run.path, {"file_sizes_bytes": listed})) == []
    page = (run.path / "qualification.html").read_text()
    assert render(run.path) == page, "it shows the manifest's hash: nothing is written into that after it"


@pytest.mark.slow
def test_the_xunit_file_names_the_tests(robot: Robot):
    robot.run("Measures\n    Record\n")
    suite = ET.parse(robot.latest().path / "xunit.xml").getroot()  # noqa: S314 - our own file
    assert [case.get("name") for case in suite.iter("testcase")] == ["Measures", "Outcome of the run"]
    assert (suite.get("tests"), suite.get("failures")) == ("2", "0")


@pytest.mark.slow
def test_robots_own_exit_code_stays_where_nothing_is_wrong_with_the_folder(robot: Robot):
    done = robot.run("Fails\n    Record    50\nFails too\n    Fail    for good\n")
    assert done.returncode == 2
    assert "FAIL: 50 ns is over 10 ns" in done.stdout
    assert robot.latest().manifest.counts["fail"] == 1
    assert changed_files(robot.latest().path) == []


def test_the_manifest_keeps_what_the_profile_leaves_out(robot: Robot):
    """And `verify` takes it."""
    (robot.folder / "leaves_out.py").write_text(
        "from reports.run.current import set_left_out\n"
        "from reports.run.left_out import LeftOut\n"
        "class Modifier:\n"
        "    def visit_suite(self, suite):\n"
        "        set_left_out([LeftOut('linux-rt', 'a/b.robot', ('Long',), whole=True)])\n"
    )
    modifier = ["--pythonpath", str(robot.folder), "--prerunmodifier", "leaves_out.Modifier"]
    robot.run("Measures\n    Record\n", *modifier)
    run = robot.latest()
    assert run.manifest.left_out == (LeftOut("linux-rt", "a/b.robot", ("Long",), whole=True),)
    assert run.manifest.outcome == "pass"
    assert not [problem for problem in rejudge(run.path).problems if "left_out" in problem]
    robot.run("Measures\n    Record\n")
    assert robot.latest().manifest.left_out is None


@pytest.mark.slow
def test_without_a_bench_nothing_is_run(robot: Robot):
    done = robot.run("Would pass\n    Log To Console    was run\n", named=False)
    assert done.returncode not in (0, 1)
    assert "${BENCH} is not set" in done.stderr
    assert "was run" not in done.stdout
    assert robot.runs() == []


@pytest.mark.slow
def test_a_results_folder_that_cannot_be_made_ends_the_run_at_once(robot: Robot):
    (robot.folder / "results").write_text("a file")
    done = robot.run("Would pass\n    Log To Console    was run\n")
    assert done.returncode not in (0, 1)
    assert "was run" not in done.stdout
    assert "results" in done.stderr


def test_the_run_folder_is_told_before_the_tests_run(robot: Robot):
    told = robot.folder / "told.txt"
    robot.run("Dies\n    Spoil    kill\n", "--listener", f"reports.listener.Listener;tell={told}")
    assert [Path(told.read_text().rstrip("\n"))] == robot.runs()


@pytest.mark.slow
def test_a_finalised_folder_is_not_opened_again(robot: Robot):
    run = make_run(robot.folder / "old")
    run.finalise()
    done = robot.run(
        "Measures\n    Record\n", "--listener", f"reports.listener.Listener:run_folder={run.path}"
    )
    assert done.returncode not in (0, 1)
    assert "finalised" in done.stderr
    assert changed_files(run.path) == []


@pytest.mark.slow
def test_bench_profile_and_results_may_be_arguments(robot: Robot):
    listener = "reports.listener.Listener:results=elsewhere:bench=lab7:profile=soak"
    assert robot.run("Measures\n    Record\n", "--listener", listener, named=False).returncode == 0
    (folder,) = (robot.folder / "elsewhere").glob("2*")
    assert folder.name.endswith("-lab7-soak")


@pytest.mark.slow
def test_output_files_with_names_of_their_own_have_copies_under_the_usual_ones(robot: Robot):
    done = robot.run(
        "Measures\n    Record\n",
        "--outputdir",
        "out",
        "--output",
        "o.xml",
        "--log",
        "l.html",
        "--xunit",
        "x.xml",
    )
    assert done.returncode == 0
    assert (robot.latest().path / "output.xml").is_file()
    assert (robot.latest().path / "xunit.xml").is_file()
    found = sorted(path.name for path in (robot.folder / "out").iterdir())
    assert found == ["l.html", "o.xml", "report.html", "x.xml"]


@pytest.mark.slow
def test_a_dry_run_makes_no_run_folder(robot: Robot):
    assert robot.run("Measures\n    Record\n", "--dryrun").returncode == 0
    assert robot.runs() == []


@pytest.mark.slow
def test_keywords_without_the_listener_are_told_what_to_do(robot: Robot):
    (robot.folder / "nothing.py").write_text("class nothing:\n    ROBOT_LISTENER_API_VERSION = 3\n")
    done = robot.run("Measures\n    Record\n", "--listener", "nothing")
    assert done.returncode == 1
    assert "--listener reports.listener.Listener" in done.stdout


@pytest.mark.slow
def test_a_repeat_lists_the_attempts_before_it(robot: Robot):
    measures = "Measures\n    [Tags]    requirement:REQ-1\n    Record    {value}\n"
    robot.run(measures.format(value=10))  # on the limit: within U of it, so inconclusive
    first = robot.latest()
    listener = f"reports.listener.Listener;earlier={first.path.relative_to(robot.folder)}"
    robot.run(measures.format(value=5), "--listener", listener)
    second = robot.latest()
    assert [(a.number, a.outcome) for a in second.manifest.attempts] == [(1, "inconclusive"), (2, "pass")]
    assert first.run_id in second.manifest.attempts[0].reason
    assert first.run_id in (second.path / "qualification.html").read_text()
