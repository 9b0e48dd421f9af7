# SPDX-License-Identifier: Apache-2.0
"""What reading a clock costs is worked out again alike, and what was changed in it is named."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from reports.clock_read.readings import READINGS, load_cost
from reports.clock_read.verdict import read_measurement, unread_measurement
from reports.record.context import Context
from reports.record.measurement import Conditions, Limit, Subject
from reports.rejudge.read_latency import read_latency_discrepancies
from reports.run.folder import RunFolder
from tests.reports.rejudge.clock_trials import Json, edit, named
from tests.reports.sample_read_latency import latency_answer, write_sample_readings


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
    assert read_latency_discrepancies(run.path, [record]) == ([], 1)


def dearer_for_a_while(*, of_earlier: bool) -> Json:
    """Return an answer whose readings cost 500 ns, and now and then 560 for a hundred of them."""
    drawn = random.Random(1)
    dear = [drawn.random() < 0.2 for _ in range(50)]
    costs = [500 + 60 * dear[number // 100] + number % 3 for number in range(5000)]
    answer = latency_answer(costs[0], 0, tuple(costs))
    if of_earlier:
        del answer["clocks"][0]["blocks"]
    return answer


@pytest.mark.parametrize(("of_earlier", "scatter_ns"), [(False, 4), (True, 1)])
def test_readings_that_cost_alike_for_a_while_tell_less_of_their_mean(
    run: RunFolder, of_earlier: bool, scatter_ns: int
) -> None:
    """Each of fifty stretches is one value: 60 ns * sqrt(0.2 * 0.8 / 50) is 3.4 ns, not 0.3 as of 5000."""
    record = read(run, dearer_for_a_while(of_earlier=of_earlier))
    parts = {part["name"]: part["value"] for part in record["uncertainty"]["parts"]}
    assert parts["scatter"] == scatter_ns
    assert read_latency_discrepancies(run.path, [record]) == ([], 1)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"size": 2}, "5000 blocks of 2, of 5000 readings"),
        ({"means_ns": [400.0] * 5000}, "blocks have means of 400 to 400, beyond"),
        ({"means_ns": [520.0] * 5000}, "the mean of the blocks is 520, not 5"),
        ({"means_ns": [513.0] * 5000}, "'scatter': 4}, the readings say"),
    ],
)
def test_blocks_that_were_changed_are_named(run: RunFolder, change: Json, said: str) -> None:
    record = read(run, dearer_for_a_while(of_earlier=False))
    folder = run.evidence_folder("clock_read_latency", "linux-rt")
    places = [(f"clocks.0.blocks.{key}", value) for key, value in change.items()]
    edit(folder / "target-realtime.ndjson", *places)
    named(read_latency_discrepancies, run, record, said)


def test_a_clock_that_was_not_read_has_no_value(run: RunFolder) -> None:
    folder = run.evidence_folder("clock_read_latency", "linux-rt")
    write_sample_readings(folder, latency_answer())
    where = read_context(run, folder, "timecard", (READINGS,))
    limit = Limit(5_000, None, "a source")
    record = unread_measurement("nobody answers", "mean", "CLK-READ", limit, 1_000, where).to_json()
    assert read_latency_discrepancies(run.path, [record]) == ([], 1)
    named(read_latency_discrepancies, run, record | {"value": 300, "n": 1_000}, "value is 300")
    named(read_latency_discrepancies, run, record | {"outcome": "inconclusive"}, "it was not read")


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
    problems, _ = read_latency_discrepancies(run.path, [record])
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
    problems, _ = read_latency_discrepancies(run.path, [record])
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
    problems, _ = read_latency_discrepancies(run.path, [record])
    assert any(said in problem for problem in problems), problems
