# SPDX-License-Identifier: Apache-2.0
"""Verdicts on rings, judged a second time by code that shares nothing with the first."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reports.control_loops.capability import LOOP_DELAY, LOOP_WIRE_DELAY, STRETCH
from reports.control_loops.ring import load_ring
from reports.control_loops.ring_evidence import FOLDER, KnownHold
from reports.control_loops.ring_verdict import (
    account_measurement,
    found_hold,
    hold_measurement,
    order_measurement,
    whole_measurements,
)
from reports.control_loops.stretch_verdict import stretch_measurement
from reports.errors import RecordError
from reports.record.context import Context
from reports.record.measurement import AxisValue, Conditions, Limit, Subject
from reports.rejudge.arithmetic import discrepancies
from reports.rejudge.rings import ring_discrepancies
from reports.requirements import Requirement
from reports.run.folder import RunFolder
from tests.reports.control_loops.ring_sample import TARGET, hop_ns, write_sample_ring, wrong_clock

Json = dict[str, Any]
LIMIT = Limit(1_000_000, None, "a test")
HOLD = KnownHold(2, 2000, 10)


def made(
    tmp_path: Path, limit: Limit = LIMIT, holding: dict[str, Any] | None = None, **sample: Any
) -> tuple[RunFolder, list[Json]]:
    """Return a run with records of stretches and all checks."""
    run = RunFolder.create(tmp_path / "results", "native", "ci", simulated=True, commit="0" * 40)
    folder = run.evidence_folder(FOLDER, TARGET)
    write_sample_ring(folder, **sample)
    found = load_ring(folder)

    def context(place: Path, stretch: str = "") -> Context:
        subject = Subject("native", TARGET, axes=(AxisValue(STRETCH, stretch),) if stretch else None)
        files = tuple(run.evidence(path) for path in sorted(place.iterdir()) if path.is_file())
        return Context(run.run_id, "test", subject, Conditions("ci"), simulated=True, evidence=files)

    asked = [(LOOP_DELAY, "whole"), (LOOP_DELAY, "hop 2"), (LOOP_DELAY, "node 3")]
    if found.wire_hops:
        asked += [(LOOP_WIRE_DELAY, "whole"), (LOOP_WIRE_DELAY, "hop 4")]
    for quantity, stretch in asked:
        for statistic in ("median", "p99"):
            requirement = Requirement(
                f"{quantity}-{stretch}-{statistic}",
                quantity,
                statistic,
                limit,
                subject=(STRETCH, stretch),
                samples=100,
                lost=0,
            )
            run.append(stretch_measurement(found, requirement, context(folder, stretch)))
    run.append(order_measurement(found, context(folder)))
    for record in whole_measurements(found, context(folder)):
        run.append(record)
    run.append(account_measurement(found, context(folder)))
    place = folder / "hold"
    write_sample_ring(place, hold=HOLD, **(holding or {}))
    run.append(hold_measurement(found_hold(load_ring(place)), context(place, "node 2")))
    return run, [json.loads(line) for line in (run.path / "measurements.jsonl").read_text().splitlines()]


def slow(place: int, number: int) -> int:
    return hop_ns(place, number) + 1_500_000


def scattered(place: int, number: int) -> int:
    return hop_ns(place, number) + number * 7919 % 41 * 1000


def outcomes(records: list[Json]) -> list[str]:
    return [each["outcome"] for each in records]


def test_honest_records_stand(tmp_path: Path) -> None:
    run, records = made(tmp_path)
    assert outcomes(records) == ["pass"] * 15
    assert ring_discrepancies(run.path, records) == ([], 15)
    assert not [each for record in records for each in discrepancies(record)]


def test_honest_records_without_stamps_stand(tmp_path: Path) -> None:
    run, records = made(tmp_path, kernel_stamps=False)
    assert outcomes(records) == ["pass"] * 11
    assert ring_discrepancies(run.path, records) == ([], 11)


def test_loop_over_its_limit_fails(tmp_path: Path) -> None:
    run, records = made(tmp_path, hops=slow)
    assert outcomes(records)[:6] == ["fail"] * 4 + ["pass"] * 2
    assert ring_discrepancies(run.path, records) == ([], 15)


def test_wrong_clock_leaves_its_hops_without_a_verdict_and_the_whole_with_one(tmp_path: Path) -> None:
    run, records = made(tmp_path, machines=wrong_clock("p01", -500_000))
    assert outcomes(records)[:6] == ["pass"] * 2 + ["inconclusive"] * 2 + ["pass"] * 2
    assert "the clock of p01 is wrong" in records[2]["reason"]
    assert outcomes(records)[10:] == ["fail", "pass", "pass", "pass", "pass"]
    assert ring_discrepancies(run.path, records) == ([], 15)


def test_lost_message_fails(tmp_path: Path) -> None:
    run, records = made(tmp_path, leave_out=(4, 100))
    assert outcomes(records)[:2] == ["fail"] * 2
    assert records[0]["lost"] == 1
    assert outcomes(records)[13] == "fail"
    assert ring_discrepancies(run.path, records) == ([], 15)


def test_stopped_program_leaves_no_verdict(tmp_path: Path) -> None:
    run, records = made(tmp_path, answers={3: {"complete": False, "of": 0}})
    assert outcomes(records)[:6] == ["inconclusive"] * 6
    assert ring_discrepancies(run.path, records) == ([], 15)


@pytest.mark.parametrize("shows_at", [(1,), (3,), (1, 2), ()], ids=str)
def test_hold_that_shows_elsewhere_fails(tmp_path: Path, shows_at: tuple[int, ...]) -> None:
    run, records = made(tmp_path, holding={"shows_at": shows_at})
    assert records[-1]["outcome"] == "fail"
    assert ring_discrepancies(run.path, records) == ([], 15)


def test_hold_that_nobody_did_is_refused(tmp_path: Path) -> None:
    write_sample_ring(tmp_path)
    with pytest.raises(RecordError, match="no node has held"):
        found_hold(load_ring(tmp_path))


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunFolder, list[Json]]:
    """Give an honest run, whose hops scatter while a node holds messages."""
    return made(tmp_path_factory.mktemp("honest"), holding={"hops": scattered})


def change_value(record: Json) -> None:
    record["value"] += 400_000


def change_n(record: Json) -> None:
    record["n"] += 1


def change_axis(record: Json) -> None:
    record["subject"]["axes"] = [{"axis": "stretch", "value": "hop 4"}]


def change_u(record: Json) -> None:
    record["uncertainty"]["parts"][0]["value"] = 1


def change_target(record: Json) -> None:
    record["subject"]["target"] = "windows"


def change_evidence(record: Json) -> None:
    record["evidence"] = [each for each in record["evidence"] if not each["path"].endswith("2.bwevents")]


def change_outcome(record: Json) -> None:
    record["outcome"] = "inconclusive"


@pytest.mark.parametrize("place", [0, 2])
@pytest.mark.parametrize(
    "change",
    [change_value, change_n, change_axis, change_u, change_target, change_evidence, change_outcome],
)
def test_changed_record_is_named(
    honest: tuple[RunFolder, list[Json]], change: Callable[[Json], None], place: int
) -> None:
    run, records = honest[0], copy.deepcopy(honest[1])
    change(records[place])
    problems, _ = ring_discrepancies(run.path, records)
    assert problems
    assert all(each.startswith(records[place]["requirement"]) for each in problems)


@pytest.mark.parametrize("place", range(10, 14))
@pytest.mark.parametrize("change", [change_n, change_target, change_evidence, change_outcome])
def test_changed_check_is_named(
    honest: tuple[RunFolder, list[Json]], change: Callable[[Json], None], place: int
) -> None:
    run, records = honest[0], copy.deepcopy(honest[1])
    change(records[place])
    assert ring_discrepancies(run.path, records)[0]


@pytest.mark.parametrize("change", [change_value, change_n, change_axis, change_u, change_outcome])
def test_changed_check_of_hold_is_named(
    honest: tuple[RunFolder, list[Json]], change: Callable[[Json], None]
) -> None:
    run, records = honest[0], copy.deepcopy(honest[1])
    change(records[-1])
    assert ring_discrepancies(run.path, records)[0]


@pytest.mark.parametrize(
    ("unstamped", "found"), [(0, ["pass"] * 4), (1, ["pass"] * 4), (60, ["inconclusive"] * 4)]
)
def test_messages_that_share_a_frame_are_not_lost(tmp_path: Path, unstamped: int, found: list[str]) -> None:
    """Of 210 messages one without a stamp is 0.5 %, 60 are 29 %: the other messages of the hop came."""
    run, records = made(tmp_path, unstamped=range(20, 20 + unstamped))
    wire = [each for each in records if each["quantity"] == LOOP_WIRE_DELAY]
    assert [each["lost"] for each in wire] == [0] * 4
    assert outcomes(wire) == found
    if unstamped == 60:
        assert wire[0]["reason"] == "60 of 210 messages share the stamp of another, 52 may"
    assert ring_discrepancies(run.path, records) == ([], 15)
