# SPDX-License-Identifier: Apache-2.0
"""Points changed by hand in the file: `status` says so, an import repairs the run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from dashboards.__main__ import main
from dashboards.errors import StoreError
from dashboards.points import event_point
from dashboards.store import Store
from tests.dashboards.stored import StoredPoint, fields_of, put_fields, stored_points
from tests.dashboards.test_store import run_of

RUNS = range(1, 4)


def said(points: list[StoredPoint]) -> list[tuple[str, str]]:
    """Return run and line of points, in an order of their own."""
    return sorted((point.run_id, point.line) for point in points)


@pytest.fixture
def filled(store: Store) -> Store:
    """Return a store of three runs of three points that were delivered; the second has an event too."""
    for number in RUNS:
        store.add_run(run_of(number))
    store.add_points("run-0002", [event_point("regression", run_of(2).points[0], "slower", "", {"z": 1})])
    store.settle(store.waiting(100, 10**6))
    return store


def change_value(store: Store) -> None:
    """Change a value of run 2, which has the points 4 to 6."""
    put_fields(store, 5, {**fields_of(store, 5), "value_ns": 1.0})


def change_type(store: Store) -> None:
    """Change nothing but the type of a value."""
    put_fields(store, 5, {**fields_of(store, 5), "value_ns": 2})


def remove_point(store: Store) -> None:
    """Remove a point."""
    store.connection.execute("DELETE FROM point WHERE id = 5")


def move_point(store: Store) -> None:
    """Give a point another time."""
    store.connection.execute("UPDATE point SET time_ns = time_ns + 1 WHERE id = 5")


def add_point(store: Store) -> None:
    """Add a point."""
    store.connection.execute("INSERT INTO point (run, series, time_ns) VALUES (2, 1, 77)")


def damage(store: Store) -> None:
    """Cut off half of what the points say."""
    store.connection.execute("UPDATE run SET content = substr(content, 1, 40) WHERE number = 2")


def empty(store: Store) -> None:
    """Remove all that the points say."""
    store.connection.execute("UPDATE run SET content = x'' WHERE number = 2")


def change_seal(store: Store) -> None:
    """Change the seal itself."""
    store.connection.execute("UPDATE run SET seal = x'00' WHERE number = 2")


CHANGES = (change_value, change_type, remove_point, move_point, add_point, damage, empty, change_seal)


@pytest.mark.parametrize("change", CHANGES)
def test_change_is_said_and_repaired_by_an_import(filled: Store, change: Callable[[Store], None]) -> None:
    before = [point for point in stored_points(filled) if point.measurement != "hil_event"]
    assert filled.changed_runs() == []
    change(filled)
    assert filled.changed_runs() == ["run-0002"]
    assert [filled.add_run(run_of(number)) for number in RUNS] == ["unchanged", "changed", "unchanged"]
    assert filled.changed_runs() == []
    after = stored_points(filled)
    assert said(after) == said(before)
    # What the server has of the run may be wrong too: all of it is sent again, of the others nothing.
    assert {point.run_id for point in after if "waiting" in point.state} == {"run-0002"}
    assert filled.status().waiting == 3


@pytest.mark.parametrize("column", ["name", "measurement", "tags"])
def test_change_of_a_series_is_one_of_every_run_that_has_it(filled: Store, column: str) -> None:
    before = [point for point in stored_points(filled) if point.measurement != "hil_event"]
    filled.connection.execute(f"UPDATE series SET {column} = 'another' WHERE id = 1")  # noqa: S608
    assert filled.changed_runs() == [f"run-{number:04}" for number in RUNS]
    for number in RUNS:
        filled.add_run(run_of(number))
    assert filled.changed_runs() == []
    assert said([p for p in stored_points(filled) if p.measurement != "hil_event"]) == said(before)


def test_states_are_no_change(filled: Store) -> None:
    filled.wait_again(delivered=True)
    filled.settle([], [(point, "400 no") for point in filled.waiting(2, 10**6)])
    assert filled.changed_runs() == []


def test_no_event_joins_a_run_that_was_changed(filled: Store) -> None:
    change_value(filled)
    with pytest.raises(
        StoreError, match="run run-0002: its points were changed in the file; import it again"
    ):
        filled.add_points(
            "run-0002", [event_point("improvement", run_of(2).points[0], "faster", "", {"z": 1})]
        )


def test_status_names_the_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "s.sqlite"
    with Store(path) as store:
        for number in RUNS:
            store.add_run(run_of(number))
        remove_point(store)
    assert main(["status", "--store", str(path)]) == 0
    assert "  run run-0002: its points were changed in the file; import it again" in capsys.readouterr().out
    assert main(["status", "--store", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["changed"] == ["run-0002"]
