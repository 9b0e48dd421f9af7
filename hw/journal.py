# SPDX-License-Identifier: Apache-2.0
"""Undo journal: every change of the bench is written down before it is made.

A run that ends normally undoes its changes in reverse order; one that was killed leaves the journal behind,
and the next start undoes them. Undo actions are data, not code, are idempotent, and tolerate a change that
was never made.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hw.errors import BenchError

JOURNAL_FOLDER = Path("/var/lib/benchwright")

UndoAction = Callable[[Mapping[str, Any]], None]


class Journal:
    """The undo journal of one bench; hold the reservation before touching it."""

    def __init__(
        self, bench_name: str, actions: Mapping[str, UndoAction], folder: Path = JOURNAL_FOLDER
    ) -> None:
        """Open the journal, without undoing anything yet.

        Args:
            bench_name: Name of the bench.
            actions: For each kind of change the function that takes it back.
            folder: A folder that survives a restart of the host.

        Raises:
            BenchError: The folder cannot be made.
        """
        self.path = folder / f"{bench_name}.journal"
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _write_error(folder, error) from error
        self._actions = dict(actions)

    def record(self, kind: str, **change: str | int) -> None:
        """Write down a change that is about to be made; returns when it is on disk.

        Args:
            kind: A key of `actions`.
            change: What the undo needs to know.

        Raises:
            BenchError: It cannot be written, and the change must not be made; the journal is as it was.
        """
        if kind not in self._actions:
            raise KeyError(kind)
        line = json.dumps({"kind": kind, **change}, sort_keys=True) + "\n"
        try:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
            try:
                _append(descriptor, line.encode())
            finally:
                os.close(descriptor)
        except OSError as error:
            raise _write_error(self.path, error) from error

    def pending(self) -> list[dict[str, Any]]:
        """Return the changes not yet undone, oldest first; a torn last line is a change that was not made."""
        try:
            lines = self.path.read_text().splitlines()
        except FileNotFoundError:
            return []
        changes: list[dict[str, Any]] = []
        for number, line in enumerate(lines):
            try:
                changes.append(json.loads(line))
            except (ValueError, RecursionError) as error:
                if number != len(lines) - 1:
                    raise BenchError(f"{self.path}:{number + 1}: the undo journal is damaged") from error
        return changes

    def undo(self) -> int:
        """Undo all pending changes, newest first, and empty the journal.

        Returns:
            How many changes were undone.

        Raises:
            BenchError: Some could not be undone; they stay in the journal. Or it cannot be written: all stay.
        """
        changes = self.pending()
        left: list[dict[str, Any]] = []
        reasons: list[str] = []
        for change in reversed(changes):
            try:
                self._actions[change["kind"]](change)
            except Exception as error:  # noqa: BLE001 - whatever it is, the other changes are undone too
                left.insert(0, change)
                reasons.append(f"{change}: {error}")
        try:
            self._rewrite(left)
        except OSError as error:
            reasons.append(f"the journal itself: {error.strerror or error}")
        if reasons:
            raise BenchError(f"{self.path}: could not undo " + "; ".join(reasons))
        return len(changes)

    def _rewrite(self, changes: list[dict[str, Any]]) -> None:
        if not changes:
            self.path.unlink(missing_ok=True)
            return
        new = self.path.with_suffix(".new")
        with new.open("w") as file:
            file.writelines(json.dumps(change, sort_keys=True) + "\n" for change in changes)
            file.flush()
            os.fsync(file.fileno())
        new.replace(self.path)


def _append(descriptor: int, line: bytes) -> None:
    """Append a line and wait until it is on the disk; one that does not fit leaves no trace."""
    whole_bytes = os.pread(descriptor, os.fstat(descriptor).st_size, 0).rfind(b"\n") + 1
    os.ftruncate(descriptor, whole_bytes)  # what a kill has left of a line: its change was not made
    try:
        written_bytes = 0
        while written_bytes < len(line):
            written_bytes += os.write(descriptor, line[written_bytes:])
        os.fsync(descriptor)
    except OSError:
        os.ftruncate(descriptor, whole_bytes)
        raise


def _write_error(path: Path, error: OSError) -> BenchError:
    return BenchError(f"{path}: the undo journal cannot be written: {error.strerror or error}")
