# SPDX-License-Identifier: Apache-2.0
"""The build of InfluxDB 2.7 without building it: what is missing is named, what is there is taken."""

from __future__ import annotations

import hashlib
import platform
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path("tests/influxdb2/build")
TOOLS = (
    "bash",
    "env",
    "cat",
    "uname",
    "sha256sum",
    "cut",
    "mkdir",
    "flock",
    "ln",
    "dirname",
    "sort",
    "head",
    "awk",
    "git",
)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a source tree with the build alone."""
    shutil.copytree(ROOT / BUILD, tmp_path / BUILD)
    progress = Path("hw/host/progress.sh")
    (tmp_path / progress).parent.mkdir(parents=True)
    shutil.copy(ROOT / progress, tmp_path / progress)
    return tmp_path


def run(tree: Path, *programs: tuple[str, str]) -> subprocess.CompletedProcess[str]:
    """Run the build where there is nothing but basic tools and some programs, given by name and text."""
    folder = tree / "bin"
    folder.mkdir()
    for tool in TOOLS:
        found = shutil.which(tool)
        assert found
        (folder / tool).symlink_to(found)
    for name, text in programs:
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    environment = {"PATH": str(folder), "HOME": str(tree), "BENCHWRIGHT_CACHE": str(tree / "cache")}
    return subprocess.run(
        [tree / BUILD / "build.sh"], check=False, capture_output=True, text=True, env=environment
    )


def test_everything_that_is_missing_is_named_at_once(tree: Path) -> None:
    done = run(tree)
    assert done.returncode == 3
    named = ["Go 1.24", "Rust 1.72", "gcc", "clang", "pkg-config"]
    assert [name for name in named if name not in done.stderr] == []
    assert not (tree / ".build" / "influxd2").is_symlink()


def test_tools_that_are_too_old_are_named(tree: Path) -> None:
    old = [("go", "echo go1.19.8"), ("rustc", "echo rustc 1.63.0"), ("cargo", ":")]
    done = run(tree, *old, *((name, ":") for name in ("cc", "clang", "pkg-config")))
    assert done.returncode == 3
    assert "found: go1.19.8" in done.stderr
    assert "found: 1.63.0" in done.stderr
    assert "clang" not in done.stderr


def test_what_was_built_before_is_taken(tree: Path) -> None:
    parts = [(tree / BUILD / name).read_bytes() for name in ("go.mod", "go.sum", "build.sh")]
    key = hashlib.sha256(b"".join(parts) + f"{platform.machine()}\n".encode()).hexdigest()[:16]
    program = tree / "cache" / "influxdb2" / key / "influxd"
    program.parent.mkdir(parents=True)
    program.touch(0o755)
    done = run(tree)
    assert done.returncode == 0, done.stderr
    assert (tree / ".build" / "influxd2").readlink() == program
