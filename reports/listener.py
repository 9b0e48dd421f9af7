# SPDX-License-Identifier: Apache-2.0
"""The Robot Framework listener: opens the run folder, and closes it whatever happened in between.

    robot --listener reports.listener.Listener --variable BENCH:virtual --variable PROFILE:ci robot/

Arguments, each optional: `results=FOLDER` (where run folders are made, default `results`),
`run_folder=FOLDER` (an existing one to go on with), `bench=NAME`, `profile=NAME` (instead of the variables
${BENCH} and ${PROFILE}), `earlier=FOLDER,…` (run folders of earlier attempts at the same, which the
manifest and the page then list), `tell=FILE` (into which the path of the run folder is written when it is
open: `results/latest` may be another run's at any time). A bench may be named by its file.

Robot Framework only logs what a listener raises and keeps its own exit code, even 0. This listener
therefore catches its errors, names them on stderr and in the manifest, and ends the process with
EXIT_LISTENER_FAILED: at once where no run folder can be opened, at the very end otherwise. The same exit
code says that all tests passed or were skipped although the run did not pass (reports/run/outcome.py): 0 is a
pass, and nothing else is.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from robot.version import VERSION

from reports.durable import replace_file
from reports.errors import ReportError, RunFolderError
from reports.record.measurement import Outcome
from reports.run.current import set_current_run, take_at_end, take_judged, take_left_out, take_progress
from reports.run.failed_tests import MESSAGE_MAX, SIGNAL_MARK, FailedTest
from reports.run.files import write_file_list
from reports.run.folder import RunFolder
from reports.run.manifest import EARLIER, EARLIER_SUITE, TestCounts
from reports.run.outcome import outcome_of
from reports.run.provenance import OWN_NAME, commit_of, host_facts, source_of
from reports.run.robot_variable import robot_variable
from reports.run.seal import bench_key, key_file, seal
from reports.run.selected import (
    SkippedTest,
    chosen_stack,
    selected_suite,
    suite_name,
    with_selected,
    with_skipped,
)
from reports.run.xunit import note_outcome

_robot_api: Any = import_module("robot.api")  # no types of its own
_robot_context: Any = import_module("robot.running.context")
_xunit_writer: Any = import_module("robot.reporting.xunitwriter")

EXIT_LISTENER_FAILED = 254
"""Exit code of robot when the run folder is not what the tests promise; Robot uses 0-253 and 255."""

MEASUREMENT_TAG = "measurement"
REQUIREMENT = "requirement"
TARGET, STACK = "TARGET", "STACK"
"""Tests that ask for measurements carry this tag, or metadata (or a tag `requirement:ID`) with their ids."""


class Listener:
    """Keep the run folder of one execution of Robot Framework."""

    ROBOT_LISTENER_API_VERSION = 3

    def __init__(
        self,
        results: str = "results",
        run_folder: str = "",
        bench: str = "",
        profile: str = "",
        earlier: str = "",
        tell: str = "",
    ) -> None:
        """Remember where the run folder goes; it is opened with the first suite."""
        self._results = Path(results)
        self._existing = Path(run_folder) if run_folder else None
        self._names = {"BENCH": bench, "PROFILE": profile}
        self._tell = Path(tell) if tell else None
        self._earlier = [Path(path) for path in earlier.split(",") if path]
        self._run: RunFolder | None = None
        self._problems: list[str] = []
        self._outputs: dict[str, Path] = {}
        self._status = {"PASS": 0, "FAIL": 0, "SKIP": 0}
        self._failed: list[FailedTest] = []
        self._interrupted: str | None = None
        self._stopped_after: str | None = None
        self._asked: dict[tuple[str, str | None, str], str] = {}
        self._selected_any: dict[tuple[str, str | None], str] = {}
        self._outcome: Outcome | None = None

    def start_suite(self, data: Any, _result: Any) -> None:
        """Open the run folder before the outermost suite starts; end robot where that is impossible."""
        if data.parent is not None or _is_dry_run():
            return
        try:
            self._run = self._open()
        except (ReportError, OSError) as error:
            self._problem("open", error)
            raise SystemExit(EXIT_LISTENER_FAILED) from error
        set_current_run(self._run)
        run = self._run
        self._step("note the suites", lambda: _note_suites(run, data))

    def _open(self) -> RunFolder:
        if self._existing is not None:
            run = RunFolder.open(self._existing)
            run.hold()
            torn = run.fix()
            if torn is not None:
                run.add_problem(
                    "an earlier execution was killed while it wrote a record; its torn line is kept"
                )
        else:
            bench = Path(self._name("BENCH")).stem
            run = RunFolder.create(self._results.absolute(), bench, self._name("PROFILE"))
            run.hold()
        if self._tell is not None:
            replace_file(self._tell, f"{run.path}\n".encode())
        commit, tools = commit_of(Path.cwd()), {"robotframework": VERSION}
        if commit is None and (source := source_of(Path.cwd())) is not None:
            tools[OWN_NAME] = source
        run.update(commit=commit, host=host_facts(), tools=tools)
        for path in self._earlier:
            before = RunFolder.open(path)
            run.add_attempt(EARLIER_SUITE, outcome_of(before).outcome, f"{EARLIER}{before.run_id}")
        return run

    def _name(self, variable: str) -> str:
        """Return the bench or the profile, from the listener's argument or Robot's variable."""
        value = self._names[variable]
        if not value:
            value = robot_variable(variable)
        if not value:
            raise RunFolderError(f"${{{variable}}} is not set: robot --variable {variable}:NAME …")
        return value

    def end_test(self, data: Any, result: Any) -> None:
        """Count the test; remember which measurements it names or judges if it passed, else what it says."""
        judged, progress = take_judged(), take_progress()
        self._status[str(result.status)] = self._status.get(str(result.status), 0) + 1
        if result.status == "FAIL":
            failed = self._note_failed(data.parent, str(result.name), result)
            if SIGNAL_MARK in failed.message and self._interrupted is None:
                self._interrupted = progress
            if failed.is_stopped and self._stopped_after is None:
                self._stopped_after = progress  # of the suite's setup, where that was interrupted
        if result.status == "SKIP":
            self._step("note a skipped test", lambda: self._note_skipped(data, result, judged))
        if result.status != "PASS":
            return
        name = str(result.full_name)
        tags = [str(tag) for tag in result.tags]
        for requirement in {*_requirements(tags, dict(result.metadata)), *map(str.upper, judged)}:
            self._asked[robot_variable(TARGET), self._stack_of(data.parent), requirement] = name
        if any(tag.lower() == MEASUREMENT_TAG for tag in tags):
            self._selected_any[robot_variable(TARGET), self._stack_of(data.parent)] = name

    def _note_failed(self, suite: Any, name: str, result: Any) -> FailedTest:
        """Keep what a test of a suite, or the suite's teardown, has failed with."""
        message = " ".join(str(result.message).split())[:MESSAGE_MAX]
        failed = FailedTest(robot_variable(TARGET), name, message, self._stack_of(suite))
        self._failed.append(failed)
        return failed

    def _stack_of(self, suite: Any) -> str | None:
        """Return the network stack that the run has chosen for a suite; None: none."""
        source = suite.source
        if self._run is None or source is None:
            return None
        selected = self._run.manifest.asked or ()
        return chosen_stack(selected, robot_variable(TARGET), suite_name(Path(source)), robot_variable(STACK))

    def _note_skipped(self, data: Any, result: Any, judged: Collection[str]) -> None:
        """Keep why a test was skipped; before it began, it would have judged what it names, else anything."""
        run, source = self._run, data.parent.source
        if run is None or run.finalised or source is None:
            return
        selected, target, suite = run.manifest.asked or (), robot_variable(TARGET), suite_name(Path(source))
        stack = self._stack_of(data.parent)
        asks = selected_suite(selected, target, suite, stack)
        ids = asks.requirements if asks else ()
        named = {*_requirements([str(tag) for tag in result.tags], dict(result.metadata))}
        named |= {requirement.upper() for requirement in judged}
        if not named and _skipped_before(result):
            named = {requirement.upper() for requirement in ids}
        reason = " ".join(str(result.message).split()).removeprefix("SKIPPED: ")[:MESSAGE_MAX]
        test = SkippedTest(
            str(result.name),
            reason,
            tuple(requirement for requirement in ids if requirement.upper() in named),
        )
        run.update(asked=with_skipped(selected, target, suite, test, stack))

    def end_suite(self, data: Any, result: Any) -> None:
        """Note an interrupted setup, and a teardown that failed: its tests have ended, and may have passed.

        Give the bench back when the outermost suite has ended.
        """
        if SIGNAL_MARK in str(result.message) and self._interrupted is None:
            self._interrupted = self._stopped_after or take_progress()
        if result.has_teardown and result.teardown.status == "FAIL":
            self._note_failed(data, str(result.name), result)
        if data.parent is None:
            self._do_at_end()

    def _do_at_end(self) -> None:
        """Do what was kept for the end; before the run is finalised, because it is part of the run.

        A bench that closes leaves its machines' last words as evidence, and that it cannot be given back is a
        problem of this run. Who starts the next run meanwhile gets another run folder, and disturbs none.
        """
        for action in take_at_end():
            self._step("give the bench back", action)

    def output_file(self, path: Path | None) -> None:
        """Remember Robot's output file."""
        self._remember("output.xml", path)

    def log_file(self, path: Path) -> None:
        """Remember Robot's log."""
        self._remember("log.html", path)

    def report_file(self, path: Path) -> None:
        """Remember Robot's report."""
        self._remember("report.html", path)

    def xunit_file(self, path: Path) -> None:
        """Remember the xUnit file, where one was asked for."""
        self._remember("xunit.xml", path)

    def _remember(self, name: str, path: Path | None) -> None:
        if path is not None and Path(path).is_file():
            self._outputs[name] = Path(path)

    def close(self) -> None:
        """Complete the run folder; end robot with EXIT_LISTENER_FAILED where anything went wrong."""
        self._do_at_end()
        run = self._run
        if run is not None:
            self._run = None
            set_current_run(None)
            self._step("collect Robot's files", lambda: self._collect(run))
            self._step("count", lambda: self._count(run))
            self._step("check the measurements", lambda: self._check_selected(run))
            self._step("note the problems", lambda: self._note_problems(run))
            self._step("close the manifest", run.close)
            self._step("say how it came out", lambda: self._say_outcome(run))
            _keep_patterns(run)
            self._step("list its files", lambda: write_file_list(run))
            self._step("render the page", lambda: _render(run.path))
            self._step("finalise", lambda: self._finalise(run))
            print(f"Run:     {run.path}", file=sys.__stdout__, flush=True)
        if self._problems:
            raise SystemExit(EXIT_LISTENER_FAILED)
        if run is not None and self._outcome != "pass" and not self._status["FAIL"]:
            print(
                f"[ ERROR ] no test failed, but the run is {self._outcome}", file=sys.__stderr__, flush=True
            )
            raise SystemExit(EXIT_LISTENER_FAILED)

    def _step(self, what: str, action: Callable[[], object]) -> None:
        """Do one step of the end; whatever it raises becomes a problem, and the next step goes on."""
        try:
            action()
        except Exception as error:  # noqa: BLE001 - Robot would only log it
            self._problem(what, error)

    def _problem(self, what: str, error: Exception | str) -> None:
        known = isinstance(error, (str, ReportError))
        text = f"{what}: {error}" if known else f"{what}: {type(error).__name__}: {error}"
        self._problems.append(text)
        print(f"[ ERROR ] run folder: {text}", file=sys.__stderr__, flush=True)

    def _collect(self, run: RunFolder) -> None:
        """Copy Robot's own files into the run folder under their usual names."""
        for name, source in self._outputs.items():
            if source.resolve() != run.path / name:
                shutil.copyfile(source, run.path / name)
        output = run.path / "output.xml"
        if output.is_file() and not (run.path / "xunit.xml").is_file():
            _xunit_writer.XUnitWriter(_robot_api.ExecutionResult(output)).write(str(run.path / "xunit.xml"))

    def _count(self, run: RunFolder) -> None:
        """Note how the tests came out, and where a signal has ended them."""
        run.update(
            tests=TestCounts(self._status["PASS"], self._status["FAIL"], self._status["SKIP"]),
            failed_tests=tuple(self._failed),
            interrupted=self._interrupted,
        )

    def _finalise(self, run: RunFolder) -> None:
        """Seal the run and write its sums; without a key it stays without a seal, which `verify` says."""
        try:
            seal(run.path, bench_key(key_file()))
        except RunFolderError as error:
            print(f"[ WARN ] the run is not sealed: {error}", file=sys.__stderr__, flush=True)
        run.finalise()

    def _check_selected(self, run: RunFolder) -> None:
        """Hold what the passed tests name, and their keywords judge, against what was recorded.

        A test that hides the error of a keyword, as by TRY, passes nothing.
        """
        records = run.records()
        if records.torn is not None:
            self._problem("check the measurements", "the last record is torn")
        recorded = {
            (target, stack, record.requirement.upper())
            for record in records.measurements
            for target in (record.subject.target, "")
            for stack in (record.subject.stack, None)
        }
        missing = sorted(set(self._asked) - recorded, key=lambda each: (each[0], each[1] or "", each[2]))
        if missing:
            tests = self._asked[missing[0]]
            named = [f"{requirement}{_of(target, stack)}" for target, stack, requirement in missing]
            shown = ", ".join(named[:8]) + (", …" if len(named) > 8 else "")
            self._problem(
                "check the measurements",
                f"no record of {shown}, though {tests!r} passed ({len(missing)} in all)",
            )
        measured = {(target, stack) for target, stack, _requirement in recorded}
        for place, test in self._selected_any.items():
            if place not in measured:
                self._problem(
                    "check the measurements",
                    f"the run holds no measurement{_of(*place)}, though {test!r} passed",
                )

    def _say_outcome(self, run: RunFolder) -> None:
        """Say how the run came out: to whoever reads the xUnit file, and as one of several attempts."""
        came_out = outcome_of(run, finalising=True)
        self._outcome = came_out.outcome
        run.update(outcome=came_out.outcome)
        if (run.path / "xunit.xml").is_file():
            note_outcome(run.path / "xunit.xml", came_out)
        if self._earlier:
            run.add_attempt(EARLIER_SUITE, came_out.outcome, "this run")

    def _note_problems(self, run: RunFolder) -> None:
        for problem in list(self._problems):
            run.add_problem(problem)


