# SPDX-License-Identifier: Apache-2.0
"""Runs under the listener that do not end well: broken off, interrupted, killed, or with a spoilt folder."""

from __future__ import annotations

import json
import time

import pytest

from reports.__main__ import main
from reports.listener import EXIT_LISTENER_FAILED
from reports.patterns.kept import PATTERNS, read_patterns
from reports.rejudge.run import rejudge
from reports.run.failed_tests import FailedTest
from reports.run.folder import RunFolder
from reports.run.integrity import changed_files
from reports.run.outcome import outcome_of
from tests.reports.run.robot_runs import HEAD, Robot


@pytest.mark.slow
@pytest.mark.parametrize("error", ["", "the bench is stuck"])
def test_what_is_given_back_at_the_end_is_so_once_and_its_error_counts(robot: Robot, error: str):
    """After the last suite: a bench that cannot be given back is an error of the run, not only a line."""
    done = robot.run(f"Measures\n    Record\n    At The End    {error}\n")
    assert (robot.folder / "given-back.txt").read_text() == "once\n"
    assert done.returncode == (EXIT_LISTENER_FAILED if error else 0), done.stdout + done.stderr
    said = f"give the bench back: RuntimeError: {error}"
    assert robot.latest().manifest.problems == ((said,) if error else ())


@pytest.mark.slow
def test_a_test_that_breaks_off_leaves_no_page_that_says_pass(robot: Robot):
    done = robot.run(
        "Measures\n    Record\nBreaks Off\n    Fail    MEASUREMENT ERROR: nothing came\n",
        "--variable",
        "TARGET:linux-rt",
    )
    assert done.returncode == 1
    run = robot.latest()
    assert run.manifest.failed_tests == (
        FailedTest("linux-rt", "Breaks Off", "MEASUREMENT ERROR: nothing came"),
    )
    page = (run.path / "qualification.html").read_text()
    assert "<title>UNSET" in page
    assert "linux-rt: Breaks Off failed: MEASUREMENT ERROR: nothing came" in page


@pytest.mark.parametrize(
    ("message", "outcome"),
    [("BENCH ERROR: the time server has died", "error"), ("MEASUREMENT ERROR: gone", "unset")],
)
def test_a_suite_whose_teardown_fails_leaves_no_pass(robot: Robot, message: str, outcome: str):
    """Its tests have ended by then, and have passed: Robot Framework fails them afterwards."""
    head = HEAD.replace("\n\n", f"\nSuite Teardown    Fail    {message}\n\n", 1)
    done = robot.run("Measures\n    Record\n", "--variable", "TARGET:linux-rt", head=head)
    assert done.returncode == EXIT_LISTENER_FAILED
    run = robot.latest()
    failed = FailedTest("linux-rt", "Tests", f"Suite teardown failed: {message}")
    assert (run.manifest.outcome, run.manifest.failed_tests) == (outcome, (failed,))
    assert f"linux-rt: Tests failed: Suite teardown failed: {message}" in (
        (run.path / "qualification.html").read_text()
    )
    discrepancy = "run.json: failed_tests are not those of output.xml"
    assert discrepancy not in rejudge(run.path).problems
    manifest = json.loads((run.path / "run.json").read_text())
    (run.path / "run.json").write_text(json.dumps({**manifest, "failed_tests": [], "outcome": "pass"}))
    assert discrepancy in rejudge(run.path).problems


def test_an_inner_suite_whose_teardown_fails_leaves_no_pass(robot: Robot):
    """As each suite of a target is: the outermost one has no teardown of its own."""
    (robot.folder / "inner").mkdir()
    head = HEAD.replace("\n\n", "\nSuite Teardown    Fail    MEASUREMENT ERROR: gone\n\n", 1)
    (robot.folder / "inner" / "one.robot").write_text(head + "Measures\n    Record\n")
    (robot.folder / "inner" / "two.robot").write_text(
        HEAD + "Measures Too\n    Record    requirement=REQ-2\n"
    )
    robot.run("Passes\n    No Operation\n", "--variable", "TARGET:linux-rt", "inner")
    run = robot.latest()
    failed = FailedTest("linux-rt", "One", "Suite teardown failed: MEASUREMENT ERROR: gone")
    assert run.manifest.failed_tests == (failed,)
    assert run.manifest.outcome == "unset"


@pytest.mark.slow
@pytest.mark.parametrize("what", ["link", "records"])
def test_a_folder_that_cannot_be_completed_is_no_success(robot: Robot, what: str):
    done = robot.run(f"Passes\n    Spoil    {what}\n")
    assert done.returncode == EXIT_LISTENER_FAILED
    assert "[ ERROR ] run folder:" in done.stderr


