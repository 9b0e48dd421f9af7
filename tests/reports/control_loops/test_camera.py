# SPDX-License-Identifier: Apache-2.0
"""Loops of camera and tracker whose truth is known: both witnesses, reasons, what is refused, two judges."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reports.control_loops.camera_evidence import (
    CAMERA_FILE,
    CAMERA_FOLDER,
    MeasuredDelay,
    load_camera_facts,
    write_camera,
)
from reports.control_loops.camera_loop import CameraLoop, found_warm_up, load_camera_loop
from reports.control_loops.camera_verdict import (
    account_measurement,
    in_picture_measurement,
    order_measurement,
    slope_measurement,
    sum_measurements,
    witness_measurement,
    witnesses_en,
)
from reports.control_loops.capability import LOOP_DELAY, OUT_OF_PICTURE, STRETCH
from reports.control_loops.ring_evidence import FOLDER
from reports.control_loops.section import gather_control_loops
from reports.control_loops.stretch_verdict import stretch_measurement
from reports.control_loops.sweep import sweep_rows
from reports.errors import RecordError
from reports.record.context import Context
from reports.record.measurement import AxisValue, Conditions, Limit, Subject
from reports.rejudge.arithmetic import discrepancies
from reports.rejudge.cameras import camera_discrepancies
from reports.requirements import Requirement
from reports.run.folder import RunFolder
from reports.section import TargetData
from tests.reports.control_loops.camera_sample import TRACKER_NS, write_sample_camera
from tests.reports.control_loops.ring_sample import TARGET, wrong_clock
from tests.reports.pages import page_with, words_of

Json = dict[str, Any]
LIMIT = Limit(20_000_000, None, "a test")


def without_end(lines: list[Json]) -> list[Json]:
    return lines[:-1]


def without_head(lines: list[Json]) -> list[Json]:
    return lines[1:]


def with_an_empty_picture(lines: list[Json]) -> list[Json]:
    return [lines[0], {"type": "picture"}]


def without_a_picture(lines: list[Json]) -> list[Json]:
    return [*lines[:5], *lines[6:]]


def there(number: int) -> int:
    return 4_000_000 + number % 5 * 10_000


def back(number: int) -> int:
    return 1_200_000 + number % 3 * 10_000


def test_every_part_lies_where_it_was(tmp_path: Path) -> None:
    write_sample_camera(tmp_path)
    found = load_camera_loop(tmp_path)
    number = found.whole.number
    for part, truth in ((found.pictures, there), (found.commands, back)):
        off_ns = np.abs(part.time_ns - np.array([truth(int(each)) for each in part.number]))
        assert (off_ns <= part.u_ns).all()
        assert off_ns.max() <= 500
    assert np.abs(found.tracking.time_ns - TRACKER_NS).max() <= 2
    whole = np.array([there(int(each)) + TRACKER_NS + back(int(each)) for each in number])
    assert np.abs(found.whole.time_ns - whole).max() <= 200  # 25 ppm of 6 ms
    assert (found.reasons, found.unaccounted) == ({}, 0)
    assert found.out_of_picture == 0


def test_pictures_tell_the_delay_without_an_event(tmp_path: Path) -> None:
    write_sample_camera(tmp_path, motor_ns=100_000)
    found = load_camera_loop(tmp_path)
    assert found.pixels
    wanted = np.array(
        [there(int(each)) + TRACKER_NS + back(int(each)) + 100_000 for each in found.pixels.picture]
    )
    # Places are rounded to 1/256 pixel.
    assert np.abs(found.pixels.delay_ns - wanted).max() <= 60_000
    assert found.pixels.speed_px_s == pytest.approx(120, rel=0.01)
    en, difference_ns, _, _ = witnesses_en(found)
    assert en < 0.1
    assert 0 < difference_ns < 200_000


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"motor_ns": 30_000_000}, "30.0 ms lie between a command's arrival and the motor"),
        ({"shift": 1}, "1 pictures; are their numbers right?"),
        ({"off_px": -3.0}, "more than by events"),
    ],
)
def test_witnesses_that_differ_are_told(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    run, records = made(tmp_path, **change)
    record = next(each for each in records if each["quantity"] == "loop_witnesses_en")
    assert record["outcome"] == "fail"
    assert said in record["reason"]
    assert camera_discrepancies(run.path, records)[0] == []


def test_each_picture_without_a_loop_delay_has_a_reason(tmp_path: Path) -> None:
    stops = {"queued": 10, "sent": 20, "received": 30, "came": 40}
    write_sample_camera(tmp_path, stops_at=stops, answered=lambda number: number != 50)
    found = load_camera_loop(tmp_path)
    assert list(found.reasons.values()) == [1, 1, 1, 1, 1]
    assert len(found.whole) == 75
    assert found.unaccounted == 0


def test_target_that_leaves_the_picture_is_counted(tmp_path: Path) -> None:
    """At 120 px/s, 99 of it along the picture's side, it is out of 160 px after 1.6 s."""
    write_sample_camera(tmp_path, follows=False)
    found = load_camera_loop(tmp_path)
    assert found.out_of_picture == pytest.approx(1 - 1.615 / 3.2, abs=0.02)


