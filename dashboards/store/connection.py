# SPDX-License-Identifier: Apache-2.0
"""Opening the store's file: made whole or not at all, and errors that say what a user can do."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any, cast

from dashboards.errors import StoreError

SCHEMA_VERSION = 1
APPLICATION_ID = 0x42574831  # "BWH1"
BUSY_S = 30.0
_SCHEMA = Path(__file__).with_name("schema.sql")


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
            connection.execute("PRAGMA foreign_keys = ON")
            _migrate(connection, path)
    except StoreError:
        connection.close()
        raise
    return connection


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection, path: Path) -> Generator[None]:
    """Run one transaction: all of it is in the store afterwards, or, with an error, nothing.

    Raises:
        StoreError: The disk is full, or the file cannot be written.
    """
    with guarded(path):
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            connection.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            raise


@contextlib.contextmanager
def guarded(path: Path) -> Generator[None]:
    """Turn SQLite's errors into those of the store."""
    try:
        yield
    except sqlite3.Error as error:
        name = str(getattr(error, "sqlite_errorname", ""))
        if name == "SQLITE_FULL":
            problem = f"{path}: the disk is full; nothing of this was stored"
            raise StoreError(problem, may_pass=True) from error
        raise StoreError(f"{path}: {error}", may_pass=name.startswith("SQLITE_BUSY")) from error
    except UnicodeDecodeError as error:  # of a text in its pages, or in its own description of its tables
        raise StoreError(f"{path}: damaged: {error}") from error
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror or error}") from error


def stored_object(path: Path, text: object) -> dict[str, Any]:
    """Return the JSON object that a store has kept as a text; raises StoreError where it is damaged."""
    try:
        found: object = json.loads(cast("str", text))
    except (TypeError, ValueError, RecursionError) as error:
        raise StoreError(f"{path}: damaged: {str(text)[:60]!r} is not what was stored") from error
    if not isinstance(found, dict):
        raise StoreError(f"{path}: damaged: {str(text)[:60]!r} is no object")
    return cast("dict[str, Any]", found)


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
    if _version(connection, path) == SCHEMA_VERSION:
        return
    with transaction(connection, path):
        if _version(connection, path) == SCHEMA_VERSION:  # somebody else has made it meanwhile
            return
        for statement in _SCHEMA.read_text(encoding="utf-8").split(";\n"):
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def _version(connection: sqlite3.Connection, path: Path) -> int:
    """Return the version of the schema, 0 of an empty file; raises StoreError for another's file."""
    application = int(connection.execute("PRAGMA application_id").fetchone()[0])
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    tables = int(connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0])
    if (application, version) == (0, 0) and tables == 0:
        return 0
    if application != APPLICATION_ID:
        raise StoreError(f"{path}: an SQLite file, but not a store of this project")
    if version != SCHEMA_VERSION:
        raise StoreError(f"{path}: store of version {version}; this program knows {SCHEMA_VERSION}")
    return version


def lock_path(store: Path) -> Path:
    """Return the file that the one process that delivers from a store holds locked."""
    return store.with_name(f"{os.fspath(store.name)}.delivery-lock")
