# SPDX-License-Identifier: Apache-2.0
"""Whether a stack heard its server is worked out again alike, and a pass on a silent one is named."""

from __future__ import annotations

import dataclasses
import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from reports.clock_sync.capability import LEFT_OUT
from reports.clock_sync.mask import load_mask
from reports.clock_sync.mask_verdict import MaskRange, mask_measurements
from reports.clock_sync.path_shift import path_shift, shift_measurement
from reports.clock_sync.reported_bound import reported_bound_measurement
from reports.clock_sync.server_replies import ANSWER_FORMATS, silence_causes
from reports.clock_sync.trial import (
    EVIDENCE_FILES,
    MASK,
    ClockTrial,
    ServerReplies,
    Timecard,
    load_trial,
    write_trial,
)
from reports.clock_sync.two_way_reference import TARGET_FILE, TWO_WAY
from reports.clock_sync.verdict import sync_measurement
from reports.record.context import Context
from reports.record.measurement import Limit
from reports.rejudge.clock_sync import clock_sync_discrepancies
from reports.rejudge.masks import mask_discrepancies
from reports.rejudge.path_shift import path_shift_discrepancies
from reports.rejudge.reported_bound import reported_bound_discrepancies
from reports.rejudge.server_replies import is_server_silent, span_of
from reports.rejudge.trial import comparison_of, facts_of
from reports.run.folder import RunFolder
from tests.reports.sample_clock import SECOND_NS, START_TAI_NS, trial_context
from tests.reports.sample_server_replies import LOG, answer_of, log_of, timed_sync, write_trial_with_replies

LIMIT = Limit(40_000, -40_000, "paper on control loops, 4.5.1")
HEARD = [float(second) for second in range(-5, 40)]
SILENT = [each for each in HEARD if not 8 < each < 23]
SAID = "its server was silent"

Json = dict[str, Any]
Discrepancies = Callable[[Path, Sequence[Json]], tuple[list[str], int]]


def trial_in(run: RunFolder, answers_s: Sequence[float], form: str = "ptp4l", **others: Any) -> ClockTrial:
    folder = run.evidence_folder("clock_sync", "linux-rt", others.pop("place", "chrony"))
    answer = answer_of(30, mean_ns=others.pop("mean_ns", 3_000))
    return write_trial_with_replies(folder, form, log_of(form, answers_s), answer, **others)


def context(run: RunFolder, trials: Sequence[ClockTrial], *more: str) -> Context:
    return trial_context(run, trials, (*EVIDENCE_FILES, *more))


def offset_of(run: RunFolder, trial: ClockTrial) -> Json:
    return sync_measurement(trial, "CLK-CHRONY", LIMIT, 99, context(run, [trial])).to_json()


def require_inconclusive(judge: Discrepancies, run: RunFolder, record: Json, said: str) -> None:
    """Require that both judges find a record inconclusive, and the second one says so of a pass."""
    assert record["outcome"] == "inconclusive"
    assert judge(run.path, [record]) == ([], 1)
    problems, count = judge(run.path, [record | {"outcome": "pass"}])
    assert count == 1
    assert any(said in problem for problem in problems), problems


@pytest.mark.parametrize("form", ANSWER_FORMATS)
def test_an_offset_is_judged_alike(run: RunFolder, form: str) -> None:
    heard = offset_of(run, trial_in(run, HEARD, form))
    assert heard["outcome"] == "pass"
    assert clock_sync_discrepancies(run.path, [heard]) == ([], 1)
    require_inconclusive(clock_sync_discrepancies, run, offset_of(run, trial_in(run, SILENT, form)), SAID)
    bad = offset_of(run, trial_in(run, SILENT, form, mean_ns=-90_000))
    require_inconclusive(clock_sync_discrepancies, run, bad, SAID)


NO_ANSWERS: dict[str, tuple[str, Callable[[float], Json]]] = {
    "in holdover": ("bw-timed", lambda after_s: timed_sync(after_s, "hold")),
    "the first of all": ("bw-timed", lambda after_s: timed_sync(after_s, "locked") | {"offset_ns": None}),
    "refused": ("bw-ntp-user", lambda _after_s: {"type": "rejected", "time_tai_ns": 1, "state": "locked"}),
}


@pytest.mark.parametrize("what", NO_ANSWERS)
def test_what_is_no_answer_counts_as_none(run: RunFolder, what: str) -> None:
    form, line_of = NO_ANSWERS[what]
    trial = trial_in(run, HEARD, form)
    silent = [json.dumps(line_of(each)) for each in HEARD if each > 8]
    text = log_of(form, [each for each in HEARD if each <= 8]) + "\n".join([*silent, ""])
    (trial.folder / LOG).write_text(text)
    require_inconclusive(clock_sync_discrepancies, run, offset_of(run, trial), SAID)


def test_answers_that_were_taken_out_of_the_log_are_missed(run: RunFolder) -> None:
    trial = trial_in(run, HEARD)
    record = offset_of(run, trial)
    (trial.folder / LOG).write_text(log_of("ptp4l", SILENT))
    assert any(SAID in problem for problem in clock_sync_discrepancies(run.path, [record])[0])
    (trial.folder / LOG).unlink()
    assert any(SAID in problem for problem in clock_sync_discrepancies(run.path, [record])[0])


def test_a_trial_of_an_earlier_version_is_judged_as_it_was(run: RunFolder) -> None:
    trial = trial_in(run, SILENT)
    write_trial(trial.folder, dataclasses.replace(trial.facts, hearing=None))
    record = offset_of(run, load_trial(trial.folder))
    assert record["outcome"] == "pass"
    assert clock_sync_discrepancies(run.path, [record]) == ([], 1)


