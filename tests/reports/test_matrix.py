# SPDX-License-Identifier: Apache-2.0
"""The matrix of requirements and targets: states of cells, margins, groups, order, its last row."""

from __future__ import annotations

from pathlib import Path

import pytest

from reports.asked import ASKED, KEPT, note_asked
from reports.matrix import Matrix, MatrixRow, matrix_of, natural
from reports.page_model import RunReport, gather_run
from reports.run_folder import RunFolder
from reports.tally import relative_margin
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
    assert titles == ["Sync offset", *(f"Latency: producer {number}" for number in range(1, 13))]
    ids = [row.id for group in matrix.groups for row in group.rows]
    assert ids == sorted(ids, key=natural)
    assert len(ids) == 49
    assert sorted(["A-10", "A-9", "A", "B-1"], key=natural) == ["A", "A-9", "A-10", "B-1"]


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
    assert matrix.untested == 10


def test_a_suite_that_read_its_file_for_another_target_asks_the_same(tmp_path: Path) -> None:
    """A suite that broke off before it read anything leaves its requirements untested, not unasked."""
    run = make_run_of_targets(tmp_path)
    (run.path / "evidence" / KEPT / ASKED).unlink()
    note_asked(run, "linux-rt", "clock_sync/sync_error.robot", "clocks.toml")
    note_asked(run, "windows", "clock_sync/sync_error.robot")
    note_asked(run, "embedded", "clock_sync/read_latency.robot")
    matrix = matrix_of(run.path, run.run_id, gather_run(run.path).targets)
    assert [cell.state for cell in rows_of(matrix)["CLK-CHRONY"].cells] == [
        "untested",
        "untested",
        "not asked",
    ]
    assert rows_of(matrix)["DAQ-120"].cells[EMBEDDED].state == "untested", "no suite is noted for its file"


@pytest.mark.parametrize("damage", [None, "{"])
def test_where_nothing_says_what_was_asked_all_was(tmp_path: Path, damage: str | None) -> None:
    run = make_run_of_targets(tmp_path)
    note = run.path / "evidence" / KEPT / ASKED
    note.unlink()
    if damage is not None:
        note.write_text(damage)
    matrix = matrix_of(run.path, run.run_id, gather_run(run.path).targets)
    assert [cell.state for cell in rows_of(matrix)["DAQ-120"].cells] == ["pass", "untested", "untested"]
    assert bool(matrix.problems) == (damage is not None)


def test_a_requirements_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    run = make_run_of_targets(tmp_path)
    (run.path / "evidence" / KEPT / "clocks.toml").write_text("[")
    matrix = matrix_of(run.path, run.run_id, gather_run(run.path).targets)
    assert "clocks.toml" in matrix.problems[0]
    rows = rows_of(matrix)
    assert [cell.state for cell in rows["DAQ-120"].cells] == ["pass", "untested", "untested"]
    assert rows["DAQ-120"].text == "one way latency, max, stream 120"
