# SPDX-License-Identifier: Apache-2.0
"""What was measured of clocks is worked out again alike, and what was changed in it afterwards is named."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from scipy.special import stdtrit

from reports.clock_read.readings import READINGS, load_cost
from reports.clock_read.verdict import read_measurement, unread_measurement
from reports.clock_sync.answers import clock_compare
from reports.clock_sync.disturbance import (
    DISTURBANCE,
    Disturbance,
    Event,
    lock_time_measurement,
    step_measurement,
    write_disturbance,
)
from reports.clock_sync.path_shift import path_shift, shift_measurement
from reports.clock_sync.trial import (
    EVIDENCE_FILES,
    FILTERED,
    TRIAL,
    WITNESS,
    ClockTrial,
    Lock,
    Timecard,
    TrialFacts,
    TwoWay,
    load_trial,
    write_trial,
)
from reports.clock_sync.two_way_reference import SERVER_FILE, TARGET_FILE, TWO_WAY
from reports.clock_sync.verdict import sync_measurement, unset_measurement, witness_measurement
from reports.latency.evidence import load_replay
from reports.latency.replay_clock import CLOCK_ERROR, REPLAY_CLOCK, ServerLine, measured_clock
from reports.latency.verdict import judge_latency, latency_measurement
from reports.record.context import Context
from reports.record.measurement import Conditions, Limit, Measurement, Subject
from reports.rejudge.clock_step import clock_step_objections
from reports.rejudge.clock_sync import clock_sync_objections
from reports.rejudge.clock_witnesses import clock_witness_objections
from reports.rejudge.latency import latency_objections
from reports.rejudge.lock_time import lock_time_objections
from reports.rejudge.path_shift import path_shift_objections, student_t
from reports.rejudge.read_latency import read_latency_objections
from reports.rejudge.run import rejudge
from reports.rejudge.trial import longest_pause_ns
from reports.run.folder import MEASUREMENTS, RunFolder
from resources.clocks.lines import ClockLine
from tests.reports.sample_clock import (
    SECOND_NS,
    START_TAI_NS,
    compare_answer,
    trial_context,
    write_clock_trial,
)
from tests.reports.sample_read_latency import latency_answer, write_sample_readings
from tests.reports.sample_run import Disturbance as ReplayDisturbance
from tests.reports.sample_run import requirement_of, write_evidence

LIMIT = Limit(40_000, -40_000, "paper on control loops, 4.5.1")
MS = 1_000_000
PERIOD_NS = 250_000

Json = dict[str, Any]
Objections = Callable[[Path, Sequence[Json]], tuple[list[str], int]]


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return RunFolder.create(tmp_path, "virtual", "ci", simulated=True, commit="0" * 40)


def trial_of(
    run: RunFolder, name: str, compare: Json, *, stalls_ms: tuple[int, ...] = (), **facts: Any
) -> ClockTrial:
    """Write a trial into the run, with facts changed and a witness that says its period, and read it."""
    folder = run.evidence_folder("clock_sync", "linux-rt", name)
    write_clock_trial(folder, compare, stalls_ms=stalls_ms)
    witness = json.loads((folder / WITNESS).read_text())
    (folder / WITNESS).write_text(json.dumps(witness | {"period_ns": PERIOD_NS}) + "\n")
    write_trial(folder, dataclasses.replace(load_trial(folder).facts, **facts))
    return load_trial(folder)


def context(run: RunFolder, trial: ClockTrial, names: Sequence[str] = EVIDENCE_FILES) -> Context:
    return trial_context(run, [trial], names)


def offset(run: RunFolder, trial: ClockTrial) -> Json:
    return sync_measurement(trial, "CLK-CHRONY", LIMIT, 99, context(run, trial)).to_json()


def edit(path: Path, *places: tuple[str, Any]) -> None:
    """Change values of a JSON document, or of the last line of several; dots lead into it."""
    *before, last = path.read_text().splitlines() if path.suffix == ".ndjson" else [path.read_text()]
    document = json.loads(last)
    for place, value in places:
        *way, key = place.split(".")
        inner = document
        for step in way:
            inner = inner[int(step) if step.isdigit() else step]
        inner[int(key) if key.isdigit() else key] = value
    path.write_text("\n".join([*before, json.dumps(document)]) + "\n")


def named(judge: Objections, run: RunFolder, record: Json, said: str) -> None:
    """Require that a record is worked out and an objection says what differs."""
    problems, count = judge(run.path, [record])
    assert count == 1
    assert any(said in problem for problem in problems), problems


# -- offsets: alike

STEPPED = [{"time_tai_ns": START_TAI_NS + SECOND_NS, "step_ns": 150_000}]
REFERENCE_36 = {"name": "card", "kind": "card", "bound_ns": 300, "tai_utc_s": 36}
OFFSETS: dict[str, tuple[Json, tuple[int, ...], str]] = {
    "good": ({}, (), "pass"),
    "bad": ({"mean_ns": -90_000}, (), "fail"),
    "within U": ({"mean_ns": 40_500, "deviation_ns": 0}, (), "inconclusive"),
    "not capable": ({"reference_bound_ns": 50_000}, (), "inconclusive"),
    "invalid": ({"valid": False, "invalid_reasons": ["the timecard drifted"]}, (), "inconclusive"),
    "invalid and bad": ({"mean_ns": -90_000, "valid": False}, (), "inconclusive"),
    "ended early": ({"complete": False}, (), "inconclusive"),
    "another TAI - UTC": ({"reference": REFERENCE_36}, (), "inconclusive"),
    "stepped": ({"steps": STEPPED}, (), "inconclusive"),
    "stepped and bad": ({"mean_ns": -90_000, "steps": STEPPED}, (), "fail"),
    "bad in a long pause": ({"mean_ns": -90_000}, (1, 3), "inconclusive"),
    "bad in a short pause": ({"mean_ns": -90_000}, (1,), "fail"),
    "worse than a pause": ({"mean_ns": 3 * MS}, (4,), "fail"),
    "too few": ({}, (), "inconclusive"),
    "nothing": ({"seconds": 0}, (), "unset"),
}


def case(run: RunFolder, name: str, **facts: Any) -> Json:
    changes, stalls_ms, outcome = OFFSETS[name]
    changes = dict(changes)
    samples = {key: changes.pop(key) for key in ("mean_ns", "deviation_ns", "seconds") if key in changes}
    answer = few_samples() if name == "too few" else compare_answer(**samples, **changes)
    record = offset(run, trial_of(run, "chrony", answer, stalls_ms=stalls_ms, **facts))
    assert record["outcome"] == outcome
    return record


def few_samples() -> Json:
    """Return a comparison that has 20 samples."""
    answer = compare_answer(deviation_ns=0, mean_ns=0, seconds=1)
    first: Json = compare_answer(deviation_ns=0, mean_ns=0, seconds=1)
    first["series"]["rows"] = answer["series"]["rows"][:1]
    for name in ("offset", "window"):
        summary = first[name]
        summary["n"] = 20
        summary["buckets"] = [[low, width, 20] for low, width, _count in summary["buckets"]]
    return first | {"iterations": 32}


@pytest.mark.parametrize("name", OFFSETS)
def test_an_offset_is_judged_alike(run: RunFolder, name: str) -> None:
    assert clock_sync_objections(run.path, [case(run, name)]) == ([], 1)


def test_an_offset_under_a_disturbance_is_worked_out(run: RunFolder) -> None:
    record = case(run, "bad", kind="oscillator")
    folder = run.path / "evidence" / "clock_sync" / "linux-rt" / "chrony"
    write_disturbance(folder, Disturbance("chrony", "oscillator", ()))
    assert clock_sync_objections(run.path, [record]) == ([], 1)
    named(clock_sync_objections, run, record | {"value": 5_000, "outcome": "pass"}, "value is 5000")


def test_pauses_close_to_each_other_are_as_long_as_they_are_together() -> None:
    windows = [[10 * MS, 11 * MS, 0], [12 * MS, 13 * MS, 1], [20 * MS, 20 * MS + 900_000, 0]]
    witness = {"windows": windows, "period_ns": 0, "cpus": []}
    assert longest_pause_ns(witness) == 2 * MS
    assert longest_pause_ns(witness | {"windows": windows[1:]}) == 0
    assert longest_pause_ns(None) == 0


# -- offsets: changed


@pytest.mark.parametrize(
    ("name", "outcome", "said"),
    [
        ("bad", "inconclusive", "inconclusive, the comparison comes to fail"),
        ("good", "inconclusive", "inconclusive, the comparison comes to pass"),
        ("invalid and bad", "fail", "fail, the comparison comes to inconclusive"),
        ("bad in a long pause", "fail", "fail, the comparison comes to inconclusive"),
        ("bad in a short pause", "inconclusive", "inconclusive, the comparison comes to fail"),
        ("worse than a pause", "inconclusive", "inconclusive, the comparison comes to fail"),
        ("another TAI - UTC", "pass", "pass, though the comparison is not valid"),
        ("stepped", "pass", "pass, though the comparison is not valid, the clock stepped"),
        ("too few", "pass", "pass, the comparison comes to inconclusive"),
        ("nothing", "pass", "pass, the comparison comes to unset"),
    ],
)
def test_an_outcome_that_a_trial_does_not_carry_is_named(
    run: RunFolder, name: str, outcome: str, said: str
) -> None:
    named(clock_sync_objections, run, case(run, name) | {"outcome": outcome}, said)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"conditions": {"profile": "ci", "phase": "sync 4 s"}},
            "phase is sync 4 s, the trial is of sync 1 s",
        ),
        ({"conditions": {"profile": "ci", "load": "cpu"}}, "load is cpu, the trial is of idle"),
        ({"conditions": {"profile": "ci", "impairment": "x"}}, "impairment is x, the trial is of none"),
        ({"subject": {"clock": "ptp-software"}}, "clock is ptp-software, the trial is of chrony"),
        ({"unit": "us"}, "unit is us, must be ns"),
        ({"allowed_lost": 5}, "0 lost, 5 allowed"),
        ({"value": 1_000}, "value is 1000, the comparison says"),
        ({"n": 1_000}, "n is 1000, the comparison says 2000"),
        ({"uncertainty": {"expanded": 1, "parts": []}}, "parts of U are {}, the comparison says"),
    ],
)
def test_a_record_that_is_not_its_trials_is_named(run: RunFolder, changes: Json, said: str) -> None:
    named(clock_sync_objections, run, case(run, "good") | changes, said)


def test_a_bound_that_became_a_deviation_is_named(run: RunFolder) -> None:
    record = case(run, "good")
    record["uncertainty"]["parts"][1]["kind"] = "standard"
    named(clock_sync_objections, run, record, "part bracket of U is of kind standard")


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        ("series.rows.3.2", 90_000, "the mean 90000 is not from"),
        ("series.rows.3.2", 3_900, "offset.mean_ns is"),
        ("series.rows.3.1", 30, "it holds 2010 samples of 2000"),
        ("series.rows.3.0", START_TAI_NS + 5, "no interval begins at"),
        ("series.rows.3.0", START_TAI_NS + SECOND_NS, "no interval begins at"),
        ("series.columns.2", "median_ns", "the series has the columns"),
        ("start_tai_ns", START_TAI_NS + 1, "it begins at"),
        ("window.max_ns", 1_900, "window: max_ns is 1900"),
        ("discarded", 11, "2012 iterations, 11 discarded, 2000 kept"),
        ("reference_bound_ns", 7, "parts of U are"),
        ("valid", False, "pass, though the comparison is not valid"),
    ],
)
def test_a_comparison_that_contradicts_itself_or_its_record_is_named(
    run: RunFolder, place: str, value: Any, said: str
) -> None:
    record = case(run, "good")
    edit(run.path / "evidence" / "clock_sync" / "linux-rt" / "chrony" / FILTERED, (place, value))
    named(clock_sync_objections, run, record, said)


def test_a_pause_that_was_put_in_afterwards_does_not_carry_the_fail(run: RunFolder) -> None:
    record = case(run, "bad")
    folder = run.path / "evidence" / "clock_sync" / "linux-rt" / "chrony"
    edit(folder / WITNESS, ("windows", [[START_TAI_NS, START_TAI_NS + 8 * MS, 0]]))
    named(clock_sync_objections, run, record, "fail, the comparison comes to inconclusive")


def test_a_witness_of_the_version_before_leaves_a_fail_open(run: RunFolder) -> None:
    record = case(run, "bad in a short pause")
    folder = run.path / "evidence" / "clock_sync" / "linux-rt" / "chrony"
    witness = json.loads((folder / WITNESS).read_text())
    del witness["period_ns"]
    (folder / WITNESS).write_text(json.dumps(witness))
    for outcome in ("fail", "inconclusive"):
        assert clock_sync_objections(run.path, [record | {"outcome": outcome}]) == ([], 1)


def test_what_cannot_be_read_is_a_problem(run: RunFolder) -> None:
    record = case(run, "good")
    (run.path / "evidence" / "clock_sync" / "linux-rt" / "chrony" / TRIAL).write_text("{")
    problems, count = clock_sync_objections(run.path, [record])
    assert problems
    assert count == 0


def test_a_clock_that_was_not_measured_has_nothing_to_be_worked_out(run: RunFolder) -> None:
    nothing = dataclasses.replace(
        context(run, trial_of(run, "chrony", compare_answer())),
        evidence=(),
    )
    record = unset_measurement("CLK-CHRONY", LIMIT, 99, "no lock", nothing).to_json()
    assert clock_sync_objections(run.path, [record]) == ([], 0)


# -- offsets by two-way transfer


def exchanges(n: int = 120, offset_ns: int = 2_000, rate_ppb: int = 0, **others: Any) -> Json:
    """Return the answer of `bw-traffic offset`, some of whose exchanges were held up."""
    end_ns = START_TAI_NS + n * 50 * MS
    series: list[list[int]] = []
    for number in range(n):
        at_ns = START_TAI_NS + number * 50 * MS
        drift_ns = (at_ns - end_ns) * rate_ppb // 10**9
        is_late = number % 40 == 7
        series.append(
            [at_ns, offset_ns + drift_ns + number % 3 * 700, 90_000 if is_late else 20_000 + number]
        )
    answer: Json = {"type": "result", "tool": "bw-traffic offset", "peer": "10.78.0.110:19999"}
    answer |= {"complete": True, "valid": True, "invalid_reasons": [], "exchanges": 8 * n, "kept": n}
    answer |= {"offset_ns": offset_ns, "rate_ppb": rate_ppb, "bound_ns": 9_000, "bound_growth_ppb": 4_321}
    answer |= {"at_local_tai_ns": end_ns, "tai_utc_s": 37, "series": series, "clock_steps": []}
    return answer | others


def by_two_way(run: RunFolder, target: Json, server: Json | None = None) -> Json:
    """Write a trial of a target without timecard, and return its record."""
    folder = run.evidence_folder("clock_sync", "windows", "as-found")
    for file, answer in ((TARGET_FILE, target), (SERVER_FILE, server)):
        if answer is not None:
            (folder / file).write_text(json.dumps(answer) + "\n")
    card = Timecard(TWO_WAY, 0, "the control network")
    write_trial(folder, TrialFacts("as-found", "sync", None, "idle", "none", None, None, None, card))
    return offset_of_two_way(run, load_trial(folder))


def offset_of_two_way(run: RunFolder, trial: ClockTrial) -> Json:
    limit = Limit(500_000, -500_000, "a test")
    return sync_measurement(trial, "CLK-AS-FOUND", limit, 99, context(run, trial)).to_json()


@pytest.mark.parametrize(
    ("target", "server", "outcome"),
    [
        ({}, None, "pass"),
        ({"offset_ns": -3_000_000_000}, None, "fail"),
        ({"offset_ns": 490_000}, None, "inconclusive"),
        ({"n": 90}, None, "inconclusive"),
        ({"n": 0}, None, "unset"),
        ({"valid": False}, None, "inconclusive"),
        ({"clock_steps": [{"clock": "peer", "time_tai_ns": 1, "step_ns": MS}]}, None, "inconclusive"),
        ({"offset_ns": 70_000, "rate_ppb": 123_457}, {"offset_ns": 60_000, "rate_ppb": 98_765}, "pass"),
        ({"offset_ns": 70_000}, {"offset_ns": 900_000, "rate_ppb": -7}, "fail"),
        ({}, {"complete": False}, "inconclusive"),
    ],
)
def test_a_clock_by_two_way_transfer_is_judged_alike(
    run: RunFolder, target: Json, server: Json | None, outcome: str
) -> None:
    record = by_two_way(run, exchanges(**target), None if server is None else exchanges(**server))
    assert record["outcome"] == outcome
    assert clock_sync_objections(run.path, [record]) == ([], 1)


@pytest.mark.parametrize(
    ("file", "place", "value", "said"),
    [
        (TARGET_FILE, "series.3.1", 77_000, "value is 3400, the comparison says 77000"),
        (TARGET_FILE, "series.3.2", 50_000, "n is 117, the comparison says 116"),
        (TARGET_FILE, "series.119.2", 30_000, "parts of U are"),
        (TARGET_FILE, "complete", False, "pass, though the comparison is not valid"),
        (SERVER_FILE, "bound_ns", 8_000, "parts of U are"),
        (SERVER_FILE, "offset_ns", 4_000, "value is 3400, the comparison says"),
        (SERVER_FILE, "tai_utc_s", 36, "another TAI - UTC"),
    ],
)
def test_exchanges_that_were_changed_are_named(
    run: RunFolder, file: str, place: str, value: Any, said: str
) -> None:
    record = by_two_way(run, exchanges(), exchanges(offset_ns=0))
    edit(run.path / "evidence" / "clock_sync" / "windows" / "as-found" / file, (place, value))
    problems, _ = clock_sync_objections(run.path, [record])
    assert any(said in problem for problem in problems), problems


# -- time to lock

EVENTS = (
    Event("oscillator +200 ppm", 1.0, Lock(15.6, "rule", 2.4), "servo before: -27.9 ppm"),
    Event("oscillator +200 ppm, taken back", 16.6, Lock(8.6, "rule", 1.6), ""),
)


def lock(run: RunFolder, events: tuple[Event, ...], deadline_s: float = 90, n_required: int = 2) -> Json:
    """Write a trial with events, and return the record of its locks."""
    trial = trial_of(run, "chrony-oscillator", compare_answer(), kind="oscillator")
    done = Disturbance("chrony", "oscillator", events)
    write_disturbance(trial.folder, done)
    limit = Limit(deadline_s, None, "lock_within_s of CLK-CHRONY")
    where = context(run, trial, (TRIAL, DISTURBANCE))
    return lock_time_measurement(done.locks, "CLK-CHRONY", limit, n_required, where, "no lock").to_json()


@pytest.mark.parametrize(
    ("events", "deadline_s", "n_required", "outcome"),
    [
        (EVENTS, 90, 2, "pass"),
        (EVENTS, 16, 2, "inconclusive"),
        (EVENTS, 12, 2, "fail"),
        (EVENTS, 90, 3, "inconclusive"),
        (EVENTS[:1], 12, 2, "fail"),
        ((Event("clock put ahead by 500 us", 1.0, Lock(30.0, "rule"), ""),), 90, 1, "pass"),
        ((Event("clock put ahead by 500 us", 1.0, Lock(50.0, "rule"), ""),), 90, 1, "inconclusive"),
        ((Event("clock put ahead by 500 us", 1.0, None, ""),), 90, 1, "unset"),
    ],
)
def test_a_time_to_lock_is_judged_alike(
    run: RunFolder, events: tuple[Event, ...], deadline_s: float, n_required: int, outcome: str
) -> None:
    record = lock(run, events, deadline_s, n_required)
    assert record["outcome"] == outcome
    assert lock_time_objections(run.path, [record]) == ([], 1)


def test_the_lock_of_a_trial_in_steady_state_is_worked_out(run: RunFolder) -> None:
    trial = trial_of(run, "chrony", compare_answer(), lock=Lock(12.5, "rule", 1.1))
    limit = Limit(90, None, "lock_within_s of CLK-CHRONY")
    where = context(run, trial, (TRIAL,))
    record = lock_time_measurement([Lock(12.5, "rule", 1.1)], "CLK-CHRONY", limit, 1, where).to_json()
    assert lock_time_objections(run.path, [record]) == ([], 1)
    edit(trial.folder / TRIAL, ("lock.after_s", 95.0))
    named(lock_time_objections, run, record, "value is 12.5, its locks say 95.0")


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        ("events.0.lock.after_s", 14.6, "value is 15.6, its locks say 14.6"),
        ("events.0.lock.bound_s", 0.4, "parts of U are {'look': 2.4}, its locks say {'look': 0.4}"),
        ("events.1.lock", None, "n is 2, its locks say 1"),
        ("events.1.at_s", 9.0, "before the lock after 'oscillator +200 ppm'"),
        ("clock", "ptp-software", "disturbance.json is of ptp-software"),
        ("kind", "step", "phase is oscillator, disturbance.json is of step"),
    ],
)
def test_a_lock_that_was_changed_is_named(run: RunFolder, place: str, value: Any, said: str) -> None:
    record = lock(run, EVENTS)
    folder = run.path / "evidence" / "clock_sync" / "linux-rt" / "chrony-oscillator"
    edit(folder / DISTURBANCE, (place, value))
    named(lock_time_objections, run, record, said)


def test_a_deadline_that_nobody_asked_for_is_named(run: RunFolder) -> None:
    kept = run.evidence_folder("requirements")
    (kept / "clocks.toml").write_text('[[requirement]]\nid = "CLK-CHRONY"\nlock_within_s = 90\n')
    (kept / "damaged.toml").write_text("[[requirement")
    assert lock_time_objections(run.path, [lock(run, EVENTS)]) == ([], 1)
    named(lock_time_objections, run, lock(run, EVENTS, 900), "judged against 900 s, lock_within_s is 90")


# -- a step of the clock

STEP_NS = 500_000


def step(run: RunFolder, *steps_ns: int, **changes: Any) -> Json:
    """Write a trial in which the tool has found these steps, and return its record."""
    steps = [{"time_tai_ns": START_TAI_NS + SECOND_NS, "step_ns": step_ns} for step_ns in steps_ns]
    trial = trial_of(run, "chrony-step", compare_answer(steps=steps, **changes), kind="step")
    event = Event("clock put ahead by 500 us", 1.0, Lock(5.8, "rule", 1.4), "")
    write_disturbance(trial.folder, Disturbance("chrony", "step", (event,)))
    limit = Limit(4 * STEP_NS, -4 * STEP_NS, "a test")
    where = context(run, trial, (TRIAL, FILTERED))
    return step_measurement(trial, STEP_NS, limit, 99, where).to_json()


@pytest.mark.parametrize(
    ("steps_ns", "outcome"),
    [
        ((STEP_NS + 4,), "pass"),
        ((-150_000, STEP_NS + 90_000), "pass"),
        ((STEP_NS - 100_900,), "inconclusive"),
        ((STEP_NS // 2,), "inconclusive"),
        ((), "inconclusive"),
    ],
)
def test_a_step_is_judged_alike(run: RunFolder, steps_ns: tuple[int, ...], outcome: str) -> None:
    record = step(run, *steps_ns)
    assert record["outcome"] == outcome
    assert clock_step_objections(run.path, [record]) == ([], 1)


def test_a_step_that_is_not_the_one_found_is_named(run: RunFolder) -> None:
    record = step(run, STEP_NS // 2)
    named(clock_step_objections, run, record | {"value": STEP_NS}, "value is 500000, the comparison says")
    named(clock_step_objections, run, record | {"outcome": "pass"}, "pass, its steps come to inconclusive")
    moved = {"upper": 250_000 + 101_700, "lower": 250_000 - 101_700, "source": ""}
    named(
        clock_step_objections, run, record | {"limit": moved}, "around a step of 250000 ns, disturbance.json"
    )
    wide = {"upper": STEP_NS + 400_000, "lower": STEP_NS - 400_000, "source": ""}
    named(clock_step_objections, run, record | {"limit": wide}, "upper limit is 900000")
    twice = {"expanded": 850, "parts": [{"name": "reference", "kind": "bound", "value": 850}]}
    named(clock_step_objections, run, record | {"uncertainty": twice}, "parts of U are")


def test_a_step_without_a_note_of_it_is_worked_out(run: RunFolder) -> None:
    record = step(run, STEP_NS)
    folder = run.path / "evidence" / "clock_sync" / "linux-rt" / "chrony-step"
    (folder / DISTURBANCE).unlink()
    assert clock_step_objections(run.path, [record]) == ([], 1)


# -- reference and two-way transfer


def line(name: str, offset_ns: int, rate_ppb: int, after_ns: int = 0) -> Json:
    """Return the answer of a clock that was asked by two-way transfer."""
    answer: Json = {
        "type": "result",
        "name": name,
        "at_local_tai_ns": START_TAI_NS + 3 * SECOND_NS + after_ns,
    }
    return answer | {"offset_ns": offset_ns, "rate_ppb": rate_ppb, "bound_ns": 70_000 + after_ns // 1000}


def clock_line(answer: Json) -> ClockLine:
    keys = ("offset_ns", "rate_ppb", "bound_ns")
    return ClockLine(answer["name"], answer["at_local_tai_ns"], *(answer[key] for key in keys))


def witnesses(run: RunFolder, mean_ns: int, own: Json, server: Json) -> Json:
    """Write a trial that two-way transfer was beside, as the bench works it out, and return its record."""
    mine, theirs = clock_line(own), clock_line(server)
    end_ns = max(mine.at_reference_tai_ns, theirs.at_reference_tai_ns)
    begin_ns = end_ns - 2_500 * MS
    middle_ns = (begin_ns + end_ns) // 2
    two_way = TwoWay(
        mine.local_ns(middle_ns) - theirs.local_ns(middle_ns),
        mine.bound_ns + theirs.bound_ns,
        theirs.local_ns(begin_ns),
        theirs.local_ns(end_ns),
    )
    trial = trial_of(run, "chrony", compare_answer(mean_ns=mean_ns), two_way=two_way)
    answers = trial.folder / "two-way"
    answers.mkdir(exist_ok=True)
    for answer in (own, server):
        (answers / f"offset-{answer['name']}.ndjson").write_text(json.dumps(answer) + "\n")
        (answers / f"offset-serve-{answer['name']}.ndjson").write_text('{"type":"ready"}\n')
    record = witness_measurement(trial, "BENCH-CLOCK-WITNESSES", context(run, trial))
    assert record is not None
    return record.to_json()


OWN, SERVER = line("linux-rt", 12_345_678, -58_718, 2_640_347), line("grandmaster", 12_340_001, 29_463)


@pytest.mark.parametrize(("mean_ns", "outcome"), [(3_000, "pass"), (900_000, "inconclusive")])
def test_two_witnesses_are_judged_alike(run: RunFolder, mean_ns: int, outcome: str) -> None:
    record = witnesses(run, mean_ns, OWN, SERVER)
    assert record["outcome"] == outcome
    assert clock_witness_objections(run.path, [record]) == ([], 1)


def test_a_server_that_is_the_reference_itself_has_no_answer(run: RunFolder) -> None:
    own = line("linux-rt", 5_000, 100)
    record = witnesses(run, 3_000, own, own | {"name": "host"} | dict.fromkeys(("offset_ns", "rate_ppb"), 0))
    trial = run.path / "evidence" / "clock_sync" / "linux-rt" / "chrony"
    (trial / "two-way" / "offset-host.ndjson").unlink()
    edit(trial / TRIAL, ("two_way.bound_ns", 70_000))
    limits = record["limit"]
    record |= {"limit": {"upper": limits["upper"] - 70_000, "lower": limits["lower"] + 70_000}}
    assert clock_witness_objections(run.path, [record]) == ([], 1)


def test_witnesses_that_were_changed_are_named(run: RunFolder) -> None:
    record = witnesses(run, 3_000, OWN, SERVER)
    named(clock_witness_objections, run, record | {"value": 1}, "value is 1, the witnesses say")
    named(clock_witness_objections, run, record | {"n": 3}, "n is 3, the witnesses say")
    named(clock_witness_objections, run, record | {"outcome": "inconclusive"}, "its witnesses come to pass")
    far = {"upper": 2 * MS, "lower": -2 * MS, "source": ""}
    named(clock_witness_objections, run, record | {"limit": far}, "upper limit is 2000000")
    folder = run.path / "evidence" / "clock_sync" / "linux-rt" / "chrony"
    edit(folder / "two-way" / "offset-linux-rt.ndjson", ("offset_ns", 12_445_678))
    named(clock_witness_objections, run, record, "two-way transfer is")
    shutil.rmtree(folder / "two-way")
    assert clock_witness_objections(run.path, [record]) == ([], 1)
    edit(folder / TRIAL, ("two_way.offset_ns", -900_000))
    named(clock_witness_objections, run, record, "value is")
    edit(folder / TRIAL, ("two_way", None))
    named(clock_witness_objections, run, record, "there was no two-way transfer")


# -- an asymmetric path


def shift(
    run: RunFolder, means_ns: Sequence[tuple[int, int]], transits_ns: tuple[int, int] | None = None
) -> Json:
    """Write pairs of trials without and with a delay of 50 us, and return their record."""
    pairs: list[tuple[ClockTrial, ClockTrial]] = []
    for number, means in enumerate(means_ns, start=1):
        found: list[ClockTrial] = []
        for index, (delay_us, mean_ns) in enumerate(zip((0, 50), means, strict=True)):
            facts: Json = {"kind": "asymmetry", "impairment": f"{delay_us} us one way"}
            facts["server_to_target_ns"] = transits_ns[index] if transits_ns else None
            name = f"chrony-asymmetry/pair-{number}-{delay_us}-us"
            found.append(trial_of(run, name, compare_answer(mean_ns=mean_ns), **facts))
        pairs.append((found[0], found[1]))
    files = [trial.folder / name for pair in pairs for trial in pair for name in (TRIAL, FILTERED)]
    where = dataclasses.replace(
        context(run, pairs[0][1]), evidence=tuple(run.evidence(file) for file in files)
    )
    return shift_measurement(path_shift(pairs), 50_000, where).to_json()


SEEN = [(3_000, -21_000), (5_000, -21_000), (1_000, -24_500), (2_000, -22_500)]


@pytest.mark.parametrize(
    ("means_ns", "transits_ns", "outcome"),
    [
        (SEEN, None, "pass"),
        (SEEN[:3], (400_000, 451_000), "pass"),
        (SEEN, (400_000, 514_000), "inconclusive"),
        (SEEN[::-1], (514_000, 400_000), "inconclusive"),
        ([(0, 500), (0, -700), (0, 300)], None, "inconclusive"),
        ([(0, -60_000), (0, 9_000), (0, -24_000)], None, "inconclusive"),
    ],
)
def test_a_shift_is_judged_alike(
    run: RunFolder,
    means_ns: Sequence[tuple[int, int]],
    transits_ns: tuple[int, int] | None,
    outcome: str,
) -> None:
    record = shift(run, means_ns, transits_ns)
    assert record["outcome"] == outcome
    assert path_shift_objections(run.path, [record]) == ([], 1)


def test_a_shift_that_was_changed_is_named(run: RunFolder) -> None:
    record = shift(run, SEEN)
    named(path_shift_objections, run, record | {"value": -25_500}, "value is -25500, its pairs say")
    named(path_shift_objections, run, record | {"n": 5}, "n is 5, its pairs say 4")
    wide = {"upper": -1, "lower": -90_000, "source": ""}
    named(path_shift_objections, run, record | {"limit": wide}, "the 95 % interval gives")
    folder = run.path / "evidence" / "clock_sync" / "linux-rt" / "chrony-asymmetry"
    edit(folder / "pair-2-50-us" / FILTERED, ("offset.mean_ns", -900))
    named(path_shift_objections, run, record, "mean_ns is -900")
    record["evidence"] = record["evidence"][:8]
    named(path_shift_objections, run, record, "2 pairs of trials")


def test_pairs_of_which_half_is_missing_are_left_alone(run: RunFolder) -> None:
    record = shift(run, SEEN)
    record["evidence"] = record["evidence"][2:]
    assert path_shift_objections(run.path, [record]) == ([], 0)


def test_the_quantile_is_students() -> None:
    for freedom in range(1, 40):
        assert student_t(freedom) == pytest.approx(float(stdtrit(freedom, 0.975)), rel=1e-9)


# -- what reading a clock costs


def read(run: RunFolder, answer: Json, statistic: str = "mean", upper_ns: int = 5_000) -> Json:
    """Write readings of the target's realtime clock, and return their record."""
    folder = run.evidence_folder("clock_read_latency", "linux-rt")
    reading = write_sample_readings(folder, answer).readings[1]
    cost = load_cost(folder, reading)
    assert cost is not None
    limit = Limit(upper_ns, None, "a source")
    where = read_context(run, folder, "realtime", (READINGS, reading.file))
    return read_measurement(cost, statistic, "CLK-READ-REALTIME", limit, 1_000, where).to_json()


