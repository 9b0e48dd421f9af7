# SPDX-License-Identifier: Apache-2.0
"""Transactions on the store's file, and errors that say what a user can do."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from collections.abc import Generator
from pathlib import Path
from typing import Any, cast

from dashboards.errors import StoreError


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


def lock_path(store: Path) -> Path:
    """Return the file that the one process that delivers from a store holds locked."""
    return store.with_name(f"{os.fspath(store.name)}.delivery-lock")
