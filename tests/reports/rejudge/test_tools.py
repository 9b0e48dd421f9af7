# SPDX-License-Identifier: Apache-2.0
"""`verify` names what of a run contradicts itself: facts of targets, order of attempts, answers of tools."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from reports.rejudge.arithmetic import discrepancies as arithmetic_discrepancies
from reports.rejudge.facts import fact_discrepancies
from reports.rejudge.requirements import requirement_discrepancies
from reports.rejudge.tools import tool_discrepancies

FACTS: dict[str, Any] = {
    "hostname": "arm",
    "nics": [{"name": "test0", "offloads": {"gro": "on", "tso": "off"}}],
}
ATTEMPTS = [
    {"suite": "daq_replay/arm", "number": 1},
    {"suite": "daq_replay/arm", "number": 2},
    {"suite": "daq_replay/windows", "number": 1},
]
MANIFEST: dict[str, Any] = {
    "target": {"arm": FACTS, "windows": {"hostname": "w"}},
    "attempts": ATTEMPTS,
    "tools": {"bw-traffic": "bw-traffic 0.1.0"},
}
SUMMARY = {
    "n": 3,
    "overflow": 0,
    "min_ns": 5,
    "max_ns": 7,
    "mean_ns": 6,
    "stddev_ns": 1,
    "p50_ns": 6,
    "p90_ns": 7,
    "p99_ns": 7,
    "p999_ns": 7,
    "buckets": [[5, 1, 1], [6, 1, 1], [7, 1, 1]],
}
WITNESS: dict[str, Any] = {
    "type": "result",
    "tool": "bw-traffic witness",
    "version": "0.1.0",
    "elapsed_ns": 1000,
    "period_ns": 25,
    "windows_dropped": 0,
    "windows": [[100, 140, 0], [120, 150, 1], [300, 310, 0]],
    "target_ran_ns": [0, 55, 35],
    "cpus": [
        {"cpu": 0, "stalls": 2, "stalled_ns": 50, "max_ns": 40},
        {"cpu": 1, "stalls": 1, "stalled_ns": 30, "max_ns": 30},
    ],
    "stalled_ns": 60,
    "stalled_fraction": 0.06,
    "wake_ups": [{"latency": SUMMARY}],
}
MISS: dict[str, Any] = {
    "type": "miss",
    "stream": 33,
    "sequence": 7,
    "scheduled_tai_ns": 1_000,
    "received_reference_tai_ns": 9_000,
    "received_minus_scheduled_ns": 8_000,
    "lateness_ns": 500,
    "received_minus_sent_ns": 7_500,
}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run with the facts of a target, a witness, a miss and the role of a target."""
    folder = tmp_path / "evidence" / "provisioning" / "arm"
    folder.mkdir(parents=True)
    (folder / "facts-after.json").write_text(json.dumps({"type": "facts", **FACTS}))
    for name, document in (("witness.ndjson", WITNESS), ("misses.ndjson", MISS)):
        (tmp_path / name).write_text(json.dumps(document) + "\n")
    (tmp_path / "role.json").write_text(
        json.dumps({"schema": "benchwright.replay_role/1", "target": "arm", "producer": 11})
    )
    return tmp_path


def discrepancies(
    run: Path, manifest: dict[str, Any] = MANIFEST, version: tuple[int, ...] = (0, 2, 1)
) -> list[str]:
    evidence = [{"path": name} for name in ("witness.ndjson", "misses.ndjson", "role.json", "gone.json")]
    record: dict[str, Any] = {"subject": {"target": "arm"}, "evidence": evidence}
    return [*fact_discrepancies(run, manifest), *tool_discrepancies(run, manifest, [record], version)]


def test_what_agrees_with_itself_has_no_discrepancy(run: Path) -> None:
    assert discrepancies(run) == []


def test_facts_of_a_target_whose_provisioning_failed_are_named(run: Path) -> None:
    folder = run / "evidence" / "provisioning" / "arm"
    (folder / "failed").mkdir()
    assert discrepancies(run) == []
    (folder / "facts-after.json").rename(folder / "failed" / "facts-after.json")
    assert any("target.arm has facts, and its provisioning failed" in each for each in discrepancies(run))


def test_a_name_that_is_missing_is_told_of_a_version_that_always_has_it(run: Path) -> None:
    (run / "role.json").write_text(json.dumps({"target": "arm", "producer": 11}))
    nameless = {key: value for key, value in WITNESS.items() if key != "version"}
    (run / "witness.ndjson").write_text(json.dumps(nameless) + "\n")
    assert discrepancies(run) == []
    said = discrepancies(run, version=(0, 2, 2))
    assert any("version is None" in each for each in said)
    assert any("role.json: schema is None" in each for each in said)


