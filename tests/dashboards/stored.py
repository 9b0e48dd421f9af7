# SPDX-License-Identifier: Apache-2.0
"""What is in a store, point by point, and stores of version 1 to be taken over."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from dashboards.line_protocol import line_of
from dashboards.points import RunPoints
from dashboards.store import Store
from dashboards.store.content import Identity, pack, unpack

SCHEMA_1 = Path(__file__).with_name("store_1.sql")
APPLICATION_ID = 0x42574831


class StoredPoint(NamedTuple):
    """A point of a store."""

    id: int
    run_id: str
    measurement: str
    tags: dict[str, str]
    fields: dict[str, Any]
    line: str
    state: Sequence[Any]


def stored_points(store: Store, measurement: str | None = None) -> list[StoredPoint]:
    """Return the points of a store, or those of one measurement, by their ids."""
    contents = {
        number: unpack(store.path, content).points()
        for number, content in store.connection.execute("SELECT number, content FROM run")
    }
    rows = store.connection.execute(
        "SELECT point.id, run_id, measurement, tags, number, series, name, point.time_ns,"
        " revision, state, reason, acknowledged_ns"
        " FROM point JOIN run ON number = run JOIN series ON series.id = series ORDER BY point.id"
    )
    found: list[StoredPoint] = []
    for place, run_id, of, tags, number, series, name, time_ns, *state in rows:
        if measurement in (None, of):
            fields = contents[number][series, time_ns]
            line = line_of(name, fields, time_ns)
            found.append(StoredPoint(place, run_id, of, json.loads(tags), fields, line, state))
    return found


def put_fields(store: Store, place: int, fields: Mapping[str, Any], time_ns: int | None = None) -> None:
    """Give the point of an id other fields, by hand, and another time where one is named.

    No name is looked at: a field `a=nope,b` makes a line that no server can read.
    """
    run, series, time_before_ns = store.connection.execute(
        "SELECT run, series, time_ns FROM point WHERE id = ?", (place,)
    ).fetchone()
    now_ns = int(time_before_ns if time_ns is None else time_ns)
    store.connection.execute("UPDATE point SET time_ns = ? WHERE id = ?", (now_ns, place))
    put_content(store, run, {(series, now_ns): fields})


def put_content(store: Store, run: int, points: Mapping[Identity, Mapping[str, Any]]) -> None:
    """Put the fields of some points among those of a run, by hand."""
    ((content,),) = store.connection.execute("SELECT content FROM run WHERE number = ?", (run,)).fetchall()
    packed = pack({**unpack(store.path, content).points(), **points}.items())
    store.connection.execute("UPDATE run SET content = ? WHERE number = ?", (packed, run))


def fields_of(store: Store, place: int) -> dict[str, Any]:
    """Return the fields of the point of an id."""
    return next(point.fields for point in stored_points(store) if point.id == place)


def write_version_1(path: Path, runs: Iterable[RunPoints]) -> None:
    """Write a store as version 1 did: of every seventh point something is known already."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.executescript(SCHEMA_1.read_text(encoding="utf-8"))
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute("PRAGMA user_version = 1")
    connection.execute("BEGIN")
    for run in runs:
        place = (run.run_id, run.time_ns, run.bench, run.profile, run.branch, run.commit)
        last = (int(run.simulated), run.outcome, json.dumps(run.facts), run.source)
        connection.execute("INSERT INTO run VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", (*place, *last))
        for point in run.points:
            texts = (json.dumps(dict(point.tags)), json.dumps(dict(point.fields)), point.line())
            connection.execute(
                "INSERT INTO point (run_id, measurement, series, time_ns, tags, fields, line)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                (run.run_id, point.measurement, point.series, point.time_ns, *texts),
            )
    for state, reason, rest in (("delivered", "", 1), ("rejected", "400 conflict", 2)):
        connection.execute(
            "UPDATE point SET state = ?, reason = ?, revision = 2, acknowledged_ns = 7 WHERE id % 7 = ?",
            (state, reason, rest),
        )
    connection.execute("COMMIT")
    connection.close()
