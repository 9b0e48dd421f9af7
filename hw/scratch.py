# SPDX-License-Identifier: Apache-2.0
"""Temporary folders whose names say which process they belong to, and what dead processes have left of them.

A process that is killed removes nothing. Its folders are known by its id and its start time: an id alone is
given to another process some day. labgrid's (`lg-ssh-*`, with the control socket of a connection) name no
owner: one is nobody's where no process of this user has it open or in its command line, for a while.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

PREFIX, LABGRID_PREFIX = "benchwright-", "lg-ssh-"
UNUSED_S = 600.0
"""So long nothing must have come into a folder of labgrid, nor gone: who connects makes the folder first."""
_OWNER = re.compile(rf"{PREFIX}(?:.*-)?p(\d+)-s(\d+)-[^-]+")


def scratch_folder(what: str = "") -> tempfile.TemporaryDirectory[str]:
    """Return a temporary folder of this process, to be used as a context.

    Args:
        what: A word on what it is for, for its name.
    """
    pid = os.getpid()
    words = f"{what}-" if what else ""
    return tempfile.TemporaryDirectory(prefix=f"{PREFIX}{words}p{pid}-s{_start_time(pid)}-")


def remove_orphans(folder: Path | None = None, now_s: float | None = None) -> list[Path]:
    """Remove the temporary folders of this user whose processes are dead; return which.

    Args:
        folder: Where they are; None: where this process makes its own.
        now_s: Unix time; None: now.
    """
    place = folder or Path(tempfile.gettempdir())
    now = time.time() if now_s is None else now_s
    orphans = [each for each in place.glob(f"{PREFIX}*") if _is_own_folder(each) and _is_orphan(each.name)]
    unused = [
        each
        for each in place.glob(f"{LABGRID_PREFIX}*")
        if _is_own_folder(each) and now - each.lstat().st_mtime > UNUSED_S
    ]
    if unused:
        said = "\0".join(_used_paths())
        orphans += [each for each in unused if str(each) not in said]
    for each in orphans:
        shutil.rmtree(each, ignore_errors=True)
    return [each for each in orphans if not each.exists()]


def _is_orphan(name: str) -> bool:
    """Say whether a name is that of a folder of a process that is dead; without one it may be anyone's."""
    owner = _OWNER.fullmatch(name)
    return owner is not None and _start_time(int(owner[1])) != int(owner[2])


def _start_time(pid: int) -> int | None:
    """Return when a process was started, in ticks since the machine was; None: there is none of that id."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    state, *numbers = stat.rpartition(")")[2].split()
    return None if state in "ZX" else int(numbers[18])


def _is_own_folder(path: Path) -> bool:
    try:
        return path.is_dir() and not path.is_symlink() and path.lstat().st_uid == os.geteuid()
    except OSError:
        return False


def _used_paths() -> Iterator[str]:
    """Yield what this user's processes have in their command lines, and open or bound as a socket."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            yield (process / "cmdline").read_bytes().decode(errors="replace")
        with suppress(OSError):
            for link in (process / "cwd", *(process / "fd").iterdir()):
                with suppress(OSError):
                    yield str(link.readlink())
    yield Path("/proc/net/unix").read_text()