def _keep_patterns(run: RunFolder) -> None:
    """Search the run's series of latency for patterns; that it cannot be done is no problem of the run."""
    kept: Any = import_module("reports.patterns.kept")
    if why := kept.keep_patterns(run.path, run.manifest.profile):
        print(f"[ WARN ] patterns were not searched: {why}", file=sys.__stderr__, flush=True)


def _render(path: Path) -> None:
    """Render the page; its packages are loaded here, so that one that is missing is an error that counts."""
    page: Any = import_module("reports.page.render")
    page.write_page(path)


def _note_suites(run: RunFolder, suite: Any) -> None:
    """Note which suites each target takes part in, and what the profile leaves out of them.

    `resources/every_target.py` sets the target in each suite, and the network stack where it chooses one, and
    says what is left out.

    What an earlier execution in the same folder has skipped is not in its `output.xml` any more.
    """
    selected = tuple(replace(each, skipped=()) for each in run.manifest.asked or ())
    for target, stack, source in _suites_of_targets(suite):
        selected = with_selected(selected, target, suite_name(source), stack=stack)
    run.update(asked=selected, left_out=take_left_out())


def _of(target: str, stack: str | None) -> str:
    return f"{f' of {target}' if target else ''}{f' with stack {stack}' if stack else ''}"


