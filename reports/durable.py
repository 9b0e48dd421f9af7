# SPDX-License-Identifier: Apache-2.0
"""Writing that survives a kill or a power cut, and says clearly when the disk is full."""

from __future__ import annotations

import errno
import os
import secrets
from pathlib import Path

from reports.errors import RunFolderError


def draft_of(path: Path) -> Path:
    """Return a name beside a file, for what is to take its place; no other thread or process has it."""
    return path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.new")


def replace_file(path: Path, data: bytes) -> None:
    """Write a whole file so that a reader sees the old one or the new one, never a part.

    Raises:
        RunFolderError: The file cannot be written; the old one is left as it was.
    """
    draft = draft_of(path)
    try:
        with draft.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
        sync_directory(path.parent)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise write_error(path, error) from error


def append_line(path: Path, line: str) -> None:
    """Append one line and wait until it is on the disk; a line that does not fit leaves no trace.

    Raises:
        RunFolderError: The line cannot be written.
    """
    data = line.encode() + b"\n"
    try:
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise write_error(path, error) from error
    try:
        size_bytes = os.fstat(handle).st_size
        try:
            _write_all(handle, data)
            os.fsync(handle)
        except OSError as error:
            os.ftruncate(handle, size_bytes)
            raise write_error(path, error) from error
    finally:
        os.close(handle)


def _write_all(handle: int, data: bytes) -> None:
    written = 0
    while written < len(data):
        written += os.write(handle, data[written:])


def sync_directory(path: Path) -> None:
    """Wait until the names in a directory are on the disk."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_error(path: Path, error: OSError) -> RunFolderError:
    """Return the error that tells a user what could not be written, and why."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return RunFolderError(f"{path}: the disk is full; nothing more can be recorded")
    return RunFolderError(f"{path}: {error.strerror or error}")