def read_context(run: RunFolder, folder: Path, clock: str, names: Sequence[str]) -> Context:
    files = tuple(run.evidence(folder / name) for name in names)
    subject = Subject("virtual", "linux-rt", clock=clock)
    return Context(run.run_id, "Reading", subject, Conditions("ci"), True, files)


READS: list[tuple[Json, str, int, str]] = [
    ({}, "mean", 5_000, "pass"),
    ({}, "max", 5_000, "pass"),
    ({}, "mean", 490, "inconclusive"),
    ({}, "mean", 400, "fail"),
    ({}, "mean", 20, "fail"),
    ({"cost_ns": 30}, "mean", 22, "inconclusive"),
    ({"n": 900}, "mean", 5_000, "inconclusive"),
    ({"slow_ns": (90_000, 400_000)}, "mean", 1_000, "inconclusive"),
    ({"slow_ns": (90_000, 400_000)}, "max", 5_000, "inconclusive"),
    ({"slow_ns": (90_000, 400_000), "counted": True}, "max", 5_000, "pass"),
    ({"slow_ns": (90_000,), "counted": True}, "max", 400, "fail"),
    ({"slow_ns": (90_000,), "counted": True}, "mean", 5_000, "pass"),
    ({"valid": False, "invalid_reasons": ["x"]}, "mean", 5_000, "inconclusive"),
    ({"complete": False}, "mean", 400, "inconclusive"),
    ({"n": 0}, "mean", 5_000, "unset"),
]


