# SPDX-License-Identifier: Apache-2.0
"""The store: a run is in it whole or not at all, once, and what waits is not lost."""

from __future__ import annotations

import dataclasses
import random
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dashboards.errors import StoreError
from dashboards.points import EVENT, RunPoints, event_point
from dashboards.store import Store
from tests.dashboards.chaos import latency_point
from tests.dashboards.stored import stored_points
from tests.patience import wait_until

T0_NS = 1_795_000_000_000_000_000


def run_of(number: int, streams: int = 3, *, value_ns: float = 0.0, kernel: str = "6.12") -> RunPoints:
    """Return a run with a point a stream."""
    run_id, time_ns = f"run-{number:04}", T0_NS + number * 1_000_000_000
    points = [latency_point(stream, time_ns, number * 100 + stream, run_id) for stream in range(streams)]
    points = [dataclasses.replace(p, fields={**p.fields, "value_ns": value_ns + number}) for p in points]
    facts = {"host.system": kernel}
    return RunPoints(run_id, time_ns, "virtual", "ci", "main", "c", True, "pass", tuple(points), facts)


def test_run_is_stored_once(store: Store) -> None:
    assert store.add_run(run_of(1)) == "stored"
    assert store.add_run(run_of(1)) == "unchanged"
    assert store.status().waiting == 3


def test_changed_point_waits_again_and_an_old_series_goes(store: Store) -> None:
    store.add_run(run_of(1))
    store.settle(store.waiting(100, 10**6))
    assert store.add_run(run_of(1, value_ns=5.0)) == "changed"
    assert (store.status().waiting, store.status().delivered) == (3, 0)
    store.settle(store.waiting(100, 10**6))
    assert store.add_run(run_of(1, streams=2, value_ns=5.0)) == "changed"
    assert (store.status().waiting, store.status().delivered) == (0, 2)


def test_point_that_changed_while_it_was_under_way_waits_on(store: Store) -> None:
    store.add_run(run_of(1))
    under_way = store.waiting(100, 10**6)
    store.add_run(run_of(1, value_ns=5.0))
    store.settle(under_way)
    assert store.status().waiting == 3


def test_rejected_points_keep_their_reason_and_can_be_tried_again(store: Store) -> None:
    store.add_run(run_of(1))
    first, *others = store.waiting(100, 10**6)
    store.settle(others, [(first, "400 field type conflict")])
    assert store.status().reasons == (("400 field type conflict", 1),)
    assert store.wait_again(rejected=True) == 1
    assert [point.id for point in store.waiting(100, 10**6)] == [first.id]
    assert store.wait_again(delivered=True) == 2


def test_batches_are_limited_in_lines_and_bytes(store: Store) -> None:
    store.add_run(run_of(1, streams=10))
    assert len(store.waiting(4, 10**6)) == 4
    size = len(store.waiting(1, 10**6)[0].line) + 1
    assert len(store.waiting(10, 3 * size)) == 3
    assert len(store.waiting(10, 1)) == 1


def test_two_runs_never_share_a_point(store: Store) -> None:
    store.add_run(run_of(1))
    other = dataclasses.replace(run_of(1), run_id="another")
    with pytest.raises(StoreError, match="is of run run-0001 already"):
        store.add_run(other)
    assert store.status().runs == 1


def test_branch_of_a_stored_run_stays(store: Store) -> None:
    store.add_run(run_of(1))
    with pytest.raises(StoreError, match="is stored as main, not pr"):
        store.add_run(dataclasses.replace(run_of(1), branch="pr"))


def test_change_of_the_bench_is_an_event(store: Store) -> None:
    for number, kernel in enumerate(["6.12", "6.12", "6.13"]):
        store.add_run(run_of(number, kernel=kernel))
    (event,) = stored_points(store, EVENT)
    assert event.line == (
        'hil_event,bench=virtual,kind=bench-change run_before="run-0001",run_id="run-0002",'
        f'text="host.system: 6.12 -> 6.13",title="bench virtual changed" {T0_NS + 2_000_000_000}'
    )


def test_a_change_shows_behind_runs_of_other_targets(store: Store) -> None:
    facts = [("linux-rt", "6.12"), ("windows", "10.0"), ("linux-rt", "6.13"), ("windows", "10.0")]
    for number, (target, kernel) in enumerate(facts):
        found = {"host.system": "Linux", f"{target}.kernel.release": kernel}
        store.add_run(dataclasses.replace(run_of(number), facts=found))
    (fields,) = [event.fields for event in stored_points(store, EVENT)]
    assert fields["text"] == "linux-rt.kernel.release: 6.12 -> 6.13"
    assert (fields["run_before"], fields["run_id"]) == ("run-0000", "run-0002")


