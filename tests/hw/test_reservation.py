# SPDX-License-Identifier: Apache-2.0
"""One holder of a bench at a time; the kernel frees it however the holder ends."""

from __future__ import annotations

import getpass
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hw import reservation
from hw.errors import BenchError
from hw.reservation import reserve
from tests.patience import HANG_S

HOLDER = """
import sys
from pathlib import Path
from hw.reservation import reserve

with reserve("lab", Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""

BUILDER = """
import sys
from pathlib import Path
from hw.reservation import reserve
from hw.virtual import network

with reserve("lab", Path(sys.argv[1])):
    network.run("sh", "-c", "{command}")
"""


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait less for a holder that is ending than the product does: those of these tests stay, or are gone."""
    monkeypatch.setattr(reservation, "DYING_S", 0.2)


@contextmanager
def _holder(repository: Path, folder: Path) -> Generator[subprocess.Popen[str], None, None]:
    """Let another process hold the bench; yields once it does, and ends it."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folder), "--for", "acceptance"],
        cwd=repository, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()


def _hold(folder: Path) -> None:
    with reserve("lab", folder):
        pass


def test_a_second_process_is_refused_and_hears_who_holds_the_bench(repository: Path, tmp_path: Path) -> None:
    with _holder(repository, tmp_path) as other:
        with pytest.raises(BenchError) as refused:
            _hold(tmp_path)
        message = str(refused.value)
        assert message.startswith("bench 'lab' is held by ")
        assert f"{getpass.getuser()} (process {other.pid}, since 2" in message
        assert "--for acceptance" in message
        with reserve("another", tmp_path):
            pass


def test_the_bench_is_free_once_its_holder_is_killed(repository: Path, tmp_path: Path) -> None:
    with _holder(repository, tmp_path) as other:
        other.kill()
        other.wait(HANG_S)
        _hold(tmp_path)
        assert (tmp_path / "lab.lock").exists()


def test_the_bench_is_free_after_an_error_of_its_holder(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), reserve("lab", tmp_path):
        raise ZeroDivisionError
    _hold(tmp_path)


def test_a_child_of_the_holder_does_not_keep_the_bench(tmp_path: Path) -> None:
    with reserve("lab", tmp_path):
        child = subprocess.Popen(["sleep", "60"])
    try:
        _hold(tmp_path)
    finally:
        child.kill()
        child.wait(HANG_S)


def test_one_process_cannot_hold_a_bench_twice(tmp_path: Path) -> None:
    with reserve("lab", tmp_path), pytest.raises(BenchError, match="is held by"):
        _hold(tmp_path)


def test_a_holder_that_has_not_written_its_name_is_a_holder(repository: Path, tmp_path: Path) -> None:
    with _holder(repository, tmp_path):
        (tmp_path / "lab.lock").write_text('{"user": ')
        with pytest.raises(BenchError, match="another process that has not written its name yet"):
            _hold(tmp_path)


def test_a_bench_is_held_until_the_last_command_of_a_killed_run_has_ended(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise it would make a namespace behind the back of whoever undoes what the run has left."""
    monkeypatch.setattr(reservation, "DYING_S", HANG_S)
    begun, done = tmp_path / "begun", tmp_path / "done"
    script = BUILDER.format(command=f"touch {begun}; sleep 1; touch {done}")
    with subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], cwd=repository) as process:
        while not begun.exists():
            assert process.poll() is None
            time.sleep(0.01)
        process.kill()
    with reserve("lab", tmp_path):
        assert done.exists()


def test_nobody_else_can_hold_a_bench(tmp_path: Path) -> None:
    """Who can read a lock file can hold its lock: also those that an earlier version made."""
    lock = tmp_path / "test.lock"
    lock.touch(mode=0o644)
    with reserve("test", tmp_path):
        assert lock.stat().st_mode & 0o077 == 0


def test_a_link_in_the_place_of_a_lock_is_refused(tmp_path: Path) -> None:
    """It would lock, and empty, what it points to."""
    precious = tmp_path / "precious"
    precious.write_text("mine")
    (tmp_path / "test.lock").symlink_to(precious)
    with pytest.raises(BenchError, match=r"test\.lock: cannot be locked"), reserve("test", tmp_path):
        pass
    assert precious.read_text() == "mine"
