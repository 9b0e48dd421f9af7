# SPDX-License-Identifier: Apache-2.0
"""Where a run comes from: commit of the suites, else version and files, and facts of the machine."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

OWN_NAME = "benchwright"
"""In a manifest's tools: version and files of a source tree whose commit is not known."""

_VERSION_FILE = Path("traffic-gen", "version.h")
_RESULTS = "results"


def commit_of(folder: Path) -> str | None:
    """Return the commit checked out in a folder, `-dirty` behind it where files differ; None: unknown."""
    head = _git(folder, "rev-parse", "HEAD")
    if head is None:
        return None
    changed = _git(folder, "status", "--porcelain", "--untracked-files=no")
    return f"{head}-dirty" if changed else head


def source_of(folder: Path) -> str | None:
    """Return version and hash of a source tree without a commit, as an exported one; None: it is not ours.

    The hash is SHA-256 over names and SHA-256 of all files, sorted by name, without what is built or
    measured: folders whose names begin with a dot, `results`, and what Python has compiled.
    """
    try:
        said = (folder / _VERSION_FILE).read_text(encoding="utf-8")
        version = re.findall(r'^#define BW_VERSION "([^"]+)"$', said, re.MULTILINE)[0]
        listed = hashlib.sha256()
        for path in sorted(_source_files(folder)):
            name = path.relative_to(folder).as_posix()
            listed.update(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {name}\n".encode())
    except (OSError, IndexError):
        return None
    return f"{version}, files of SHA-256 {listed.hexdigest()}"


def _source_files(folder: Path) -> Iterator[Path]:
    for name_of_directory, folders, files in os.walk(folder):
        directory = Path(name_of_directory)
        top = directory == folder
        folders[:] = [
            name
            for name in folders
            if not name.startswith(".") and name != "__pycache__" and not (top and name == _RESULTS)
        ]
        yield from (directory / name for name in files if (directory / name).is_file())


def _git(folder: Path, *arguments: str) -> str | None:
    """Ask git, of another user's checkout, too: whoever runs its suites trusts it further than git does."""
    try:
        done = subprocess.run(
            ["git", "-c", "safe.directory=*", "-C", str(folder), *arguments],
            capture_output=True, text=True, check=True, timeout=30,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def host_facts() -> dict[str, Any]:
    """Return the facts of this machine that a reader of results asks for."""
    system = platform.uname()
    return {
        "hostname": system.node,
        "system": f"{system.system} {system.release}",
        "kernel": system.version,
        "machine": system.machine,
        "distribution": _field(Path("/etc/os-release"), "PRETTY_NAME", "=").strip('"'),
        "cpu_model": _field(Path("/proc/cpuinfo"), "model name", ":"),
        "cpus": os.cpu_count() or 0,
        "memory": _field(Path("/proc/meminfo"), "MemTotal", ":").replace("kB", "KiB"),
        "python": platform.python_version(),
    }


def _field(file: Path, key: str, separator: str) -> str:
    """Return the value of the first line `key separator value` of a file, '' where there is none."""
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    for line in lines:
        name, _, value = line.partition(separator)
        if name.strip() == key:
            return value.strip()
    return ""