def test_a_log_that_nobody_can_count_again_is_a_problem(run: RunFolder) -> None:
    trial = trial_in(run, HEARD)
    write_trial(trial.folder, dataclasses.replace(trial.facts, hearing=ServerReplies(LOG, "pmc")))
    problems, count = clock_sync_discrepancies(run.path, [offset_of(run, load_trial(trial.folder))])
    assert (count, "a log of format pmc" in problems[0]) == (0, True)


def drawn_log(rng: random.Random, form: str) -> str:
    """Return a log with gaps, torn lines and some of other programs."""
    after_s, lines = rng.uniform(-20, 5), list[str]()
    while after_s < 50:
        lines += log_of(form, [round(after_s, 3)]).splitlines()
        after_s += rng.choice((9, 10, 11, 14)) if rng.random() < 0.05 else rng.uniform(0.1, 2)
    for _ in range(rng.randrange(4)):
        place = rng.randrange(len(lines))
        torn = lines[place][: rng.randrange(10)]
        lines[place] = rng.choice((torn, "", "chronyd[7]: Selected source 10.77.0.1", '{"type":"state"}'))
    return "\n".join(lines[: rng.choice((None, 20))]) + "\n"


@pytest.mark.parametrize("form", ANSWER_FORMATS)
def test_both_judges_agree_on_whatever_log(run: RunFolder, form: str) -> None:
    rng = random.Random(form)
    trial = trial_in(run, HEARD, form)
    found: set[bool] = set()
    for _ in range(60):
        (trial.folder / LOG).write_text(drawn_log(rng, form))
        span = span_of(comparison_of(trial.folder))
        silent = bool(silence_causes(trial))
        assert is_server_silent(facts_of(trial.folder), span, trial.folder) == silent
        found.add(silent)
    assert found == {False, True}


def test_a_clock_by_two_way_transfer_is_judged_alike(run: RunFolder) -> None:
    for answers_s, outcome in ((HEARD, "pass"), (SILENT, "inconclusive")):
        folder = run.evidence_folder("clock_sync", "arm", f"chrony-{outcome}")
        series = [[START_TAI_NS + n * SECOND_NS // 20, 2_000, 9_000] for n in range(600)]
        answer: Json = {"type": "result", "peer": "x", "complete": True, "valid": True, "invalid_reasons": []}
        answer |= {"exchanges": 600, "at_local_tai_ns": series[-1][0], "offset_ns": 2_000, "rate_ppb": 0}
        answer |= {
            "bound_ns": 9_000,
            "bound_growth_ppb": 1,
            "tai_utc_s": 37,
            "series": series,
            "clock_steps": [],
        }
        (folder / TARGET_FILE).write_text(json.dumps(answer) + "\n")
        made = trial_in(run, answers_s, "chrony-statistics", place="made")
        (folder / LOG).write_text((made.folder / LOG).read_text())
        write_trial(folder, dataclasses.replace(made.facts, timecard=Timecard(TWO_WAY, 0, "control")))
        record = offset_of(run, load_trial(folder))
        assert record["outcome"] == outcome
        assert clock_sync_discrepancies(run.path, [record]) == ([], 1)
        problems, _ = clock_sync_discrepancies(run.path, [record | {"outcome": "pass"}])
        assert bool(problems) == (outcome != "pass")


def test_what_a_clock_told_of_its_error_is_judged_alike(run: RunFolder) -> None:
    trial = trial_in(run, SILENT, "bw-timed")
    limit = Limit(1_000_000, None, "test")
    record = reported_bound_measurement(trial, LEFT_OUT, "CLK-1", limit, 99, context(run, [trial])).to_json()
    require_inconclusive(reported_bound_discrepancies, run, record, "the comparison comes to inconclusive")


def test_a_mask_is_judged_alike(run: RunFolder) -> None:
    trial = trial_in(run, SILENT)
    text = "# name: test\n# source: a test\nquantity,tau_above_s,tau_to_s,limit_ns,slope_ns_per_s\n"
    (trial.folder / MASK).write_text(f"{text}max_abs_te,,,90000,0\n")
    (run.evidence_folder("requirements") / "clocks.toml").write_text(
        '[[requirement]]\nid = "CLK-CHRONY"\nmask = "own.csv"\n'
    )
    wanted = MaskRange(load_mask(trial.folder / MASK), None, None)
    where = context(run, [trial], MASK)
    (record,) = mask_measurements(trial, wanted, "CLK-CHRONY", 99, where)
    require_inconclusive(mask_discrepancies, run, record.to_json(), "comes to inconclusive")


def test_a_shift_of_a_path_is_judged_alike(run: RunFolder) -> None:
    for silent, outcome in ((False, "pass"), (True, "inconclusive")):
        pairs: list[tuple[ClockTrial, ClockTrial]] = []
        for number, shift_ns in enumerate((-24_000, -25_500, -25_000), start=1):
            both = [
                trial_in(
                    run,
                    SILENT if silent and number == 2 and delay_us else HEARD,
                    place=f"{outcome}/pair-{number}-{delay_us}-us",
                    mean_ns=delay_us * shift_ns // 50,
                    kind="asymmetry",
                    impairment=f"{delay_us} us one way",
                )
                for delay_us in (0, 50)
            ]
            pairs.append((both[0], both[1]))
        where = context(run, [trial for pair in pairs for trial in pair])
        record = shift_measurement(path_shift(pairs, 50_000), where).to_json()
        assert record["outcome"] == outcome
        assert path_shift_discrepancies(run.path, [record]) == ([], 1)
    require_inconclusive(path_shift_discrepancies, run, record, "its pairs come to inconclusive")
