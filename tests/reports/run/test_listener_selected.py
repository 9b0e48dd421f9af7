# SPDX-License-Identifier: Apache-2.0
"""What the tests of a run ask for, and what was measured of it: a test that only passed is no success."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from reports.listener import EXIT_LISTENER_FAILED
from reports.rejudge.run import rejudge
from reports.run.failed_tests import FailedTest
from reports.run.integrity import changed_files
from reports.run.selected import SelectedFile, SelectedSuite, SkippedTest
from tests.reports.run.robot_runs import HEAD, ROOT, Robot


@pytest.mark.slow
def test_skipped_tests_ask_for_nothing_but_show_nothing_either(robot: Robot):
    done = robot.run("Skips\n    [Tags]    requirement:REQ-1\n    Skip    no hardware\n")
    assert done.returncode == EXIT_LISTENER_FAILED
    assert "no test failed, but the run is unset" in done.stderr
    assert robot.latest().manifest.problems == ()


def test_a_run_whose_tests_passed_without_any_record_is_no_success(robot: Robot):
    assert robot.run("Passes\n    No Operation\n").returncode == EXIT_LISTENER_FAILED
    case = ET.parse(robot.latest().path / "xunit.xml").getroot().findall("testcase")[-1]  # noqa: S314 - our own
    failure = case.find("failure")
    assert failure is not None
    assert failure.get("message") == "UNSET"


@pytest.mark.slow
@pytest.mark.parametrize("asks", ["requirement:REQ-1", "measurement"])
def test_a_record_of_one_target_is_not_that_of_another(robot: Robot, asks: str):
    done = robot.run(
        f"Measures\n    [Tags]    {asks}\n    Record    target=linux-rt\n",
        "--prerunmodifier",
        "resources.every_target.EveryTarget:linux-rt:windows",
    )
    assert done.returncode == EXIT_LISTENER_FAILED
    assert "of windows, though" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("asks", ["[Tags]    requirement:REQ-1", "[Tags]    measurement"])
def test_a_passed_test_without_its_measurement_is_no_success(robot: Robot, asks: str):
    done = robot.run(f"Measures nothing\n    {asks}\n    No Operation\n")
    assert done.returncode == EXIT_LISTENER_FAILED
    assert "Measures Nothing" in done.stderr or "Measures nothing" in done.stderr
    assert any("Measures nothing" in problem for problem in robot.latest().manifest.problems)
    assert changed_files(robot.latest().path) == []


def test_a_measurement_of_another_requirement_is_not_the_one_asked_for(robot: Robot):
    done = robot.run("Measures\n    [Tags]    requirement:REQ-2\n    Record    5    REQ-1\n")
    assert done.returncode == EXIT_LISTENER_FAILED
    assert "REQ-2" in done.stderr


@pytest.mark.slow
def test_requirements_in_metadata_count_too(robot: Robot):
    tests = "Measures\n    [Metadata]    Requirement    REQ-1, REQ-2\n    Record    5    REQ-1\n"
    done = robot.run(tests)
    assert done.returncode == EXIT_LISTENER_FAILED, done.stdout
    assert "no record of REQ-2" in done.stderr


ASKING = '''
"""A library that judges by requirements as those of the project do."""
from pathlib import Path
from robot.api import SkipExecution
from reports.run.current import judges
from resources.keywords.requirement_scope import RequirementScope, of_subjects
from resources.keywords.robot_api import keyword, library

@library(scope="SUITE", listener="SELF")
class AskingOfTest(RequirementScope):
    def selected(self, named):
        yield Path("limits.toml"), of_subjects({"R-ONE": "one", "R-TWO": "two", "R-NONE": "none"}, named)

    @keyword
    def look_at(self, subject):
        judges(f"R-{subject.upper()}")
        if subject == "two":
            raise SkipExecution("no second clock")
        if subject == "none":
            raise RuntimeError("MEASUREMENT ERROR: nothing came")
'''
SUITE_THAT_ASKS = """Judges One
    Look At    one
    Record    requirement=R-ONE    target=${TARGET}
Judges Two
    Look At    two
Names Nothing
    Skip    not today
