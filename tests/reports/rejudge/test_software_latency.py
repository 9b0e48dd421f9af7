# SPDX-License-Identifier: Apache-2.0
"""Software latency worked out again: honest records stand, and what the round trips contradict is named."""

from __future__ import annotations

import csv
import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hw.topology import TopologySpec
from reports.record.context import Context
from reports.record.measurement import AxisValue, Conditions, Evidence, Limit, NumberedCondition, Subject
from reports.rejudge.missing import missing_discrepancies
from reports.rejudge.requirements import requirement_discrepancies
from reports.rejudge.software_latency import Pauses, software_latency_discrepancies
from reports.rejudge.tools import tool_discrepancies
from reports.run.folder import RunFolder
from reports.software_latency.evidence import ROUND_TRIPS, Turns, load_software_latencies
from reports.software_latency.verdict import closure_measurement, software_measurement
from tests.reports.software_latency.test_evidence import (
    S_NS,
    START_NS,
    lab_network,
    taken_off,
    write_folder,
)

LIMIT = Limit(500_000, None, "a test")
CLOSE = Limit(30_000, None, "a test")
TURNS = Turns(START_NS, 12, 6 * 12 * 2000, 50)
"""Of six directions: 600 trips each."""
PAUSES = (
    (START_NS + 100_000_000, START_NS + 110_000_000),
    (START_NS + 2_000_000_000, START_NS + 2_020_000_000),
)
Records = list[dict[str, Any]]


def context(run: RunFolder, evidence: tuple[Evidence, ...], device: str = "") -> Context:
    subject = Subject("virtual", "linux-rt", axes=(AxisValue("device", device),) if device else None)
    conditions = Conditions("ci", numbers=(NumberedCondition("size_bytes", 64),))
    return Context(run.run_id, "test", subject, conditions, simulated=True, evidence=evidence)


def made(
    tmp_path: Path,
    turns: Turns | None,
    extra_ns: dict[tuple[str, str], int] | None = None,
    topology: TopologySpec | None = None,
) -> Path:
    """Return a run with records of three devices, of one that is not there, and of the sums."""
    run = RunFolder.create(tmp_path / "results", "virtual", "ci", simulated=True, commit="0" * 40)
    folder = run.evidence_folder("software_latency", "linux-rt")
    write_folder(folder, extra_ns, PAUSES, turns, None if topology is None else taken_off(topology))
    found = load_software_latencies(folder)
    evidence = (run.evidence(folder / ROUND_TRIPS),)
    for device in ("a", "b", "c", "nobody"):
        run.append(
            software_measurement(found, device, f"SW-{device}", LIMIT, 100, context(run, evidence, device))
        )
    run.append(closure_measurement(found, "BENCH-ROUND-TRIPS", CLOSE, 100, context(run, evidence)))
    return run.path


def told(run: Path) -> tuple[list[str], int]:
    lines = (run / "measurements.jsonl").read_text().splitlines()
    return software_latency_discrepancies(run, [json.loads(line) for line in lines])


@pytest.mark.parametrize("turns", [TURNS, None])
@pytest.mark.parametrize("extra_ns", [None, {("a", "b"): 50_000}])
def test_what_was_measured_stands(
    tmp_path: Path, turns: Turns | None, extra_ns: dict[tuple[str, str], int] | None
) -> None:
    """Also where the pairs contradict each other, and U has a part for it."""
    run = made(tmp_path, turns, extra_ns)
    assert told(run) == ([], 5)
    parts = [part["name"] for record in records_of(run)[:3] for part in record["uncertainty"]["parts"]]
    assert ("device_dependence" in parts) == (extra_ns is not None)


