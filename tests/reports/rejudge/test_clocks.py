# SPDX-License-Identifier: Apache-2.0
"""All that a run has of clocks is worked out again, and what was changed in each record is named."""

from __future__ import annotations

import json

from reports.rejudge.run import rejudge
from reports.run.folder import MEASUREMENTS, RunFolder
from tests.reports.rejudge.test_clock_step import STEP_NS, step
from tests.reports.rejudge.test_clock_sync import case
from tests.reports.rejudge.test_lock_time import EVENTS, lock
from tests.reports.rejudge.test_path_shift import SEEN, shift
from tests.reports.rejudge.test_read_latency import read
from tests.reports.rejudge.test_target_clock import latencies
from tests.reports.sample_read_latency import latency_answer


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