def test_a_witness_that_keeps_cpus_awake_says_what_nobody_claims(run: Path) -> None:
    cpus = [{**cpu, "utilisation": 0.3} for cpu in WITNESS["cpus"]]
    told = {**WITNESS, "cpus": cpus, "version": "0.2.2", "tool": "bw-traffic witness"}
    manifest = {**MANIFEST, "tools": {**MANIFEST["tools"], "bw-traffic": "bw-traffic 0.2.2"}}
    (run / "witness.ndjson").write_text(json.dumps(told) + "\n")
    assert any("unclaimed_ns is missing" in each for each in discrepancies(run, manifest))
    told["unclaimed_ns"] = [0] * len(WITNESS["windows"])
    (run / "witness.ndjson").write_text(json.dumps(told) + "\n")
    assert discrepancies(run, manifest) == []


def changed(document: dict[str, Any], place: str, value: object) -> dict[str, Any]:
    """Return a copy with another value at a place, whose parts have slashes between them."""
    copied: Any = copy.deepcopy(document)
    inner = copied
    *way, last = place.split("/")
    for step in way:
        inner = inner[int(step) if step.isdigit() else step]
    inner[int(last) if last.isdigit() else last] = value
    return copied


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        ("target/arm/hostname", "x", "target.arm.hostname is 'x', facts-after.json has 'arm'"),
        ("target/arm/nics/0/offloads/gro", "off", "nics.0.offloads.gro is 'off'"),
        ("target/arm/nics", [], "nics.0.name is None, facts-after.json has 'test0'"),
        ("target/arm/more", 1, "target.arm.more is 1, facts-after.json has None"),
        ("attempts/1/number", 1, "attempt 1 of daq_replay/arm is number 2 there"),
        ("tools/bw-traffic", "bw-traffic 0.2.0", "version is 0.1.0, the manifest has"),
    ],
)
def test_a_changed_manifest_is_named(run: Path, place: str, value: object, said: str) -> None:
    assert any(said in problem for problem in discrepancies(run, changed(MANIFEST, place, value)))


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        ("windows/0/1", 141, "CPU 0: stalls, their sum and the longest, ns: (2, 50, 40)"),
        ("windows/1/2", 5, "windows of CPUs [5], which it did not watch"),
        ("cpus/1/max_ns", 29, "CPU 1"),
        ("stalled_ns", 61, "stalled_ns is 61, the windows give 60"),
        ("stalled_fraction", 0.07, "stalled_fraction is 0.07"),
        ("target_ran_ns/2", 1_036, "target_ran_ns: 1036 ns on CPU 0, from one wake-up to the next 35 ns"),
        ("target_ran_ns/2", -1, "target_ran_ns: -1 ns on CPU 0"),
        ("target_ran_ns", [0, 55], "target_ran_ns is of 2 windows, there are 3"),
        ("wake_ups/0/latency/buckets/0/2", 4, "wake_ups.0.latency: n is 3, its"),
    ],
)
def test_a_witness_that_contradicts_itself_is_named(run: Path, place: str, value: object, said: str) -> None:
    (run / "witness.ndjson").write_text(json.dumps(changed(WITNESS, place, value)) + "\n")
    assert any(said in problem for problem in discrepancies(run))


@pytest.mark.parametrize(
    ("member", "said"),
    [
        ({"received_minus_scheduled_ns": 8_001}, "received 8001 ns after its slot, by its times 8000 ns"),
        ({"scheduled_tai_ns": 900}, "by its times 8100 ns"),
        ({"lateness_ns": 600}, "received 7500 ns after it was sent, by its lateness 7400 ns"),
    ],
)
def test_a_miss_that_contradicts_itself_is_named(run: Path, member: dict[str, int], said: str) -> None:
    (run / "misses.ndjson").write_text(json.dumps(MISS | member) + "\n")
    assert any(said in problem for problem in discrepancies(run))


@pytest.mark.parametrize(
    ("member", "said"),
    [({"schema": "benchwright.replay_role/2"}, "schema is"), ({"target": "windows"}, "of target windows")],
)
def test_a_document_of_something_else_is_named(run: Path, member: dict[str, str], said: str) -> None:
    document = json.loads((run / "role.json").read_text())
    (run / "role.json").write_text(json.dumps(document | member))
    assert any(said in problem for problem in discrepancies(run))


RECORD: dict[str, Any] = {
    "requirement": "DAQ-1",
    "quantity": "one_way_latency",
    "statistic": "max",
    "n_required": 99,
    "allowed_lost": 0,
    "limit": {"upper": 20_000, "lower": None, "source": ""},
    "subject": {"target": "arm"},
}