def test_wrong_clock_is_named_and_the_whole_stands(tmp_path: Path) -> None:
    run, records = made(tmp_path, machines=wrong_clock("p01", -5_000_000))
    outcome = {each["requirement"]: each["outcome"] for each in records}
    assert outcome["order"] == "fail"
    assert outcome["whole"] == "pass"
    assert outcome["camera to tracker"] == "inconclusive"
    assert camera_discrepancies(run.path, records)[0] == []


def test_truth_file_without_its_end_leaves_no_verdict(tmp_path: Path) -> None:
    run, records = made(tmp_path, truth=without_end)
    assert {each["outcome"] for each in records[:5]} == {"inconclusive"}
    assert camera_discrepancies(run.path, records)[0] == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (without_head, "has no line of its camera"),
        (with_an_empty_picture, "truth.ndjson, line 2: KeyError: 'pose'"),
        (without_a_picture, "is not of the pictures of truth.ndjson"),
    ],
)
def test_damaged_truth_is_refused(
    tmp_path: Path, change: Callable[[list[Json]], list[Json]], said: str
) -> None:
    write_sample_camera(tmp_path, truth=change)
    with pytest.raises(RecordError, match=said):
        load_camera_loop(tmp_path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"pictures": 0}, "need pictures, period_us >= 1"),
        ({"least_ns": [0]}, "least_ns of two ways"),
        ({"least_ns": [0, -1]}, "must be 0 and more"),
        ({"truth": "../truth.ndjson"}, "is no file of this folder"),
        ({"commands": "never"}, "commands"),
    ],
)
def test_damaged_document_is_refused(tmp_path: Path, change: Json, said: str) -> None:
    write_sample_camera(tmp_path)
    document = json.loads((tmp_path / CAMERA_FILE).read_text())
    (tmp_path / CAMERA_FILE).write_text(json.dumps({**document, **change}))
    with pytest.raises(RecordError, match=said):
        load_camera_facts(tmp_path)


def made(tmp_path: Path, **sample: Any) -> tuple[RunFolder, list[Json]]:
    """Return a run with records of stretches and all checks, at 0 and 100 ms."""
    run = RunFolder.create(tmp_path / "results", "virtual", "ci", simulated=True, commit="0" * 40)
    folder = run.evidence_folder(FOLDER, TARGET) / CAMERA_FOLDER
    for delay_ms in (0, 100):
        measured = MeasuredDelay(delay_ms * 1000, delay_ms * 1000.0, delay_ms * 1000.0, 10.0)
        write_sample_camera(
            folder / f"{delay_ms}-ms", added_ns=delay_ms * 1_000_000, delay=measured, **sample
        )
    loops = [load_camera_loop(folder / f"{delay_ms}-ms") for delay_ms in (0, 100)]
    place = folder / "0-ms"

    def context(stretch: str) -> Context:
        subject = Subject("virtual", TARGET, axes=(AxisValue(STRETCH, f"{stretch} at 0 ms"),))
        files = tuple(run.evidence(path) for path in sorted(place.iterdir()))
        return Context(run.run_id, "test", subject, Conditions("ci"), simulated=True, evidence=files)

    for name in ("whole", "camera to tracker", "tracker", "tracker to display"):
        asked = Requirement(
            name, LOOP_DELAY, "median", LIMIT, subject=(STRETCH, f"{name} at 0 ms"), samples=50, lost=0
        )
        run.append(stretch_measurement(loops[0], asked, context(name), name))
    asked = Requirement(
        "in", OUT_OF_PICTURE, "share", Limit(1, None, "a test"), unit="%", subject=(STRETCH, "whole at 0 ms"),
        samples=50,
    )  # fmt: skip
    run.append(in_picture_measurement(loops[0], asked, context("whole")))
    every = [
        order_measurement(loops[0], context("whole")),
        *sum_measurements(loops[0], context("whole")),
        account_measurement(loops[0], context("whole")),
        witness_measurement(loops[0], context("whole")),
        slope_measurement(loops, context("whole")),
    ]
    for record in every:
        run.append(record)
    records = [json.loads(line) for line in (run.path / "measurements.jsonl").read_text().splitlines()]
    for each in records:
        each["requirement"] = {"BENCH-CAMERA-ORDER": "order"}.get(each["requirement"], each["requirement"])
    return run, records


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunFolder, list[Json]]:
    """Give an honest run."""
    return made(tmp_path_factory.mktemp("honest"))


def test_honest_records_stand(honest: tuple[RunFolder, list[Json]]) -> None:
    run, records = honest
    assert [each["outcome"] for each in records] == ["pass"] * 11
    assert camera_discrepancies(run.path, records) == ([], 11)
    assert not [each for record in records for each in discrepancies(record)]


def change_value(record: Json) -> None:
    record["value"] = (record["value"] or 0) + 40_000_000


def change_n(record: Json) -> None:
    record["n"] += 20


def change_axis(record: Json) -> None:
    record["subject"]["axes"] = [{"axis": "stretch", "value": "tracker to camera at 100 ms"}]


