# SPDX-License-Identifier: Apache-2.0
"""Latencies by a target's own clock are judged alike, and what was changed of that clock is named."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from reports.clock_sync.answers import clock_compare
from reports.clock_sync.trial import Lock, Timecard
from reports.daq_replay.evidence import load_replay
from reports.daq_replay.replay_clock import CLOCK_ERROR, REPLAY_CLOCK, ServerLine, measured_clock
from reports.daq_replay.verdict import judge_latency, latency_measurement
from reports.record.context import Context
from reports.record.measurement import Conditions, Measurement, Subject
from reports.rejudge.latency import latency_discrepancies
from reports.run.folder import RunFolder
from tests.reports.rejudge.clock_trials import MS, Json, edit
from tests.reports.rejudge.test_clock_sync import STEPPED
from tests.reports.sample_clock import START_TAI_NS, compare_answer
from tests.reports.sample_run import Disturbance as ReplayDisturbance
from tests.reports.sample_run import requirement_of, write_evidence

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
    assert latency_discrepancies(run.path, records) == ([], len(STREAMS))


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
    problems, _ = latency_discrepancies(run.path, records)
    assert any(said in problem for problem in problems), problems
