# SPDX-License-Identifier: Apache-2.0
"""Opening the store's file: made whole or not at all, and an older one moved to today's layout."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from pathlib import Path

from dashboards.errors import StoreError
from dashboards.store.connection import guarded, transaction
from dashboards.store.from_version_1 import set_aside, take_over

SCHEMA_VERSION = 2
APPLICATION_ID = 0x42574831  # "BWH1"
BUSY_S = 30.0
_SCHEMA = Path(__file__).with_name("schema.sql")
_CACHE_KIB = 32_768
"""A run touches the last page of each of its series: they stay in memory, however many runs there are."""
_FREE_PAGES_MAX = 256
"""Fewer free pages than these are no reason to write the file anew."""


def connect(path: Path, *, create: bool) -> sqlite3.Connection:
    """Open the store's file, and make it first where it is missing.

    Every transaction is on the disk before it counts as done (`synchronous = FULL`).

    Raises:
        StoreError: The file is missing and must not be made, is none of ours, or of another version.
    """
    if not create and not path.exists():
        raise StoreError(f"{path}: no store; a run or `python -m dashboards import RUN` makes one")
    with guarded(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None)
    try:
        with guarded(path):
            _into_wal_mode(connection)
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
            connection.execute("PRAGMA foreign_keys = ON")
            _migrate(connection, path)
    except StoreError:
        connection.close()
        raise
    return connection


def _into_wal_mode(connection: sqlite3.Connection) -> None:
    """Let readers read while one writes. Two that make the file at once do not wait for each other here."""
    deadline = time.monotonic() + BUSY_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.02)
        else:
            return


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Make the tables, or take over those of version 1; all of it or, killed at any moment, nothing."""
    if _version(connection, path) != SCHEMA_VERSION:
        with transaction(connection, path):
            version = _version(connection, path)
            if version != SCHEMA_VERSION:  # else somebody else has made it meanwhile
                if version == 1:
                    set_aside(connection)
                for statement in _SCHEMA.read_text(encoding="utf-8").split(";\n"):
                    connection.execute(statement)
                if version == 1:
                    take_over(connection, path)
                connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    _shrink(connection)


def _shrink(connection: sqlite3.Connection) -> None:
    """Give back what version 1 took and is free now; where that cannot be done, the next opening does it."""
    pages, free = (
        int(connection.execute(f"PRAGMA {n}").fetchone()[0]) for n in ("page_count", "freelist_count")
    )
    if free > _FREE_PAGES_MAX and 2 * free > pages:
        with contextlib.suppress(sqlite3.OperationalError):  # somebody reads or writes, or the disk is full
            connection.execute("VACUUM")


def _version(connection: sqlite3.Connection, path: Path) -> int:
    """Return the version of the schema, 0 of an empty file; raises StoreError for another's file."""
    application = int(connection.execute("PRAGMA application_id").fetchone()[0])
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    tables = int(connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0])
    if (application, version) == (0, 0) and tables == 0:
        return 0
    if application != APPLICATION_ID:
        raise StoreError(f"{path}: an SQLite file, but not a store of this project")
    if not 1 <= version <= SCHEMA_VERSION:
        raise StoreError(f"{path}: store of version {version}; this program knows {SCHEMA_VERSION}")
    return version
