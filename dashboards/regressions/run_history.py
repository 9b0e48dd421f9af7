# SPDX-License-Identifier: Apache-2.0
"""The history of each series of one run, read from the store: the runs that it is compared with."""

from __future__ import annotations

from dataclasses import dataclass

from dashboards.errors import StoreError
from dashboards.line_protocol import Field, Point
from dashboards.points import EVENT
from dashboards.regressions.event import RunValue
from dashboards.regressions.watched import COMPARED_WITH, SeriesField, watched
from dashboards.store import Store
from dashboards.store.connection import guarded, stored_object
from reports.history.advice import BenchChange

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
    with guarded(store.path):
        rows = store.connection.execute(
            "SELECT measurement, tags, fields FROM point WHERE run_id = ? ORDER BY id", (run.run_id,)
        ).fetchall()
    found: list[SeriesHistory] = []
    for measurement, tags_json, fields_json in rows:
        tags: dict[str, str] = stored_object(store.path, tags_json)
        own: dict[str, Field] = stored_object(store.path, fields_json)
        wanted = [one for one in watched(measurement, tags) if isinstance(own.get(one.field), int | float)]
        if wanted:
            earlier = _earlier(store, run, measurement, {**tags, "branch": run.compared_with})
            found += [_history(run, one, own, earlier) for one in wanted]
    return found


def last_bench_change(store: Store, run: StoredRun) -> BenchChange | None:
    """Return the last change of the bench up to a run; None: it has not changed.

    Raises:
        StoreError: The store cannot be read.
    """
    with guarded(store.path):
        rows = store.connection.execute(
            "SELECT fields, time_ns, tags FROM point WHERE measurement = ? AND time_ns <= ?"
            " ORDER BY time_ns DESC",
            (EVENT, run.time_ns),
        )
        for fields_json, time_ns, tags_json in rows:
            tags: dict[str, str] = stored_object(store.path, tags_json)
            if tags.get("kind") != "bench-change" or tags.get("bench") != run.bench:
                continue
            fields: dict[str, str] = stored_object(store.path, fields_json)
            since = store.connection.execute(
                "SELECT count(*) FROM run WHERE bench = ? AND time_ns BETWEEN ? AND ?",
                (run.bench, time_ns, run.time_ns),
            ).fetchone()[0]
            return BenchChange(fields["run_id"], fields["run_before"], since, fields["text"])
    return None


def _earlier(
    store: Store, run: StoredRun, measurement: str, tags: dict[str, str]
) -> list[tuple[str, int, dict[str, Field]]]:
    """Return id, time and fields of the runs before this one in a series, oldest first."""
    series = Point(measurement, tags, {"n": 0}, 0).series
    with guarded(store.path):
        rows = store.connection.execute(
            "SELECT run_id, time_ns, fields FROM point WHERE series = ? AND time_ns < ?"
            " ORDER BY time_ns DESC LIMIT ?",
            (series, run.time_ns, RUNS_MAX),
        ).fetchall()
    return [
        (run_id, time_ns, stored_object(store.path, fields)) for run_id, time_ns, fields in reversed(rows)
    ]


def _history(
    run: StoredRun,
    one: SeriesField,
    own: dict[str, Field],
    earlier: list[tuple[str, int, dict[str, Field]]],
) -> SeriesHistory:
    runs = [_value(run_id, time_ns, fields, one.field) for run_id, time_ns, fields in earlier]
    kept = [value for value in runs if value is not None]
    mine = _value(run.run_id, run.time_ns, own, one.field)
    return SeriesHistory(one, (*kept, *([mine] if mine is not None else [])))


def _value(run_id: str, time_ns: int, fields: dict[str, Field], field: str) -> RunValue | None:
    value = fields.get(field)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    key, commit = str(fields.get("bench_key", "")), str(fields.get("commit", ""))
    return RunValue(run_id, time_ns, float(value), key, commit)
