# SPDX-License-Identifier: Apache-2.0
"""Software latency at several sizes: profiles, folders, records that stand beside each other, the page."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from dashboards.points import run_points
from hw.errors import ConfigError
from hw.fields import Fields
from reports.record.context import Context
from reports.record.measurement import AxisValue, Conditions, Evidence, NumberedCondition, Subject
from reports.rejudge.missing import missing_discrepancies
from reports.rejudge.software_latency import software_latency_discrepancies
from reports.run.folder import RunFolder
from reports.run.tally import effective, key_of
from reports.software_latency.evidence import (
    FOLDER,
    ROUND_TRIPS,
    folder_of_size,
    folders_of_sizes,
    load_software_latencies,
)
from reports.software_latency.verdict import software_measurement
from resources.profiles import times_of
from resources.software_latency.settings import TIMES as TRIP_TIMES
from resources.software_latency.settings import RoundTripTimes, round_trip_times
from tests.reports.pages import page_with, words_of
from tests.reports.software_latency.test_evidence import LIMIT, S_NS, write_folder

SIZES_BYTES = (64, 1400, 512)
GROWTH_NS = 20
"""What a byte beyond 64 adds to S of `a`."""


def table(**keys: object) -> RoundTripTimes:
    data = {"trips": 1000, "turn_trips": 10, "interval_us": 1000, **keys}
    times = round_trip_times(Fields(data, "profiles.toml", "site.round_trips"))
    assert times is not None
    return times


def test_a_profile_has_one_size_or_a_list_of_sizes() -> None:
    assert table(size_bytes=64).sizes_bytes == (64,)
    several = table(sizes_bytes=[64, 512])
    assert [each.sizes_bytes for each in several.each_size()] == [(64,), (512,)]
    assert (several.size_bytes, several.trips) == (64, 1000)
    of_ci = times_of("ci", TRIP_TIMES, round_trip_times)
    nightly = times_of("nightly", TRIP_TIMES, round_trip_times)
    assert of_ci.sizes_bytes == (64,)
    assert nightly.sizes_bytes == (64, 512, 1400)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({}, r"site\.round_trips: needs one of size_bytes .* and sizes_bytes"),
        ({"size_bytes": 64, "sizes_bytes": [64]}, r"site\.round_trips: needs one of size_bytes"),
        ({"sizes_bytes": []}, r"sizes_bytes: needs at least one size, none twice"),
        ({"sizes_bytes": [64, 64]}, r"none twice; found \(64, 64\)"),
        ({"sizes_bytes": [64, 43]}, r"sizes_bytes: must be a list of integers in 44\.\.65507, found 43"),
    ],
)
def test_other_sizes_are_refused(keys: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        table(**keys)


def made(tmp_path: Path) -> RunFolder:
    """Return a run that has judged `a` at each of three sizes."""
    run = RunFolder.create(tmp_path / "results", "virtual", "nightly", simulated=True, commit="0" * 40)
    whole = run.evidence_folder(FOLDER, "linux-rt")
    for size_bytes in SIZES_BYTES:
        folder = folder_of_size(whole, size_bytes, SIZES_BYTES)
        folder.mkdir(exist_ok=True)
        s_ns = {**S_NS, "a": S_NS["a"] + GROWTH_NS * (size_bytes - 64)}
        write_folder(folder, s_ns=s_ns, size_bytes=size_bytes)
        evidence = (run.evidence(folder / ROUND_TRIPS),)
        found = load_software_latencies(folder)
        run.append(software_measurement(found, "a", "SW-A", LIMIT, 100, context(run, evidence, size_bytes)))
    run.update(target={"linux-rt": {"hostname": "linux-rt"}})
    return run


def context(run: RunFolder, evidence: tuple[Evidence, ...], size_bytes: int) -> Context:
    subject = Subject("virtual", "linux-rt", axes=(AxisValue("device", "a"),))
    conditions = Conditions("nightly", numbers=(NumberedCondition("size_bytes", size_bytes),))
    return Context(run.run_id, "test", subject, conditions, simulated=True, evidence=evidence)


def test_the_first_size_has_the_targets_folder_and_the_others_one_each_below(tmp_path: Path) -> None:
    run = made(tmp_path)
    whole = run.path / "evidence" / FOLDER / "linux-rt"
    assert folders_of_sizes(whole) == [whole, whole / "512", whole / "1400"]


def test_records_of_each_size_count_and_none_stands_for_another(tmp_path: Path) -> None:
    """In the run, in the store and for its second judge."""
    run = made(tmp_path)
    records = run.records().measurements
    assert len({key_of(each) for each in records}) == len(effective(records)) == 3
    conditions = {
        point.tags["condition"] for point in run_points(run, "main").points if "condition" in point.tags
    }
    assert conditions == {f"-/idle/none/size_bytes={size}" for size in SIZES_BYTES}
    lines = [json.loads(line) for line in (run.path / "measurements.jsonl").read_text().splitlines()]
    assert software_latency_discrepancies(run.path, lines) == ([], 3)


def test_round_trips_of_a_size_without_a_record_are_named(tmp_path: Path) -> None:
    run = made(tmp_path)
    lines = [json.loads(line) for line in (run.path / "measurements.jsonl").read_text().splitlines()]
    manifest = {**json.loads((run.path / "run.json").read_text()), "outcome": "pass"}
    manifest["end_utc"] = manifest["start_utc"]

    def unnamed(records: list[dict[str, Any]]) -> list[str]:
        found = missing_discrepancies(run.path, manifest, records)
        return [each for each in found if each.endswith("no record names")]

    assert unnamed(lines) == []
    (said,) = unnamed(lines[:-1])
    assert said == f"evidence/{FOLDER}/linux-rt/512/{ROUND_TRIPS}: raw data that no record names"


def test_the_page_shows_each_device_by_size(tmp_path: Path) -> None:
    run = made(tmp_path)
    run.close()
    words = words_of(page_with(run.path, "software-latency"))
    row = re.search(r"A byte U a tool " + r"([\d.]+) µs \S+ µs " * 3 + r"([\d.]+) ns", words)
    assert row is not None, words
    expected = [(S_NS["a"] + GROWTH_NS * (size - 64)) / 1000 for size in sorted(SIZES_BYTES)]
    assert [float(each) for each in row.groups()] == pytest.approx([*expected, GROWTH_NS], rel=0.2)
    assert "size_bytes=512" in words


def test_a_size_that_cannot_be_read_takes_no_other_from_the_page(tmp_path: Path) -> None:
    run = made(tmp_path)
    run.close()
    (run.path / "evidence" / FOLDER / "linux-rt" / "512" / "a-b.csv").unlink()
    words = words_of(page_with(run.path, "software-latency"))
    assert "a-b.csv: " in words
    assert re.search(r"Device Software 64 bytes U 1400 bytes U A byte", words)


def test_a_run_of_one_size_has_no_table_by_size(tmp_path: Path) -> None:
    run = made(tmp_path)
    run.close()
    for size in ("512", "1400"):
        shutil.rmtree(run.path / "evidence" / FOLDER / "linux-rt" / size)
    assert "A byte" not in words_of(page_with(run.path, "software-latency"))
