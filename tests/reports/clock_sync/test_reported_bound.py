# SPDX-License-Identifier: Apache-2.0
"""A clock that tells its own error: the bound holds or not, is padded or not, and drifts in holdover."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reports.clock_sync.answers import clock_compare
from reports.clock_sync.capability import HOLDOVER, LEFT_OUT, MISSED, U_MISSED, U_WIDTH, WIDTH
from reports.clock_sync.capability import STATED_BOUND_STATISTICS as STATISTICS
from reports.clock_sync.reported_bound import (
    median_size_ns,
    reported_bound_measurement,
    unset_reported_bound_measurement,
)
from reports.clock_sync.trial import FILTERED, ClockTrial, load_trial
from reports.errors import RecordError
from reports.record.context import Context
from reports.record.histogram import Summary
from reports.record.measurement import Conditions, Limit, Measurement, Subject
from tests.reports.sample_clock import SECOND_NS, START_TAI_NS, compare_answer, write_clock_trial
from tests.reports.sample_run import summary

CONTEXT = Context("run-1", "a test", Subject("lab", "arm", clock="timeservice"), Conditions("ci"), True, ())
LIMITS = {
    MISSED: Limit(100, None, "issue"),
    WIDTH: Limit(10, None, "issue"),
    U_MISSED: Limit(1000, None, "issue"),
    U_WIDTH: Limit(10, None, "issue"),
    LEFT_OUT: Limit(1000, None, "issue"),
    HOLDOVER: Limit(50, -50, "paper, halved"),
}


def told(
    answer: dict[str, Any], bound_ns: int = 20_000, u_ns: int = 12_000, **changed: Any
) -> dict[str, Any]:
    """Return an answer whose device tells one bound and one U with every reading."""
    n = answer["offset"]["n"]
    said = {
        "bound_checked": n, "bound_missed": 0, "bound_missed_beyond_window": 0, "without_bound": 0,
        "u_missed": 0, "u_missed_beyond_window": 0,
        "bound": summary([bound_ns] * n), "u": summary([u_ns] * n),
    }  # fmt: skip
    return answer | {"device_bound": said | changed}


def trial_of(folder: Path, answer: dict[str, Any]) -> ClockTrial:
    write_clock_trial(folder, answer)
    return load_trial(folder)


def judged(folder: Path, answer: dict[str, Any], quantity: str, n_required: int = 1000) -> Measurement:
    trial = trial_of(folder, answer)
    return reported_bound_measurement(trial, quantity, "CLK-1", LIMITS[quantity], n_required, CONTEXT)


def ramp(rate_ppb: int, seconds: int = 100) -> dict[str, Any]:
    """Return an answer whose offset grows by a rate, read every second within 100 ns."""
    offsets = [rate_ppb * second for second in range(seconds)]
    rows = [[START_TAI_NS + i * SECOND_NS, 1, x, x, x] for i, x in enumerate(offsets)]
    columns = ["time_tai_ns", "n", "mean_ns", "min_ns", "max_ns"]
    series = {"interval_ns": SECOND_NS, "columns": columns, "rows": rows}
    return compare_answer() | {
        "iterations": seconds, "discarded": 0, "offset": summary(offsets), "window": summary([100] * seconds),
        "series": series, "reference_bound_ns": 50,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("missed", "beyond", "outcome"),
    [(0, 0, "pass"), (1, 0, "inconclusive"), (1, 1, "fail"), (5, 0, "inconclusive"), (5, 1, "fail")],
)
def test_the_bound_has_to_hold_but_for_a_share(
    tmp_path: Path, missed: int, beyond: int, outcome: str
) -> None:
    answer = told(compare_answer(), bound_missed=missed, bound_missed_beyond_window=beyond)
    record = judged(tmp_path, answer, MISSED)
    assert (record.value, record.unit, record.n) == (missed * 500, "ppm", 2000)
    assert record.uncertainty.expanded == (missed - beyond) * 500
    assert record.outcome == outcome, record.reason


@pytest.mark.parametrize(
    ("missed", "beyond", "outcome"), [(0, 0, "pass"), (2, 2, "pass"), (3, 2, "inconclusive"), (3, 3, "fail")]
)
def test_u_has_to_cover_but_for_a_share(tmp_path: Path, missed: int, beyond: int, outcome: str) -> None:
    answer = told(compare_answer(), u_missed=missed, u_missed_beyond_window=beyond)
    record = judged(tmp_path, answer, U_MISSED)
    assert (record.value, record.n, record.outcome) == (missed * 500, 2000, outcome)
    assert judged(tmp_path / "other", answer, MISSED).value == 0, "the interval has a count of its own"


def test_a_u_that_is_padded_fails(tmp_path: Path) -> None:
    assert judged(tmp_path / "narrow", told(compare_answer(), u_ns=20_000), U_WIDTH).outcome == "pass"
    assert judged(tmp_path / "padded", told(compare_answer(), u_ns=100_000), U_WIDTH).outcome == "fail"


@pytest.mark.parametrize("quantity", [U_MISSED, U_WIDTH])
def test_an_older_answer_tells_no_u(tmp_path: Path, quantity: str) -> None:
    answer = told(compare_answer())
    for key in ("u", "u_missed", "u_missed_beyond_window"):
        del answer["device_bound"][key]
    record = judged(tmp_path, answer, quantity)
    assert (record.outcome, record.reason) == ("unset", "the clock tells no U")
    assert judged(tmp_path / "bound", answer, MISSED).outcome == "pass"


def test_a_bound_that_is_padded_fails(tmp_path: Path) -> None:
    # 3 us and 4 us deviation: the median size of the offsets is some 3.6 us.
    assert judged(tmp_path / "narrow", told(compare_answer(), bound_ns=20_000), WIDTH).outcome == "pass"
    padded = judged(tmp_path / "padded", told(compare_answer(), bound_ns=100_000), WIDTH)
    assert padded.outcome == "fail"
    assert padded.value is not None
    assert 20 < padded.value < 35


def test_errors_smaller_than_the_reference_can_tell_decide_nothing(tmp_path: Path) -> None:
    answer = told(compare_answer(mean_ns=0, deviation_ns=300), bound_ns=1000)
    record = judged(tmp_path, answer, WIDTH)
    assert record.outcome == "inconclusive"
    assert "smaller than what reference and bracket tell apart" in record.reason


@pytest.mark.parametrize("quantity", [MISSED, WIDTH])
def test_a_clock_that_tells_no_bound_or_never_a_time_has_no_value(tmp_path: Path, quantity: str) -> None:
    silent = judged(tmp_path / "silent", compare_answer(), quantity)
    assert (silent.outcome, silent.reason) == ("unset", "the clock tells no bound")
    nothing = compare_answer() | {
        "iterations": 0, "discarded": 0, "offset": summary([]), "window": summary([]),
    }  # fmt: skip
    never = judged(tmp_path / "never", told(nothing, without_bound=7), quantity)
    assert (never.outcome, never.reason) == ("unset", "7 readings, and none gave a time")


def test_readings_that_were_left_out_are_counted(tmp_path: Path) -> None:
    record = judged(tmp_path, compare_answer(), LEFT_OUT)
    assert (record.value, record.n) == (12e6 / 2012, 2012)
    assert record.outcome == "fail"
    without = told(compare_answer(), without_bound=100)
    assert judged(tmp_path / "without", without, LEFT_OUT).n == 2012, "they are no readings"


@pytest.mark.parametrize(("rate_ppb", "outcome"), [(30, "pass"), (-30, "pass"), (60, "fail"), (-60, "fail")])
def test_holdover_may_drift_so_fast(tmp_path: Path, rate_ppb: int, outcome: str) -> None:
    record = judged(tmp_path, ramp(rate_ppb), HOLDOVER, n_required=10)
    assert record.value == rate_ppb
    # 50 ns of the reference and 50 ns of the bracket, over 99 s.
    assert record.uncertainty.expanded == pytest.approx(300 / 99)
    assert record.outcome == outcome


@pytest.mark.parametrize("quantity", STATISTICS)
def test_an_answer_that_is_not_valid_decides_nothing(tmp_path: Path, quantity: str) -> None:
    answer = told(ramp(0) if quantity == HOLDOVER else compare_answer(), bound_missed=0)
    answer |= {"valid": False, "invalid_reasons": ["the card drifted"]}
    record = judged(tmp_path, answer, quantity)
    assert (record.outcome, record.reason) == ("inconclusive", "the card drifted")


def test_what_could_not_be_measured_leaves_a_record() -> None:
    record = unset_reported_bound_measurement(MISSED, "CLK-1", LIMITS[MISSED], 10, "it did not lock", CONTEXT)
    assert (record.outcome, record.reason, record.value) == ("unset", "it did not lock", None)


@pytest.mark.parametrize(
    "changed",
    [
        {"bound_missed": -1},
        {"bound_missed": 2001},
        {"bound_missed": 5, "bound_missed_beyond_window": 6},
        {"without_bound": -1},
        {"bound_checked": "many"},
        {"bound": {}},
    ],
)
def test_a_damaged_answer_is_refused(changed: dict[str, Any]) -> None:
    answer = json.loads(json.dumps(told(compare_answer(), **changed)))
    with pytest.raises(RecordError, match="device_bound"):
        clock_compare(answer)


def test_the_median_of_sizes_folds_both_sides() -> None:
    samples = [-5, -4, -3, 1, 2, 6, 7]
    assert median_size_ns(Summary.from_json(summary(samples))) == 4
    assert median_size_ns(Summary.from_json(summary([0, 0, 0]))) == 1
    assert median_size_ns(Summary.from_json(summary([]))) is None


def test_the_file_is_the_comparisons(tmp_path: Path) -> None:
    assert (trial_of(tmp_path, told(compare_answer())).folder / FILTERED).exists()
