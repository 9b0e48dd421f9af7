# SPDX-License-Identifier: Apache-2.0
"""Legs worked out again: honest records stand, and what the streams contradict is named."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reports.record.context import Context
from reports.record.measurement import AxisValue, Conditions, Limit, Subject
from reports.rejudge.arithmetic import discrepancies
from reports.rejudge.legs import leg_discrepancies
from reports.requirements import Requirement
from reports.run.folder import RunFolder
from reports.timeline.capability import FROM_TARGET, LEG_TIME, LEGS, TO_TARGET
from reports.timeline.delayed_legs import found_delay
from reports.timeline.legs import load_stimulus_response
from reports.timeline.legs_evidence import FOLDER, KnownDelay
from reports.timeline.place_errors import load_place_errors
from reports.timeline.verdict import (
    contradiction_measurement,
    delay_measurement,
    leg_measurement,
    place_measurements,
)
from tests.reports.timeline.legs_sample import TARGET, Machine, write_sample_legs

Json = dict[str, Any]
LIMIT = Limit(1_000_000, None, "a test")


def made(tmp_path: Path, card_off_ns: int = 0, **sample: Any) -> tuple[RunFolder, list[Json]]:
    """Return a run with a record of each quantity, leg and statistic."""
    run = RunFolder.create(tmp_path / "results", "native", "ci", simulated=True, commit="0" * 40)
    folder = run.evidence_folder(FOLDER, TARGET)
    write_sample_legs(folder, **sample)
    found = load_stimulus_response(folder)

    def context(place: Path, leg: str = "") -> Context:
        subject = Subject("native", TARGET, axes=(AxisValue("leg", leg),) if leg else None)
        files = tuple(run.evidence(path) for path in sorted(place.iterdir()) if path.is_file())
        return Context(run.run_id, "test", subject, Conditions("ci"), simulated=True, evidence=files)

    for leg in LEGS:
        for statistic in ("median", "p99"):
            asked = Requirement(
                f"{leg}-{statistic}", LEG_TIME, statistic, LIMIT, subject=("leg", leg), samples=100, lost=0
            )
            run.append(leg_measurement(found, asked, context(folder, leg)))
    run.append(contradiction_measurement(found, context(folder)))
    for name, leg in (("one", TO_TARGET), ("other", FROM_TARGET)):
        write_sample_legs(folder / name, delay=KnownDelay(leg, 50, 50), put_ns=50_000)
        run.append(delay_measurement(found_delay(folder / name), context(folder / name, leg)))
    write_sample_legs(folder / "card", card_off_ns=card_off_ns)
    for record in place_measurements(load_place_errors(folder / "card"), context(folder / "card")):
        run.append(record)
    return run, [json.loads(line) for line in (run.path / "measurements.jsonl").read_text().splitlines()]


def test_honest_records_stand(tmp_path: Path) -> None:
    run, records = made(tmp_path)
    assert [each["outcome"] for each in records] == ["pass"] * 9
    assert leg_discrepancies(run.path, records) == ([], 9)
    assert not [each for record in records for each in discrepancies(record)]


def test_honest_records_of_a_wrong_clock_stand(tmp_path: Path) -> None:
    run, records = made(tmp_path, client=Machine(2_500_000_000, events_ahead_ns=-200_000))
    assert [each["outcome"] for each in records] == ["inconclusive"] * 4 + ["fail"] + ["pass"] * 4
    assert "came before they were sent" in records[0]["reason"]
    assert leg_discrepancies(run.path, records) == ([], 9)


def test_message_that_is_missing_fails(tmp_path: Path) -> None:
    run, records = made(tmp_path, leave_out=700)
    assert [each["outcome"] for each in records[:4]] == ["fail"] * 4
    assert leg_discrepancies(run.path, records) == ([], 9)


def test_program_that_was_stopped_leaves_no_verdict(tmp_path: Path) -> None:
    run, records = made(tmp_path, answers={"client": {"complete": False}})
    assert [each["outcome"] for each in records[:4]] == ["inconclusive"] * 4
    assert leg_discrepancies(run.path, records) == ([], 9)


def _slow_ns(number: int) -> int:
    return 130_000 + number % 5


def _quicker(record: Json) -> None:
    record["value"] -= 15_000


def _surer(record: Json) -> None:
    record["uncertainty"]["parts"][0]["value"] = 1


def _steadier(record: Json) -> None:
    record["uncertainty"]["parts"][1]["value"] += 50_000


def _more(record: Json) -> None:
    record["n"] += 1


def _turned(record: Json) -> None:
    record["subject"]["axes"][0]["value"] = FROM_TARGET


def _passed(record: Json) -> None:
    record["outcome"] = "fail"


def _other_target(record: Json) -> None:
    record["subject"]["target"] = "windows"


@pytest.mark.parametrize(
    ("number", "change", "said"),
    [
        (0, _quicker, "value is"),
        (0, _surer, "part timeline of U"),
        (0, _steadier, "part quarters of U"),
        (0, _more, "n is 1191"),
        (0, _turned, "value is"),
        (0, _passed, "its streams come to pass"),
        (0, _other_target, "target is windows"),
        (4, _more, "n is 2381"),
        (4, _passed, "its streams come to pass"),
        (5, _quicker, "value is"),
        (5, _more, "the streams say"),
        (5, _turned, "the delay was to the target"),
        (5, _passed, "its streams come to pass"),
        (7, _passed, "its value comes to pass"),
        (8, _passed, "its value comes to pass"),
    ],
)
def test_changed_record_is_named(
    tmp_path: Path, number: int, change: Callable[[Json], None], said: str
) -> None:
    # The two ways differ by more than the timeline's U.
    run, records = made(tmp_path, from_ns=_slow_ns)
    change(records[number])
    problems, _ = leg_discrepancies(run.path, records)
    assert any(said in each for each in problems), problems


def test_changed_stream_is_named(tmp_path: Path) -> None:
    run, records = made(tmp_path)
    folder = run.path / "evidence" / FOLDER / TARGET
    write_sample_legs(folder, to_ns=lambda number: 90_000 + number % 7 * 100)
    problems, _ = leg_discrepancies(run.path, records)
    assert any("value is" in each for each in problems)


def test_honest_records_of_wrong_places_stand(tmp_path: Path) -> None:
    run, records = made(tmp_path, card_off_ns=40_000)
    assert [each["outcome"] for each in records[-2:]] == ["fail", "fail"]
    assert (records[-2]["value"], records[-1]["value"]) == (2400, 100)
    assert leg_discrepancies(run.path, records) == ([], 9)
    for record in records[-2:]:
        record |= {"value": 0, "outcome": "pass"}
    problems, _ = leg_discrepancies(run.path, records)
    assert len([each for each in problems if "value is 0, and half of the events" in each]) == 2
