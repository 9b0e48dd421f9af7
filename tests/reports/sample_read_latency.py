# SPDX-License-Identifier: Apache-2.0
"""Answers of `bw-clock latency` in their documented form, and a run folder with some."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from reports.clock_read.readings import (
    FOLDER,
    HOST,
    READINGS,
    TARGET,
    Reading,
    Readings,
    load_cost,
    write_readings,
)
from reports.clock_read.verdict import read_measurement
from reports.record.context import Context
from reports.record.measurement import Conditions, Limit, Measurement, Subject
from reports.run.folder import RunFolder
from tests.reports.sample_run import summary

NOT_COUNTED = "retired instructions are not counted on this machine: no hardware counter"
LIMIT = Limit(5_000, None, "a source")


def latency_answer(
    cost_ns: int = 500, n: int = 1000, slow_ns: tuple[int, ...] = (), *, counted: bool = False, **changes: Any
) -> dict[str, Any]:
    """Return the `result` object of `bw-clock latency` of one clock, members changed.

    Args:
        cost_ns: What each reading takes, but every tenth a nanosecond more.
        n: How many of these.
        slow_ns: Further readings, which were interrupted.
        counted: Whether the machine counts retired instructions.
        changes: Members of the result.
    """
    plain = [cost_ns + (number % 10 == 0) for number in range(n)]
    everything = [*plain, *slow_ns]
    clock = {
        "name": "realtime", "phc_read": None, "n": len(everything), "latency": summary(everything),
        "net": summary([value - 20 for value in everything]), "kept": summary(plain) if counted else None,
        "interrupted": len(slow_ns) if counted else None,
        "blocks": {"size": 1, "means_ns": [float(value) for value in (plain if counted else everything)]},
    }  # fmt: skip
    answer: dict[str, Any] = {
        "type": "result", "tool": "bw-clock latency", "version": "0.1.0", "complete": True, "valid": True,
        "invalid_reasons": [], "clocks": [clock], "interrupted_reason": None if counted else NOT_COUNTED,
        "clocksource": "tsc", "tsc_hz": 2_300_000_000, "pair_cost_ns": 19.5, "scheduling": {},
    }  # fmt: skip
    return answer | changes


def write_sample_readings(folder: Path, answer: dict[str, Any]) -> Readings:
    """Write the evidence of a run: realtime of both, no PHC, a timecard that did not answer."""
    folder.mkdir(parents=True, exist_ok=True)
    readings = (
        Reading(HOST, "realtime", "realtime", 1000, "host-realtime.ndjson"),
        Reading(TARGET, "realtime", "realtime", 1000, "target-realtime.ndjson"),
        Reading(TARGET, "phc-basic", "phc:/dev/ptp0", 1000, not_offered="no such device"),
        Reading(TARGET, "timecard", "card", 1000, failed="the timecard cannot be calibrated: nobody answers"),
    )
    for reading in readings[:2]:
        (folder / reading.file).write_text(json.dumps(answer) + "\n")
    found = Readings("linux-rt", "idle", readings)
    write_readings(folder, found)
    return found


def add_readings(run: RunFolder, answer: dict[str, Any]) -> Measurement:
    """Write the evidence into a run, judge the target's realtime clock, append the record and return it."""
    folder = run.evidence_folder(FOLDER)
    reading = write_sample_readings(folder, answer).readings[1]
    cost = load_cost(folder, reading)
    assert cost is not None
    files = tuple(run.evidence(folder / name) for name in (READINGS, reading.file))
    subject = Subject("virtual", "linux-rt", clock="realtime")
    context = Context(run.run_id, "Reading", subject, Conditions("ci"), True, files)
    record = read_measurement(cost, "mean", "CLK-READ-REALTIME", LIMIT, 1000, context)
    run.append(record)
    return record
