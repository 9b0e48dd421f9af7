# SPDX-License-Identifier: Apache-2.0
"""One run has one outcome and one set of counts, whoever says it."""

from __future__ import annotations

import random
import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from dashboards.points import run_points
from reports.__main__ import main
from reports.errors import ReportError
from reports.page.matrix import matrix_of
from reports.page.model import gather_run
from reports.page.render import PAGE, render_pages
from reports.record.measurement import (
    RULE,
    SCHEMA,
    Conditions,
    Limit,
    Measurement,
    Outcome,
    Subject,
    Uncertainty,
    utc_now,
)
from reports.run.failed_tests import FailedTest
from reports.run.folder import MEASUREMENTS, RunFolder
from reports.run.manifest import TestCounts as Counts
from reports.run.outcome import outcome_of
from reports.run.selected import SelectedFile, SkippedTest, with_selected, with_skipped
from reports.run.xunit import NAME, note_outcome
from resources.qualify import exit_code

KINDS = ("linux-rt", "windows", "embedded")
MESSAGES: dict[str, Outcome] = {
    "FAIL: DAQ-1: 61 ms is over the limit": "fail",
    "1 != 2": "fail",
    "INCONCLUSIVE: DAQ-1: generator late": "inconclusive",
    "UNSET: DAQ-1: no sample": "unset",
    "MEASUREMENT ERROR: nothing has been replayed": "unset",
    "Execution terminated by signal": "unset",
    "Test timeout 5 minutes exceeded.": "unset",
    "BENCH ERROR: node linux-rt is off": "error",
    "CONFIG ERROR: site.toml: requirements.name: missing": "error",
    "KeyError: 'clocks'": "error",
    "Parent suite setup failed: IndexError: list index out of range": "error",
}
CODES = {"pass": 0, "fail": 1, "error": 5, "inconclusive": 4, "unset": 4}
ORDER = ("fail", "error", "inconclusive", "unset", "pass")


@dataclass
class RunParts:
    """What a run folder is made of.

    Attributes:
        values: (target, outcome, whether the test failed too, as it does in practice).
        checks: (target, outcome) of the bench's checks.
        failed: (target, message) of tests that left no record.
        after_record: (target, message) of tests that broke off behind a record that passes.
        spoilt: `torn`, `unfinished`, `changed`, `missing`, `problem`.
        touched: The target whose evidence is not what it was.
    """

    targets: tuple[str, ...]
    values: list[tuple[str, Outcome]] = field(default_factory=list[tuple[str, Outcome]])
    checks: list[tuple[str, Outcome]] = field(default_factory=list[tuple[str, Outcome]])
    failed: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    after_record: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    spoilt: frozenset[str] = frozenset()
    skipped: int = 0
    touched: str = ""
    left_out: list[tuple[str, bool]] = field(default_factory=list[tuple[str, bool]])
    """(target, whether its test was skipped) of requirements that are asked and have no value."""

    def write(self, results: Path) -> RunFolder:
        """Make the folder."""
        run = RunFolder.create(results, "virtual", "ci", simulated=True)
        asked = ()
        for target in self.targets:
            mine = [f"LEFT-{n}" for n, (of, _) in enumerate(self.left_out) if of == target]
            own = [f"VALUE {n}" for n, (of, _) in enumerate(self.values) if of == target]
            asked = with_selected(asked, target, "suite", SelectedFile("limits.toml", (*own, *mine)))
        for number, (target, skipped) in enumerate(self.left_out):
            if skipped:
                test = SkippedTest(f"left {number}", "no capability", (f"LEFT-{number}",))
                asked = with_skipped(asked, target, "suite", test)
        run.update(asked=asked)
        found: list[FailedTest] = []
        for number, (target, outcome) in enumerate(self.values):
            self._record(run, target, outcome, f"value {number}", "sync_offset")
            if outcome != "pass":
                found.append(FailedTest(target, f"value {number}", f"{outcome.upper()}: R: why"))
        for number, (target, outcome) in enumerate(self.checks):
            self._record(run, target, outcome, f"check {number}", "known_delay_error")
        for number, (target, message) in enumerate(self.after_record):
            self._record(run, target, "pass", f"after {number}", "sync_offset")
            found.append(FailedTest(target, f"after {number}", message))
        found += [FailedTest(target, f"test {n}", message) for n, (target, message) in enumerate(self.failed)]
        passed = len(self.values) + len(self.checks) - sum(outcome != "pass" for _, outcome in self.values)
        run.update(tests=Counts(passed, len(found), self.skipped), failed_tests=tuple(found))
        if "problem" in self.spoilt:
            run.add_problem("render: disk full")
        if "torn" in self.spoilt:
            with (run.path / MEASUREMENTS).open("a") as file:
                file.write('{"schema":')
        if "unfinished" not in self.spoilt:
            run.close()
        file = next((run.path / "evidence").glob("values/*"), None)
        if file is not None and "changed" in self.spoilt:
            file.write_text("something else")
        if file is not None and "missing" in self.spoilt:
            file.unlink()
        if "unfinished" not in self.spoilt:
            run.finalise()
        return run

    def _record(self, run: RunFolder, target: str, outcome: Outcome, test: str, quantity: str) -> None:
        file = run.evidence_folder("values") / f"{target}-{test.replace(' ', '-')}"
        file.write_text(test)
        run.append(
            Measurement(
                SCHEMA, run.run_id, test, test.upper(), quantity, "max", 5, "ns", 5, 3, 0, 0,
                Limit(10, None, "the test"), Uncertainty.from_parts([]), 5, RULE, outcome,
                "" if outcome == "pass" else "why", Subject("virtual", target), Conditions("ci"), True,
                (run.evidence(file),), utc_now(),
            )
        )  # fmt: skip

    def states(self, target: str | None = None) -> dict[str, int]:
        """Return how many requirements have each state, worked out a second time from docs/reports.md."""
        found = [o for t, o in self.values if target in (None, t)]
        found += ["pass" for t, _ in self.after_record if target in (None, t)]
        left = [skipped for t, skipped in self.left_out if target in (None, t)]
        every: list[str] = [*found, *("skipped" if skipped else "untested" for skipped in left)]
        return {state: every.count(state) for state in set(every)}

    def expected(self, target: str | None = None) -> str:
        """Return the outcome, worked out a second time from docs/reports.md."""
        own = [o for t, o in self.values if target in (None, t)]
        own += ["pass" for t, _ in self.after_record if target in (None, t)]
        tests = [MESSAGES[m] for t, m in (*self.failed, *self.after_record) if target in (None, t) or not t]
        checks = [o for t, o in self.checks if target in (None, t)]
        said = {*own, *tests}
        if not own:
            said.add("unset")
        if own and any(outcome != "pass" for outcome in checks):
            said.add("inconclusive")
        if self.spoilt & {"torn", "unfinished"}:
            said.add("inconclusive")
        if "problem" in self.spoilt or (self.spoilt & {"changed", "missing"} and self._is_touched(target)):
            said.add("error")
        if target is None and len(self.targets) > 1:
            said |= {self.expected(each) for each in self.targets}
        return next(outcome for outcome in ORDER if outcome in said)

    def _is_touched(self, target: str | None) -> bool:
        names = [f"{t}-value-{n}" for n, (t, _) in enumerate(self.values)]
        names += [f"{t}-check-{n}" for n, (t, _) in enumerate(self.checks)]
        names += [f"{t}-after-{n}" for n, (t, _) in enumerate(self.after_record)]
        return bool(names) and target in (None, self.touched)

    def code(self) -> int:
        """Return the exit code, worked out a second time from docs/exit-codes.md."""
        outcome = self.expected()
        messages = [m for _, m in (*self.failed, *self.after_record)]
        if outcome not in ("pass", "fail") and any("CONFIG ERROR" in message for message in messages):
            return 2
        is_empty = not (self.values or self.checks or messages) and "unfinished" not in self.spoilt
        if outcome == "unset" and is_empty:
            return 3 if self.skipped else 2
        return CODES[outcome]


