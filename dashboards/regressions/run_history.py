# SPDX-License-Identifier: Apache-2.0
"""The history of each series of one run, read from the store: the runs that it is compared with."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from dashboards.errors import StoreError
from dashboards.line_protocol import Field, Point
from dashboards.points import EVENT
from dashboards.regressions.event import RunValue
from dashboards.regressions.watched import COMPARED_WITH, SeriesField, watched
from dashboards.store import Store
from dashboards.store.connection import guarded, stored_object
from dashboards.store.content import Content, Identity
from dashboards.store.run_content import read_content
from reports.history.advice import BenchChange

_Place = tuple[int, int, int]
"""A point in the store: number of its run, id of its series, its time in ns since 1970 UTC."""
_Columns = tuple[dict[Identity, int], list[list[Field | None]]]
"""Places of points in columns, and the columns."""
RUNS_MAX = 600
"""So many earlier runs of a series are looked at: what lies before them is in no baseline any more."""


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run as the store has it."""

    run_id: str
    time_ns: int
    bench: str
    profile: str
    branch: str

    @property
    def compared_with(self) -> str:
        """Return the class of the branch whose runs it is compared with."""
        return COMPARED_WITH[self.branch]


@dataclass(frozen=True, slots=True)
class SeriesHistory:
    """One followed field of a run.

    Attributes:
        runs: Runs of the compared class up to this one, oldest first, the last one this run.
    """

    watched: SeriesField
    runs: tuple[RunValue, ...]

    @property
    def same_bench(self) -> tuple[RunValue, ...]:
        """Return those runs that were measured with what this one was measured with."""
        key = self.runs[-1].bench_key
        return tuple(run for run in self.runs if run.bench_key == key)


def stored_run(store: Store, run_id: str) -> StoredRun:
    """Return a run of the store; raises StoreError where it is not there."""
    with guarded(store.path):
        row = store.connection.execute(
            "SELECT run_id, time_ns, bench, profile, branch FROM run WHERE run_id = ?", (run_id,)
        ).fetchone()
    if row is None:
        raise StoreError(f"{store.path}: no run {run_id}")
    return StoredRun(*row)


def run_histories(store: Store, run: StoredRun) -> list[SeriesHistory]:
    """Return the history of every followed field of a run, in the order of its points.

    Raises:
        StoreError: The store cannot be read.
    """
    found: list[SeriesHistory] = []
    with guarded(store.path):
        contents = _Contents(store)
        rows = store.connection.execute(
            "SELECT run, series, time_ns, measurement, tags FROM point JOIN series ON series.id = series"
            " WHERE run = (SELECT number FROM run WHERE run_id = ?) ORDER BY point.id",
            (run.run_id,),
        ).fetchall()
        points: list[tuple[list[SeriesField], list[list[RunValue]], str]] = []
        for number, series, time_ns, measurement, tags_json in rows:
            tags: dict[str, str] = stored_object(store.path, tags_json)
            followed = watched(measurement, tags)
            own = contents.values([(number, series, time_ns)], followed)
            if any(own):
                compared = Point(measurement, {**tags, "branch": run.compared_with}, {"n": 0}, 0).series
                points.append((followed, own, compared))
        earlier = _earlier(store, run, {compared for _, _, compared in points})
        for followed, own, compared in points:
            before = contents.values(earlier.get(compared, ()), followed)
            for one, values, last in zip(followed, before, own, strict=True):
                if last:
                    found.append(SeriesHistory(one, (*values, *last)))
    return found


def last_bench_change(store: Store, run: StoredRun) -> BenchChange | None:
    """Return the last change of the bench up to a run; None: it has not changed.

    Raises:
        StoreError: The store cannot be read.
    """
    with guarded(store.path):
        rows = store.connection.execute(
            "SELECT run, series, point.time_ns, tags FROM run JOIN point ON run = number"
            " JOIN series ON series.id = series WHERE run.bench = ? AND measurement = ?"
            " AND point.time_ns <= ? ORDER BY point.time_ns DESC",
            (run.bench, EVENT, run.time_ns),
        )
        for number, series, time_ns, tags_json in rows:
            tags: dict[str, str] = stored_object(store.path, tags_json)
            if tags.get("kind") != "bench-change" or tags.get("bench") != run.bench:
                continue
            fields = read_content(store.connection, store.path, number).points().get((series, time_ns), {})
            since = store.connection.execute(
                "SELECT count(*) FROM run WHERE bench = ? AND time_ns BETWEEN ? AND ?",
                (run.bench, time_ns, run.time_ns),
            ).fetchone()[0]
            run_id, run_before, text = (str(fields.get(n, "")) for n in ("run_id", "run_before", "text"))
            return BenchChange(run_id, run_before, since, text)
    return None


def _earlier(store: Store, run: StoredRun, names: Collection[str]) -> dict[str, list[_Place]]:
    """Return the points of the runs before this one, by the series' names, oldest first.

    Run by run, the newest first, until there are enough of each series: the store keeps points together by
    their run, not by their series.
    """
    connection = store.connection
    name_of: dict[int, str] = dict(
        connection.execute(
            "SELECT id, name FROM series WHERE name IN (SELECT value FROM json_each(?))",
            (json.dumps(sorted(names)),),
        ).fetchall()
    )
    found: dict[str, list[_Place]] = {name: [] for name in name_of.values()}
    lacking = set(name_of)
    runs = connection.execute(
        "SELECT number FROM run WHERE bench = ? AND branch = ? ORDER BY time_ns DESC",
        (run.bench, run.compared_with),
    ).fetchall()
    for (number,) in runs:
        if not lacking:
            break
        for series, time_ns in connection.execute(
            "SELECT series, time_ns FROM point WHERE run = ? AND time_ns < ?", (number, run.time_ns)
        ):
            if series in lacking:
                places = found[name_of[series]]
                places.append((number, series, time_ns))
                if len(places) == RUNS_MAX:
                    lacking.remove(series)
    return {name: sorted(places, key=lambda place: place[2]) for name, places in found.items()}


class _Contents:
    """Runs of a store by their numbers, each read once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._run_ids = dict(store.connection.execute("SELECT number, run_id FROM run").fetchall())
        self._contents: dict[int, Content] = {}
        self._read: dict[tuple[int, tuple[str, ...]], _Columns] = {}

    def values(self, places: Iterable[_Place], followed: Sequence[SeriesField]) -> list[list[RunValue]]:
        """Return what points say in each field, those that say no number in it left out."""
        found: list[list[RunValue]] = [[] for _ in followed]
        fields = ("bench_key", "commit", *(one.field for one in followed))
        for number, *identity in places:
            at, (keys, commits, *columns) = self._columns(number, fields)
            place = at.get((identity[0], identity[1]))
            if place is None:
                continue  # changed in the file
            run = (self._run_ids[number], identity[1])
            bench = (str(keys[place] or ""), str(commits[place] or ""))
            for column, values in zip(columns, found, strict=True):
                value = column[place]
                if isinstance(value, int | float) and not isinstance(value, bool):
                    values.append(RunValue(*run, float(value), *bench))
        return found

    def _columns(self, number: int, fields: tuple[str, ...]) -> _Columns:
        found = self._read.get((number, fields))
        if found is None:
            content = self._of(number)
            found = (content.places, [content.column(field) for field in fields])
            self._read[number, fields] = found
        return found

    def _of(self, number: int) -> Content:
        found = self._contents.get(number)
        if found is None:
            found = read_content(self._store.connection, self._store.path, number)
            self._contents[number] = found
        return found