def _suites_of_targets(suite: Any) -> Iterator[tuple[str, str | None, Path]]:
    values = {item.name: str(item.value[0]) for item in suite.resource.variables if item.value}
    target = values.get(f"${{{TARGET}}}")
    if target is not None and suite.tests and suite.source is not None:
        yield target, values.get(f"${{{STACK}}}"), Path(suite.source)
    for child in suite.suites:
        yield from _suites_of_targets(child)


def _skipped_before(result: Any) -> bool:
    """Say whether a test was skipped by the setup of a suite around it."""
    suite = result.parent
    while suite is not None:
        if suite.has_setup and suite.setup.status == "SKIP":
            return True
        suite = suite.parent
    return False


def _is_dry_run() -> bool:
    current = _robot_context.EXECUTION_CONTEXTS.current
    return bool(current is not None and current.dry_run)


def _requirements(tags: list[str], metadata: dict[str, str]) -> list[str]:
    """Return the requirement ids that a test names, in capitals."""
    found: list[str] = []
    for key, value in metadata.items():
        if key.lower() in (REQUIREMENT, f"{REQUIREMENT}s"):
            found += re.split(r"[,\s]+", value)
    for tag in tags:
        name, _, value = tag.partition(":")
        if name.strip().lower() == REQUIREMENT:
            found.append(value)
    return [item.strip().upper() for item in found if item.strip()]
