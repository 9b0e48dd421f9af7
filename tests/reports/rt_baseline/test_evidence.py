# SPDX-License-Identifier: Apache-2.0
"""What cyclictest writes is read; what is no whole run of it leaves no figure, and says why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reports.control_loops.load import KnownLoad
from reports.errors import RecordError
from reports.rt_baseline.evidence import CYCLICTEST, WAKEUPS, evidence_files, load_wakeups
from tests.reports.rt_baseline.sample import CYCLES, QUIET, late, write_case

Json = dict[str, Any]


def test_each_cpu_has_its_histogram(tmp_path: Path) -> None:
    found = load_wakeups(write_case(tmp_path, {0: QUIET, 3: late(400)}))
    assert [(each.cpu, each.min_us, each.max_us) for each in found.run.cpus] == [(0, 15, 120), (3, 15, 400)]
    assert [each.overflow for each in found.run.cpus] == [0, 0]
    assert found.run.cpus[0].at_rank_us(CYCLES - 10) == 15
    assert found.run.cpus[0].at_rank_us(CYCLES - 9) == 80
    assert found.run.cpus[0].above_ns(79_999) == [(80_000, 9), (120_000, 1)]
    assert found.run.cpus[0].above_ns(80_000) == [(120_000, 1)]
    assert found.beside == "nothing"
    assert found.stolen_ppm == 4640
    assert not found.run.realtime


def test_a_load_is_what_it_is_beside(tmp_path: Path) -> None:
    folder = write_case(tmp_path, load=KnownLoad("compile-like", "linux"))
    found = load_wakeups(folder)
    assert found.beside == "compile-like load"
    assert found.load is not None
    assert found.load.numbers == {"load_cpu_ms_s": 2000}
    assert [each.name for each in evidence_files(folder)][-2:] == ["witness.ndjson", "load.json"]


def test_a_histogram_that_overflows_has_no_figure(tmp_path: Path) -> None:
    folder = write_case(tmp_path, overflow=3, cycles=CYCLES + 3)
    said = r"the histogram overflows: 3 of 40003 wake-ups of CPU 1 were 50000 us late or more, up to 60000 us"
    with pytest.raises(RecordError, match=said):
        load_wakeups(folder)


def test_a_run_that_was_ended_has_no_figure(tmp_path: Path) -> None:
    folder = write_case(tmp_path, cycles=CYCLES + 1)
    with pytest.raises(RecordError, match="cyclictest ended early: 40000 of 40001 cycles of CPU 1"):
        load_wakeups(folder)


def test_a_run_that_was_killed_has_no_figure(tmp_path: Path) -> None:
    folder = write_case(tmp_path)
    (folder / CYCLICTEST).unlink()
    with pytest.raises(RecordError, match=r"cyclictest\.json: FileNotFoundError"):
        load_wakeups(folder)


@pytest.mark.parametrize(
    ("of", "change", "said"),
    [
        ("document", {"file_version": 2}, "file_version is 2, not 1"),
        ("document", {"return_code": 1}, "cyclictest failed: return_code is 1"),
        ("document", {"num_threads": 2}, "1 threads of 2"),
        ("document", {"thread": {}, "num_threads": 0}, "0 threads of 0"),
        ("document", {"sysinfo": {}}, "KeyError: 'release'"),
        ("document", {"thread": ["0"]}, "AttributeError"),
        ("histogram", {"15": CYCLES}, "a histogram of more than its 40000 cycles"),
        ("histogram", {"80": 0}, "of less than none"),
        ("histogram", {"x": 1}, "ValueError"),
        ("thread", {"min": 14}, "min is 14, its histogram begins at 15"),
        ("thread", {"max": 119}, "max is 119, its histogram ends at 120"),
        ("thread", {"max": 121}, "max is 121, its histogram ends at 120"),
        ("thread", {"cpu": None}, "thread 0.cpu: expected int, found None"),
        ("thread", {"cpu": -1}, "thread 0.cpu: -1, must be 0 or more"),
        ("thread", {"cycles": CYCLES + 0.9}, "thread 0.cycles: expected int, found 40000.9"),
        ("histogram", {"120": 1.9}, "thread 0.histogram.120: expected int, found 1.9"),
        ("histogram", {"120": "1"}, "thread 0.histogram.120: expected int, found '1'"),
    ],
)
def test_what_is_no_run_of_cyclictest_is_refused(of: str, change: Json, said: str, tmp_path: Path) -> None:
    folder = write_case(tmp_path)
    document: Json = json.loads((folder / CYCLICTEST).read_text())
    thread: Json = document["thread"]["0"]
    {"document": document, "thread": thread, "histogram": thread["histogram"]}[of].update(change)
    (folder / CYCLICTEST).write_text(json.dumps(document))
    with pytest.raises(RecordError, match=rf"^cyclictest\.json: (?!RecordError).*{said}"):
        load_wakeups(folder)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"cycles": 0}, "need interval_us, cycles, histogram_us, priority >= 1"),
        ({"stolen_ticks": 1725}, "need 0 <= stolen_ticks <= ticks"),
        ({"histogram_us": 120}, "histogram of CPU 1 goes on to 120 us, it was asked for as far as 119 us"),
        ({"machine": "borrowed"}, "machine"),
        ({"schema": "benchwright.rt_baseline/9"}, "schema"),
    ],
)
def test_facts_that_cannot_be_are_refused(change: Json, said: str, tmp_path: Path) -> None:
    folder = write_case(tmp_path)
    document = json.loads((folder / WAKEUPS).read_text())
    (folder / WAKEUPS).write_text(json.dumps(document | change))
    with pytest.raises(RecordError, match=said):
        load_wakeups(folder)


def test_two_threads_of_a_cpu_are_refused(tmp_path: Path) -> None:
    folder = write_case(tmp_path, {0: QUIET, 1: QUIET})
    text = (folder / CYCLICTEST).read_text().replace('"cpu": 1', '"cpu": 0')
    (folder / CYCLICTEST).write_text(text)
    with pytest.raises(RecordError, match="two threads on one CPU"):
        load_wakeups(folder)
