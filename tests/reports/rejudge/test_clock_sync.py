# SPDX-License-Identifier: Apache-2.0
"""Offsets by timecard and by two-way transfer are judged alike, and what was changed in them is named."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from reports.clock_sync.disturbance import Disturbance, write_disturbance
from reports.clock_sync.trial import (
    FILTERED,
    TRIAL,
    WITNESS,
    ClockTrial,
    Timecard,
    TrialFacts,
    load_trial,
    write_trial,
)
from reports.clock_sync.two_way_reference import SERVER_FILE, TARGET_FILE, TWO_WAY
from reports.clock_sync.verdict import sync_measurement, unset_measurement
from reports.record.measurement import Limit
from reports.rejudge.clock_sync import clock_sync_discrepancies
from reports.rejudge.trial import longest_pause_ns
from reports.run.folder import RunFolder
from tests.reports.rejudge.clock_trials import LIMIT, MS, Json, context, edit, named, offset, trial_of
from tests.reports.sample_clock import SECOND_NS, START_TAI_NS, compare_answer

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
    assert clock_sync_discrepancies(run.path, [case(run, name)]) == ([], 1)


def test_an_offset_under_a_disturbance_is_worked_out(run: RunFolder) -> None:
    record = case(run, "bad", kind="oscillator")
    folder = run.path / "evidence" / "clock_sync" / "linux-rt" / "chrony"
    write_disturbance(folder, Disturbance("chrony", "oscillator", ()))
    assert clock_sync_discrepancies(run.path, [record]) == ([], 1)
    named(clock_sync_discrepancies, run, record | {"value": 5_000, "outcome": "pass"}, "value is 5000")


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
    named(clock_sync_discrepancies, run, case(run, name) | {"outcome": outcome}, said)


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
    named(clock_sync_discrepancies, run, case(run, "good") | changes, said)


def test_a_bound_that_became_a_deviation_is_named(run: RunFolder) -> None:
    record = case(run, "good")
    record["uncertainty"]["parts"][1]["kind"] = "standard"
    named(clock_sync_discrepancies, run, record, "part bracket of U is of kind standard")


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
    named(clock_sync_discrepancies, run, record, said)


def test_a_pause_that_was_put_in_afterwards_does_not_carry_the_fail(run: RunFolder) -> None:
    record = case(run, "bad")
    folder = run.path / "evidence" / "clock_sync" / "linux-rt" / "chrony"
    edit(folder / WITNESS, ("windows", [[START_TAI_NS, START_TAI_NS + 8 * MS, 0]]))
    named(clock_sync_discrepancies, run, record, "fail, the comparison comes to inconclusive")


def test_a_witness_of_the_version_before_leaves_a_fail_open(run: RunFolder) -> None:
    record = case(run, "bad in a short pause")
    folder = run.path / "evidence" / "clock_sync" / "linux-rt" / "chrony"
    witness = json.loads((folder / WITNESS).read_text())
    del witness["period_ns"]
    (folder / WITNESS).write_text(json.dumps(witness))
    for outcome in ("fail", "inconclusive"):
        assert clock_sync_discrepancies(run.path, [record | {"outcome": outcome}]) == ([], 1)


def test_what_cannot_be_read_is_a_problem(run: RunFolder) -> None:
    record = case(run, "good")
    (run.path / "evidence" / "clock_sync" / "linux-rt" / "chrony" / TRIAL).write_text("{")
    problems, count = clock_sync_discrepancies(run.path, [record])
    assert problems
    assert count == 0


def test_a_clock_that_was_not_measured_has_nothing_to_be_worked_out(run: RunFolder) -> None:
    nothing = dataclasses.replace(context(run, trial_of(run, "chrony", compare_answer())), evidence=())
    record = unset_measurement("CLK-CHRONY", LIMIT, 99, "no lock", nothing).to_json()
    assert clock_sync_discrepancies(run.path, [record]) == ([], 0)


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
    assert clock_sync_discrepancies(run.path, [record]) == ([], 1)


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
    problems, _ = clock_sync_discrepancies(run.path, [record])
    assert any(said in problem for problem in problems), problems
