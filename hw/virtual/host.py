# SPDX-License-Identifier: Apache-2.0
"""Settings of this machine that virtual benches need while they are open.

Several benches may be open at once, in one process or in several. The first one changes the settings, the
last one gives them back. Each holds a lock meanwhile, which the kernel drops when the holder dies: what is
then left in the journal is undone by whoever opens or cleans a bench while no other is open.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from hw.errors import BenchError
from hw.journal import JOURNAL_FOLDER, Journal
from hw.reservation import LOCK_FOLDER, lock_file
from hw.virtual import fair_server

SETTINGS = "machine_settings"
"""Name of the journal, and of the two locks; no bench can have it."""

REAL_TIME_RUNTIME = Path("/proc/sys/kernel/sched_rt_runtime_us")

ALLOWED_CONGESTION_CONTROL = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")

SOFTIRQ_PRIORITY = 70
"""Above guests and producers, which would otherwise starve their links; below the stall witness."""


@contextmanager
def machine_settings(congestion_control: str) -> Generator[None, None, None]:
    """Keep the settings of this machine as virtual benches need them for the length of the context.

    Args:
        congestion_control: Those that the namespaces of a bench may choose, between spaces.

    Raises:
        BenchError: A setting could not be changed, or not be given back: it stays in the journal.
    """
    journal = _journal()
    with _held() as holders:
        try:
            with _decided():
                _change_settings(holders, journal, congestion_control)
            yield
        finally:
            with _decided():
                if _is_alone(holders):
                    journal.undo()


def _change_settings(holders: int, journal: Journal, congestion_control: str) -> None:
    """Change what is not as needed; however it ends, this bench holds the lock as every open one does."""
    try:
        if _is_alone(holders):
            journal.undo()
        _keep_real_time_running(journal)
        _keep_fair_server_away(journal)
        _forward_packets_first(journal)
        _allow_congestion_control(journal, congestion_control)
    finally:
        fcntl.flock(holders, fcntl.LOCK_SH)


def undo_machine_settings() -> int:
    """Give back what killed runs have left changed, unless a bench is open.

    Returns:
        How many settings were given back.

    Raises:
        BenchError: One could not be given back; it stays in the journal.
    """
    with _held() as holders, _decided():
        return _journal().undo() if _is_alone(holders) else 0


def _journal() -> Journal:
    actions = {
        "sysctl": _restore_sysctl,
        "scheduler": _restore_scheduler,
        "fair-server": _restore_fair_server,
    }
    return Journal(SETTINGS, actions, JOURNAL_FOLDER)


def _held() -> AbstractContextManager[int]:
    """Open the lock that every open bench holds."""
    return lock_file(LOCK_FOLDER / f"{SETTINGS}.holders")


@contextmanager
def _decided() -> Generator[None, None, None]:
    """Hold the lock under which settings are changed and given back: for milliseconds."""
    with lock_file(LOCK_FOLDER / f"{SETTINGS}.lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _is_alone(holders: int) -> bool:
    """Tell whether no other bench holds the lock; it is then ours alone."""
    try:
        fcntl.flock(holders, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def _errors_named(setting: str) -> Generator[None, None, None]:
    """Raise as BenchError what the kernel says of a setting."""
    try:
        yield
    except OSError as error:
        raise BenchError(f"{setting}: cannot be changed for the bench: {error.strerror or error}") from error


def _keep_real_time_running(journal: Journal) -> None:
    """Switch off the throttling of real-time threads: it would stop an emulated CPU 50 ms in each second."""
    with _errors_named(str(REAL_TIME_RUNTIME)):
        found = REAL_TIME_RUNTIME.read_text().strip()
        if found != "-1":
            journal.record("sysctl", path=str(REAL_TIME_RUNTIME), value=found)
            REAL_TIME_RUNTIME.write_text("-1\n")


def _keep_fair_server_away(journal: Journal) -> None:
    """Take from the fair server what it gives others of an emulated CPU, where the kernel permits it."""
    for cpu, found_ns in fair_server.runtimes_ns().items():
        if found_ns:
            journal.record("fair-server", cpu=cpu, value=found_ns)
            fair_server.set_runtime_ns(cpu, 0)


def _allow_congestion_control(journal: Journal, names: str) -> None:
    """Let namespaces choose congestion controls: the kernel asks the host's list."""
    with _errors_named(str(ALLOWED_CONGESTION_CONTROL)):
        found = ALLOWED_CONGESTION_CONTROL.read_text().strip()
        if lacking := [name for name in names.split() if name not in found.split()]:
            journal.record("sysctl", path=str(ALLOWED_CONGESTION_CONTROL), value=found)
            ALLOWED_CONGESTION_CONTROL.write_text(f"{' '.join([found, *lacking])}\n")


def _restore_fair_server(change: Mapping[str, Any]) -> None:
    """Undo action: write an old value back."""
    cpu, value = str(change["cpu"]), int(change["value"])
    found = fair_server.runtimes_ns()
    if found.get(cpu, value) != value and not fair_server.set_runtime_ns(cpu, value):
        raise BenchError(f"fair server of {cpu}: the kernel does not take {value} ns back")


def _restore_sysctl(change: Mapping[str, Any]) -> None:
    """Undo action: write an old value back."""
    path = Path(str(change["path"]))
    if path.read_text().strip() != change["value"]:
        path.write_text(f"{change['value']}\n")


def _forward_packets_first(journal: Journal) -> None:
    """Run the kernel's deferred packet work in real time.

    What does not fit into an interrupt is left to the threads `ksoftirqd`, of ordinary priority: on a CPU
    that an emulated processor keeps busy, packets of the bench's links wait for it.
    """
    for pid in _softirq_threads():
        with _errors_named(f"scheduling of ksoftirqd, process {pid}"):
            policy, priority = _scheduling(pid)
            if (policy, priority) != (os.SCHED_FIFO, SOFTIRQ_PRIORITY):
                journal.record("scheduler", pid=pid, policy=policy, priority=priority)
                os.sched_setscheduler(pid, os.SCHED_FIFO, os.sched_param(SOFTIRQ_PRIORITY))


def _restore_scheduler(change: Mapping[str, Any]) -> None:
    """Undo action: give a softirq thread its policy back; harmless where there is none with this id."""
    pid, found = int(change["pid"]), (int(change["policy"]), int(change["priority"]))
    if pid in _softirq_threads() and _scheduling(pid) != found:
        os.sched_setscheduler(pid, found[0], os.sched_param(found[1]))


def _scheduling(pid: int) -> tuple[int, int]:
    """Return policy and priority of a thread."""
    return os.sched_getscheduler(pid), os.sched_getparam(pid).sched_priority


def remove_folder(change: Mapping[str, Any]) -> None:
    """Undo action: remove a folder of the bench with all that is in it; harmless when it is gone."""
    shutil.rmtree(str(change["path"]), ignore_errors=True)


def _softirq_threads() -> list[int]:
    """Return the process ids of the kernel threads `ksoftirqd/N`: children of kthreadd, process 2."""
    threads: list[int] = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            pid, _, rest = stat.read_text().partition(" (")
        except OSError:
            continue
        name, _, fields = rest.rpartition(") ")
        if name.startswith("ksoftirqd/") and fields.split()[1] == "2":
            threads.append(int(pid))
    return sorted(threads)