@pytest.mark.parametrize(("version", "stands"), [("0.2.1", False), ("0.2.2", True), (None, True)])
def test_a_contradiction_in_a_ring_is_in_u_since_0_2_2(
    tmp_path: Path, version: str | None, stands: bool
) -> None:
    """Five devices without a triangle: before, the part for it was 0."""
    run = RunFolder.create(tmp_path / "results", "virtual", "ci", simulated=True, commit="0" * 40)
    folder = run.evidence_folder("software_latency", "linux-rt")
    names = "abcde"
    turns = Turns(START_NS, 12, 20 * 12 * 2000, 50)
    write_folder(folder, {("a", "b"): 90_000}, turns=turns, s_ns=dict.fromkeys(names, 100_000))
    facts = json.loads((folder / ROUND_TRIPS).read_text())
    ring = [{one, other} for one, other in itertools.pairwise([*names, "a"])]
    facts["exchanges"] = [each for each in facts["exchanges"] if {each["asker"], each["reflector"]} in ring]
    (folder / ROUND_TRIPS).write_text(json.dumps(facts))
    found = load_software_latencies(folder)
    evidence = (run.evidence(folder / ROUND_TRIPS),)
    run.append(software_measurement(found, "d", "SW-d", LIMIT, 100, context(run, evidence, "d")))
    manifest = json.loads((run.path / "run.json").read_text())
    manifest["tools"] = {} if version is None else {"bw-traffic": f"bw-traffic {version}"}
    (run.path / "run.json").write_text(json.dumps(manifest))
    assert (told(run.path)[0] == []) == stands
    records = records_of(run.path)
    for part in records[0]["uncertainty"]["parts"]:
        part["value"] *= part["name"] != "device_dependence"
    (run.path / "measurements.jsonl").write_text(json.dumps(records[0]) + "\n")
    assert (told(run.path)[0] == []) != stands
    records[0]["uncertainty"]["parts"] = records[0]["uncertainty"]["parts"][:1]
    (run.path / "measurements.jsonl").write_text(json.dumps(records[0]) + "\n")
    assert any("U has no part for it" in problem for problem in told(run.path)[0])


def records_of(run: Path) -> Records:
    return [json.loads(line) for line in (run / "measurements.jsonl").read_text().splitlines()]


def value(records: Records) -> None:
    records[0]["value"] -= 5_000


def count(records: Records) -> None:
    records[1]["n"] += 1


def device(records: Records) -> None:
    records[0]["subject"]["axes"][0]["value"] = "b"


def invented(records: Records) -> None:
    records[3]["value"] = 1


def size(records: Records) -> None:
    records[0]["conditions"]["numbers"][0]["value"] = 1400


def scatter(records: Records) -> None:
    records[2]["uncertainty"]["parts"][0]["value"] //= 10


def partners(records: Records) -> None:
    for record in records[:3]:
        record["uncertainty"]["parts"] = [
            part for part in record["uncertainty"]["parts"] if part["name"] != "device_dependence"
        ]


def smaller(records: Records) -> None:
    for part in records[0]["uncertainty"]["parts"]:
        part["value"] //= 2 if part["name"] == "device_dependence" else 1


def sums(records: Records) -> None:
    records[4]["value"] //= 2


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (value, "SW-a: S is"),
        (count, "SW-b: S is"),
        (device, "SW-a: S is"),
        (invented, "SW-nobody: is of the device 'nobody'"),
        (size, "SW-a: is of 1400 bytes, the round trips of 64"),
        (scatter, "SW-c: scatter is"),
        (partners, "the pairs contradict each other, and U has no part for it"),
        (smaller, "SW-a: part device_dependence of U is"),
        (sums, "BENCH-ROUND-TRIPS: the difference is"),
    ],
)
def test_what_the_round_trips_contradict_is_named(
    tmp_path: Path, change: Callable[[Records], None], named: str
) -> None:
    run = made(tmp_path, TURNS, {("a", "b"): 50_000})
    records = records_of(run)
    change(records)
    (run / "measurements.jsonl").write_text("".join(json.dumps(each) + "\n" for each in records))
    assert any(named in problem for problem in told(run)[0])


@pytest.mark.parametrize("turns", [TURNS, None])
def test_the_part_for_cables_and_switches_is_held_against_their_bounds(
    tmp_path: Path, turns: Turns | None
) -> None:
    run = made(tmp_path, turns, topology=lab_network())
    assert told(run) == ([], 5)
    records = records_of(run)
    for record in records[:2]:
        for part in record["uncertainty"]["parts"]:
            part["value"] //= 2 if part["name"] == "hardware" else 1
    records[1]["uncertainty"]["parts"].pop()
    (run / "measurements.jsonl").write_text("".join(json.dumps(each) + "\n" for each in records))
    problems = told(run)[0]
    for said in ("SW-a: part hardware of U is 250, cables", "SW-b: part hardware of U is None, cables"):
        assert any(said in problem for problem in problems)


def test_a_round_trip_from_which_more_was_taken_off_is_named(tmp_path: Path) -> None:
    run = made(tmp_path, TURNS, topology=lab_network())
    path = run / "evidence" / "software_latency" / "linux-rt" / ROUND_TRIPS
    path.write_text(path.read_text().replace('"hardware_ns": 6752', '"hardware_ns": 16752'))
    assert any("SW-a: S is" in problem for problem in told(run)[0])


