# SPDX-License-Identifier: Apache-2.0
"""A ring beside a load: what the load achieved, in records and on the page, and what does not go together."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reports.control_loops.capability import LOOP_DELAY, STRETCH
from reports.control_loops.case import Case
from reports.control_loops.load import KnownLoad, read_load
from reports.control_loops.ring import load_ring
from reports.control_loops.ring_evidence import FOLDER
from reports.control_loops.stretch_verdict import stretch_measurement
from reports.errors import RecordError
from reports.record.context import Context
from reports.record.measurement import AxisValue, Conditions, Limit, NumberedCondition, Subject
from reports.rejudge.rings import ring_discrepancies
from reports.requirements import Requirement
from reports.run.folder import RunFolder
from resources.loads.achieved import Achieved, Quantity
from tests.reports.control_loops.ring_sample import TARGET, write_sample_ring
from tests.reports.pages import page_with, words_of

Json = dict[str, Any]
NETWORK = KnownLoad("network", "p02")
CASE = Case(load="network")


def achieve(folder: Path, kind: str = "network", node: str = "p02", **changed: float | None) -> None:
    """Write what a load of 20 s achieved, as the load itself does."""
    amounts: dict[str, float | None] = {
        "cpu_s": 5.0, "written_bytes": None, "sent_bit_s": 9e7, "received_bit_s": 9e7, "forks": 40.0,
        "context_switches": 900.0,
    }  # fmt: skip
    amounts |= changed
    quantities = {name: Quantity(value, "a test") for name, value in amounts.items()}
    asked = {"kind": kind, "node": node, "duration_s": 100}
    Achieved(asked, 20.0, "asked", **quantities).write(folder)


def made(tmp_path: Path) -> tuple[RunFolder, list[Json]]:
    run = RunFolder.create(tmp_path / "results", "native", "nightly", simulated=True, commit="0" * 40)
    folder = run.evidence_folder(FOLDER, TARGET) / CASE.folder
    write_sample_ring(folder, load=NETWORK)
    achieve(folder)
    found = load_ring(folder)
    assert found.load
    name = CASE.stretch("hop 2")
    files = tuple(run.evidence(path) for path in sorted(folder.iterdir()))
    numbers = tuple(NumberedCondition(*each) for each in found.load.numbers.items())
    conditions = Conditions("nightly", load="network", numbers=numbers)
    subject = Subject("native", TARGET, axes=(AxisValue(STRETCH, name),))
    context = Context(run.run_id, "test", subject, conditions, simulated=True, evidence=files)
    limit = Limit(1_000_000, None, "a test")
    requirement = Requirement(
        "CL-X", LOOP_DELAY, "median", limit, subject=(STRETCH, name), samples=100, lost=0
    )
    run.append(stretch_measurement(found, requirement, context, "hop 2"))
    return run, [json.loads(line) for line in (run.path / "measurements.jsonl").read_text().splitlines()]


def test_honest_record_beside_a_load_stands(tmp_path: Path) -> None:
    run, records = made(tmp_path)
    assert records[0]["outcome"] == "pass"
    assert {each["name"]: each["value"] for each in records[0]["conditions"]["numbers"]} == {
        "load_cpu_ms_s": 250,
        "load_received_bit_s": 90_000_000,
    }
    assert ring_discrepancies(run.path, records) == ([], 1)


def of_no_load(record: Json) -> None:
    record["subject"]["axes"][0]["value"] = "hop 2"


def of_another_load(record: Json) -> None:
    record["conditions"]["load"] = "compile-like"


def as_if_idle(record: Json) -> None:
    record["conditions"]["load"] = "idle"


def of_more(record: Json) -> None:
    record["conditions"]["numbers"][1]["value"] *= 2


def without_its_file(record: Json) -> None:
    record["evidence"] = [each for each in record["evidence"] if not each["path"].endswith("load.json")]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (of_no_load, "its axis is hop 2, its evidence of load"),
        (of_another_load, "its load is compile-like"),
        (as_if_idle, "its load is idle"),
        (of_more, "conditions are"),
        (without_its_file, "load.json is not among its evidence"),
    ],
)
def test_record_that_tells_another_load_is_told(
    tmp_path: Path, change: Callable[[Json], None], said: str
) -> None:
    run, records = made(tmp_path)
    changed = copy.deepcopy(records)
    change(changed[0])
    problems, _ = ring_discrepancies(run.path, changed)
    assert any(said in each for each in problems), problems


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"received_bit_s": 8e7}, "load.json comes to"),
        ({"received_bit_s": 0.0}, "the load did nothing"),
        ({"node": "p01"}, "load.json is of"),
    ],
)
def test_load_that_achieved_something_else_is_told(tmp_path: Path, change: Json, said: str) -> None:
    run, records = made(tmp_path)
    achieve(run.path / "evidence" / FOLDER / TARGET / CASE.folder, **change)
    problems, _ = ring_discrepancies(run.path, records)
    assert any(said in each for each in problems), problems


def test_amounts_are_told_in_words(tmp_path: Path) -> None:
    achieve(tmp_path)
    assert read_load(tmp_path, NETWORK).words == "90 Mbit/s, 0.25 s of CPU time a second"
    achieve(tmp_path, "compile-like", forks=400.0, written_bytes=4e7)
    words = read_load(tmp_path, KnownLoad("compile-like", "p02")).words
    assert words == "0.25 s of CPU time a second, 20 processes a second, 2 MB/s written"
    achieve(tmp_path, cpu_s=None, received_bit_s=None)
    assert read_load(tmp_path, NETWORK).words == "nobody could count what it did"


@pytest.mark.parametrize(
    ("amounts", "did"),
    [
        ({}, True),
        ({"received_bit_s": 0.0}, False),
        ({"received_bit_s": None}, True),
        ({"received_bit_s": 0.0, "cpu_s": 9.0}, False),
    ],
)
def test_load_that_did_nothing_of_its_kind_is_told(tmp_path: Path, amounts: Json, did: bool) -> None:
    achieve(tmp_path, **amounts)
    assert read_load(tmp_path, NETWORK).did_something is did


def test_file_of_another_load_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r"load\.json"):
        read_load(tmp_path, NETWORK)
    achieve(tmp_path, node="p01")
    with pytest.raises(RecordError, match=r"^load\.json: is of another load, network on p01"):
        read_load(tmp_path, NETWORK)
    (tmp_path / "load.json").write_text("[]")
    with pytest.raises(RecordError, match=r"load\.json"):
        read_load(tmp_path, NETWORK)


def test_page_shows_the_ring_beside_its_load(tmp_path: Path) -> None:
    run, _ = made(tmp_path)
    write_sample_ring(run.path / "evidence" / FOLDER / TARGET)
    run.update(target={TARGET: {"hostname": TARGET}})
    run.close()
    words = words_of(page_with(run.path, "control-loops"))
    assert "under network load on p02: 90 Mbit/s, 0.25 s of CPU time a second" in words
