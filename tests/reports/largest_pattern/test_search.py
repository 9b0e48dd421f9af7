# SPDX-License-Identifier: Apache-2.0
"""The largest pattern: how a trial is judged, what the record says, and what the pages show of it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from reports.clock_sync.verdict import BENCH_STALLED
from reports.daq_replay.evidence import load_replay
from reports.daq_replay.verdict import ReplayResults
from reports.errors import RecordError
from reports.largest_pattern.search import (
    FILE,
    FOLDER,
    LargestPattern,
    Trial,
    TrialOutcome,
    TrialStream,
    judge_trial,
    largest_pattern_measurement,
    read_largest_pattern,
)
from reports.page.model import gather_run
from reports.page.render import PAGE, render_pages
from reports.record.context import Context
from reports.record.document import write_document
from reports.record.measurement import Conditions, Limit, Measurement, Subject
from reports.requirement_forms import read_set
from reports.requirements import Part
from reports.run.folder import RunFolder
from tests.reports.page.test_render import Outline, squeezed
from tests.reports.sample_run import Disturbance, make_run_of_targets, requirement_of, write_evidence

ROOT = Path(__file__).resolve().parents[3]
MS = 1_000_000
ORDER = (9, 8, 1, 11)
LIMIT = Limit(None, 1, "a consumer takes one producer at least")


def _replay(folder: Path, disturbance: Disturbance) -> ReplayResults:
    folder.mkdir(parents=True)
    write_evidence(folder, disturbance, seed=0)
    return load_replay(folder).replay()


QUIET = Disturbance()
LATE = Disturbance(path_delay_ns={13: 15 * MS, 33: 15 * MS})
STALLED = Disturbance(path_delay_ns={13: 15 * MS}, stalled=True)
GENERATOR_LATE = Disturbance(generator_delay_ns={13: 15 * MS})


@pytest.mark.parametrize(
    ("replays", "outcome", "said"),
    [
        ([QUIET], "within", ""),
        ([LATE], "over", "stream 13: "),
        ([STALLED], "no verdict", f"{BENCH_STALLED}: 1 stream has no verdict"),
        ([STALLED, QUIET], "no verdict", ""),
        ([STALLED, QUIET, QUIET], "within", ""),
        ([STALLED, LATE], "over", "stream 13: "),
        ([LATE, QUIET], "over", "stream 13: "),
        ([GENERATOR_LATE], "no verdict", "1 stream has no verdict; stream 13: generator late"),
    ],
)
def test_a_trial_is_judged_stream_by_stream(
    tmp_path: Path, replays: list[Disturbance], outcome: TrialOutcome, said: str
) -> None:
    made = [_replay(tmp_path / str(number), each) for number, each in enumerate(replays)]
    requirements = {stream: requirement_of(stream) for stream in (10, 11, 12, 13, 33)}
    trial = judge_trial(made, (1,), requirements, "evidence/trial", 99)
    assert (trial.outcome, trial.size, trial.replays) == (outcome, 1, len(replays))
    assert trial.reason.startswith(said)
    assert bool(trial.reason) == (outcome != "within")
    assert [stream.id for stream in trial.streams] == [10, 11, 12, 13]  # producer 3 takes no part
    assert trial.failed == ((13,) if outcome == "over" else ())
    assert trial.lateness_p99_ns is not None
    assert trial.worst is not None
    assert trial.worst.id == 13


def test_too_few_messages_of_a_stream_show_nothing(tmp_path: Path) -> None:
    requirement = replace(requirement_of(13), n_required=301)
    trial = judge_trial([_replay(tmp_path / "0", QUIET)], (1,), {13: requirement}, "evidence/trial", 301)
    assert trial.outcome == "no verdict"
    assert "too few samples: 300 of 301" in trial.reason


def _trial(size: int, outcome: TrialOutcome, n: int = 60, own: bool = False) -> Trial:
    over = outcome == "over"
    streams = tuple(
        TrialStream(
            id=10 * producer,
            outcome="fail" if over and producer == ORDER[size - 1] else "pass",
            n=n,
            lost=0,
            over_budget=7 if over and producer == ORDER[size - 1] else 0,
            max_ns=20 * MS,
            budget_ns=100 * MS,
            margin_ns=(79 - producer) * MS,
            reason="",
        )
        for producer in ORDER[:size]
    )
    reason = "stream is over" if over else ""
    place = f"evidence/daq_replay/embedded/{'attempt-1' if own else f'{FOLDER}/trial-{size}'}"
    return Trial(ORDER[:size], outcome, place, own, 59, 1, streams, 400_000, 390_000, 410_000, reason)


def _found(
    found: int | None, low: int, high: int, *trials: Trial, boundary_trials: int = 1, reason: str = ""
) -> LargestPattern:
    return LargestPattern(ORDER, found, low, high, 59, boundary_trials, reason, trials)


FOUND = _found(3, 3, 4, _trial(2, "within", own=True), _trial(4, "over", 20), _trial(3, "within"))


def _record(found: LargestPattern, limit: Limit = LIMIT) -> Measurement:
    subject, conditions = Subject("virtual", "embedded", "kernel", "two-way"), Conditions("ci", "aligned-12")
    return largest_pattern_measurement(
        found, "DAQ-LARGEST", limit, Context("run", "a test", subject, conditions, True, ())
    )


def test_the_words_say_what_both_sides_of_the_boundary_have_shown() -> None:
    assert FOUND.confidence == (
        "3: in at least 60 messages of each stream, misses of more than 4.9 % excluded with 95 %;"
        " 4: 7 of 80 messages over budget or lost, 1 stream fails"
    )
    three = [_trial(3, "within")] * 3
    found = _found(3, 3, 4, _trial(4, "over"), *three, boundary_trials=3)
    assert "in at least 180 messages of each stream, misses of more than 1.7 %" in found.confidence
    assert "within in 3 of 3 trials, so in at least 23 % of such trials" in found.confidence
    assert found.within_least == pytest.approx((0.05 / 4) ** (1 / 3)), "it could have come to four sizes"
    everything = _found(4, 4, 5, _trial(4, "within", 120, own=True))
    assert everything.confidence.endswith("all that the bench has")


@pytest.mark.parametrize(
    ("found", "limit", "expected"),
    [
        (FOUND, LIMIT, ("pass", 3, 2)),
        (FOUND, Limit(None, 4, "site"), ("fail", 3, -1)),
        (_found(0, 0, 1, _trial(1, "over")), LIMIT, ("fail", 0, -1)),
        (_found(0, 0, 1, _trial(1, "over")), Limit(None, 0, "site"), ("pass", 0, 0)),
        (
            _found(None, 2, 4, _trial(2, "within"), reason="no verdict on 3"),
            LIMIT,
            ("pass", 2, 1),
        ),
        (
            _found(None, 2, 4, _trial(2, "within"), reason="no verdict on 3"),
            Limit(None, 3, "site"),
            ("inconclusive", None, None),
        ),
        (_found(None, 0, 5, reason="no verdict on 3"), LIMIT, ("inconclusive", None, None)),
        (
            _found(None, 2, 4, _trial(2, "within"), boundary_trials=5, reason="no verdict on 2"),
            LIMIT,
            ("inconclusive", None, None),
        ),
        (
            _found(None, 2, 4, *[_trial(2, "within")] * 5, boundary_trials=5, reason="no verdict on 3"),
            LIMIT,
            ("pass", 2, 1),
        ),
    ],
)
def test_the_record_is_judged_against_its_lower_limit(
    found: LargestPattern, limit: Limit, expected: tuple[str, int | None, int | None]
) -> None:
    record = _record(found, limit)
    assert (record.outcome, record.value, record.margin) == expected
    assert (record.quantity, record.unit, record.uncertainty.expanded) == ("largest_pattern", "producers", 0)
    assert bool(record.reason) == (record.outcome != "pass")


def test_a_number_that_was_not_found_is_no_guess() -> None:
    found = _found(None, 2, 4, _trial(2, "within"), reason="no verdict on 3 producers: why")
    record = _record(found, Limit(None, 3, "site"))
    assert record.reason == "not found: at least 2, fewer than 4; no verdict on 3 producers: why"
    once = _found(None, 2, 4, _trial(2, "within"), boundary_trials=5)
    assert once.confidence == "not found: at least 2 (in 1 of the 5 trials that it needs), fewer than 4"


def _with_record(tmp_path: Path, found: LargestPattern) -> RunFolder:
    run = make_run_of_targets(tmp_path)
    path = write_document(run.evidence_folder("daq_replay", "embedded", FOLDER) / FILE, found)
    assert read_largest_pattern(path) == found
    run.append(replace(_record(found), run_id=run.run_id, evidence=(run.evidence(path),)))
    return run


def test_the_pages_show_number_confidence_and_trials(tmp_path: Path) -> None:
    run = _with_record(tmp_path, FOUND)
    pages = render_pages(run.path)
    overview = squeezed(Outline(pages[PAGE]).text)
    assert "embedded 3 of 43: in at least 60 messages of each stream, misses of more than 4.9 %" in overview
    assert re.search(r"fails 70\.0 % 70\.00 ms90 400\.0 µs \[390 µs, 410 µs\]", overview)
    assert overview.count("not looked for") == 2
    page = pages["qualification-embedded.html"]
    own = squeezed(Outline(page).text)
    assert "DAQ-LARGEST: 3 of 4 producers; 3: in at least 60 messages" in own
    assert "in the order 9, 8, 1, 11: first" in own
    for outcome in ("2✔ within60 (59)", "4✖ over20 (59)", "3✔ within60 (59)"):
        assert outcome in own
    assert "attempt-1 (the suite's own replay)" in own
    assert "7 of 80110" in own
    assert 'id="largest-pattern"' not in pages["qualification-windows.html"]
    assert [report.others for report in gather_run(run.path).targets] == [(), (), ()]


def test_the_pages_show_the_search_with_each_network_stack(tmp_path: Path) -> None:
    run = _with_record(tmp_path, FOUND)
    other = _found(None, 2, 5, _trial(2, "within"), reason="no verdict on 3 producers")
    path = write_document(run.evidence_folder("daq_replay", "embedded", "user", FOLDER) / FILE, other)
    record = _record(other)
    record = replace(record, subject=replace(record.subject, stack="user"))
    run.append(replace(record, run_id=run.run_id, evidence=(run.evidence(path),)))
    pages = render_pages(run.path)
    overview = squeezed(Outline(pages[PAGE]).text)
    assert re.search(r"embedded, stack \S+ 3 of 43: in at least 60", overview)
    assert re.search(r"embedded, stack user at least 2 of 4", overview)
    own = squeezed(Outline(pages["qualification-embedded.html"]).text)
    assert "Stack user" in own
    assert "at least 2 of 4 producers" in own
    assert [report.others for report in gather_run(run.path).targets] == [(), (), ()]


def test_a_search_without_an_end_is_shown_as_such(tmp_path: Path) -> None:
    run = _with_record(tmp_path, _found(None, 2, 5, _trial(2, "within"), reason="no verdict on 3 producers"))
    overview = squeezed(Outline(render_pages(run.path)[PAGE]).text)
    assert "embedded at least 2 of 4not found: at least 2" in overview


def test_evidence_that_cannot_be_read_leaves_the_record_and_a_problem(tmp_path: Path) -> None:
    run = _with_record(tmp_path, FOUND)
    path = run.path / "evidence" / "daq_replay" / "embedded" / FOLDER / FILE
    path.write_text(path.read_text().replace('"low"', '"slow"'))
    with pytest.raises(RecordError, match="slow: unknown key"):
        read_largest_pattern(path)
    pages = render_pages(run.path)
    assert "slow: unknown key" in pages[PAGE]
    assert "slow: unknown key" in pages["qualification-embedded.html"]


def test_the_projects_requirement_is_read_as_any_other() -> None:
    data = (ROOT / "robot" / "daq_replay" / "requirements" / "largest_pattern.toml").read_bytes()
    [requirement] = read_set(data, "largest_pattern.toml").requirements
    assert requirement.text == "largest pattern, max, of the target: at least 1 producers"
    [part] = requirement.parts
    assert part == Part("largest_pattern max", ("largest_pattern",), "max", None, lower=1)
    assert part.discrepancy(_record(FOUND)) == ""
    less = _record(FOUND, Limit(None, 0, "site"))
    assert part.discrepancy(less) == "judged against 0 producers at least, the requirement is 1"
