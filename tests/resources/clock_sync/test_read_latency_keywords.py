# SPDX-License-Identifier: Apache-2.0
"""The keywords on reading clocks: no requirement goes unjudged, no clock that failed goes unsaid."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from robot.api import Error

from hw.bench import load_bench
from reports import RunFolder
from reports.clock_read.readings import FOLDER, Readings
from resources.clock_sync import read_latency_keywords as clock_read_latency
from resources.clock_sync.read_latency_keywords import ClockReadLatencyLibrary
from tests.reports.sample_read_latency import latency_answer, write_sample_readings

ROOT = Path(__file__).resolve().parents[3]
HEAD = '[requirements]\nschema = "benchwright.requirements/2"\nname = "site"\n'
ONE = """
[[requirement]]
id = "CLK-{clock}"
clock = "{clock}"
quantity = "clock_read_latency"
statistic = "mean"
upper_ns = {limit_ns}
samples = 1000
source = "a test"
"""


def _library(
    monkeypatch: pytest.MonkeyPatch, folder: Path, requirements: dict[str, int], **answer: Any
) -> ClockReadLatencyLibrary:
    """Return the library after `Read Every Clock` of the sample: realtime is read, the timecard is not."""
    spec = load_bench(ROOT / "hw" / "benches" / "virtual.yaml")
    bench = SimpleNamespace(bench=SimpleNamespace(spec=spec), target=spec.targets.__getitem__)

    def measure(_bench: Any, _target: Any, _times: Any, place: Path, _progress: Any) -> Readings:
        return write_sample_readings(place, latency_answer(**answer))

    def library() -> Any:
        return bench

    monkeypatch.setattr(clock_read_latency, "bench_library", library)
    monkeypatch.setattr(clock_read_latency, "measure_read_latency", measure)
    path = folder / "read.toml"
    path.write_text(
        HEAD + "".join(ONE.format(clock=clock, limit_ns=limit) for clock, limit in requirements.items())
    )
    keywords = ClockReadLatencyLibrary(path)
    keywords.read_every_clock("linux-rt", "ci")
    return keywords


def _outcomes(run: RunFolder) -> dict[str, str]:
    return {record.requirement: record.outcome for record in run.records().measurements}


def test_a_clock_within_its_limit_passes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, run: RunFolder
) -> None:
    _library(monkeypatch, tmp_path, {"realtime": 1000}).reading_should_cost_no_more_than_its_limits()
    (record,) = run.records().measurements
    assert (record.outcome, record.subject.target, record.subject.clock) == ("pass", "linux-rt", "realtime")
    assert (record.simulated, record.conditions.profile) == (True, "ci")
    assert [evidence.path for evidence in record.evidence] == [
        f"evidence/{FOLDER}/linux-rt/readings.json",
        f"evidence/{FOLDER}/linux-rt/target-realtime.ndjson",
    ]


def test_a_clock_that_was_not_read_is_unset_and_fails(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, run: RunFolder
) -> None:
    requirements = {"realtime": 1000, "timecard": 1000, "phc-basic": 1000}
    keywords = _library(monkeypatch, tmp_path, requirements)
    with pytest.raises(AssertionError) as failed:
        keywords.reading_should_cost_no_more_than_its_limits()
    assert "UNSET: CLK-timecard: the timecard cannot be calibrated" in str(failed.value)
    assert "UNSET: CLK-phc-basic: no such device" in str(failed.value)
    assert _outcomes(run) == {"CLK-realtime": "pass", "CLK-timecard": "unset", "CLK-phc-basic": "unset"}


def test_a_clock_over_its_limit_fails(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, run: RunFolder
) -> None:
    keywords = _library(monkeypatch, tmp_path, {"realtime": 300})
    with pytest.raises(AssertionError, match="FAIL: CLK-realtime"):
        keywords.reading_should_cost_no_more_than_its_limits()
    assert _outcomes(run) == {"CLK-realtime": "fail"}


@pytest.mark.usefixtures("run")
def test_a_clock_that_failed_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    keywords = _library(monkeypatch, tmp_path, {"realtime": 1000}, valid=False, invalid_reasons=["stale"])
    with pytest.raises(Error) as failed:
        keywords.every_clock_should_have_been_read()
    text = str(failed.value)
    assert text.startswith("MEASUREMENT ERROR: ")
    for part in (
        "realtime of the host: stale",
        "realtime of the target: stale",
        "timecard of the target: the",
    ):
        assert part in text
    assert "phc-basic" not in text  # not offered: listed, and no fault


@pytest.mark.usefixtures("run")
def test_nothing_was_read_yet(tmp_path: Path) -> None:
    with pytest.raises(Error, match="call `Read Every Clock` first"):
        ClockReadLatencyLibrary(tmp_path / "none.toml").every_clock_should_have_been_read()
