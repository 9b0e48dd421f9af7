# SPDX-License-Identifier: Apache-2.0
"""The seal of a run: a hash of its points, by which a change made by hand in the file shows."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator

from dashboards.line_protocol import INT64_MAX, INT64_MIN

_POINTS = (
    "SELECT number, content, seal, group_concat(series || ' ' || (point.time_ns - run.time_ns))"
    " FROM run LEFT JOIN point ON run = number WHERE number BETWEEN ? AND ? GROUP BY number"
)
_SERIES = (
    "SELECT id, measurement, tags, name FROM series WHERE ?1 <> ?2"
    " OR id IN (SELECT series FROM point WHERE run = ?1)"
)


def changed_runs(connection: sqlite3.Connection) -> list[str]:
    """Return the ids of the runs whose points are not those that were sealed."""
    run_ids = dict(connection.execute("SELECT number, run_id FROM run").fetchall())
    return [
        run_ids[number] for number, seal, found in _seals(connection, INT64_MIN, INT64_MAX) if seal != found
    ]


def is_sealed(connection: sqlite3.Connection, number: int) -> bool:
    """Return whether the points of a run are those that were sealed."""
    return all(seal == found for _, seal, found in _seals(connection, number, number))


def put_seal(connection: sqlite3.Connection, number: int) -> None:
    """Seal a run as it is."""
    for _, _, found in _seals(connection, number, number):
        connection.execute("UPDATE run SET seal = ? WHERE number = ?", (found, number))


def _seals(connection: sqlite3.Connection, first: int, last: int) -> Iterator[tuple[int, bytes, bytes]]:
    """Yield number, seal, and what the seal has to be, of the runs between two numbers."""
    series = {str(row[0]): " ".join(map(str, row[1:])) for row in connection.execute(_SERIES, (first, last))}
    known: dict[str, bytes] = {}  # most runs have the same series
    for run, content, seal, points in connection.execute(_POINTS, (first, last)).fetchall():
        text = str(points or "")
        if text not in known:
            named = [one.partition(" ") for one in text.split(",") if one]
            lines = sorted(f"{series.get(place)} {after_ns}" for place, _, after_ns in named)
            known[text] = "\n".join(lines).encode()
        yield run, seal, hashlib.sha256(content + known[text]).digest()
