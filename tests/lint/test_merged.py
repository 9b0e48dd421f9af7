# SPDX-License-Identifier: Apache-2.0
"""No file holds the marks that a merge leaves where two changes contradict each other."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MARK = re.compile(rb"^(<{7}|>{7}) ", re.MULTILINE)


def marked(files: list[Path]) -> list[str]:
    """Return the names of files with such marks."""
    return [path.name for path in files if path.is_file() and MARK.search(path.read_bytes())]


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="an exported tree")
def test_no_file_holds_marks_of_a_merge() -> None:
    argv = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    names = subprocess.run(argv, cwd=ROOT, capture_output=True, check=True).stdout.split(b"\0")
    files = [ROOT / name.decode() for name in names if name]
    assert len(files) > 1000
    assert marked(files) == []


def test_a_mark_is_found(tmp_path: Path) -> None:
    (tmp_path / "one.md").write_text(f"text\n{'<' * 7} HEAD\nours\n{'=' * 7}\ntheirs\n{'>' * 7} branch\n")
    (tmp_path / "two.md").write_text(f"Title\n{'=' * 7}\n")
    assert marked([tmp_path / "one.md", tmp_path / "two.md"]) == ["one.md"]
