# SPDX-License-Identifier: Apache-2.0
"""What reading a clock costs: evidence that is refused, U and its parts, the verdict."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reports.clock_read.readings import READINGS, TARGET, Reading, load_cost, load_readings, read_cost
from reports.clock_read.verdict import (
    judge_read_cost,
    read_measurement,
    read_uncertainty,
    unread_measurement,
)
from reports.errors import RecordError
from reports.record.context import Context
from reports.record.measurement import Conditions, Limit, Subject
from tests.reports.sample_read_latency import LIMIT, NOT_COUNTED, latency_answer, write_sample_readings

CONTEXT = Context("run", "test", Subject("virtual", "linux-rt", clock="realtime"), Conditions("ci"), True, ())
INTERRUPTED = (40_000, 60_000)


def _judged(answer: dict[str, Any], statistic: str = "mean", n_required: int = 1000) -> tuple[str, str]:
    verdict, _ = judge_read_cost(read_cost(answer), statistic, LIMIT, n_required)
    return verdict.outcome, verdict.reason


@pytest.mark.parametrize("statistic", ["mean", "max"])
@pytest.mark.parametrize("share", [0.5, 1.5])
def test_fault_of_a_share_of_the_limit(share: float, statistic: str) -> None:
    outcome, reason = _judged(latency_answer(round(share * 5_000), counted=True), statistic)
    assert outcome == ("pass" if share < 1 else "fail"), reason


def test_the_record_holds_value_and_parts() -> None:
    cost = read_cost(latency_answer(500))
    record = read_measurement(cost, "mean", "CLK-1", LIMIT, 1000, CONTEXT)
    assert (record.quantity, record.statistic, record.value) == ("clock_read_latency", "mean", 500.1)
    assert (record.outcome, record.n, record.n_required) == ("pass", 1000, 1000)
    parts = {part.name: (part.kind, part.value) for part in record.uncertainty.parts}
    assert parts == {
        "counter_pair": ("bound", 20),  # 19.5 ns, rounded up
        "counter_resolution": ("bound", 2),  # a tick of 0.43 ns, rounded up, and rounding
        "scatter": ("standard", 1),
    }
    assert record.uncertainty.expanded == 24
    assert record.margin == pytest.approx(5_000 - 500.1 - 24)


def test_a_maximum_has_no_scatter() -> None:
    names = [part.name for part in read_uncertainty(read_cost(latency_answer()), "max").parts]
    assert names == ["counter_pair", "counter_resolution"]


def test_a_coarse_counter_enters() -> None:
    """ARM's counter ticks with 62.5 MHz under emulation."""
    uncertainty = read_uncertainty(read_cost(latency_answer(tsc_hz=62_500_000)), "max")
    assert uncertainty.expanded == 20 + 17


def test_interrupted_readings_do_not_count_where_they_are_told_apart() -> None:
    answer = latency_answer(500, slow_ns=INTERRUPTED, counted=True)
    assert _judged(answer, "max") == ("pass", "")
    record = read_measurement(read_cost(answer), "max", "CLK-1", LIMIT, 1000, CONTEXT)
    assert (record.value, record.n) == (501, 1000)


def test_a_maximum_that_may_be_an_interruption_is_no_fail_and_no_pass() -> None:
    outcome, reason = _judged(latency_answer(500, slow_ns=INTERRUPTED), "max")
    assert outcome == "inconclusive"
    assert NOT_COUNTED in reason


def test_a_maximum_within_the_limit_passes_all_the_same() -> None:
    assert _judged(latency_answer(500, slow_ns=(4_000,)), "max") == ("pass", "")


def test_one_long_interruption_does_not_fail_a_mean() -> None:
    """A stall of 10 ms in a thousand readings lifts the mean to 10 us, and U by twice that."""
    outcome, reason = _judged(latency_answer(500, slow_ns=(10_000_000,)))
    assert outcome == "inconclusive", reason


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"valid": False, "invalid_reasons": ["Stale"]}, "Stale"),
        ({"valid": False}, "invalid result"),
        ({"complete": False}, "ended early"),
    ],
)
@pytest.mark.parametrize("cost_ns", [500, 50_000])
def test_an_invalid_answer_neither_passes_nor_fails(
    change: dict[str, Any], reason: str, cost_ns: int
) -> None:
    outcome, said = _judged(latency_answer(cost_ns, counted=True, **change))
    assert outcome == "inconclusive"
    assert reason in said


@pytest.mark.parametrize(
    ("blocks", "said"),
    [
        ({"size": 0, "means_ns": []}, "blocks: 0 of 0 values each, of 1000"),
        ({"size": 2, "means_ns": [500.0] * 499}, "blocks: 499 of 2 values each, of 1000"),
        ({"size": 500, "means_ns": [500.0, "500"]}, "blocks.means_ns: expected numbers"),
        ({"size": 1}, "blocks.means_ns: missing"),
        (None, "blocks: expected dict"),
    ],
)
def test_blocks_that_cannot_be_are_refused(blocks: Any, said: str) -> None:
    answer = latency_answer(counted=True)
    answer["clocks"][0]["blocks"] = blocks
    with pytest.raises(RecordError) as refused:
        read_cost(answer)
    assert said in str(refused.value)


def test_too_few_readings() -> None:
    assert _judged(latency_answer(500), n_required=10_000) == (
        "inconclusive",
        "too few samples: 1000 of 10000",
    )


def test_a_limit_that_the_counter_cannot_resolve() -> None:
    verdict, _ = judge_read_cost(read_cost(latency_answer(10)), "mean", Limit(20, None, "a source"), 1)
    assert (verdict.outcome, "bench not capable" in verdict.reason) == ("inconclusive", True)


def test_a_clock_that_was_not_read_is_unset() -> None:
    record = unread_measurement("no such device", "mean", "CLK-1", LIMIT, 1000, CONTEXT)
    assert (record.outcome, record.value, record.n, record.reason) == ("unset", None, 0, "no such device")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"clocks": []}, "clocks: expected one clock, found 0"),
        ({"interrupted_reason": None}, "contradict each other"),
        ({"tsc_hz": 0}, "tsc_hz >= 1"),
        ({"pair_cost_ns": -1.0}, "pair_cost_ns >= 0"),
        ({"clocksource": None}, "clocksource: expected str"),
    ],
)
def test_a_damaged_answer_is_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises(RecordError) as refused:
        read_cost(latency_answer(**change))
    assert said in str(refused.value)


def test_readings_are_written_and_read_again(tmp_path: Path) -> None:
    written = write_sample_readings(tmp_path, latency_answer())
    assert load_readings(tmp_path) == written
    costs = [load_cost(tmp_path, reading) for reading in written.readings]
    assert [cost is None for cost in costs] == [False, False, True, True]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"schema": "benchwright.read_latency/2"}, "schema: must be"),
        ({"load": 1}, "load: expected string"),
        ({"readings": [{"place": TARGET}]}, "readings[0].clock: missing"),
        ({"readings": [vars(Reading(TARGET, "tai", "tai", 9))]}, "neither measured nor said why not"),
        ({"readings": [vars(Reading(TARGET, "tai", "tai", 9, "../x.ndjson"))]}, "no file of this folder"),
    ],
)
def test_a_damaged_list_is_refused(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    write_sample_readings(tmp_path, latency_answer())
    document = json.loads((tmp_path / READINGS).read_text()) | change
    (tmp_path / READINGS).write_text(json.dumps(document))
    with pytest.raises(RecordError) as refused:
        load_readings(tmp_path)
    assert said in str(refused.value)
