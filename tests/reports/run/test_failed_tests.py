# SPDX-License-Identifier: Apache-2.0
"""Tests that failed without a record: no page says `pass` beside them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from reports.page.model import gather, gather_run
from reports.page.render import render_pages
from reports.record.measurement import Outcome
from reports.run.failed_tests import FailedTest, beyond_records, in_words
from tests.reports.page.test_render import Outline, squeezed
from tests.reports.sample_run import make_run, make_run_of_targets

BROKEN = "Parent suite setup failed: BENCH ERROR: node linux-rt is off"


@pytest.mark.parametrize(
    ("message", "outcome"),
    [
        (BROKEN, "error"),
        ("CONFIG ERROR: site.toml: requirements.name: missing", "error"),
        ("Parent suite setup failed: KeyError: 'clocks'", "error"),
        ("MEASUREMENT ERROR: chrony did not lock within 60 s", "unset"),
        ("Execution terminated by signal", "unset"),
        ("FAIL: 111 came late", "fail"),
        ("INCONCLUSIVE: DAQ-031: generator late", "inconclusive"),
        ("UNSET: nothing was judged", "unset"),
        ("pass: is no verdict of a test that failed", "fail"),
        ("a site's own keyword", "fail"),
        ("AssertionError: of a site's own keyword", "fail"),
        ("KeyError: 'clocks'", "error"),
        ("No keyword with name 'Replay' found.", "error"),
        ("Test timeout 5 minutes exceeded.", "unset"),
        ("Failure occurred and exit-on-failure mode is in use.", "unset"),
        ("INCONCLUSIVE: DAQ-031: generator late Also teardown failed: BENCH ERROR: no answer", "error"),
        ("INCONCLUSIVE: DAQ-031: generator late Also teardown failed: KeyError: 'x'", "error"),
        ("INCONCLUSIVE: A: late; FAIL: B: 12 ms is over 10 ms", "fail"),
        ("Several failures occurred: 1) INCONCLUSIVE: A: late 2) INCONCLUSIVE: B: late", "inconclusive"),
        ("Several failures occurred: 1) FAIL: A: over 2) MEASUREMENT ERROR: gone", "fail"),
        ("Parent suite setup failed: MEASUREMENT ERROR: chrony did not lock", "unset"),
        ("Suite teardown failed: boom", "error"),
        ("gaierror: [Errno -2] Name or service not known", "error"),
        ("subprocess.TimeoutExpired: Command 'x' timed out", "error"),
        ("TIMEOUT: the prompt did not come", "error"),
        ("Variable '${LIMIT}' not found.", "error"),
        ("Keyword 'Log' expected 1 to 7 arguments, got 0.", "error"),
        ("MEASUREMENT ERROR: bw-clock: exit code 1: ERROR: no device", "unset"),
    ],
)
def test_the_message_says_the_outcome(message: str, outcome: Outcome) -> None:
    assert FailedTest("linux-rt", "Test", message).outcome == outcome


@pytest.mark.parametrize(
    ("message", "bad_input"),
    [
        ("CONFIG ERROR: site.toml: requirements.name: missing", True),
        ("Parent suite setup failed:\nCONFIG ERROR: site.toml: requirements.name: missing", True),
        ("ValueError: Argument 'phase' got value 'ring' that cannot be converted to 'aligned-12'.", True),
        ("Setup failed:\nValueError: Argument 'delay' got value '5' that cannot be converted to Ns", True),
        ("ValueError: 5 is not in list", False),
        (BROKEN, False),
    ],
)
def test_the_message_says_whether_what_was_given_is_wrong(message: str, bad_input: bool) -> None:
    failed = FailedTest("linux-rt", "Test", message)
    assert failed.is_bad_input == bad_input
    assert failed.outcome == "error"


def test_a_run_whose_values_pass_does_not_pass_beside_a_test_that_broke_off(tmp_path: Path) -> None:
    run = make_run(tmp_path, close=False)
    run.update(failed_tests=(FailedTest("linux-rt", "Clock", BROKEN),))
    run.close()
    run.finalise()
    report = gather(run.path)
    assert report.counts["pass"] == len(report.records)
    assert report.outcome == "error"
    text = squeezed(Outline(render_pages(run.path)["qualification.html"]).text)
    assert f"linux-rt: Clock failed: {BROKEN}" in text
    assert "meet their limits, but not everything was measured" in text


def test_a_test_adds_what_its_record_does_not_say(tmp_path: Path) -> None:
    run = make_run(tmp_path, close=False)
    record = run.records().measurements[0]
    undecided = replace(record, outcome="inconclusive")
    told = FailedTest(record.subject.target, record.test, "INCONCLUSIVE: it is judged already")
    broke_off = replace(told, message=BROKEN)
    assert beyond_records([told], [undecided]) == ()
    assert beyond_records([broke_off], [undecided]) == (broke_off,)
    assert beyond_records([told], [record]) == (told,)
    run.update(failed_tests=(told,))
    run.close()
    run.finalise()
    assert gather(run.path).outcome == "inconclusive"


def test_only_the_target_whose_test_broke_off_does_not_pass(tmp_path: Path) -> None:
    run = make_run_of_targets(tmp_path, close=False)
    run.update(failed_tests=(FailedTest("embedded", "Clock", BROKEN),))
    run.close()
    run.finalise()
    assert [report.outcome for report in gather_run(run.path).targets] == ["pass", "fail", "error"]


def test_tests_with_one_message_are_one_line() -> None:
    failed = [FailedTest("windows", name, BROKEN) for name in ("A", "B", "C")]
    assert in_words([*failed, FailedTest("", "D", "x")]) == [
        f"windows: A and 2 further tests failed: {BROKEN}",
        "D failed: x",
    ]