def keep_requirement(run: Path, name: str, limits: str) -> None:
    """Write a file that a run kept, of requirement DAQ-1 with some limits."""
    folder = run / "evidence" / "requirements"
    folder.mkdir(parents=True, exist_ok=True)
    text = '[[requirement]]\nid = "DAQ-1"\nquantity = "one_way_latency"\nstatistic = "max"'
    (folder / name).write_text(f"{text}\n{limits}\n")


def test_a_requirement_of_two_files_is_that_of_the_file_that_the_target_asks_by(tmp_path: Path) -> None:
    """Two targets have limits of their own under one id: each record is held against its own."""
    keep_requirement(tmp_path, "fast.toml", "upper_us = 10\nallowed_lost = 0")
    keep_requirement(tmp_path, "slow.toml", "upper_us = 20\nallowed_lost = 0")
    assert list(requirement_discrepancies(tmp_path, [RECORD], {})) == []
    asked = [
        {"target": "arm", "suite": "a/b.robot", "asks": [{"file": "fast.toml", "requirements": ["DAQ-1"]}]}
    ]
    [problem] = requirement_discrepancies(tmp_path, [RECORD], {"asked": asked})
    assert problem == "DAQ-1: judged against 20000, upper_us is 10"


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("upper_us", 20, "judged against 20000, upper_us is 21"),
        ("upper_ns", 20_000, "judged against 20000, upper_ns is 20001"),
        ("limit_ns", 20_000, "judged against 20000, limit_ns is 20001"),
        ("lost", 0, "judged with 0 lost allowed, lost is 1"),
        ("allowed_lost", 0, "judged with 0 lost allowed, allowed_lost is 1"),
        ("samples", 99, "judged from 99 samples, samples is 100"),
        ("n_required", 99, "judged from 99 samples, n_required is 100"),
        ("reads_min", 99, "judged from 99 samples, reads_min is 100"),
    ],
)
def test_a_limit_is_known_by_its_names_of_now_and_before(
    tmp_path: Path, key: str, value: int, said: str
) -> None:
    for asked, expected in ((value, []), (value + 1, [f"DAQ-1: {said}"])):
        keep_requirement(tmp_path, "site.toml", f"{key} = {asked}")
        assert list(requirement_discrepancies(tmp_path, [RECORD], {})) == expected


@pytest.mark.parametrize(
    ("quantity", "unit", "statistic", "allowed_lost", "said"),
    [
        ("sync_offset", "ns", "max_abs", 0, ""),
        ("sync_offset", "us", "max_abs", 0, "unit is 'us', a sync_offset is in 'ns'"),
        ("sync_offset", "ns", "min", 0, "statistic is 'min', of a sync_offset max_abs or mean"),
        ("known_delay_error", "ns", "median", 1, "allowed_lost is 1, a check of the bench may lose nothing"),
        ("of_another_lab", "furlong", "mode", 0, ""),
    ],
)
def test_a_record_is_of_what_its_quantity_can_be(
    quantity: str, unit: str, statistic: str, allowed_lost: int, said: str
) -> None:
    record: dict[str, Any] = {
        "schema": "benchwright.measurement/1",
        "rule": "guard-band-U",
        "quantity": quantity,
        "unit": unit,
        "statistic": statistic,
        "value": 5,
        "n": 9,
        "n_required": 9,
        "lost": 0,
        "allowed_lost": allowed_lost,
        "limit": {"upper": 10, "lower": None},
        "uncertainty": {"expanded": 1, "parts": [{"name": "poll_interval", "kind": "bound", "value": 1}]},
        "margin": 4,
        "outcome": "pass",
    }
    assert list(arithmetic_discrepancies(record)) == ([said] if said else [])


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("requirements/2", "requirements/3", "fast.toml: schema is 'benchwright.requirements/3'"),
        (
            '"one_way_latency"',
            '"two_way_latency"',
            "fast.toml: DAQ-1: there is no two_way_latency max: no again.py",
        ),
        ('"max"', '"min"', "fast.toml: DAQ-1: there is no one_way_latency min"),
    ],
)
def test_a_requirement_that_asks_for_what_there_is_not_is_named(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    folder = tmp_path / "evidence" / "requirements"
    folder.mkdir(parents=True)
    text = (
        '[requirements]\nschema = "benchwright.requirements/2"\n'
        '[[requirement]]\nid = "DAQ-1"\nquantity = "one_way_latency"\nstatistic = "max"\n'
    )
    (folder / "fast.toml").write_text(text)
    assert list(requirement_discrepancies(tmp_path, [], {})) == []
    (folder / "fast.toml").write_text(text.replace(old, new))
    assert any(said in problem for problem in requirement_discrepancies(tmp_path, [], {}))
