# SPDX-License-Identifier: Apache-2.0
"""What a clean root's outcome depends on, as a hash of these files of a commit."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path

LIST = Path(__file__).with_name("inputs.txt")


def patterns(text: str) -> tuple[list[str], list[str]]:
    """Return the patterns of inputs.txt: what counts, and what is read but does not."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return (
        [line for line in lines if not line.startswith("- ")],
        [line[2:] for line in lines if line.startswith("- ")],
    )


def key(repository: Path, commit: str) -> str:
    """Return the hash of all files of a commit that count."""
    counted, _ = patterns(LIST.read_text(encoding="utf-8"))
    listed = subprocess.run(
        ["git", "-C", str(repository), "ls-tree", "-r", commit], check=True, capture_output=True, text=True
    ).stdout.splitlines()
    chosen = [line for line in listed if _fits(line.partition("\t")[2], counted)]
    return hashlib.sha256("\n".join(chosen).encode()).hexdigest()


def unlisted(files: Iterable[str], text: str) -> list[str]:
    """Return which files of the tree that a step has read are in no pattern of inputs.txt."""
    counted, others = patterns(text)
    return sorted(file for file in files if not _fits(file, [*counted, *others]))


def _fits(file: str, some: list[str]) -> bool:
    return any(fnmatchcase(file, pattern) for pattern in some)