def change_target(record: Json) -> None:
    record["subject"]["target"] = "windows"


def change_evidence(record: Json) -> None:
    record["evidence"] = [each for each in record["evidence"] if not each["path"].endswith("truth.ndjson")]


def change_outcome(record: Json) -> None:
    record["outcome"] = "fail"


@pytest.mark.parametrize("place", range(11))
@pytest.mark.parametrize("change", [change_value, change_n, change_target, change_evidence, change_outcome])
def test_changed_record_is_named(
    honest: tuple[RunFolder, list[Json]], change: Callable[[Json], None], place: int
) -> None:
    run, records = honest[0], copy.deepcopy(honest[1])
    change(records[place])
    problems, _ = camera_discrepancies(run.path, records)
    assert problems
    assert all(each.startswith(records[place]["requirement"]) for each in problems)


@pytest.mark.parametrize("place", range(5))
def test_record_of_another_delay_is_named(honest: tuple[RunFolder, list[Json]], place: int) -> None:
    run, records = honest[0], copy.deepcopy(honest[1])
    change_axis(records[place])
    assert camera_discrepancies(run.path, records)[0]


def test_page_shows_both_witnesses(tmp_path: Path) -> None:
    run, _ = made(tmp_path)
    run.update(target={TARGET: {"hostname": TARGET}})
    run.close()
    words = words_of(page_with(run.path, "control-loops"))
    assert "0 ms none 0.00, 0.00 ms 5.730 ms" in words
    assert "100 ms none 100.00, 100.00 ms 205.7 ms" in words


def drifts(number: int) -> int:
    """Return what pictures take, a millisecond longer each second."""
    return 4_000_000 + number * 40_000 + number % 5 * 10_000


@pytest.mark.parametrize(("there_ns", "settles"), [(there, True), (drifts, False)])
def test_a_loop_that_still_changes_is_told(
    tmp_path: Path, there_ns: Callable[[int], int], settles: bool
) -> None:
    facts = write_sample_camera(tmp_path, pictures=200, there_ns=there_ns)
    assert found_warm_up(load_camera_loop(tmp_path))[1] is settles
    assert "unsettled" not in (tmp_path / "camera.json").read_text()
    write_camera(tmp_path, replace(facts, unsettled=None if settles else True))
    assert load_camera_facts(tmp_path).unsettled is (None if settles else True)


def test_too_few_pictures_are_not_called_unsettled(tmp_path: Path) -> None:
    write_sample_camera(tmp_path, pictures=90, there_ns=drifts)
    assert found_warm_up(load_camera_loop(tmp_path)) == (30, True)


def test_page_tells_a_loop_that_does_not_settle(tmp_path: Path) -> None:
    run, _ = made(tmp_path)
    run.update(target={TARGET: {"hostname": TARGET}})
    run.close()
    said = "the whole does not settle: it still changes in the second half of the pictures"
    assert said not in words_of(page_with(run.path, "control-loops"))
    folder = run.path / "evidence" / FOLDER / TARGET / CAMERA_FOLDER / "0-ms"
    write_camera(folder, replace(load_camera_facts(folder), unsettled=True))
    assert said in words_of(page_with(run.path, "control-loops"))


def test_folder_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    folder = tmp_path / "evidence" / FOLDER / TARGET / CAMERA_FOLDER / "50-ms"
    write_sample_camera(folder)
    (folder / "truth.ndjson").unlink()
    shown = gather_control_loops(TargetData(tmp_path, target=TARGET))
    assert shown
    assert "50-ms: truth.ndjson" in shown.problems[0]


def scattered(number: int) -> int:
    """Return what pictures take, from one to the next by other amounts, without a pattern."""
    return 4_000_000 + number * 7919 % 97 * 10_000


def test_sweep_needs_lines_of_slope_one_and_two(tmp_path: Path) -> None:
    loops: list[CameraLoop] = []
    for delay_ms in (0, 50, 100, 200, 300):
        measured = MeasuredDelay(delay_ms * 1000, delay_ms * 1000.0, delay_ms * 1000.0, 10.0)
        place = tmp_path / f"{delay_ms}"
        write_sample_camera(
            place, pictures=120, there_ns=scattered, added_ns=delay_ms * 1_000_000, delay=measured
        )
        loops.append(load_camera_loop(place))
    rows = {row.of: row for row in sweep_rows(loops)}
    for of, slope in (("whole, mean", 2), ("camera to tracker, mean", 1)):
        fit = rows[of].needed.fit
        assert rows[of].degree == "line"
        assert fit.low[1] <= slope <= fit.high[1]
        assert fit.high[1] - fit.low[1] < 0.02
    assert rows["whole, variance"].degree == "constant"


def test_sweep_of_three_delays_has_no_curve(tmp_path: Path) -> None:
    measured = MeasuredDelay(0, 0.0, 0.0, 10.0)
    write_sample_camera(tmp_path, pictures=120, delay=measured)
    assert sweep_rows([load_camera_loop(tmp_path)] * 3) == []
