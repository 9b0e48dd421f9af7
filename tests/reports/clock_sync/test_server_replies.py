# SPDX-License-Identifier: Apache-2.0
"""A clock whose server fell silent while it was measured does not pass, however little it was off."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from reports.clock_sync.capability import LEFT_OUT
from reports.clock_sync.log_formats import LOG_READERS
from reports.clock_sync.reported_bound import reported_bound_measurement
from reports.clock_sync.server_replies import ANSWER_FORMATS, longest_silence_ns, silence_causes
from reports.clock_sync.trial import TRIAL, ClockTrial, load_trial, write_trial
from reports.clock_sync.verdict import judge_sync
from reports.record.context import Context
from reports.record.measurement import Conditions, Limit, Subject
from reports.units import NS_PER_S
from tests.reports.sample_server_replies import (
    LINES,
    LOG,
    answer_of,
    log_of,
    timed_sync,
    write_trial_with_replies,
)

LIMIT = Limit(40_000, -40_000, "paper on control loops, 4.5.1")
EVERY_SECOND = [float(second) for second in range(-30, 90)]
SILENCES: dict[str, tuple[Sequence[float], float]] = {
    "in the middle": ([each for each in EVERY_SECOND if not 12 < each < 26], 14),
    "from the begin on": ([each for each in EVERY_SECOND if not -5 <= each < 17], 17),
    "to the end": ([each for each in EVERY_SECOND if each <= 13], 17),
    "throughout": ([each for each in EVERY_SECOND if not 0 <= each <= 30], 30),
    "before any answer": ([], 30),
}
"""Of a trial of 30 s whose server is asked every second: answers, and the longest silence in s."""


def trial_of(folder: Path, answers_s: Sequence[float], form: str = "ptp4l", seconds: int = 30) -> ClockTrial:
    return write_trial_with_replies(folder, form, log_of(form, answers_s), answer_of(seconds))


def outcome(trial: ClockTrial) -> tuple[str, str]:
    verdict, _ = judge_sync(trial, LIMIT, 99)
    return verdict.outcome, verdict.reason


def test_there_is_a_reader_and_an_example_of_each_form() -> None:
    assert set(LINES) == set(ANSWER_FORMATS) <= set(LOG_READERS)


@pytest.mark.parametrize("form", ANSWER_FORMATS)
def test_a_stack_that_heard_its_server_throughout_passes(tmp_path: Path, form: str) -> None:
    trial = trial_of(tmp_path, EVERY_SECOND, form)
    assert longest_silence_ns(trial) == NS_PER_S
    assert outcome(trial)[0] == "pass"


@pytest.mark.parametrize("form", ANSWER_FORMATS)
@pytest.mark.parametrize("when", SILENCES)
def test_a_server_that_was_silent_leaves_no_pass(tmp_path: Path, form: str, when: str) -> None:
    answers_s, silence_s = SILENCES[when]
    trial = trial_of(tmp_path, answers_s, form)
    assert longest_silence_ns(trial) == silence_s * NS_PER_S
    what = "reading of its PHC" if form == "phc2sys" else "answer of its server"
    silent = f"no {what} for {silence_s:.1f} s while it was measured; at most 10 s"
    assert outcome(trial) == ("inconclusive", f"chrony: {silent}: it was not synchronised")


def test_a_clock_that_was_off_meanwhile_has_not_failed_by_that(tmp_path: Path) -> None:
    answers_s, _ = SILENCES["in the middle"]
    answer = answer_of(30, mean_ns=-90_000)
    trial = write_trial_with_replies(tmp_path, "ptp4l", log_of("ptp4l", answers_s), answer)
    assert outcome(trial)[0] == "inconclusive"
    unasked = replace(trial, facts=replace(trial.facts, hearing=None))
    assert outcome(unasked)[0] == "fail"


def test_a_log_that_is_gone_has_no_answer(tmp_path: Path) -> None:
    trial = trial_of(tmp_path, EVERY_SECOND)
    (tmp_path / LOG).unlink()
    assert "no answer of its server for 30.0 s" in outcome(trial)[1]


@pytest.mark.parametrize(("silence_s", "wanted"), [(10.0, "pass"), (10.1, "inconclusive")])
def test_the_limit_itself_is_borne(tmp_path: Path, silence_s: float, wanted: str) -> None:
    answers_s = [each for each in EVERY_SECOND if each <= 12] + [12 + silence_s + each for each in range(20)]
    assert outcome(trial_of(tmp_path, answers_s))[0] == wanted


@pytest.mark.parametrize(("silence_s", "wanted"), [(31.0, "pass"), (33.0, "inconclusive")])
def test_a_server_that_is_asked_seldom_may_be_silent_for_longer(
    tmp_path: Path, silence_s: float, wanted: str
) -> None:
    log = log_of("bw-timed", [-4, 0, 4, 4 + silence_s, 4 + silence_s + 4, 60])
    trial = write_trial_with_replies(tmp_path, "bw-timed", log, answer_of(62), interval_s=4.0)
    assert outcome(trial)[0] == wanted
    assert all("at most 32 s" in cause for cause in silence_causes(trial))


def test_a_trial_that_is_shorter_than_what_is_borne_is_never_silent(tmp_path: Path) -> None:
    assert outcome(trial_of(tmp_path, [], seconds=10))[0] == "pass"


def test_a_batch_of_the_time_service_that_nobody_answered_is_no_answer(tmp_path: Path) -> None:
    lines = [timed_sync(after_s, "locked" if after_s < 12 else "hold") for after_s in EVERY_SECOND]
    log = "".join(json.dumps(line) + "\n" for line in lines)
    trial = write_trial_with_replies(tmp_path, "bw-timed", log, answer_of(30))
    assert longest_silence_ns(trial) == 19 * NS_PER_S


def test_refused_answers_of_an_ntp_client_are_no_answers(tmp_path: Path) -> None:
    heard = log_of("bw-ntp-user", [each for each in EVERY_SECOND if each <= 5])
    rejected = {"type": "rejected", "time_tai_ns": 1, "reason": "no-answer", "state": "locked"}
    log = heard + (json.dumps(rejected) + "\n") * 25
    trial = write_trial_with_replies(tmp_path, "bw-ntp-user", log, answer_of(30))
    assert longest_silence_ns(trial) == 25 * NS_PER_S


def test_any_of_several_servers_will_do(tmp_path: Path) -> None:
    others = log_of("chrony-statistics", [each for each in EVERY_SECOND if each % 2]).replace(
        "10.77.0.1 ", "10.77.0.2 "
    )
    log = log_of("chrony-statistics", [each for each in EVERY_SECOND if not each % 2][:18]) + others
    trial = write_trial_with_replies(tmp_path, "chrony-statistics", log, answer_of(30))
    assert longest_silence_ns(trial) == 2 * NS_PER_S


def test_a_trial_of_an_earlier_version_asks_not(tmp_path: Path) -> None:
    trial = trial_of(tmp_path, [])
    write_trial(tmp_path, replace(trial.facts, hearing=None))
    assert "hearing" not in json.loads((tmp_path / TRIAL).read_text())
    assert outcome(load_trial(tmp_path))[0] == "pass"


def test_what_a_clock_told_of_its_error_meanwhile_does_not_pass_either(tmp_path: Path) -> None:
    context = Context("run", "test", Subject("lab", "arm", clock="timeservice"), Conditions("ci"), True, ())
    limit = Limit(1_000_000, None, "test")
    for when, wanted in (("heard", "pass"), ("in the middle", "inconclusive")):
        answers_s = EVERY_SECOND if when == "heard" else SILENCES[when][0]
        trial = trial_of(tmp_path / when, answers_s, "bw-timed")
        assert reported_bound_measurement(trial, LEFT_OUT, "CLK-1", limit, 99, context).outcome == wanted
