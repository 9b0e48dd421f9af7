# SPDX-License-Identifier: Apache-2.0
"""A store of version 1 moves to today's layout by itself, and a kill at any moment loses nothing of it."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from dashboards.errors import StoreError
from dashboards.store import Store
from tests.dashboards.stored import stored_points, write_version_1
from tests.dashboards.test_store import run_of

KILLS = 50
_EVERY = 100
"""Instructions of SQLite's machine between two moments."""
_OLD = "SELECT id, run_id, line, revision, state, reason, acknowledged_ns FROM point ORDER BY id"


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """Return a store of version 1 with 30 runs of 60 points."""
    path = tmp_path / "old.sqlite"
    write_version_1(path, (run_of(number, streams=60) for number in range(30)))
    return path


def rows_1(path: Path) -> list[tuple[object, ...]]:
    """Return what a store of version 1 says of its points."""
    connection = sqlite3.connect(path)
    try:
        return connection.execute(_OLD).fetchall()
    finally:
        connection.close()


def rows_of(store: Store) -> list[tuple[object, ...]]:
    """Return the same of a store of today."""
    return [(p.id, p.run_id, p.line, *p.state) for p in stored_points(store)]


def open_with(path: Path, at_moment: Callable[[int], None]) -> None:
    """Open a store and call something, with the number of the moment, again and again meanwhile."""

    class Watched(sqlite3.Connection):
        moment = 0

        def __init__(self, *arguments: object, **named: object) -> None:
            super().__init__(*arguments, **named)  # type: ignore[arg-type]
            self.set_progress_handler(self.count, _EVERY)

        def count(self) -> int:
            Watched.moment += 1
            at_moment(Watched.moment)
            return 0

    def connect(*arguments: object, **named: object) -> Watched:
        return Watched(*arguments, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite3, "connect", connect)
        Store(path).close()


def kill_at(path: Path, moment: int) -> bool:
    """Open a store in a process that is killed at a moment; return whether it was."""
    child = os.fork()
    if not child:
        try:
            open_with(path, lambda now: os.kill(os.getpid(), signal.SIGKILL) if now == moment else None)
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def test_points_ids_and_states_stay(old: Path) -> None:
    before = rows_1(old)
    with Store(old) as store:
        assert rows_of(store) == before
        assert store.changed_runs() == []
        status = store.status()
        states = [row[4] for row in before]
        counts = (states.count("waiting"), states.count("delivered"), states.count("rejected"))
        assert (status.runs, status.waiting, status.delivered, status.rejected) == (30, *counts)
        assert store.add_run(run_of(3, streams=60)) == "unchanged"
        assert [point.line for point in store.waiting(2, 10**6)] == [before[2][2], before[3][2]]


def test_what_is_free_is_given_back(old: Path) -> None:
    with Store(old) as store:
        pages, free = (
            store.connection.execute(f"PRAGMA {n}").fetchone()[0] for n in ("page_count", "freelist_count")
        )
    assert free <= pages // 2


def test_a_kill_at_any_moment_loses_nothing(old: Path, tmp_path: Path) -> None:
    before, killed, last = rows_1(old), 0, 0

    def count(moment: int) -> None:
        nonlocal last
        last = moment

    whole = tmp_path / "whole.sqlite"
    shutil.copyfile(old, whole)
    open_with(whole, count)
    for number in range(KILLS):
        path = tmp_path / f"killed-{number}.sqlite"
        shutil.copyfile(old, path)
        killed += kill_at(path, 1 + number * (last - 1) // (KILLS - 1))
        with Store(path) as store:
            assert rows_of(store) == before, number
            assert store.changed_runs() == []
            assert store.connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    assert killed >= KILLS - 2  # the last moments may be missed where a statement takes fewer instructions


def test_damaged_point_leaves_the_store_as_it_was(old: Path) -> None:
    connection = sqlite3.connect(old)
    with connection:
        connection.execute("UPDATE point SET fields = substr(fields, 1, 40) WHERE id = 77")
    connection.close()
    before = rows_1(old)
    with pytest.raises(StoreError, match="damaged"):
        Store(old)
    assert rows_1(old) == before
