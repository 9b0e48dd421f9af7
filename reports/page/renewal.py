# SPDX-License-Identifier: Apache-2.0
"""The page of a run folder anew, and files that are added to a finalised one: what the history says of it.

Nothing else of a finalised folder changes: each other file is checked first, and keeps its line in the sums.
The page is made before anything is written, so that all is in place within milliseconds. A kill in between
leaves a folder whose `verify` names these files alone; doing the same again fixes it.

Of a sealed run they are sealed anew, with the key that sealed it; elsewhere than on its bench nothing is
written.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from reports.durable import replace_file, write_error
from reports.errors import ReportError, RunFolderError
from reports.page.render import page_files, render_pages
from reports.run.benches import seal_of
from reports.run.folder import RunFolder
from reports.run.integrity import SUMS, changed_files, read_sums, renew_sums, sha256_file
from reports.run.seal import ADVICE, RENEWAL, SEAL, bench_key, fingerprint, key_file, seal_renewal

OTHERS_S = 120.0
"""How long another process may render the same folder, at most."""


def renew(run: Path, added: Mapping[str, bytes] | None = None) -> bool:
    """Render the pages of a run folder into it, with files that are added; say whether anything differs now.

    Args:
        run: The run folder, finalised or not.
        added: Content of each file by its name in the folder; one that is there is replaced.

    Raises:
        ReportError: Another file has changed since the run was finalised, or it cannot be written.
    """
    files = dict(added or {})
    with _alone(run):
        finalised = RunFolder.open(run).finalised
        own = {*page_files(run), *files, RENEWAL}
        _remove_drafts(run, {SUMS, *own})
        if finalised:
            changed = [line for line in changed_files(run) if line.split(":")[0] not in own]
            if changed:
                raise ReportError(f"{changed[0]} since the run was finalised; --output renders it elsewhere")
        files |= {name: text.encode() for name, text in render_pages(run, files, as_it_is=True).items()}
        differ = any(not (run / name).is_file() or (run / name).read_bytes() != files[name] for name in files)
        key = _key_of(run) if finalised and (run / SEAL).is_file() and differ else None
        written = [name for name, data in files.items() if _put(run / name, data)]
        if key is not None:
            seal_renewal(run, [name for name in (*page_files(run), ADVICE) if (run / name).is_file()], key)
        own = {name for name in own if (run / name).is_file()}
        if finalised and any(read_sums(run).get(name) != sha256_file(run / name) for name in own):
            renew_sums(run, own)
            return True
        return bool(written)


def holds(run: Path, name: str) -> bool:
    """Say whether a file is part of a run folder; of a finalised one, as its sums have it.

    Raises:
        ReportError: The sums cannot be read.
    """
    path = run / name
    if not path.is_file():
        return False
    return not (run / SUMS).exists() or read_sums(run).get(name) == sha256_file(path)


def _key_of(run: Path) -> Ed25519PrivateKey:
    """Return the key that sealed a run.

    Raises:
        ReportError: It is not this bench's: what was made anew would be sealed by nobody.
    """
    path, wanted = key_file(), seal_of(run)
    if path.exists():
        key = bench_key(path)
        if fingerprint(key) == wanted:
            return key
    raise ReportError(
        f"{run}: its pages would be others, and the run is sealed by {wanted},"
        f" which is not the key in {path}; --output renders them elsewhere"
    )


@contextmanager
def _alone(run: Path) -> Generator[None, None, None]:
    """Hold off another process that would do the same to this folder."""
    try:
        handle = os.open(run, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        RunFolder.open(run)  # says what is wrong with it
        raise
    try:
        end_s = time.monotonic() + OTHERS_S
        while not _is_locked(handle):
            if time.monotonic() > end_s:
                raise RunFolderError(f"{run}: another process has held it for {OTHERS_S:g} s")
            time.sleep(0.1)
        yield
    finally:
        os.close(handle)


def _is_locked(handle: int) -> bool:
    """Try to take the lock of a folder, which all who can read it can hold; return whether it is ours."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _remove_drafts(run: Path, names: set[str]) -> None:
    """Remove what a kill has left of an earlier try, see `replace_file`."""
    for name in names:
        path = run / name
        for draft in path.parent.glob(f".{path.name}.*.new"):
            draft.unlink(missing_ok=True)


def _put(path: Path, data: bytes) -> bool:
    """Write a file unless it is like that already; say whether it was written."""
    try:
        if path.is_file() and path.read_bytes() == data:
            return False
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise write_error(path, error) from error
    replace_file(path, data)
    return True
