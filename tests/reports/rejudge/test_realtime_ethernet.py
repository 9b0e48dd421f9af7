# SPDX-License-Identifier: Apache-2.0
"""Single messages worked out again: honest records stand, and what the trials contradict is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reports.realtime_ethernet.capability import MESSAGE_LATENCY, MESSAGE_THROUGHPUT, RISES
from reports.realtime_ethernet.evidence import FOLDER, MESSAGES
from reports.realtime_ethernet.verdict import (
    Demand,
    find_latency,
    find_rise,
    find_throughput,
    message_measurement,
)
from reports.record.context import Context
from reports.record.measurement import AxisValue, Conditions, Limit, Subject
from reports.rejudge.arithmetic import discrepancies
from reports.rejudge.missing import missing_discrepancies
from reports.rejudge.realtime_ethernet import message_discrepancies
from reports.run.folder import RunFolder
from tests.reports.realtime_ethernet.sample import (
    STACK,
    TARGET,
    latency_answer,
    write_answer,
    write_sample_messages,
)

Json = dict[str, Any]


def made(tmp_path: Path, **sample: Any) -> tuple[RunFolder, list[Json]]:
    """Return a run with a record of each quantity and statistic."""
    run = RunFolder.create(tmp_path / "results", "native", "ci", simulated=True, commit="0" * 40)
    write_version(run, "0.2.1")
    folder = run.evidence_folder(FOLDER, TARGET)
    messages = write_sample_messages(folder, **sample)

    def context(size: str = "") -> Context:
        axes = (AxisValue("size", size),) if size else None
        subject = Subject("native", TARGET, stack=STACK, axes=axes)
        files = tuple(run.evidence(path) for path in sorted(folder.glob("*.*json")))
        return Context(run.run_id, "test", subject, Conditions("ci"), simulated=True, evidence=files)

    for statistic in ("median", "p99"):
        asked = Demand(f"L-{statistic}", statistic, Limit(100_000, None, "a test"), 100, 0)
        found = find_latency(messages, folder, 64, statistic)
        run.append(message_measurement(MESSAGE_LATENCY, found, asked, context("64 B")))
        asked = Demand(f"R-{statistic}", statistic, Limit(60, None, "a test"), 100, 0)
        for quantity in RISES:
            found = find_rise(quantity, messages, folder, statistic)
            run.append(message_measurement(quantity, found, asked, context()))
    asked = Demand("T", "mean", Limit(None, 1_000_000, "a test"), 100, 0)
    found = find_throughput(messages, folder, 1400)
    run.append(message_measurement(MESSAGE_THROUGHPUT, found, asked, context("1400 B")))
    return run, [json.loads(line) for line in (run.path / "measurements.jsonl").read_text().splitlines()]


def write_version(run: RunFolder, version: str) -> None:
    """Write which version of the tools a run was made with."""
    file = run.path / "run.json"
    manifest = json.loads(file.read_text("utf-8"))
    file.write_text(json.dumps(manifest | {"tools": {"bw-rtdip": f"bw-rtdip {version}"}}), "utf-8")


def told(run: RunFolder, records: list[Json]) -> str:
    problems, _count = message_discrepancies(run.path, records)
    return "\n".join(problems)


@pytest.mark.parametrize(
    ("sample", "outcome"),
    [
        ({}, "pass"),
        ({"rounds": 16, "disturbed": [2]}, "pass"),
        ({"disturbed": [2]}, "inconclusive"),
        ({"over": "rtdip"}, "inconclusive"),
    ],
)
def test_what_was_measured_stands(sample: Json, outcome: str, tmp_path: Path) -> None:
    run, records = made(tmp_path, **sample)
    assert message_discrepancies(run.path, records) == ([], 7)
    assert [list(discrepancies(record)) for record in records] == [[]] * 7
    assert {record["outcome"] for record in records} == {outcome}


def test_a_run_of_an_earlier_version_has_fewer_rounds_each_alone(tmp_path: Path) -> None:
    run, records = made(tmp_path, rounds=6)
    assert {record["outcome"] for record in records} == {"inconclusive"}
    record: Json = records[0] | {"outcome": "pass", "reason": ""}
    [rounds] = [each for each in record["uncertainty"]["parts"] if each["name"] == "rounds"]
    rounds["value"] = 280
    write_version(run, "0.2.0")
    assert told(run, [record]) == ""
    write_version(run, "0.2.1")
    assert "part rounds of U is 280, the trials say 2" in told(run, [record])
    assert "pass, its trials come to inconclusive; 6 rounds count" in told(run, [record])


def test_a_trial_of_another_round_is_named(tmp_path: Path) -> None:
    run, records = made(tmp_path)
    (path,) = run.path.rglob(MESSAGES)
    document = json.loads(path.read_text())
    trials = document["trials"]
    for place, number, said in ((-1, 0, "do not follow each other"), (0, 1, "do not follow each other")):
        changed = [*trials]
        changed[place] = {**trials[place], "round": trials[place]["round"] + number - (place == -1)}
        path.write_text(json.dumps({**document, "trials": changed}))
        assert said in told(run, records)
    doubled = [*trials[:1], *trials]
    path.write_text(json.dumps({**document, "trials": doubled}))
    assert "round 0 has 2 trials" in told(run, records)


def test_a_bulk_receiver_that_yields_gives_no_verdict(tmp_path: Path) -> None:
    run, records = made(tmp_path, bulk_share=0.5)
    assert message_discrepancies(run.path, records) == ([], 7)
    assert {r["outcome"] for r in records if r["quantity"] in RISES} == {"inconclusive"}
    lies = [record | {"outcome": "pass", "reason": ""} for record in records]
    assert "R-p99: pass, its trials come to inconclusive; the bulk receiver yields" in told(run, lies)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"value": 20_000}, "L-median: value is 20000, the trials say 208"),
        ({"value": None}, "value is None"),
        ({"n": 700}, "n is 700, the trials say 1400"),
        ({"lost": 1}, "lost is 1, the trials say 0"),
        ({"unit": "us"}, "unit is us, the trials say ns"),
        ({"outcome": "fail"}, "fail, its trials come to pass"),
    ],
)
def test_what_the_trials_contradict_is_named(change: Json, named: str, tmp_path: Path) -> None:
    run, records = made(tmp_path)
    assert named in told(run, [records[0] | change])


@pytest.mark.parametrize("name", ["rounds", "buckets"])
def test_a_smaller_u_is_named(name: str, tmp_path: Path) -> None:
    run, records = made(tmp_path)
    for record in records[:2]:
        for part in record["uncertainty"]["parts"]:
            if part["name"] == name:
                part["value"] /= 10
    assert told(run, records[:2]).count(f"part {name} of U is") == 2


def test_a_record_of_another_stack_or_size_or_without_its_files_is_named(tmp_path: Path) -> None:
    run, records = made(tmp_path)
    record = records[0]
    assert "stack is rtdip" in told(run, [record | {"subject": record["subject"] | {"stack": "rtdip"}}])
    other = record["subject"] | {"axes": [{"axis": "size", "value": "512 B"}]}
    assert "n is 1400, the trials say 0" in told(run, [record | {"subject": other}])
    bare = [each for each in record["evidence"] if each["path"].endswith(MESSAGES)]
    assert "000-latency-64.ndjson is not among its evidence" in told(run, [record | {"evidence": bare}])


def test_an_answer_that_is_changed_is_named(tmp_path: Path) -> None:
    run, records = made(tmp_path)
    folder = run.path / "evidence" / FOLDER / TARGET
    for number in range(14):
        write_answer(folder, f"{number:03d}-latency-64.ndjson", latency_answer([90_000] * 100))
    assert "value is" in told(run, records)


def test_trials_that_no_record_names_are_found(tmp_path: Path) -> None:
    run, records = made(tmp_path)
    manifest = json.loads((run.path / "run.json").read_text())
    manifest |= {"end_utc": manifest["start_utc"], "outcome": "pass", "failed_tests": [], "problems": []}
    assert not [each for each in missing_discrepancies(run.path, manifest, records) if MESSAGES in each]
    found = "\n".join(missing_discrepancies(run.path, manifest, []))
    assert f"evidence/{FOLDER}/{TARGET}/{MESSAGES}: raw data that no record names" in found


def test_messages_by_another_way_than_the_stack_s_are_named(tmp_path: Path) -> None:
    """Who changes what the tools and the document say together does not change the stack."""
    run, records = made(tmp_path)
    folder = run.path / "evidence" / FOLDER / TARGET
    for file in folder.glob("*.*json"):
        file.write_text(file.read_text().replace('"udp"', '"rtdip"'))
    assert "says over rtdip, the stack kernel goes over udp" in told(run, records)


def test_one_answer_for_several_rounds_is_named(tmp_path: Path) -> None:
    run, records = made(tmp_path)
    file = run.path / "evidence" / FOLDER / TARGET / MESSAGES
    document = json.loads(file.read_text())
    latencies = [row for row in document["trials"] if row["kind"] == "latency" and row["size_bytes"] == 64]
    for row in latencies:
        row["file"] = latencies[0]["file"]
    file.write_text(json.dumps(document))
    assert "000-latency-64.ndjson is the answer of 14 trials" in told(run, records)


def test_an_answer_that_was_copied_is_named(tmp_path: Path) -> None:
    run, records = made(tmp_path)
    folder = run.path / "evidence" / FOLDER / TARGET
    (folder / "003-latency-64.ndjson").write_bytes((folder / "000-latency-64.ndjson").read_bytes())
    assert "003-latency-64.ndjson is word for word 000-latency-64.ndjson" in told(run, records)


@pytest.mark.parametrize("change", [{"sent": 90}, {"sent": 101}, {"lost": 1}, {"late": 1}])
def test_counts_that_do_not_add_up_are_named(change: Json, tmp_path: Path) -> None:
    run, records = made(tmp_path)
    folder = run.path / "evidence" / FOLDER / TARGET
    answer = json.loads((folder / "002-alone-64.ndjson").read_text().splitlines()[-1])
    write_answer(folder, "002-alone-64.ndjson", answer | change)
    assert "002-alone-64.ndjson: " in told(run, records)


def test_more_windows_than_messages_are_named(tmp_path: Path) -> None:
    run, records = made(tmp_path)
    folder = run.path / "evidence" / FOLDER / TARGET
    answer = json.loads((folder / "002-throughput-64.ndjson").read_text().splitlines()[-1])
    write_answer(folder, "002-throughput-64.ndjson", answer | {"windows": answer["windows"] * 2})
    assert "002-throughput-64.ndjson: " in told(run, records)
