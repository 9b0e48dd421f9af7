# SPDX-License-Identifier: Apache-2.0
"""Reading and writing the points of one run, inside a transaction of the caller's."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from pathlib import Path

from dashboards.errors import StoreError
from dashboards.line_protocol import Field, Point, line_of
from dashboards.points import EVENT
from dashboards.store.content import Content, Identity, pack, unpack
from dashboards.store.seal import is_sealed, put_seal

_SERIES = "SELECT name, series.id FROM json_each(?) CROSS JOIN series ON name = value"
_POINTS = "SELECT series, time_ns FROM point WHERE run = ?"
_PUT_SERIES = (
    "INSERT INTO series (name, measurement, tags) VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE SET"
    " measurement = excluded.measurement, tags = excluded.tags"
    " WHERE (measurement, tags) <> (excluded.measurement, excluded.tags)"
)
_PUT = "INSERT INTO point (run, series, time_ns) VALUES (?, ?, ?)"
_PUT_AGAIN = (
    "UPDATE point SET revision = revision + 1, state = 'waiting', reason = ''"
    " WHERE series = ? AND time_ns = ?"
)


def read_content(connection: sqlite3.Connection, path: Path, number: int) -> Content:
    """Return the fields of the points of a run; raises StoreError where they are damaged."""
    return unpack(
        path, connection.execute("SELECT content FROM run WHERE number = ?", (number,)).fetchone()[0]
    )


def write_content(
    connection: sqlite3.Connection, number: int, points: Iterable[tuple[Identity, Mapping[str, Field]]]
) -> None:
    """Keep the fields of the points of a run whose points are in the store, and seal it."""
    connection.execute("UPDATE run SET content = ? WHERE number = ?", (pack(points), number))
    put_seal(connection, number)


def series_ids(
    connection: sqlite3.Connection,
    series: Iterable[tuple[str, str, Mapping[str, str]]],
    *,
    repair: bool = False,
) -> dict[str, int]:
    """Return the ids of series by their names; what is new is put into the store.

    Args:
        connection: That of the store.
        series: Name, measurement and tags of each.
        repair: Whether those of a known one may have been changed in the file.
    """
    wanted = {name: (measurement, tags) for name, measurement, tags in series}
    names = json.dumps(list(wanted))
    ids = dict(connection.execute(_SERIES, (names,)).fetchall())
    if put := [name for name in wanted if repair or name not in ids]:
        rows = [(name, wanted[name][0], json.dumps(dict(wanted[name][1]), sort_keys=True)) for name in put]
        connection.executemany(_PUT_SERIES, rows)
        ids = dict(connection.execute(_SERIES, (names,)).fetchall())
    return ids


def put_points(
    connection: sqlite3.Connection, path: Path, run_id: str, points: Iterable[Point], *, only: bool
) -> int:
    """Bring the points of a run up to date; return how many are new, another than before, or gone.

    Of a run that somebody has changed in the file nothing is believed: every point is sent again, and its
    events go.

    Args:
        connection: That of the store.
        path: The store's file.
        run_id: The run, which is in the store.
        points: What the run is to have.
        only: Whether it is to have no others, events aside.

    Raises:
        StoreError: A point is of another run already, or names no run.
    """
    number, content = connection.execute(
        "SELECT number, content FROM run WHERE run_id = ?", (run_id,)
    ).fetchone()
    rows: set[Identity] = set(connection.execute(_POINTS, (number,)).fetchall())
    believed = is_sealed(connection, number) if content or rows else True
    if not believed and not only:
        raise StoreError(f"{path}: run {run_id}: its points were changed in the file; import it again")
    before = unpack(path, content).points() if believed else {}
    named = {point.series: point for point in points}
    wanted: dict[Identity, Point] = {}
    ids = series_ids(
        connection, ((name, p.measurement, p.tags) for name, p in named.items()), repair=not believed
    )
    for name, point in named.items():
        if "run_id" not in point.fields:  # by it the server is asked what it has
            raise StoreError(f"{path}: {name}: no field run_id")
        wanted[ids[name], point.time_ns] = point
    new = [identity for identity in wanted if identity not in rows]
    other = [i for i in wanted if i in rows and (i not in before or not _same(wanted[i], before[i]))]
    gone = {i for i in rows - wanted.keys() if not believed or (only and not _is_event(connection, i))}
    connection.executemany("DELETE FROM point WHERE series = ? AND time_ns = ?", gone)
    try:
        connection.executemany(_PUT, [(number, *identity) for identity in new])
    except sqlite3.IntegrityError:
        for identity in new:
            _refuse_shared(connection, path, run_id, wanted[identity], identity)
        raise
    connection.executemany(_PUT_AGAIN, other)
    changed = len(new) + len(other) + len(gone)
    if changed or not content:
        kept = {identity: fields for identity, fields in before.items() if identity not in gone}
        fields = {identity: point.fields for identity, point in wanted.items()}
        write_content(connection, number, {**kept, **fields}.items())
    return changed


def _same(point: Point, fields: Mapping[str, Field]) -> bool:
    """Return whether a point says the same: 1, 1.0 and true are three things to a server."""
    return line_of("", point.fields, 0) == line_of("", fields, 0)


def _is_event(connection: sqlite3.Connection, identity: Identity) -> bool:
    found = connection.execute("SELECT measurement FROM series WHERE id = ?", identity[:1]).fetchone()
    return found is not None and found[0] == EVENT


def _refuse_shared(
    connection: sqlite3.Connection, path: Path, run_id: str, point: Point, identity: Identity
) -> None:
    owner = connection.execute(
        "SELECT run_id FROM point JOIN run ON number = run WHERE series = ? AND point.time_ns = ?", identity
    ).fetchone()
    if owner is not None and owner[0] != run_id:
        where = f"{path}: {point.series} at {point.time_ns} ns"
        raise StoreError(f"{where} is of run {owner[0]} already")