@pytest.mark.parametrize(("answer", "statistic", "upper_ns", "outcome"), READS)
def test_what_a_reading_costs_is_judged_alike(
    run: RunFolder, answer: Json, statistic: str, upper_ns: int, outcome: str
) -> None:
    record = read(run, latency_answer(**answer), statistic, upper_ns)
    assert record["outcome"] == outcome
    assert read_latency_objections(run.path, [record]) == ([], 1)


def test_a_clock_that_was_not_read_has_no_value(run: RunFolder) -> None:
    folder = run.evidence_folder("clock_read_latency", "linux-rt")
    write_sample_readings(folder, latency_answer())
    where = read_context(run, folder, "timecard", (READINGS,))
    limit = Limit(5_000, None, "a source")
    record = unread_measurement("nobody answers", "mean", "CLK-READ", limit, 1_000, where).to_json()
    assert read_latency_objections(run.path, [record]) == ([], 1)
    named(read_latency_objections, run, record | {"value": 300, "n": 1_000}, "value is 300")
    named(read_latency_objections, run, record | {"outcome": "inconclusive"}, "it was not read")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"value": 300}, "value is 300, the readings say"),
        ({"n": 2_000}, "n is 2000, the readings say 1000"),
        ({"statistic": "max"}, "value is 500.1, the readings say 501"),
        ({"statistic": "p99"}, "statistic is p99"),
        ({"outcome": "inconclusive"}, "inconclusive, its readings come to pass"),
        ({"uncertainty": {"expanded": 0, "parts": []}}, "parts of U are {}, the readings say"),
        ({"conditions": {"profile": "ci", "load": "cpu"}}, "load is cpu"),
        ({"subject": {"target": "windows", "clock": "realtime"}}, "target is windows"),
        ({"subject": {"target": "linux-rt", "clock": "tai"}}, "tai: 0 readings"),
    ],
)
def test_a_changed_record_of_readings_is_named(run: RunFolder, changes: Json, said: str) -> None:
    record = read(run, latency_answer()) | changes
    problems, _ = read_latency_objections(run.path, [record])
    assert any(said in problem for problem in problems), problems


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        ("clocks.0.latency.mean_ns", 450, "mean_ns is 450"),
        ("clocks.0.latency.stddev_ns", 90, "stddev_ns is 90"),
        ("clocks.0.latency.max_ns", 500, "max_ns is 500"),
        ("clocks.0.latency.buckets.0.2", 800, "n is 1000, its buckets hold 900"),
        ("clocks.0.net.min_ns", 300, "min_ns is 300"),
        ("clocks.0.n", 900, "n is 900, its distribution is of 1000"),
        ("clocks.0.name", "tsc", "is of tsc, not of realtime"),
        ("clocks.0.interrupted", 3, "interrupted is 3, kept is missing"),
        ("pair_cost_ns", 2.5, "two readings of the counter 2.5"),
        ("tsc_hz", 100_000_000, "parts of U are"),
        ("complete", False, "pass, its readings come to inconclusive"),
        ("clocks", [], "0 clocks"),
    ],
)
def test_readings_that_were_changed_are_named(run: RunFolder, place: str, value: Any, said: str) -> None:
    record = read(run, latency_answer())
    folder = run.path / "evidence" / "clock_read_latency" / "linux-rt"
    edit(folder / "target-realtime.ndjson", (place, value))
    problems, _ = read_latency_objections(run.path, [record])
    assert any(said in problem for problem in problems), problems


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        ("clocks.0.interrupted", 2, "1000 kept and 2 interrupted of 1001"),
        ("clocks.0.kept", None, "kept is missing"),
        ("clocks.0.kept.buckets.0.0", 499, "kept has readings that latency has not"),
    ],
)
def test_interruptions_that_were_changed_are_named(run: RunFolder, place: str, value: Any, said: str) -> None:
    record = read(run, latency_answer(slow_ns=(90_000,), counted=True), "max")
    folder = run.path / "evidence" / "clock_read_latency" / "linux-rt"
    edit(folder / "target-realtime.ndjson", (place, value))
    problems, _ = read_latency_objections(run.path, [record])
    assert any(said in problem for problem in problems), problems