def draw(seed: int) -> RunParts:
    """Draw what a run is made of: mostly all is well but for one thing or two."""
    rng = random.Random(seed)
    targets = KINDS[: rng.choice((1, 3))]
    made = RunParts(targets)
    if rng.random() < 0.9:
        outcomes: list[Outcome] = ["pass", "pass", "pass", "fail", "inconclusive", "unset", "error"]
        calm = rng.random() < 0.6
        all_pass: list[Outcome] = ["pass"]
        for target in targets:
            if rng.random() < 0.93:
                drawn: list[Outcome] = rng.choices(all_pass if calm else outcomes, k=3)
                made.values.extend((target, outcome) for outcome in drawn)
            good = calm and rng.random() < 0.9
            made.checks.append((target, rng.choice(all_pass if good else outcomes)))
    if rng.random() < 0.4:
        places = (*targets, "")
        made.failed = [(rng.choice(places), rng.choice(list(MESSAGES))) for _ in range(rng.choice((1, 1, 2)))]
    if rng.random() < 0.2:
        made.after_record = [(rng.choice(targets), rng.choice(list(MESSAGES)))]
    if rng.random() < 0.45:
        kinds = ("torn", "unfinished", "changed", "missing", "problem")
        made.spoilt = frozenset(rng.sample(kinds, rng.choice((1, 1, 2)))) - {"missing"}
        if rng.random() < 0.2:
            made.spoilt = frozenset({"missing"})
    made.skipped = rng.choice((0, 2))
    made.left_out = [(rng.choice(targets), rng.random() < 0.5) for _ in range(rng.choice((0, 0, 1, 3)))]
    return made


