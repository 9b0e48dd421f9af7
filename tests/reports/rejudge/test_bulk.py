# SPDX-License-Identifier: Apache-2.0
"""Bulk data counted again: honest records stand, and what points and rings contradict is named."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reports.record.context import Context
from reports.record.measurement import Conditions, Limit, Subject
from reports.rejudge.arithmetic import discrepancies
from reports.rejudge.bulk import bulk_discrepancies
from reports.requirements import Requirement
from reports.run.folder import RunFolder
from reports.timeline.bulk import load_bulk_transfer
from reports.timeline.bulk_evidence import BULK_FOLDER
from reports.timeline.bulk_verdict import bulk_measurement
from reports.timeline.capability import BULK_DIFFERENCE, BULK_UNMATCHED
from reports.timeline.legs_evidence import FOLDER
from tests.reports.timeline.bulk_sample import TARGET, Call, Segment, calls_of, segments_of, write_sample_bulk

Json = dict[str, Any]
LIMIT = Limit(0, None, "a test")
ASKED = (
    Requirement("D", BULK_DIFFERENCE, "total", LIMIT, "bytes", samples=100),
    Requirement("U", BULK_UNMATCHED, "count", LIMIT, "segments", samples=100),
)
CAME = segments_of(400)
TWICE = [*CAME[:50], replace(CAME[49], at_ns=CAME[49].at_ns + 1_000), *CAME[50:]]
SOON = [Call(each.at_ns + 5_000, each.payload_bytes) for each in CAME]
LARGE = [replace(each, at_ns=each.at_ns * 10, payload_bytes=100_000) for each in CAME]
WRAPPED = [replace(each, payload_bytes=100_000 - 65_536) for each in LARGE]
EARLY = [*calls_of(CAME)[:200], Call(CAME[200].at_ns - 500_000, 1448), *calls_of(CAME)[201:]]


def made(tmp_path: Path, **sample: Any) -> tuple[RunFolder, list[Json]]:
    """Return a run with a record of each quantity."""
    run = RunFolder.create(tmp_path / "results", "native", "ci", simulated=True, commit="0" * 40)
    folder = run.evidence_folder(FOLDER, TARGET) / BULK_FOLDER
    write_sample_bulk(folder, **sample)
    found = load_bulk_transfer(folder)
    files = tuple(run.evidence(path) for path in sorted(folder.iterdir()))
    context = Context(
        run.run_id, "t", Subject("native", TARGET), Conditions("ci"), simulated=True, evidence=files
    )
    for each in ASKED:
        run.append(bulk_measurement(found, each, context))
    return run, [json.loads(line) for line in (run.path / "measurements.jsonl").read_text().splitlines()]


@pytest.mark.parametrize(
    ("sample", "outcomes"),
    [
        ({}, ["pass", "pass"]),
        ({"addresses": ("fd77::1", "fd77::100")}, ["pass", "pass"]),
        ({"retransmissions": 2}, ["pass", "pass"]),
        ({"calls": EARLY}, ["pass", "fail"]),
        ({"calls": SOON, "seen": [*CAME[:100], *CAME[101:]]}, ["fail", "fail"]),
        ({"seen": [*CAME, Segment(5_000_000, 100)]}, ["fail", "fail"]),
        ({"seen": [*CAME, Segment(1, 9, source="10.77.0.3"), Segment(2, 9, port=22)]}, ["pass", "pass"]),
        ({"seen": TWICE, "retransmissions": 1}, ["inconclusive", "inconclusive"]),
        ({"seen": CAME[:300], "dropped": 100}, ["inconclusive", "inconclusive"]),
        ({"lost_in_ring": 4}, ["inconclusive", "inconclusive"]),
        ({"lost_events": 4}, ["inconclusive", "inconclusive"]),
        ({"answers": {"receiver": {"checksum": "1"}}}, ["inconclusive", "inconclusive"]),
        ({"answers": {"sender": {"complete": False}}}, ["inconclusive", "inconclusive"]),
        ({"segments": LARGE, "calls": calls_of(LARGE), "seen": WRAPPED}, ["inconclusive", "inconclusive"]),
        ({"refused": "no tracefs"}, ["unset", "unset"]),
        ({"seen": []}, ["unset", "unset"]),
    ],
)
def test_honest_records_stand(tmp_path: Path, sample: Json, outcomes: list[str]) -> None:
    run, records = made(tmp_path, **sample)
    assert [each["outcome"] for each in records] == outcomes
    assert bulk_discrepancies(run.path, records) == ([], 2)
    assert not [each for record in records for each in discrepancies(record)]


def _fewer(record: Json) -> None:
    record["value"] -= 1


def _more(record: Json) -> None:
    record["n"] += 1


def _passed(record: Json) -> None:
    record["outcome"] = "pass"


def _other_target(record: Json) -> None:
    record["subject"]["target"] = "windows"


def _other_unit(record: Json) -> None:
    record["unit"] = "ns"


def _surer(record: Json) -> None:
    record["uncertainty"]["parts"] = [{"name": "x", "kind": "bound", "value": 0}]


def _hidden(record: Json) -> None:
    record["evidence"] = [
        each for each in record["evidence"] if not each["path"].endswith("receiver-kernel.gz")
    ]


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_fewer, "value is"),
        (_more, "the ring says 399"),
        (_passed, "points and ring come to fail"),
        (_other_target, "target is windows"),
        (_other_unit, "unit is ns"),
        (_surer, "parts of U"),
        (_hidden, "receiver-kernel.gz is not among its evidence"),
    ],
)
def test_changed_record_is_named(
    tmp_path: Path, number: int, change: Callable[[Json], None], said: str
) -> None:
    # Whole 100 µs lie between what is late and what is not.
    came = [replace(each, at_ns=each.at_ns * 10) for each in CAME]
    calls = [Call(each.at_ns + 50_000, each.payload_bytes) for each in came]
    run, records = made(tmp_path, segments=came, calls=calls, seen=[*came[:100], *came[101:]])
    assert [each["outcome"] for each in records] == ["fail", "fail"]
    change(records[number])
    problems, _ = bulk_discrepancies(run.path, records)
    assert any(said in each for each in problems), problems


@pytest.mark.parametrize("number", [0, 1])
def test_verdict_in_spite_of_an_overrun_is_named(tmp_path: Path, number: int) -> None:
    run, records = made(tmp_path, dropped=1)
    records[number]["outcome"] = "pass"
    [problem] = bulk_discrepancies(run.path, records)[0]
    assert "pass, points and ring come to inconclusive" in problem


@pytest.mark.parametrize(
    "name", ["receiver.bwevents", "sender.ndjson", "receiver-kernel.gz", "sender-kernel.gz"]
)
@pytest.mark.parametrize("size_bytes", [0, 7, 150])
def test_file_that_is_cut_is_named(tmp_path: Path, name: str, size_bytes: int) -> None:
    run, records = made(tmp_path)
    path = run.path / "evidence" / FOLDER / TARGET / BULK_FOLDER / name
    path.write_bytes(path.read_bytes()[:size_bytes])
    problems, _ = bulk_discrepancies(run.path, records)
    assert len(problems) >= 2