# -- latencies whose stamps are taken as they are

HOST = ServerLine("host", START_TAI_NS, 2_000, -25, 100_000, 7_000)
GUEST = ServerLine("guest", START_TAI_NS, -5 * MS, 0, 200_000, 9_000)
STREAMS = (13, 33, 121)


OWN_CLOCK = {"name": "time-service", "line_error_max_ns": 3_000}


def latencies(
    run: RunFolder, replay: ReplayDisturbance | None = None, **compare: Any
) -> tuple[Path, list[Json]]:
    """Write a replay whose target has a clock of its own, and return its folder and some records."""
    folder = run.evidence_folder("daq_replay", "linux-rt", "attempt-1")
    write_evidence(folder, replay or ReplayDisturbance(), seed=5)
    edit(folder / "recv.ndjson", ("correction", "none"), ("clocks", []), ("own_clock", OWN_CLOCK))
    shutil.copy(folder / "plan.toml", folder / "plan-consumer.toml")
    answer = compare_answer(**{"complete": False} | compare)
    (folder / CLOCK_ERROR).write_text(json.dumps(answer) + "\n")
    card = Timecard("card", 40, "shared memory")
    lines = (HOST, GUEST)
    measured_clock("chrony", "gm", Lock(9.0, "rule"), card, clock_compare(answer), lines).write(folder)
    found = load_replay(folder).replay()
    files = tuple(run.evidence(folder / name) for name in (REPLAY_CLOCK, CLOCK_ERROR, "recv.ndjson"))
    records: list[Measurement] = []
    for stream in STREAMS:
        subject = Subject("virtual", "linux-rt", "kernel", "chrony", str(stream))
        where = Context(run.run_id, "a test", subject, Conditions("ci", "aligned-12"), True, files)
        judged = judge_latency(stream, requirement_of(stream), found)
        records.append(latency_measurement(stream, requirement_of(stream), found, judged, where))
    return folder, [record.to_json() for record in records]


