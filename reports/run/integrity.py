# SPDX-License-Identifier: Apache-2.0
"""`SHA256SUMS` of a run folder: written once at its end, and checked byte by byte ever after.

The format is that of sha256sum(1), so that `sha256sum -c SHA256SUMS` works without this package.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable
from pathlib import Path

from reports.durable import replace_file
from reports.errors import RunFolderError

SUMS = "SHA256SUMS"
_LINE = re.compile(r"([0-9a-f]{64})  ([^\n\\]+)")
_CHUNK_BYTES = 1 << 20


def sha256_file(path: Path) -> str:
    """Return the SHA-256 of a file as lower-case hex digits."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def sha256_bytes(data: bytes) -> str:
    """Return the SHA-256 of bytes as lower-case hex digits."""
    return hashlib.sha256(data).hexdigest()


def list_files(folder: Path) -> list[str]:
    """Return the relative path of each file of a run folder but `SHA256SUMS`, sorted.

    Raises:
        RunFolderError: The folder holds something that sums cannot vouch for: a link, a socket, a name
            with a line break or a backslash.
    """
    found: list[str] = []
    for base, directories, names in os.walk(folder):
        for name in [*names, *directories]:
            path = Path(base, name)
            relative = path.relative_to(folder).as_posix()
            if path.is_symlink() or not (path.is_file() or path.is_dir()):
                raise RunFolderError(
                    f"{relative}: neither a file nor a directory; its bytes cannot be summed"
                )
            if "\n" in relative or "\\" in relative:
                raise RunFolderError(f"{relative!r}: a name with a line break or a backslash")
            if path.is_file() and relative != SUMS:
                found.append(relative)
    return sorted(found)


def write_sums(folder: Path) -> None:
    """Write `SHA256SUMS` over every other file of the folder; raises RunFolderError."""
    lines = [f"{sha256_file(folder / name)}  {name}\n" for name in list_files(folder)]
    replace_file(folder / SUMS, "".join(lines).encode())


def renew_sums(folder: Path, names: Iterable[str]) -> None:
    """Renew the lines of some files in `SHA256SUMS`; every other line stays as it was written.

    Raises:
        RunFolderError: The sums cannot be read or written.
    """
    sums = read_sums(folder) | {name: sha256_file(folder / name) for name in names}
    lines = [f"{sums[name]}  {name}\n" for name in sorted(sums)]
    replace_file(folder / SUMS, "".join(lines).encode())


def read_sums(folder: Path) -> dict[str, str]:
    """Return the recorded hash of each file, by its relative path.

    Raises:
        RunFolderError: There is no `SHA256SUMS`, or it is not as `write_sums` writes it.
    """
    try:
        text = (folder / SUMS).read_bytes().decode()
    except FileNotFoundError:
        raise RunFolderError(f"{SUMS}: missing; the run was not finalised") from None
    except UnicodeDecodeError as error:
        raise RunFolderError(f"{SUMS}: {error}") from error
    sums: dict[str, str] = {}
    if text and not text.endswith("\n"):
        raise RunFolderError(f"{SUMS}: the last line is torn")
    for number, line in enumerate(text.split("\n")[:-1], start=1):
        match = _LINE.fullmatch(line)
        if match is None or match[2] in sums:
            raise RunFolderError(f"{SUMS}:{number}: malformed or repeated line")
        sums[match[2]] = match[1]
    if list(sums) != sorted(sums):
        raise RunFolderError(f"{SUMS}: not sorted")
    return sums


def changed_files(folder: Path) -> list[str]:
    """Return what differs from `SHA256SUMS`, one line a file; empty: not one byte.

    Raises:
        RunFolderError: The sums cannot be read.
    """
    sums = read_sums(folder)
    present = set(list_files(folder))
    problems: list[str] = []
    for name in sorted(present | set(sums)):
        if name not in present:
            problems.append(f"{name}: missing")
        elif name not in sums:
            problems.append(f"{name}: not part of the run when it was finalised")
        elif sha256_file(folder / name) != sums[name]:
            problems.append(f"{name}: changed")
    return problems
