# SPDX-License-Identifier: Apache-2.0
"""The listener under a real `robot`: the run folder is complete, or the exit code says that it is not."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path

import pytest

from reports.__main__ import main
from reports.listener import EXIT_LISTENER_FAILED
from reports.page.render import render
from reports.rejudge.listed import listed_objections
from reports.rejudge.run import rejudge
from reports.run.asked import AskedFile, AskedSuite, SkippedTest
from reports.run.failed_tests import FailedTest
from reports.run.folder import RunFolder
from reports.run.integrity import changed_files
from reports.run.left_out import LeftOut
from reports.run.outcome import outcome_of
from tests.reports.sample_run import make_run

ROOT = Path(__file__).resolve().parents[3]

LIBRARY = '''
"""Keywords that write to the current run folder as the project's libraries do."""
import os, signal
import reports
from reports import *
from reports.record.measurement import utc_now

def record(value=5, requirement="REQ-1", target="linux-rt", stack=None):
    """Record a value against an upper limit of 10 ns."""
    run = reports.current_run()
    file = run.evidence_folder("listener") / "value.txt"
    file.write_text(str(value))
    limit = Limit(10, None, "the test")
    band = Uncertainty.from_parts([UncertaintyPart("resolution", "bound", 1)])
    verdict = judge(int(value), limit, band, n=5, n_required=3, unit="ns")
    run.append(Measurement(
        SCHEMA, run.run_id, "test", requirement, "sync_offset", "max", int(value), "ns", 5, 3, 0, 0, limit,
        band, verdict.margin, RULE, verdict.outcome, verdict.reason, Subject("virtual", target, stack),
        Conditions("ci"), True, (run.evidence(file),), utc_now()))
    if verdict.outcome != "pass":
        raise AssertionError(verdict.message)

def read(path):
    """Read a requirements file as the suites do."""
    from pathlib import Path
    from resources.requirements_file import load_requirements_file
    load_requirements_file(Path(path), "one_way_latency")

def at_the_end(error=""):
    """Ask for something when the run ends; twice, it is done once."""
    from reports.run.current import at_end_of_run
    def give_back():
        with open("given-back.txt", "a") as file:
            file.write("once\\n")
        if error:
            raise RuntimeError(error)
    at_end_of_run(give_back)
    at_end_of_run(give_back)

def spoil(what):
    """Break the run folder in one way."""
    run = reports.current_run()
    if what == "link":
        (run.path / "evidence" / "link").symlink_to("/dev/null")
    elif what == "records":
        (run.path / "measurements.jsonl").write_text("not a record\\n")
    elif what == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif what == "kill at the page":
        from reports.page import render
        render.write_page = lambda path: os.kill(os.getpid(), signal.SIGKILL)

def is_interrupted(progress):
    """Be interrupted, as by Ctrl-C, when something was said of the progress."""
    import time
    from resources.keywords.bench import say
    if progress:
        say(progress)
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(10)
'''

HEAD = "*** Settings ***\nLibrary    keywords_of_test.py\n\n*** Test Cases ***\n"


@dataclass
class Robot:
    """A folder to run `robot` in, and the results of one execution."""

    folder: Path

    def run(
        self, tests: str, *options: str, named: bool = True, head: str = HEAD
    ) -> subprocess.CompletedProcess[str]:
        """Run tests; returns the process, whose exit code is that of robot."""
        (self.folder / "keywords_of_test.py").write_text(LIBRARY)
        (self.folder / "tests.robot").write_text(head + tests)
        names = ["--variable", "BENCH:hw/benches/virtual.yaml", "--variable", "PROFILE:ci"] if named else []
        listener = [] if "--listener" in options else ["--listener", "reports.listener.Listener"]
        command = [sys.executable, "-m", "robot", *listener, *names, *options, "tests.robot"]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(self.folder)])}
        return subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False
        )

    def latest(self) -> RunFolder:
        """Return the run folder that `results/latest` points at."""
        return RunFolder.open(self.folder / "results" / "latest")

    def runs(self) -> list[Path]:
        """Return all run folders."""
        return sorted((self.folder / "results").glob("2*"))


@pytest.fixture
def robot(tmp_path: Path) -> Robot:
    return Robot(tmp_path)


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
    assert list(listed_objections(run.path, {"file_sizes_bytes": listed})) == []
    page = (run.path / "qualification.html").read_text()
    assert render(run.path) == page, "it shows the manifest's hash: nothing is written into that after it"


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


ASKING = '''
"""A library that judges by requirements as those of the project do."""
from pathlib import Path
from robot.api import SkipExecution
from reports.run.current import judges
from resources.keywords.asks import AsksRequirements, of_subjects
from resources.keywords.robot_api import keyword, library

@library(scope="SUITE", listener="SELF")
class AskingOfTest(AsksRequirements):
    def asked(self, named):
        yield Path("limits.toml"), of_subjects({"R-ONE": "one", "R-TWO": "two", "R-NONE": "none"}, named)

    @keyword
    def look_at(self, subject):
        judges(f"R-{subject.upper()}")
        if subject == "two":
            raise SkipExecution("no second clock")
'''

SUITE_THAT_ASKS = """Judges One
    Look At    one
    Record    target=${TARGET}
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
    requirements = ROOT / "robot" / "requirements" / "daq12.toml"
    reads = f"Reads\n    Read    {requirements}\n"
    done = robot.run(
        reads + SUITE_THAT_ASKS, "--prerunmodifier", "resources.every_target.EveryTarget:linux-rt:windows"
    )
    assert "no test failed, but the run is unset" in done.stderr, done.stdout + done.stderr
    run = robot.latest()
    suite = f"{robot.folder.name}/tests.robot"
    setup = "Skipped in parent suite setup: no bench"
    two = ("R-ONE", "R-TWO")
    asks = (AskedFile("limits.toml", two),)
    assert run.manifest.asked == (
        AskedSuite(
            "linux-rt",
            suite,
            asks,
            (
                SkippedTest("Judges Two", "no second clock", ("R-TWO",)),
                SkippedTest("Names Nothing", "not today"),
            ),
        ),
        AskedSuite(
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
        AskedSuite("linux-rt", suite, stack="kernel"),
        AskedSuite("linux-rt", suite, None, (SkippedTest("Skipped", "it has none"),), "user"),
    )
    assert manifest.failed_tests == (FailedTest("linux-rt", "Broken", "BENCH ERROR: gone", "user"),)
