# SPDX-License-Identifier: Apache-2.0
"""A run folder with one clock trial, judged the real way."""

from __future__ import annotations

import dataclasses
from typing import Any

from reports.clock_sync.trial import FILTERED, TRIAL, WITNESS, load_trial
from reports.clock_sync.verdict import sync_measurement
from reports.record.context import Context
from reports.record.measurement import Conditions, Limit, Measurement, Subject
from reports.run.folder import RunFolder
from tests.reports.sample_clock import write_clock_trial

SUBJECT = Subject("virtual", "linux-rt", clock="chrony")
LIMIT = Limit(40_000, -40_000, "paper on control loops, 4.5.1")


def add_clock_trial(run: RunFolder, compare: dict[str, Any], target: str = "", **others: Any) -> Measurement:
    """Write the evidence of one trial into a run, judge it, append the record and return it.

    `target`: one of several; empty: the only one, with its evidence in the place of older runs.
    """
    folder = run.evidence_folder("clock_sync", *([target] if target else []), "chrony")
    write_clock_trial(folder, compare, **others)
    subject = dataclasses.replace(SUBJECT, target=target or SUBJECT.target)
    files = tuple(run.evidence(folder / name) for name in (TRIAL, FILTERED, WITNESS))
    context = Context(run.run_id, "Chrony", subject, Conditions("ci"), True, files)
    record = sync_measurement(load_trial(folder), "CLK-CHRONY", LIMIT, 99, context)
    run.append(record)
    return record
