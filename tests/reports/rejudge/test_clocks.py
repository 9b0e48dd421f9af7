# SPDX-License-Identifier: Apache-2.0
"""All that a run has of clocks is worked out again, and what was changed in each record is named."""

from __future__ import annotations

import json

from reports.record import part_names
from reports.record.measurement import UncertaintyPart
from reports.rejudge import part_names as again_names
from reports.rejudge.part_names import with_present_names
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


def test_parts_of_u_by_their_names_in_an_older_run_are_worked_out_alike(run: RunFolder) -> None:
    text = json.dumps(lock(run, EVENTS))
    assert text.count('"poll_interval"') == 1
    (run.path / MEASUREMENTS).write_text(text.replace('"poll_interval"', '"look"') + "\n")
    found = rejudge(run.path)
    assert (found.contradicted, found.worked_out) == ((), 1)
    [record] = run.records().measurements
    assert [part.name for part in record.uncertainty.parts] == ["poll_interval"]


def test_both_judges_know_the_same_old_names() -> None:
    assert dict(part_names.PRESENT) == again_names.PRESENT
    old = [{"name": name, "kind": "bound", "value": 1} for name in (*part_names.PRESENT, "bracket")]
    found = with_present_names({"uncertainty": {"expanded": 4, "parts": old}})["uncertainty"]["parts"]
    assert [each["name"] for each in found] == [*part_names.PRESENT.values(), "bracket"]
    assert [UncertaintyPart(name, "bound", 1).name for name in part_names.PRESENT] == [
        *part_names.PRESENT.values()
    ]
