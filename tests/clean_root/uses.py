# SPDX-License-Identifier: Apache-2.0
"""What is used of each listed package, and what that says where something is missing."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from tests.clean_root.packages import Row

HEADING = "| package | what the first command opens of it |"
_ROW = re.compile(r"^\| `(?P<package>[a-z0-9.+-]+)` \| `(?P<file>/[^`]+)` \|$", re.MULTILINE)


def keep(file: Path, used: dict[str, str]) -> None:
    """Add what one run has used to what earlier ones have, which began where something was built already."""
    earlier: dict[str, str] = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    file.write_text(json.dumps({**earlier, **used}, indent=1, sort_keys=True), encoding="utf-8")


def empty_unless_noted(cache: Path, file: Path) -> None:
    """Empty a cache of builds, and the file of what they used, where a step that filled it was broken off.

    What such a step built is not built again, so that nobody would ever see what it takes to build it.
    """
    if not _mark(cache).exists():
        shutil.rmtree(cache, ignore_errors=True)
        file.unlink(missing_ok=True)


@contextmanager
def noted(cache: Path) -> Generator[None]:
    """Mark a cache as of unknown origin while a step fills it, and until what the step used is kept."""
    _mark(cache).unlink(missing_ok=True)
    yield
    _mark(cache).touch()


def _mark(cache: Path) -> Path:
    return cache.with_name(f"{cache.name}-noted")


def unused(file: Path, rows: list[Row]) -> list[str]:
    """Return a line for each listed package of a bench that nothing uses and that has no reason beside it."""
    used = json.loads(file.read_text(encoding="utf-8"))
    expected = {row.name for row in rows if row.use == "bench" and not row.reason}
    advice = "remove it, or write the reason beside it"
    return [
        f"{name}: listed, and no step opens anything of it: {advice}" for name in sorted(expected - set(used))
    ]


def missing(root: Path, table: str) -> list[str]:
    """Return a line for each package of the table of which the root has not what the steps use.

    Args:
        root: Where something failed.
        table: Text with the rows of `table`.
    """
    return [
        f"{row['package']}: {row['file']}, which the first command uses, is not there"
        for row in _ROW.finditer(table)
        if not _is_there(root, row["file"])
    ]


def _is_there(root: Path, file: str) -> bool:
    """Whether a root has a file, of a library in any version; a link counts by itself."""
    name, shared, _ = file.lstrip("/").partition(".so")
    if shared:
        return any(root.glob(f"{name}*.so*"))
    return (root / name).exists() or (root / name).is_symlink()


def table(file: Path, rows: list[Row]) -> str:
    """Return the table of docs/installing.md: packages of a bench, with a file that is used or the reason."""
    used = json.loads(file.read_text(encoding="utf-8"))
    lines = [HEADING, "|---|---|"]
    for row in sorted({row for row in rows if row.use == "bench"}, key=lambda row: row.name):
        what = row.reason or f"`{used[row.name]}`"
        lines.append(f"| `{row.name}` | {what} |")
    return "\n".join(lines)