def test_a_killed_robot_leaves_its_records_and_the_next_one_goes_on(robot: Robot):
    robot.run("Dies\n    Record\n    Spoil    kill\n")
    (folder,) = robot.runs()
    run = RunFolder.open(folder)
    assert len(run.records().measurements) == 1
    assert run.manifest.end_utc is None
    assert not (robot.folder / "results" / "latest").exists()
    done = robot.run("Measures\n    Record\n", "--listener", f"reports.listener.Listener:run_folder={folder}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert robot.runs() == [folder]
    assert len(robot.latest().records().measurements) == 2


@pytest.mark.parametrize(
    ("progress", "counted"),
    [
        ("replaying daq12: 10 of 60 s", "at least 10 of 60 s counted"),
        ("replaying daq12: warming up", "after 'replaying daq12: warming up'"),
        ("", ""),
    ],
)
def test_an_interrupted_run_says_so_and_how_much_was_counted(robot: Robot, progress: str, counted: str):
    """And neither what Robot Framework calls it nor that it stopped the tests behind it."""
    robot.run(
        f"Measures\n    Record\nIs Interrupted\n    Is Interrupted    {progress or '${EMPTY}'}\n"
        "Behind It\n    Record    50\n"
    )
    run = robot.latest()
    assert run.manifest.interrupted == counted
    came_out = outcome_of(run)
    words = f", {counted}" if counted else ""
    said = f"The run was interrupted{words}; 2 tests were not begun or ended."
    assert (came_out.outcome, came_out.exit_code, came_out.reasons) == ("inconclusive", 4, (said,))
    page = (run.path / "qualification.html").read_text()
    assert "<title>INCONCLUSIVE" in page
    assert "The run was interrupted" in page
    assert "fatal error" not in page
    assert not [problem for problem in rejudge(run.path).problems if "run.json" in problem]


def test_a_run_that_is_interrupted_in_its_setup_says_so(robot: Robot):
    """Where most of the measuring is: its tests say only that they were stopped."""
    head = HEAD.replace(
        "*** Test", "Suite Setup    Is Interrupted    replaying daq12: 10 of 60 s\n\n*** Test"
    )
    robot.run("Measures\n    Record\nBehind It\n    Record    50\n", head=head)
    run = robot.latest()
    assert run.manifest.interrupted == "at least 10 of 60 s counted"
    came_out = outcome_of(run)
    assert (came_out.outcome, came_out.exit_code) == ("inconclusive", 4)
    assert "The run was interrupted, at least 10 of 60 s counted; 2 tests" in " ".join(came_out.reasons)


def test_the_series_of_a_run_are_searched_as_it_ends(robot: Robot):
    """What is found is part of the run: listed, summed, sealed, on its page."""
    done = robot.run("Measures\n    Record\n    Ring\n", "--variable", "TARGET:linux-rt")
    assert done.returncode == 0, done.stdout + done.stderr
    run = robot.latest()
    found = read_patterns(run.path)
    assert found is not None
    assert "whole" in {each.name for each in found.series}
    assert run.manifest.file_sizes_bytes is not None
    assert run.manifest.file_sizes_bytes[PATTERNS] == (run.path / PATTERNS).stat().st_size
    assert "series were searched for patterns" in (run.path / "qualification.html").read_text()
    assert changed_files(run.path) == []
    assert not [each for each in rejudge(run.path).problems if "patterns" in each]


def test_a_run_killed_while_its_page_was_written_is_no_pass_and_can_be_finished(
    robot: Robot, capsys: pytest.CaptureFixture[str]
):
    robot.run("Measures\n    Record\n")
    before = robot.latest()
    time.sleep(1.0)  # the next run is of another second
    robot.run("Measures\n    Record\n    Spoil    kill at the page\n")
    (path,) = {*robot.runs()} - {before.path}
    run = RunFolder.open(path)
    assert run.manifest.end_utc is not None
    assert not run.is_held
    assert outcome_of(run).outcome == "inconclusive"
    latest = robot.folder / "results" / "latest"
    assert main(["show", str(latest)]) == 0
    shown = capsys.readouterr().out
    newer = f"a newer run {run.run_id} was not finalised: python -m reports show {path}"
    assert shown.startswith(f"{newer}\nPASS")
    assert main(["show", str(path)]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("INCONCLUSIVE")
    assert "not finalised" in shown
    assert "`python -m reports finish RUN`" in shown

    assert main(["finish", str(path)]) == 0
    assert changed_files(path) == []
    assert latest.resolve() == path
    capsys.readouterr()
    assert main(["show", str(latest)]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("INCONCLUSIVE")
    assert "after its process had died: it has no seal" in shown
    assert main(["finish", str(path)]) == 0
    assert not [problem for problem in rejudge(path).problems if "run.json" in problem]