def test_a_delay_that_no_reflector_added_is_named(tmp_path: Path) -> None:
    run = made(tmp_path, TURNS)
    folder = run / "evidence" / "software_latency" / "linux-rt"
    answer = {"type": "result", "delay_receive_us": 0, "delay_send_us": 0}
    (folder / "echo-b.ndjson").write_text(json.dumps(answer) + "\n")
    assert told(run)[0] == []
    (folder / "echo-b.ndjson").write_text(json.dumps({**answer, "delay_send_us": 25}) + "\n")
    assert any("echo-b.ndjson: it delays by (0, 25) us" in problem for problem in told(run)[0])


def test_a_document_of_another_schema_is_named(tmp_path: Path) -> None:
    run = made(tmp_path, TURNS)
    path = run / "evidence" / "software_latency" / "linux-rt" / ROUND_TRIPS
    assert not list(tool_discrepancies(run, {"tools": {}}, records_of(run), (0, 2, 2)))
    path.write_text(path.read_text().replace("round_trips/1", "round_trips/2"))
    (found,) = tool_discrepancies(run, {"tools": {}}, records_of(run), (0, 2, 2))
    assert found.endswith("schema is benchwright.round_trips/2")


def test_a_changed_round_trip_is_named(tmp_path: Path) -> None:
    run = made(tmp_path, TURNS)
    path = run / "evidence" / "software_latency" / "linux-rt" / "a-c.csv"
    with path.open(newline="") as file:
        rows = list(csv.reader(file))
    rows[-1][2] = str(int(rows[-1][2]) * 100)
    path.write_text("\n".join(map(",".join, rows)) + "\n")
    assert any("SW-a: S is" in problem for problem in told(run)[0])


def test_a_silent_device_stands_and_one_that_is_only_called_so_is_named(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path / "results", "virtual", "ci", simulated=True, commit="0" * 40)
    folder = run.evidence_folder("software_latency", "linux-rt")
    write_folder(folder, turns=TURNS, s_ns={**S_NS, "d": 60_000}, silent="d")
    found = load_software_latencies(folder)
    evidence = (run.evidence(folder / ROUND_TRIPS),)
    for device in ("a", "d"):
        run.append(
            software_measurement(found, device, f"SW-{device}", LIMIT, 100, context(run, evidence, device))
        )
    assert told(run.path) == ([], 2)
    facts = json.loads((folder / ROUND_TRIPS).read_text())
    for each in facts["exchanges"]:
        each["silent"] = "nothing was heard" if "a" in (each["asker"], each["reflector"]) else ""
    (folder / ROUND_TRIPS).write_text(json.dumps(facts))
    assert any("called silent, and 600 replies are there" in problem for problem in told(run.path)[0])


def test_a_device_that_died_half_way_may_be_called_silent(tmp_path: Path) -> None:
    run = made(tmp_path, TURNS)
    folder = run / "evidence" / "software_latency" / "linux-rt"
    facts = json.loads((folder / ROUND_TRIPS).read_text())
    for each in facts["exchanges"]:
        if each["reflector"] == "b":
            each["silent"] = f"b answered {each['asker']} until turn 25 of 50, then no more"
            rows = (folder / each["series"]).read_text().splitlines()
            (folder / each["series"]).write_text("\n".join(rows[:301]) + "\n")
    (folder / ROUND_TRIPS).write_text(json.dumps(facts))
    assert not any("called silent" in problem for problem in told(run)[0])


@pytest.mark.parametrize(("delayed", "control"), [("b", None), ("a-delayed", "b")])
def test_twins_alone_may_be_left_out_of_the_sums(tmp_path: Path, delayed: str, control: str | None) -> None:
    run = RunFolder.create(tmp_path / "results", "virtual", "ci", simulated=True, commit="0" * 40)
    folder = run.evidence_folder("software_latency", "linux-rt")
    write_folder(folder, {("a", "b"): 50_000}, PAUSES, TURNS)
    path = folder / ROUND_TRIPS
    facts = json.loads(path.read_text())
    twin = {"device": delayed, "receive_us": 25, "send_us": 25, "put_ns": 0, "twin_of": ""}
    twin |= {} if control is None else {"control": control}
    path.write_text(json.dumps({**facts, "left_out_of_sums": ["b"], "injected": [twin]}))
    found = load_software_latencies(folder)
    evidence = (run.evidence(path),)
    run.append(closure_measurement(found, "BENCH-ROUND-TRIPS", CLOSE, 100, context(run, evidence)))
    assert told(run.path) == ([], 1)
    path.write_text(json.dumps({**facts, "left_out_of_sums": ["b"]}))
    assert any("pass, though two sums differ by" in problem for problem in told(run.path)[0])


