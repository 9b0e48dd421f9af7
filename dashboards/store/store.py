# SPDX-License-Identifier: Apache-2.0
"""Writing to the store, and the spool: which points wait, were delivered, or were rejected and why."""

from __future__ import annotations

import json
import re
import sqlite3
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from dashboards.bench_key import changes
from dashboards.errors import StoreError
from dashboards.line_protocol import Field, Point, line_of, tag_text
from dashboards.points import EVENT, RunPoints
from dashboards.store.connection import guarded, stored_object, transaction
from dashboards.store.content import Identity
from dashboards.store.opening import connect
from dashboards.store.run_content import put_points, read_content
from dashboards.store.seal import changed_runs

DEFAULT_STORE = Path("results/store.sqlite")
Change = Literal["stored", "changed", "unchanged"]


@dataclass(frozen=True, slots=True)
class Waiting:
    """A point that the server has to get: what is sent, and which revision of it."""

    id: int
    revision: int
    line: str


@dataclass(frozen=True, slots=True)
class PointReceipt:
    """A point that the server took: what names it there."""

    id: int
    measurement: str
    tags: dict[str, str]
    time_ns: int


@dataclass(frozen=True)
class Status:
    """What is in the store.

    Attributes:
        oldest_waiting_ns: Time of the oldest run of which something waits; None: nothing does.
        reasons: The commonest reasons of rejections, less what they quote, with their numbers; at most ten.
    """

    runs: int
    waiting: int
    delivered: int
    rejected: int
    oldest_waiting_ns: int | None
    reasons: tuple[tuple[str, int], ...]


_PUT_RUN = (
    'INSERT INTO run (run_id, time_ns, bench, profile, branch, "commit", simulated, outcome, facts, source)'
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (run_id) DO UPDATE SET"
    " outcome = excluded.outcome, facts = excluded.facts, simulated = excluded.simulated"
)

_WAITING = (
    "SELECT point.id, revision, run, series, name, time_ns FROM point JOIN series ON series.id = series"
    " WHERE state = 'waiting' ORDER BY point.id LIMIT ?"
)
_QUOTED = re.compile(r"'[^']*'")


