# SPDX-License-Identifier: Apache-2.0
"""From a store of version 1, which kept every point as a row of texts, to that of today."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from dashboards.line_protocol import Field
from dashboards.store.connection import stored_object
from dashboards.store.content import Identity
from dashboards.store.run_content import series_ids, write_content

_RUN = 'run_id, time_ns, bench, profile, branch, "commit", simulated, outcome, facts, source'
_STATE = "revision, state, reason, acknowledged_ns"


def set_aside(connection: sqlite3.Connection) -> None:
    """Give the tables of version 1 other names, so that today's can be made beside them."""
    for name in (
        "point_waiting",
        "point_rejected",
        "point_delivered",
        "point_history",
        "point_of_run",
        "run_time",
    ):
        connection.execute(f"DROP INDEX {name}")
    for table in ("run", "point"):
        connection.execute(f"ALTER TABLE {table} RENAME TO {table}_1")


def take_over(connection: sqlite3.Connection, path: Path) -> None:
    """Put what was set aside into today's tables, with every point's id, revision and state.

    Raises:
        StoreError: A point is damaged; the caller's transaction has to end without effect.
    """
    connection.execute(f"INSERT INTO run ({_RUN}) SELECT {_RUN} FROM run_1 ORDER BY rowid")  # noqa: S608
    connection.execute("CREATE INDEX point_1_of_run ON point_1 (run_id)")
    ids: dict[str, int] = {}
    for number, run_id in connection.execute("SELECT number, run_id FROM run").fetchall():
        fields: list[tuple[Identity, dict[str, Field]]] = []
        points = connection.execute(
            f"SELECT id, series, measurement, tags, fields, time_ns, {_STATE} FROM point_1"  # noqa: S608
            " WHERE run_id = ? ORDER BY id",
            (run_id,),
        ).fetchall()
        for place, name, measurement, tags, text, time_ns, *state in points:
            if name not in ids:
                ids |= series_ids(connection, [(name, measurement, stored_object(path, tags))])
            fields.append(((ids[name], time_ns), stored_object(path, text)))
            connection.execute(
                f"INSERT INTO point (id, run, series, time_ns, {_STATE}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
                (place, number, ids[name], time_ns, *state),
            )
        write_content(connection, number, fields)
    for table in ("point_1", "run_1"):
        connection.execute(f"DROP TABLE {table}")
