# SPDX-License-Identifier: Apache-2.0
"""Where a run comes from: the commit of the suites and the facts of the machine that runs them."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path
from typing import Any


def commit_of(folder: Path) -> str | None:
    """Return the commit checked out in a folder, `-dirty` behind it where files differ; None: unknown."""
    head = _git(folder, "rev-parse", "HEAD")
    if head is None:
        return None
    changed = _git(folder, "status", "--porcelain", "--untracked-files=no")
    return f"{head}-dirty" if changed else head


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True, timeout=30
        )
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