class Store:
    """An open store; a context manager."""

    def __init__(self, path: Path = DEFAULT_STORE, *, create: bool = True) -> None:
        """Open a store, making it where it is missing; raises StoreError."""
        self.path = path
        self._connection = connect(path, create=create)

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    @property
    def connection(self) -> sqlite3.Connection:
        """Return the connection, for reading."""
        return self._connection

    def add_run(self, run: RunPoints) -> Change:
        """Store a run with all its points in one transaction, and mark a change of the bench since the last.

        A run that is there already is brought up to date: points that differ are sent again.

        Raises:
            StoreError: The store cannot take it; then nothing of it is in the store.
        """
        with transaction(self._connection, self.path):
            known = self._connection.execute(
                "SELECT branch FROM run WHERE run_id = ?", (run.run_id,)
            ).fetchone()
            if known is not None and known[0] != run.branch:
                raise StoreError(f"{self.path}: run {run.run_id} is stored as {known[0]}, not {run.branch}")
            self._connection.execute(
                _PUT_RUN,
                (
                    *(run.run_id, run.time_ns, run.bench, run.profile, run.branch, run.commit),
                    *(int(run.simulated), run.outcome, json.dumps(run.facts), run.source),
                ),
            )
            points = (*run.points, *self._bench_change(run))
            changed = put_points(self._connection, self.path, run.run_id, points, only=True)
        if known is None:
            return "stored"
        return "changed" if changed else "unchanged"

    def branch_of_run(self, run_id: str) -> str | None:
        """Return the class of the branch that a run is stored with; None: it is not stored."""
        with guarded(self.path):
            row = self._connection.execute("SELECT branch FROM run WHERE run_id = ?", (run_id,)).fetchone()
        return None if row is None else str(row[0])

    def add_points(self, run_id: str, points: Iterable[Point]) -> int:
        """Add points, such as events, to a stored run in one transaction; return how many are new or differ.

        Raises:
            StoreError: The run is not in the store, or the store cannot take them.
        """
        with transaction(self._connection, self.path):
            if self._connection.execute("SELECT 1 FROM run WHERE run_id = ?", (run_id,)).fetchone() is None:
                raise StoreError(f"{self.path}: no run {run_id}")
            return put_points(self._connection, self.path, run_id, points, only=False)

    def waiting(self, lines_max: int, bytes_max: int) -> list[Waiting]:
        """Return the points that wait longest, at least one, no more than asked for."""
        found: list[Waiting] = []
        size = 0
        contents: dict[int, dict[Identity, dict[str, Field]]] = {}
        with guarded(self.path):
            rows = self._connection.execute(_WAITING, (lines_max,)).fetchall()
            for place, revision, run, series, name, time_ns in rows:
                if run not in contents:
                    contents[run] = read_content(self._connection, self.path, run).points()
                line = line_of(name, contents[run].get((series, time_ns), {}), time_ns)
                size += len(line.encode()) + 1
                if found and size > bytes_max:
                    break
                found.append(Waiting(place, revision, line))
        return found

    def settle(self, delivered: Sequence[Waiting], rejected: Sequence[tuple[Waiting, str]] = ()) -> None:
        """Note in one transaction what the server took, and what it refused and why.

        A point whose line has changed since it was read waits on.

        Raises:
            StoreError: The store cannot take it; the points wait on and will be sent once more.
        """
        now_ns = time.time_ns()
        rows = [("delivered", "", now_ns, p.id, p.revision) for p in delivered]
        rows += [("rejected", reason, None, p.id, p.revision) for p, reason in rejected]
        with transaction(self._connection, self.path):
            self._connection.executemany(
                "UPDATE point SET state = ?, reason = ?, acknowledged_ns = ?"
                " WHERE id = ? AND revision = ? AND state = 'waiting'",
                rows,
            )

    def acknowledged(self, since_ns: int, after: tuple[int, int], points_max: int) -> list[PointReceipt]:
        """Return points that the server took since then, by time and id, behind the place `after`."""
        with guarded(self.path):
            rows = self._connection.execute(
                "SELECT point.id, measurement, tags, time_ns FROM point JOIN series ON series.id = series"
                " WHERE state = 'delivered' AND acknowledged_ns >= ? AND (time_ns, point.id) > (?, ?)"
                " ORDER BY time_ns, point.id LIMIT ?",
                (since_ns, *after, points_max),
            ).fetchall()
        return [PointReceipt(row[0], row[1], stored_object(self.path, row[2]), row[3]) for row in rows]

    def lost(self, points: Iterable[PointReceipt]) -> None:
        """Let points wait again that the server took but has no more; raises StoreError."""
        update = "UPDATE point SET state = 'waiting' WHERE id = ? AND state = 'delivered'"
        with transaction(self._connection, self.path):
            self._connection.executemany(update, [(point.id,) for point in points])

    def wait_again(self, *, rejected: bool = False, delivered: bool = False) -> int:
        """Let rejected points, or those of a server that was lost, wait once more; return how many."""
        states = [s for s, wanted in (("rejected", rejected), ("delivered", delivered)) if wanted]
        update = "UPDATE point SET state = 'waiting', reason = '' WHERE state = ?"
        with transaction(self._connection, self.path):
            return sum(self._connection.execute(update, (state,)).rowcount for state in states)

    def status(self) -> Status:
        """Return what is in the store; raises StoreError."""
        with guarded(self.path):
            c = self._connection
            waiting, oldest = c.execute(
                "SELECT count(*), min(time_ns) FROM point WHERE state = 'waiting'"
            ).fetchone()
            rejected = c.execute("SELECT reason FROM point WHERE state = 'rejected'").fetchall()
            runs = c.execute("SELECT count(*) FROM run").fetchone()[0]
            points = c.execute("SELECT count(*) FROM point").fetchone()[0]
        return Status(
            runs=runs,
            waiting=waiting,
            delivered=points - waiting - len(rejected),
            rejected=len(rejected),
            oldest_waiting_ns=oldest,
            reasons=tuple(Counter(_QUOTED.sub("'…'", row[0]) for row in rejected).most_common(10)),
        )

    def changed_runs(self) -> list[str]:
        """Return the ids of the runs whose points were changed by hand in the file; raises StoreError."""
        with guarded(self.path):
            return changed_runs(self._connection)

    def _bench_change(self, run: RunPoints) -> list[Point]:
        """Return the event that the bench is another than before; none where it is the same.

        Each fact is held against the last run that has it: the one before may have measured other targets.
        """
        rows = self._connection.execute(
            "SELECT run_id, facts FROM run WHERE bench = ? AND time_ns < ? AND source = ? AND facts <> '{}'"
            " ORDER BY time_ns DESC",
            (run.bench, run.time_ns, run.source),
        )
        before: dict[str, str] = {}
        run_before = ""
        for run_id, facts_json in rows:
            last_known = {
                name: value
                for name, value in stored_object(self.path, facts_json).items()
                if name in run.facts and name not in before
            }
            if not run_before and changes(last_known, run.facts):
                run_before = str(run_id)
            before |= last_known
            if before.keys() == run.facts.keys():
                break
        differing = changes(before, run.facts)
        if not differing:
            return []
        tags = {"bench": tag_text(run.bench), "kind": "bench-change"}
        text = "; ".join(differing)[:1000].replace("\n", " ")
        fields = {"title": f"bench {run.bench} changed", "text": text}
        runs = {"run_id": run.run_id, "run_before": run_before}
        return [Point(EVENT, tags, {**fields, **runs}, run.time_ns)]
