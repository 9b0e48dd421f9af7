# SPDX-License-Identifier: Apache-2.0
"""The matrix of requirements and targets: states of cells, margins, groups, order, its last row."""

from __future__ import annotations

from pathlib import Path

import pytest

from reports.natural_order import natural
from reports.page.matrix import Matrix, MatrixRow, matrix_of
from reports.page.model import RunReport, gather_run
from reports.run.folder import RunFolder
from reports.run.selected import KEPT, SkippedTest, with_skipped
from reports.run.tally import relative_margin
from tests.reports.sample_run import make_run_of_targets

LINUX, WINDOWS, EMBEDDED = range(3)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    return make_run_of_targets(tmp_path_factory.mktemp("results"))


@pytest.fixture(scope="module")
def found(run: RunFolder) -> RunReport:
    return gather_run(run.path)


@pytest.fixture(scope="module")
def matrix(run: RunFolder, found: RunReport) -> Matrix:
    return matrix_of(run.path, run.run_id, found.targets)


def rows_of(matrix: Matrix) -> dict[str, MatrixRow]:
    return {row.id: row for group in matrix.groups for row in group.rows}


def test_a_cell_has_the_outcome_and_the_margin_of_its_record(matrix: Matrix, found: RunReport) -> None:
    rows = rows_of(matrix)
    for place, report in enumerate(found.targets):
        for record in report.records:
            cell = rows[record.requirement].cells[place]
            assert (cell.state, cell.share, cell.values) == (record.outcome, relative_margin(record), 1)
    assert rows["DAQ-033"].cells[WINDOWS].state == "fail"
    share = rows["DAQ-033"].cells[WINDOWS].share
    assert share is not None
    assert share < 0


def test_untested_and_not_asked_are_told_apart(matrix: Matrix) -> None:
    rows = rows_of(matrix)
    assert [cell.state for cell in rows["DAQ-120"].cells] == ["pass", "untested", "not asked"]
    assert [cell.state for cell in rows["DAQ-030"].cells] == ["pass", "pass", "untested"]
    assert [cell.state for cell in rows["CLK-CHRONY"].cells] == ["untested", "untested", "not asked"]


def test_requirements_stand_in_natural_order_by_producer(matrix: Matrix) -> None:
    titles = [group.title for group in matrix.groups]
    assert titles == ["Sync offset", *(f"One way latency: producer {number}" for number in range(1, 13))]
    ids = [row.id for group in matrix.groups for row in group.rows]
    assert ids == sorted(ids, key=natural)
    assert len(ids) == 49


def test_a_row_says_what_is_asked(matrix: Matrix) -> None:
    assert rows_of(matrix)["DAQ-033"].text.startswith("one way latency, max, of stream 33: at most 10 ms")


def test_the_last_row_counts_and_has_the_worst_margin(matrix: Matrix, found: RunReport) -> None:
    linux, windows, embedded = (dict(foot.counts) for foot in matrix.feet)
    assert linux == {"pass": 48, "untested": 1}
    assert windows == {"pass": 43, "fail": 1, "untested": 5}
    assert embedded == {"pass": 4, "untested": 4, "not asked": 41}
    for foot, report in zip(matrix.feet, found.targets, strict=True):
        assert report.worst is not None
        assert (foot.share, foot.requirement) == (report.worst_share, report.worst.requirement)
    assert matrix.feet[LINUX].requirement == "DAQ-011"


def test_a_skipped_test_leaves_its_reason_in_the_cell(tmp_path: Path) -> None:
    run = make_run_of_targets(tmp_path)
    skipped = SkippedTest("Chrony", "no time server", ("CLK-CHRONY",))
    asked = with_skipped(run.manifest.asked or (), "linux-rt", "clock_sync", skipped)
    run.update(asked=asked)
    matrix = matrix_of(run.path, run.run_id, gather_run(run.path).targets)
    cells = rows_of(matrix)["CLK-CHRONY"].cells
    assert [cell.state for cell in cells] == ["skipped", "untested", "not asked"]
    assert [cell.reason for cell in cells] == ["no time server", "", ""]
    assert dict(matrix.feet[LINUX].counts) == {"pass": 48, "skipped": 1}


def test_a_requirements_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    run = make_run_of_targets(tmp_path)
    (run.path / KEPT / "clocks.toml").write_text("[")
    matrix = matrix_of(run.path, run.run_id, gather_run(run.path).targets)
    assert "clocks.toml" in matrix.problems[0]
    rows = rows_of(matrix)
    assert [cell.state for cell in rows["DAQ-120"].cells] == ["pass", "untested", "not asked"]
    assert [cell.state for cell in rows["CLK-CHRONY"].cells] == ["untested", "untested", "not asked"]
    assert rows["DAQ-120"].text == "one way latency, max, stream 120"
