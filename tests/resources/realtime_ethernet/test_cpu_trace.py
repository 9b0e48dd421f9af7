# SPDX-License-Identifier: Apache-2.0
"""A CPU is traced for a while, and then all is as it was, however that ended."""

from __future__ import annotations

import gzip
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from hw.errors import BenchError, CapabilityError
from hw.protocols import CommandResult
from resources.realtime_ethernet.cpu_trace import SCRIPT, cpu_traced


class Here:
    """This machine as a node; its commands mount in a mount namespace of their own."""

    name, powered = "here", True

    def __init__(self, folder: Path) -> None:
        """Take a folder for files of the tests."""
        self.folder = folder
        self.before: tuple[str, ...] = ()
        self.keeper = subprocess.Popen(
            ["unshare", "--mount", "--propagation", "private", "cat"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self.keeper.stdin is not None
        assert self.keeper.stdout is not None
        self.keeper.stdin.write(b"ready\n")
        self.keeper.stdin.flush()
        assert self.keeper.stdout.readline() == b"ready\n"

    def close(self) -> None:
        """End it."""
        self.keeper.communicate()

    def run(self, argv: Sequence[str], timeout_s: float = 30.0, check: bool = True) -> CommandResult:
        """Run a command in the namespace."""
        enter = ["nsenter", "--mount", f"--target={self.keeper.pid}"]
        done = subprocess.run(
            [*enter, *self.before, *argv], check=False, capture_output=True, text=True, timeout=timeout_s
        )
        if check and done.returncode:
            raise BenchError(f"{argv}: {done.stderr}")
        return CommandResult(tuple(argv), done.returncode, done.stdout, done.stderr)

    def bring(self, file: Path) -> str:
        """Return where a file is."""
        return str(file)

    def fresh_folder(self, name: str) -> str:
        """Make a folder."""
        (self.folder / name).mkdir(exist_ok=True)
        return str(self.folder / name)

    def get(self, remote: str, local: Path) -> None:
        """Copy a file."""
        shutil.copy(remote, local)

    def instances(self) -> list[str]:
        """Return the instances of tracefs that are this folder's."""
        listed = "mount -t tracefs tracefs /mnt && ls /mnt/instances; umount /mnt"
        mark = str(self.folder).replace("/", "-")
        return [each for each in self.run(["sh", "-c", listed]).stdout.split() if mark in each]


@pytest.fixture
def here(tmp_path: Path) -> Any:
    node = Here(tmp_path)
    mounted = node.run(["sh", "-c", "mount -t tracefs tracefs /mnt && umount /mnt"], check=False)
    try:
        if mounted.exit_code:
            pytest.skip(f"tracefs cannot be mounted: {mounted.stderr.strip()}")
        yield node
    finally:
        node.close()


def test_a_cpu_is_traced(here: Any, tmp_path: Path) -> None:
    with cpu_traced(here, 0, 256) as trace:
        assert len(here.instances()) == 1
        here.run(["taskset", "--cpu-list", "0", "sh", "-c", "for i in 1 2 3 4 5; do true | true; done"])
        dropped = trace.end(tmp_path / "trace.gz")
    assert dropped >= 0
    text = gzip.decompress((tmp_path / "trace.gz").read_bytes()).decode()
    assert "sched_switch: prev_comm=" in text
    assert not here.instances()
    assert not list((tmp_path / "cpu_trace").iterdir())


def test_a_node_without_gzip(here: Any, tmp_path: Path) -> None:
    """As the ARM image is."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in (
        "sh",
        "mount",
        "umount",
        "mkdir",
        "rmdir",
        "rm",
        "cat",
        "sed",
        "tr",
        "ls",
        "taskset",
        "true",
    ):
        (programs / name).symlink_to(shutil.which(name) or name)
    here.before = ("env", f"PATH={programs}")
    with cpu_traced(here, 0, 256) as trace:
        here.run(["taskset", "--cpu-list", "0", "sh", "-c", "true | true"])
        trace.end(tmp_path / "trace.gz")
    assert "sched_switch: prev_comm=" in gzip.decompress((tmp_path / "trace.gz").read_bytes()).decode()
    assert [each.name for each in tmp_path.glob("trace*")] == ["trace.gz"]
    assert not list((tmp_path / "cpu_trace").iterdir())


def test_the_buffer_is_bounded_and_what_it_has_no_room_for_is_counted(here: Any, tmp_path: Path) -> None:
    with cpu_traced(here, 0, 4) as trace:
        busy = "for i in $(seq 300); do true | true; done"
        here.run(["taskset", "--cpu-list", "0", "sh", "-c", busy])
        assert trace.end(tmp_path / "trace.gz") > 0


def test_all_is_as_it_was_after_ctrl_c(here: Any, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), cpu_traced(here, 0, 64):
        raise KeyboardInterrupt
    assert not here.instances()
    assert not list((tmp_path / "cpu_trace").iterdir())


def test_what_a_killed_run_has_left_is_removed(here: Any, tmp_path: Path) -> None:
    begin = ["sh", str(SCRIPT), here.fresh_folder("cpu_trace"), "begin", "0", "64"]
    for _ in range(2):
        here.run(begin)
        assert len(here.instances()) == 1
    with cpu_traced(here, 0, 64):
        assert len(here.instances()) == 1
    assert not here.instances()


def test_a_machine_that_does_not_permit_it_says_so(here: Any, tmp_path: Path) -> None:
    here.before = ("setpriv", "--bounding-set=-sys_admin")
    with (
        pytest.raises(CapabilityError, match="here: no tracefs that may be mounted"),
        cpu_traced(here, 0, 64),
    ):
        pass
    here.before = ()
    assert not list((tmp_path / "cpu_trace").iterdir())


def test_wrong_arguments_are_refused(tmp_path: Path) -> None:
    for wrong in ([], ["begin", "0"], ["end"], ["restore", "0"]):
        done = subprocess.run(["sh", str(SCRIPT), str(tmp_path), *wrong], check=False, capture_output=True)
        assert done.returncode == 2
