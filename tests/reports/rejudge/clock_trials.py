# SPDX-License-Identifier: Apache-2.0
"""Trials of clocks in a run that is judged a second time, and what is said of their records."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from reports.clock_sync.trial import EVIDENCE_FILES, WITNESS, ClockTrial, load_trial, write_trial
from reports.clock_sync.verdict import sync_measurement
from reports.record.context import Context
from reports.record.measurement import Limit
from reports.run.folder import RunFolder
from tests.reports.sample_clock import trial_context, write_clock_trial

LIMIT = Limit(40_000, -40_000, "paper on control loops, 4.5.1")
MS = 1_000_000
PERIOD_NS = 250_000

Json = dict[str, Any]
Discrepancies = Callable[[Path, Sequence[Json]], tuple[list[str], int]]


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


def named(judge: Discrepancies, run: RunFolder, record: Json, said: str) -> None:
    """Require that a record is worked out and a discrepancy says what differs."""
    problems, count = judge(run.path, [record])
    assert count == 1
    assert any(said in problem for problem in problems), problems
