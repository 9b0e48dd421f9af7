# SPDX-License-Identifier: Apache-2.0
"""A capability is its folder in four trees and no other file; `made_up/` is one that does not exist."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MADE_UP = ROOT / "tests" / "made_up"
TREES = ("dashboards", "hw", "reports", "resources", "robot", "scope", "targets", "traffic-gen")
"""What it needs of the tree."""


def copied_tree(folder: Path) -> Path:
    """Return a copy of the tree without its tests and without what was built."""
    for name in TREES:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    (folder / "tests").mkdir()
    return folder


def test_a_made_up_capability_is_its_folders_alone(tmp_path: Path) -> None:
    """In a copy of the tree its suite runs, and its own tests find it wherever values are shown or kept."""
    tree = copied_tree(tmp_path)
    files = sorted(file for file in MADE_UP.rglob("*") if file.is_file() and file.suffix != ".pyc")
    folders = {file.relative_to(MADE_UP).parts[:2] for file in files}
    assert folders == {(each, "valves") for each in ("reports", "resources", "robot", "tests")}
    for file in files:
        place = tree / file.relative_to(MADE_UP)
        assert not place.exists()
        place.parent.mkdir(exist_ok=True)
        shutil.copy(file, place)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/valves"],
        cwd=tree,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