@pytest.mark.parametrize(
    ("replay", "compare", "outcomes"),
    [
        (ReplayDisturbance(), {}, ["pass"] * 3),
        (ReplayDisturbance(), {"complete": True}, ["inconclusive"] * 3),
        (ReplayDisturbance(), {"steps": STEPPED}, ["inconclusive"] * 3),
        (ReplayDisturbance(), {"seconds": 0}, ["inconclusive"] * 3),
        (ReplayDisturbance(), {"mean_ns": 30 * MS}, ["inconclusive", "inconclusive", "pass"]),
        (ReplayDisturbance(path_delay_ns={33: 15 * MS}, stalled=True), {}, ["pass", "inconclusive", "pass"]),
    ],
)
def test_stamps_taken_as_they_are_are_judged_alike(
    run: RunFolder, replay: ReplayDisturbance, compare: Json, outcomes: list[str]
) -> None:
    _, records = latencies(run, replay, **compare)
    assert [record["outcome"] for record in records] == outcomes
    assert latency_objections(run.path, records) == ([], len(STREAMS))


@pytest.mark.parametrize(
    ("file", "place", "value", "said"),
    [
        (CLOCK_ERROR, "offset.max_ns", 9_000, "offset.max_ns is 9000, it has"),
        (CLOCK_ERROR, "reference_bound_ns", 90, "reference_bound_ns is 400, the comparison says 90"),
        (CLOCK_ERROR, "complete", True, "its faults are [], which the comparison does not say"),
        (REPLAY_CLOCK, "max_abs_ns", 10, "max_abs_ns is 10, the comparison says"),
        (REPLAY_CLOCK, "bracket_ns", 10, "bracket_ns is 10, the comparison says 450"),
        (REPLAY_CLOCK, "readings", 10, "readings is 10, the comparison says 2000"),
        (REPLAY_CLOCK, "faults", ["a fault"], "its faults are ['a fault']"),
        (REPLAY_CLOCK, "lines.0.bound_ns", 10, "DAQ-013: parts of U are"),
        ("recv.ndjson", "own_clock.line_error_max_ns", 10, "DAQ-013: parts of U are"),
        (REPLAY_CLOCK, "lines", [], "DAQ-013: pass, its replays come to no verdict"),
    ],
)
def test_a_targets_clock_that_was_changed_is_named(
    run: RunFolder, file: str, place: str, value: Any, said: str
) -> None:
    folder, records = latencies(run)
    edit(folder / file, (place, value))
    problems, _ = latency_objections(run.path, records)
    assert any(said in problem for problem in problems), problems


# -- all of them in a run


def test_a_run_has_all_of_them_worked_out(run: RunFolder) -> None:
    records = [
        case(run, "good"),
        lock(run, EVENTS),
        step(run, STEP_NS),
        shift(run, SEEN),
        read(run, latency_answer()),
        *latencies(run)[1],
    ]
    lines = [json.dumps(record) for record in records]
    (run.path / MEASUREMENTS).write_text("".join(f"{line}\n" for line in lines))
    found = rejudge(run.path)
    assert (found.contradicted, found.worked_out, found.records) == ((), len(records), len(records))
    forged = [json.dumps(record | {"n": record["n"] + 1}) for record in records]
    (run.path / MEASUREMENTS).write_text("".join(f"{line}\n" for line in forged))
    said = rejudge(run.path).contradicted
    for record in records:
        assert any(f"n is {record['n'] + 1}, " in each for each in said), record["quantity"]