def test_a_damaged_series_is_told(tmp_path: Path) -> None:
    run = made(tmp_path, TURNS)
    (run / "evidence" / "software_latency" / "linux-rt" / "a-c.csv").write_text("nothing\n")
    assert told(run)[0]


def test_pauses_of_two_processors_overlap() -> None:
    """A long one that began early reaches over a short one that began later."""
    pauses = Pauses([(10, 100), (20, 30)])
    assert [pauses.touch(*each) for each in ((0, 10), (0, 11), (50, 60), (99, 200), (100, 200))] == [
        False, True, True, True, False,
    ]  # fmt: skip
    assert not Pauses([]).touch(0, 1)


@pytest.mark.parametrize(("upper_us", "problems"), [(30, 0), (31, 1)])
def test_a_check_that_a_file_asks_for_is_held_against_its_limit(
    tmp_path: Path, upper_us: int, problems: int
) -> None:
    """And it has a record: the run measured what it was asked for."""
    run = made(tmp_path, TURNS)
    kept = run / "evidence" / "requirements"
    kept.mkdir()
    (kept / "software.toml").write_text(
        '[[requirement]]\nid = "BENCH-ROUND-TRIPS"\nquantity = "software_latency_closure"\n'
        f'statistic = "max"\nupper_us = {upper_us}\nsamples = 100\nsource = "a test"\n'
    )
    asks = {"file": "software.toml", "requirements": ["BENCH-ROUND-TRIPS"]}
    asked = {"suite": "s", "target": "linux-rt", "asks": [asks], "skipped": []}
    manifest = {**json.loads((run / "run.json").read_text()), "asked": [asked], "outcome": "pass"}
    closure = [record for record in records_of(run) if record["quantity"] == "software_latency_closure"]
    assert len(list(requirement_discrepancies(run, closure, manifest))) == problems
    manifest["end_utc"] = manifest["start_utc"]
    assert not [each for each in missing_discrepancies(run, manifest, closure) if "has no record" in each]


def _change_answer(run: Path, change: Callable[[dict[str, Any]], object]) -> None:
    file = next((run / "evidence" / "software_latency" / "linux-rt").glob("a-b.ndjson"))
    answer = json.loads(file.read_text())
    change(answer)
    file.write_text(json.dumps(answer) + "\n")


def _cut_slow_trips(run: Path) -> None:
    file = run / "evidence" / "software_latency" / "linux-rt" / "a-b.csv"
    head, *rows = file.read_text().splitlines()
    rows.sort(key=lambda row: int(row.split(",")[2]))
    file.write_text("\n".join([head, *rows[:-60]]) + "\n")


def test_trips_that_are_cut_out_of_a_series_are_missed(tmp_path: Path) -> None:
    """Also where the records were made anew from what is left."""
    run = made(tmp_path, TURNS)
    _cut_slow_trips(run)
    assert any("a-b.csv has 540 replies, the tool counted 600" in each for each in told(run)[0])


CHANGES: list[Callable[[dict[str, Any]], object]] = [
    lambda answer: answer.update(received=540, lost=61),
    lambda answer: answer.update(sent=600),
    lambda answer: answer["round_trip"].update(max_ns=answer["round_trip"]["max_ns"] + 1),
    lambda answer: answer["residence"].update(min_ns=1),
    lambda answer: answer["round_trip"]["buckets"].pop(),
]


@pytest.mark.parametrize("change", CHANGES)
def test_an_answer_that_the_series_contradicts_is_named(
    change: Callable[[dict[str, Any]], object], tmp_path: Path
) -> None:
    run = made(tmp_path, TURNS)
    _change_answer(run, change)
    assert any("a to b: " in each for each in told(run)[0])


def test_a_series_of_two_directions_is_named(tmp_path: Path) -> None:
    run = made(tmp_path, TURNS)
    file = run / "evidence" / "software_latency" / "linux-rt" / ROUND_TRIPS
    facts = json.loads(file.read_text())
    facts["exchanges"][1]["series"] = facts["exchanges"][0]["series"]
    file.write_text(json.dumps(facts))
    assert any("a-b.csv is of 2 directions" in each for each in told(run)[0])
