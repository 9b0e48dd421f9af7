# SPDX-License-Identifier: Apache-2.0
"""Settings of this machine, which several benches share: the first changes them, the last gives them back."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import pytest

from hw.errors import BenchError
from hw.tools import ROOT
from hw.virtual import fair_server, host
from hw.virtual.host import machine_settings, undo_machine_settings

FOUND = ("950000", "reno bbr")
NEEDED = ("-1", "reno bbr cubic")


@dataclass
class Machine:
    """What stands for this machine's settings."""

    paths: tuple[Path, Path]

    def settings(self) -> tuple[str, ...]:
        """Return them as they are."""
        return tuple(path.read_text().strip() for path in self.paths)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Give settings that no bench of this machine shares."""
    paths = tmp_path / "runtime", tmp_path / "allowed"
    for path, text, name in zip(
        paths, FOUND, ("REAL_TIME_RUNTIME", "ALLOWED_CONGESTION_CONTROL"), strict=True
    ):
        path.write_text(f"{text}\n")
        monkeypatch.setattr(host, name, path)
    for name in ("LOCK_FOLDER", "JOURNAL_FOLDER"):
        monkeypatch.setattr(host, name, tmp_path / name)
    monkeypatch.setattr(host, "_softirq_threads", list)
    monkeypatch.setattr(fair_server, "PLACE", str(tmp_path / "no-fair-server"))
    monkeypatch.setattr(fair_server, "_MOUNTED", "")
    return Machine(paths)


@pytest.fixture
def fair(machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return what stands for the kernel's folder of the fair server, of two CPUs."""
    del machine
    place = tmp_path / "fair_server"
    for cpu in ("cpu0", "cpu1"):
        (place / cpu).mkdir(parents=True)
        (place / cpu / "runtime").write_text("50000000\n")
    monkeypatch.setattr(fair_server, "PLACE", str(place))
    return place


def runtimes(place: Path) -> list[str]:
    return [(place / cpu / "runtime").read_text().strip() for cpu in ("cpu0", "cpu1")]


def needed() -> AbstractContextManager[None]:
    """Return what an open bench holds."""
    return machine_settings("cubic")


KILLED = """
import os, sys
from pathlib import Path
from hw.virtual import host
names = "REAL_TIME_RUNTIME", "ALLOWED_CONGESTION_CONTROL", "LOCK_FOLDER", "JOURNAL_FOLDER"
for name, path in zip(names, sys.argv[1:], strict=True):
    setattr(host, name, Path(path))
host._softirq_threads = list
host.fair_server.PLACE, host.fair_server._MOUNTED = "/nowhere", ""
held = host.machine_settings("cubic")
held.__enter__()
os._exit(9)
"""


def open_and_be_killed() -> None:
    """Hold them in a process that ends without any clean-up; none that is forked from one with threads."""
    paths = host.REAL_TIME_RUNTIME, host.ALLOWED_CONGESTION_CONTROL, host.LOCK_FOLDER, host.JOURNAL_FOLDER
    done = subprocess.run([sys.executable, "-c", KILLED, *map(str, paths)], check=False, cwd=ROOT)
    assert done.returncode == 9


def test_one_bench_changes_them_and_gives_them_back(machine: Machine) -> None:
    with needed():
        assert machine.settings() == NEEDED
    assert machine.settings() == FOUND


def test_the_fair_server_is_kept_away_and_let_in_again(fair: Path) -> None:
    with needed():
        assert runtimes(fair) == ["0", "0"]
        with needed():
            pass
        assert runtimes(fair) == ["0", "0"]
    assert runtimes(fair) == ["50000000", "50000000"]


def test_a_bench_opens_where_nobody_may_look_at_the_fair_server(fair: Path, machine: Machine) -> None:
    for cpu in ("cpu0", "cpu1"):
        (fair / cpu / "runtime").unlink()
    with needed():
        assert machine.settings() == NEEDED
    assert machine.settings() == FOUND


def test_the_last_of_two_benches_gives_them_back(machine: Machine) -> None:
    first, second = needed(), needed()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert machine.settings() == NEEDED
    second.__exit__(None, None, None)
    assert machine.settings() == FOUND


def test_a_second_bench_may_need_more_congestion_controls(machine: Machine) -> None:
    with needed(), machine_settings("cubic vegas"):
        assert machine.settings() == (NEEDED[0], f"{NEEDED[1]} vegas")
    assert machine.settings() == FOUND


def test_what_a_killed_run_left_is_given_back_by_the_next(machine: Machine) -> None:
    open_and_be_killed()
    assert machine.settings() == NEEDED
    with needed():
        assert machine.settings() == NEEDED
    assert machine.settings() == FOUND


def test_a_killed_run_takes_nothing_from_a_bench_that_is_open(machine: Machine) -> None:
    with needed():
        open_and_be_killed()
        with needed():
            pass
        assert undo_machine_settings() == 0
        assert machine.settings() == NEEDED
    assert machine.settings() == FOUND


@pytest.mark.parametrize("error", [PermissionError(1, "Operation not permitted"), KeyboardInterrupt()])
def test_an_end_before_all_are_changed_gives_back_those_that_are(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    with_change: list[tuple[str, ...]] = []

    def refuse(*_: object) -> None:
        with_change.append(machine.settings())
        raise error

    monkeypatch.setattr(host, "_softirq_threads", lambda: [os.getpid()])
    monkeypatch.setattr(os, "sched_setscheduler", refuse)
    with pytest.raises((BenchError, KeyboardInterrupt)) as raised, needed():
        raise AssertionError("it is open")
    if isinstance(error, OSError):
        assert str(raised.value) == (
            f"scheduling of ksoftirqd, process {os.getpid()}:"
            " cannot be changed for the bench: Operation not permitted"
        )
    assert with_change[0] == ("-1", FOUND[1])
    assert machine.settings() == FOUND


def test_a_bench_that_cannot_be_opened_takes_nothing_from_one_that_is_open(machine: Machine) -> None:
    with needed():
        machine.paths[1].unlink()
        with (
            pytest.raises(BenchError, match="allowed: cannot be changed for the bench: No such file"),
            needed(),
        ):
            raise AssertionError("it is open")
        machine.paths[1].write_text(NEEDED[1])
        assert machine.settings() == NEEDED
    assert machine.settings() == FOUND


def test_clean_gives_them_back(machine: Machine) -> None:
    open_and_be_killed()
    assert undo_machine_settings() == len(FOUND)
    assert machine.settings() == FOUND
    assert undo_machine_settings() == 0


def test_what_cannot_be_given_back_is_said_and_kept(machine: Machine) -> None:
    held = needed()
    held.__enter__()
    machine.paths[1].unlink()
    machine.paths[1].mkdir()
    with pytest.raises(BenchError, match="could not undo"):
        held.__exit__(None, None, None)
    machine.paths[1].rmdir()
    machine.paths[1].write_text(NEEDED[1])
    assert undo_machine_settings() == 1
    assert machine.settings() == FOUND
