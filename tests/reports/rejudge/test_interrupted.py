# SPDX-License-Identifier: Apache-2.0
"""A run that ended between two tests: a fail may rest on streams whose records were still to come."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from reports.daq_replay.attempts import decide_streams
from reports.daq_replay.evidence import load_replay
from reports.daq_replay.verdict import latency_measurement
from reports.record.context import Context
from reports.record.measurement import Conditions, Subject
from reports.rejudge.run import rejudge
from reports.run.failed_tests import SIGNAL_MARK, FailedTest
from reports.run.folder import MANIFEST, MEASUREMENTS, RunFolder
from tests.reports.sample_run import Disturbance, requirement_of, write_evidence

FIRST, SECOND = 13, 33
CALM = Disturbance()
FIRST_LATE, SECOND_LATE = (Disturbance(path_delay_ns={each: 60_000_000}) for each in (FIRST, SECOND))
FILES = ("recv.ndjson", "misses.ndjson", "witness.ndjson")
STOPPED = FailedTest("", "Stream 33", SIGNAL_MARK)


def make_run(results: Path, *disturbances: Disturbance) -> RunFolder:
    """Make a run that asks two streams, and that a signal ended behind the records of the first one."""
    run = RunFolder.create(results, "virtual", "ci", simulated=True, commit="0" * 40)
    folders = [run.evidence_folder("daq_replay", f"attempt-{n}") for n, _ in enumerate(disturbances, start=1)]
    for seed, (folder, disturbance) in enumerate(zip(folders, disturbances, strict=True)):
        write_evidence(folder, disturbance, seed)
    replays = [load_replay(folder).replay() for folder in folders]
    asked = {stream: requirement_of(stream) for stream in (FIRST, SECOND)}
    decided = decide_streams(asked, replays, allowed=4)[FIRST]
    subject = Subject("virtual", "linux-rt", "kernel", "two-way", str(FIRST))
    for number in decided.recorded_replays:
        evidence = tuple(run.evidence(folders[number] / name) for name in FILES)
        context = Context(
            run.run_id,
            "Stream 13",
            subject,
            Conditions("ci", "aligned-12"),
            simulated=True,
            evidence=evidence,
        )
        judged = replace(decided.judged[number], verdict=decided.recorded(number))
        run.append(latency_measurement(FIRST, asked[FIRST], replays[number], judged, context))
    for _ in folders[1:]:
        run.add_attempt("daq_replay", "inconclusive", "streams without a verdict were replayed again")
    outcome = "fail" if decided.outcome == "fail" else "unset"
    run.update(failed_tests=(STOPPED,), interrupted="", outcome=outcome)
    run.close()
    return run


def test_a_fail_that_a_stream_without_a_record_confirms(tmp_path: Path) -> None:
    """A fail takes three replays in which some stream was over; verify refused it where one had no record."""
    run = make_run(tmp_path, FIRST_LATE, SECOND_LATE, SECOND_LATE)
    assert rejudge(run.path).problems == ()


def test_a_fail_that_nothing_confirms_is_named(tmp_path: Path) -> None:
    run = make_run(tmp_path, FIRST_LATE, SECOND_LATE, SECOND_LATE)
    write_evidence(run.path / "evidence/daq_replay/attempt-3", CALM, 3)
    assert any("DAQ-013: fail, its replays come to" in each for each in rejudge(run.path).contradicted)


def test_only_a_run_that_broke_off_has_records_to_come(tmp_path: Path) -> None:
    run = make_run(tmp_path, FIRST_LATE, SECOND_LATE, SECOND_LATE)
    manifest = json.loads((run.path / MANIFEST).read_text())
    manifest["failed_tests"] = []
    (run.path / MANIFEST).write_text(json.dumps(manifest))
    assert any("DAQ-013: fail, its replays come to" in each for each in rejudge(run.path).contradicted)


@pytest.mark.parametrize("hidden", [1, 2])
def test_a_pass_rests_on_all_replays_there_too(tmp_path: Path, hidden: int) -> None:
    """Who takes a replay's record away, and has the run broken off, hides nothing by it."""
    run = make_run(tmp_path, CALM, *[FIRST_LATE] * hidden)
    lines = (run.path / MEASUREMENTS).read_text().splitlines(keepends=True)
    clean = json.loads(next(line for line in lines if "/attempt-1/" in line))
    (run.path / MEASUREMENTS).write_text(json.dumps(clean | {"outcome": "pass", "reason": ""}) + "\n")
    found = rejudge(run.path).contradicted
    assert found == ("DAQ-013: pass, its replays come to no verdict",)