def test_events_join_a_stored_run(store: Store) -> None:
    run = run_of(1)
    event = event_point("regression", run.points[0], "slower", "", {"after_ns": 1})
    with pytest.raises(StoreError, match="no run run-0001"):
        store.add_points("run-0001", [event])
    store.add_run(run)
    assert store.add_points("run-0001", [event]) == 1
    assert store.add_points("run-0001", [event]) == 0
    assert store.add_run(run) == "unchanged"  # the event stays


def test_other_files_are_left_alone(tmp_path: Path) -> None:
    other, text, missing = tmp_path / "other.sqlite", tmp_path / "text", tmp_path / "missing.sqlite"
    sqlite3.connect(other).execute("CREATE TABLE t (x)").connection.close()
    text.write_text("no database " * 100)
    with pytest.raises(StoreError, match="not a store of this project"):
        Store(other)
    with pytest.raises(StoreError, match="not a database"):
        Store(text)
    with pytest.raises(StoreError, match="no store"):
        Store(missing, create=False)
    assert not missing.exists()


def test_store_of_a_later_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    Store(path).close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(StoreError, match="version 99"):
        Store(path)


def test_full_disk_stores_nothing_of_a_run(store: Store) -> None:
    store.add_run(run_of(1))
    pages = store.connection.execute("PRAGMA page_count").fetchone()[0]
    store.connection.execute(f"PRAGMA max_page_count = {pages + 4}")
    with pytest.raises(StoreError, match="the disk is full"):
        store.add_run(run_of(2, streams=2000))
    assert (store.status().runs, store.status().waiting) == (1, 3)
    store.connection.execute("PRAGMA max_page_count = 1000000")
    assert store.add_run(run_of(2, streams=2000)) == "stored"


@pytest.mark.simulated
def test_file_system_that_is_full(tmp_path: Path) -> None:
    """A real full disk: a small file system of its own, seen by this one process only."""
    script = f"""
import sys
from pathlib import Path
from dashboards.errors import StoreError
from dashboards.store import Store
from tests.dashboards.test_store import run_of
place = Path({str(tmp_path)!r}) / "small"
with Store(place / "s.sqlite") as store:
    number = 0
    try:
        while True:
            number += 1
            store.add_run(run_of(number, streams=100))
    except StoreError as error:
        print(error)
    (place / "ballast").unlink()
    assert store.status().waiting == 100 * (number - 1), store.status()
    store.add_run(run_of(number, streams=100))
    print(number > 1, store.connection.execute("PRAGMA integrity_check").fetchone()[0])
"""
    small = tmp_path / "small"
    small.mkdir()
    mount = f"mount -t tmpfs -o size=2m none {small} && head -c 600000 /dev/zero > {small}/ballast"
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", f'{mount} && exec "$0" "$@"', sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "full" in done.stdout.splitlines()[0]
    assert done.stdout.splitlines()[1] == "True ok"


def test_killed_writer_leaves_whole_runs(tmp_path: Path) -> None:
    """A process that stores runs is killed again and again: each run is in the store whole, or not at all."""
    path = tmp_path / "s.sqlite"
    script = (
        "import sys; from pathlib import Path; from dashboards.store import Store\n"
        "from tests.dashboards.test_store import run_of\n"
        "store = Store(Path(sys.argv[1])); number = store.status().runs\n"
        "while True:\n"
        "    number += 1; store.add_run(run_of(number, streams=200))\n"
    )
    rng = random.Random(7)
    stored = 0
    for _ in range(3):
        writer = subprocess.Popen([sys.executable, "-c", script, str(path)])
        try:
            before = stored
            wait_until(lambda: runs_in(path) > before or writer.poll() is not None, "another run")  # noqa: B023
            assert writer.poll() is None
            time.sleep(rng.uniform(0, 0.05))
        finally:
            writer.kill()
            writer.wait()
        stored = runs_in(path)
    with Store(path) as store:
        query = "SELECT count(*) FROM point GROUP BY run"
        counts = [row[0] for row in store.connection.execute(query).fetchall()]
        assert counts == [200] * store.status().runs
        assert store.connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"


def runs_in(path: Path) -> int:
    """Return how many runs are in a store that somebody may be about to make."""
    try:
        with Store(path, create=False) as store:
            return store.status().runs
    except StoreError:
        return 0