*** Settings ***
Library    asking_of_test.AskingOfTest
Suite Setup    Skip If    $TARGET == 'windows'    no bench
"""


@pytest.mark.slow
def test_suites_ask_before_anything_can_break_off_and_skipped_tests_leave_their_reasons(robot: Robot):
    """Reading is not asking; a target whose suite is skipped as a whole was asked all the same."""
    (robot.folder / "asking_of_test.py").write_text(ASKING)
    (robot.folder / "limits.toml").write_text("# kept as it is")
    requirements = ROOT / "robot" / "daq_replay" / "requirements" / "daq12.toml"
    reads = f"Reads\n    Read    {requirements}\n"
    done = robot.run(
        reads + SUITE_THAT_ASKS, "--prerunmodifier", "resources.every_target.EveryTarget:linux-rt:windows"
    )
    assert "no test failed, but the run is unset" in done.stderr, done.stdout + done.stderr
    run = robot.latest()
    suite = f"{robot.folder.name}/tests.robot"
    setup = "Skipped in parent suite setup: no bench"
    two = ("R-ONE", "R-TWO")
    asks = (SelectedFile("limits.toml", two),)
    assert run.manifest.asked == (
        SelectedSuite(
            "linux-rt",
            suite,
            asks,
            (
                SkippedTest("Judges Two", "no second clock", ("R-TWO",)),
                SkippedTest("Names Nothing", "not today"),
            ),
        ),
        SelectedSuite(
            "windows",
            suite,
            asks,
            tuple(
                SkippedTest(name, setup, two)
                for name in ("Reads", "Judges One", "Judges Two", "Names Nothing")
            ),
        ),
    )
    assert [path.name for path in (run.path / "evidence" / "requirements").iterdir()] == ["limits.toml"]
    page = (run.path / "qualification-windows.html").read_text()
    assert "no bench" in page
    assert "qualification-linux-rt.html" in {path.name for path in run.path.iterdir()}
    assert changed_files(run.path) == []
    problems = rejudge(run.path).problems
    assert not [each for each in problems if "skipped" in each], problems


def test_a_test_that_hides_the_error_of_a_keyword_that_judges_is_no_pass(robot: Robot) -> None:
    (robot.folder / "asking_of_test.py").write_text(ASKING)
    (robot.folder / "limits.toml").write_text("# kept as it is")
    tests = (
        "Judges One\n    Look At    one\n    Record    requirement=R-ONE\n"
        "Hides An Error\n    TRY\n        Look At    none\n    EXCEPT    AS    ${error}\n"
        "        Log    ${error}\n    END\n"
    )
    head = HEAD.replace("\n\n", "\nLibrary    asking_of_test.AskingOfTest\n\n", 1)
    done = robot.run(tests, head=head)
    assert done.returncode == EXIT_LISTENER_FAILED, done.stdout
    problem = "check the measurements: no record of R-NONE, though 'Tests.Hides An Error' passed (1 in all)"
    assert problem in done.stderr
    assert robot.latest().manifest.problems == (problem,)
    assert robot.latest().manifest.outcome == "error"


def test_each_network_stack_of_a_run_asks_skips_fails_and_measures_for_itself(robot: Robot) -> None:
    (robot.folder / "two_stacks.py").write_text(
        "from resources import every_target\n"
        "every_target.require_stacks = lambda *_: None\n"
        "class TwoStacks(every_target.EveryTarget):\n    pass\n"
    )
    head = HEAD.replace("***\nLibrary", "***\nMetadata    Network Stack    ${STACK}\nLibrary", 1)
    tests = (
        "Measured\n    [Tags]    requirement:REQ-1    measurement\n    Record    stack=kernel\n"
        "Skipped\n    Skip If    $STACK == 'user'    it has none\n"
        "Broken\n    Run Keyword If    $STACK == 'user'    Fail    BENCH ERROR: gone\n"
    )
    modifier = "two_stacks.TwoStacks:linux-rt:stacks=kernel,user"
    done = robot.run(tests, "--prerunmodifier", modifier, head=head)
    assert done.returncode == EXIT_LISTENER_FAILED, done.stdout
    assert "no record of REQ-1 of linux-rt with stack user, though" in done.stderr
    assert "holds no measurement of linux-rt with stack user, though" in done.stderr
    manifest = robot.latest().manifest
    suite = f"{robot.folder.name}/tests.robot"
    assert manifest.asked == (
        SelectedSuite("linux-rt", suite, stack="kernel"),
        SelectedSuite("linux-rt", suite, None, (SkippedTest("Skipped", "it has none"),), "user"),
    )
    assert manifest.failed_tests == (FailedTest("linux-rt", "Broken", "BENCH ERROR: gone", "user"),)
