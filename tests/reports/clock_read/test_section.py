# SPDX-License-Identifier: Apache-2.0
"""The page's section on what reading a clock costs, and the paper's Table I beside it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from reports.clock_read.readings import FOLDER, READINGS
from reports.clock_read.section import ReadLatencySection, gather_read_latency, paper_reads
from reports.errors import RecordError
from reports.page.model import gather
from reports.page.render import render
from reports.paper_table import table_rows
from reports.run.folder import RunFolder
from reports.section import TargetData
from tests.reports.sample_read_latency import NOT_COUNTED, add_readings, latency_answer

PRINTED = {
    "tsc": ("RDTSCP", 62.8, 182),
    "realtime": ("CLOCK_REALTIME", 120, 4440),
    "realtime-coarse": ("CLOCK_REALTIME_COARSE", 75.2, 4320),
}
"""As the paper prints it: average and maximum, in ns."""


def _run(tmp_path: Path) -> RunFolder:
    return RunFolder.create(tmp_path, "virtual", "ci", simulated=True, commit="0" * 40)


def test_the_rows_are_the_papers() -> None:
    found = {clock: (row.method, row.mean_ns, row.max_ns) for clock, row in paper_reads().items()}
    assert found == PRINTED
    assert {row.n for row in paper_reads().values()} == {1_000_000}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("tsc,RDTSCP,0,1,2", "need n >= 1"),
        ("tsc,RDTSCP,9,3,2", "0 < mean_ns <= max_ns"),
        ("tsc,RDTSCP,9,nan,2", "0 < mean_ns <= max_ns"),
        ("tsc,RDTSCP,9,1,inf", "0 < mean_ns <= max_ns"),
        ("tsc,RDTSCP,many,1,2", "whole n"),
        ("tsc,RDTSCP,9,1", "4 fields; need clock,method"),
    ],
)
def test_a_wrong_table_is_refused(tmp_path: Path, line: str, said: str) -> None:
    path = tmp_path / "table.csv"
    path.write_text(f"# a table\nclock,method,n,mean_ns,max_ns\n{line}\n")
    with pytest.raises(RecordError) as refused:
        paper_reads(path)
    assert str(refused.value).startswith(f"{path}:3: ")
    assert said in str(refused.value)


def test_another_header_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("clock,mean_ns\n")
    with pytest.raises(RecordError, match="header: need clock,max_ns"):
        table_rows(path, ["clock", "max_ns"])


def test_shows_every_clock_with_verdict_paper_and_figures(tmp_path: Path) -> None:
    run = _run(tmp_path)
    record = add_readings(run, latency_answer(slow_ns=(70_000,)))
    run.close()
    report = gather(run.path)
    section = report.shown_in("read-latency")
    assert isinstance(section, ReadLatencySection)
    assert [row.records for row in section.rows] == [(), (record,), (), ()]
    assert [row.paper is not None for row in section.rows] == [True, True, False, False]
    assert report.others == ()
    assert report.counts["pass"] == 1
    assert {place.not_told_apart for place in section.places} == {NOT_COUNTED}
    assert not section.told_apart
    page = render(run.path)
    for text in (
        "What reading a clock costs", "CLOCK_REALTIME", "not offered: no such device", NOT_COUNTED,
        "Interrupted readings are among them",
        "not measured: the timecard cannot be calibrated", "counter_pair", "4.44", "read-latency-target",
    ):  # fmt: skip
        assert text in page
    assert render(run.path) == page


def test_tells_how_many_were_interrupted(tmp_path: Path) -> None:
    run = _run(tmp_path)
    add_readings(run, latency_answer(slow_ns=(70_000,), counted=True))
    run.close()
    section = gather_read_latency(TargetData(run.path))
    assert section is not None
    assert {place.not_told_apart for place in section.places} == {""}
    assert section.told_apart
    assert section.rows[0].cost is not None
    assert section.rows[0].cost.interrupted == 1
    page = render(run.path)
    assert "Interrupted readings are among them" not in page
    assert '<th class="n">Interrupted</th>' in page


def test_fewer_readings_than_asked_for_are_marked(tmp_path: Path) -> None:
    run = _run(tmp_path)
    add_readings(run, latency_answer(n=10))
    run.close()
    section = gather_read_latency(TargetData(run.path))
    assert section is not None
    assert [row.fewer for row in section.rows] == [True, True, False, False]
    assert "of 1\u202f000</span>" in render(run.path)


def test_a_damaged_answer_is_told_and_the_rest_is_shown(tmp_path: Path) -> None:
    run = _run(tmp_path)
    add_readings(run, latency_answer())
    (run.path / "evidence" / FOLDER / "host-realtime.ndjson").write_text('{"type":"result"')
    run.close()
    page = render(run.path)
    assert "clock_read_latency/host-realtime.ndjson" in page
    assert "its answer cannot be read" in page
    drawn = re.compile(r"<svg.*?</svg>", re.DOTALL)
    assert "CLK-READ" not in drawn.sub("", page)  # a record without a reason needs no line of its own


def test_a_damaged_list_is_told(tmp_path: Path) -> None:
    run = _run(tmp_path)
    add_readings(run, latency_answer())
    (run.path / "evidence" / FOLDER / READINGS).write_text("{")
    run.close()
    section = gather_read_latency(TargetData(run.path))
    assert section is not None
    assert section.rows == ()
    assert READINGS in section.problems[0]
    assert gather(run.path).others  # the record is not lost with its section


def test_a_run_without_readings_has_no_section(tmp_path: Path) -> None:
    run = _run(tmp_path)
    run.close()
    assert gather_read_latency(TargetData(run.path)) is None
    assert "What reading a clock costs" not in render(run.path)


def test_the_time_service_has_a_row_where_its_own_suite_has_read_it(tmp_path: Path) -> None:
    run = _run(tmp_path)
    add_readings(run, latency_answer())
    folder = run.evidence_folder("clock_sync", "linux-rt", "timeservice")
    (folder / "read-timeservice.ndjson").write_text(json.dumps(latency_answer(cost_ns=70)) + "\n")
    run.close()
    section = gather(run.path).shown_in("read-latency")
    assert isinstance(section, ReadLatencySection)
    row = section.rows[-1]
    assert (row.reading.place, row.reading.clock, row.fewer) == ("target", "timeservice", False)
    assert row.cost is not None
    assert ">timeservice</th>" in render(run.path)
    (folder / "read-timeservice.ndjson").write_text('{"type":"result"}\n')
    damaged = gather(run.path).shown_in("read-latency")
    assert isinstance(damaged, ReadLatencySection)
    assert any(problem.startswith("timeservice: ") for problem in damaged.problems)