@pytest.mark.parametrize("seed", range(240))
def test_every_output_says_the_same_outcome_and_counts(
    tmp_path: Path, seed: int, capsys: pytest.CaptureFixture[str]
) -> None:
    made = draw(seed)
    run = RunFolder.open(made.write(tmp_path).path)
    has_evidence = any((run.path / "evidence").glob("values/*"))
    if "missing" in made.spoilt or "changed" in made.spoilt:
        spoilt = [row.path for row in gather_run(run.path).whole.hashes if row.changed]
        made.touched = Path(spoilt[0]).name.rpartition("-")[0].rpartition("-")[0] if spoilt else ""
        assert bool(spoilt) == has_evidence
    expected = made.expected()
    counts = {outcome: sum(o == outcome for _, o in made.values) for outcome in ORDER}
    counts["pass"] += len(made.after_record)

    came_out = outcome_of(run)
    assert (came_out.outcome, came_out.exit_code) == (expected, made.code())
    assert came_out.counts == counts
    # `python -m resources.qualify`, whatever Robot Framework says of failed tests
    assert exit_code(len(run.manifest.failed_tests or ()), came_out) == (made.code() or 0)
    # page and matrix
    report = gather_run(run.path)
    assert (report.whole.outcome, report.whole.counts) == (expected, counts)
    assert {each.target: each.outcome for each in report.targets} == (
        {target: made.expected(target) for target in made.targets} if len(made.targets) > 1 else {}
    )
    # `show`
    assert main(["show", str(run.path)]) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"{expected.upper()}  SIMULATED")
    assert all(f"{count} {outcome}" in said for outcome, count in counts.items() if count)
    # requirements: asked, skipped, untested
    states = made.states()
    assert came_out.states == report.whole.states == states
    assert {each.target: each.states for each in report.targets} == (
        {target: made.states(target) for target in made.targets} if len(made.targets) > 1 else {}
    )
    (counted,) = [line for line in said.splitlines() if line.startswith("  requirements: ")]
    assert all(f"{count} {state}" in counted for state, count in states.items())
    if report.targets:
        feet = matrix_of(run.path, run.run_id, report.targets).feet
        assert [{s: n for s, n in foot.counts if s != "not asked"} for foot in feet] == [
            made.states(target) for target in made.targets
        ]
    # store, and with it trends and Grafana
    points = run_points(run, "main")
    assert points.outcome == expected
    fields = points.points[-1].fields
    assert {name: fields[f"count_{name}"] for name in ORDER} == counts
    for state in ("skipped", "untested"):
        assert fields[f"requirements_{state}"] == states.get(state, 0)
    assert fields["requirements"] == sum(states.values())
    # xUnit
    xunit = tmp_path / "xunit.xml"
    xunit.write_text('<testsuite tests="1" failures="0"><testcase name="Measures"/></testsuite>')
    note_outcome(xunit, came_out)
    root = ET.parse(xunit).getroot()  # noqa: S314 - our own file
    (case,) = [case for case in root if case.get("name") == NAME]
    assert (case.find("failure") is None) == (expected == "pass")
    assert (root.get("tests"), root.get("failures")) == ("2", "0" if expected == "pass" else "1")
    # the page as it is read
    if seed % 20 == 0:
        page = render_pages(run.path)[PAGE]
        title = re.search(r"<title>(\w+)", page)
        assert title is not None
        assert title[1].lower() == expected
        if states:
            left = f"{states.get('skipped', 0)} skipped, {states.get('untested', 0)} untested"
            assert f"of {sum(states.values())} asked; {left}" in re.sub(r"</?a\b[^>]*>", "", page)


def test_what_did_not_pass_is_told_without_a_page(tmp_path: Path) -> None:
    """Who reads the terminal or the xUnit file alone sees it: a check of the bench has no test of Robot's."""
    parts = RunParts(
        ("linux-rt", "windows"), values=[("linux-rt", "pass")], checks=[("windows", "inconclusive")]
    )
    run = parts.write(tmp_path)
    came_out = outcome_of(run)
    (told,) = came_out.missed
    assert re.match(r"inconclusive windows, \S.*: .+", told), told
    xunit = tmp_path / "xunit.xml"
    xunit.write_text('<testsuite tests="0" failures="0" />')
    note_outcome(xunit, came_out)
    (failure,) = ET.parse(xunit).iter("failure")  # noqa: S314 - our own
    assert failure.get("message", "").startswith(f"INCONCLUSIVE; {told}")
    many = RunParts(("linux-rt",), values=[("linux-rt", "fail")] * 13)
    missed = outcome_of(many.write(tmp_path)).missed
    assert (len(missed), missed[-1]) == (11, "3 more did not pass")


def test_a_manifest_of_the_version_before_counts_checks_but_nobody_asks_it(tmp_path: Path) -> None:
    run = RunParts(KINDS[:1], [("linux-rt", "pass")], [("linux-rt", "fail")]).write(tmp_path)
    older = replace(run.manifest, counts={**run.manifest.counts, "fail": 1})
    (run.path / "run.json").write_text(older.to_text())
    found = outcome_of(RunFolder.open(run.path))
    assert (found.outcome, found.exit_code, found.counts["fail"]) == ("inconclusive", 4, 0)


def test_an_xunit_file_that_is_none_is_an_error_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "xunit.xml").write_text("<testsuite")
    run = RunParts(KINDS[:1], [("linux-rt", "pass")]).write(tmp_path)
    with pytest.raises(ReportError, match=r"xunit\.xml"):
        note_outcome(tmp_path / "xunit.xml", outcome_of(run))
