# SPDX-License-Identifier: Apache-2.0
"""Temporary folders of dead processes are removed; whatever may be a living one's stays."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hw.scratch import UNUSED_S, remove_orphans, scratch_folder

HOLDS = """
import sys, time
from hw.scratch import scratch_folder
with scratch_folder("test") as name:
    print(name, flush=True)
    time.sleep(600)
"""


def test_a_folder_goes_with_its_context_and_names_its_process() -> None:
    with scratch_folder("probe") as name:
        assert re.fullmatch(rf"benchwright-probe-p{os.getpid()}-s\d+-[^-]+", Path(name).name)
    assert not Path(name).exists()


def test_only_folders_of_dead_processes_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with subprocess.Popen([sys.executable, "-c", HOLDS], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        held = Path(process.stdout.readline().strip())
        assert remove_orphans(tmp_path) == []
        process.send_signal(signal.SIGKILL)
    assert held.parent == tmp_path
    nobodys = tmp_path / "benchwright-x1y2z3"
    reused = tmp_path / f"benchwright-p{os.getpid()}-s1-abcd"
    link = tmp_path / "benchwright-p1-s1-abcd"
    for folder in (nobodys, reused):
        folder.mkdir()
    link.symlink_to(nobodys)
    assert sorted(remove_orphans(tmp_path)) == sorted([held, reused])
    assert nobodys.exists()
    assert link.is_symlink()


def test_folders_of_another_user_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "benchwright-p1-s1-abcd").mkdir()
    own = os.geteuid()
    monkeypatch.setattr("os.geteuid", lambda: own + 1)
    assert remove_orphans(tmp_path) == []


def test_a_folder_of_labgrid_goes_when_nobody_uses_it_any_more(tmp_path: Path) -> None:
    unused, opened, named = (tmp_path / f"lg-ssh-{name}" for name in ("unused", "opened", "named"))
    for folder in (unused, opened, named):
        folder.mkdir()
    later_s = time.time() + UNUSED_S + 60
    with (
        (opened / "control").open("w"),
        subprocess.Popen(
            [sys.executable, "-c", "print(flush=True); input()", f"{named}/control"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as process,
    ):
        assert process.stdout is not None
        process.stdout.readline()  # before it runs, /proc does not show its arguments yet
        assert remove_orphans(tmp_path) == []  # they are young
        assert remove_orphans(tmp_path, later_s) == [unused]
    assert sorted(remove_orphans(tmp_path, later_s)) == [named, opened]
