# SPDX-License-Identifier: Apache-2.0
"""Settings of this machine that the virtual bench changes while it is open, each through the undo journal."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hw.journal import Journal

REAL_TIME_RUNTIME = Path("/proc/sys/kernel/sched_rt_runtime_us")

ALLOWED_CONGESTION_CONTROL = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")

SOFTIRQ_PRIORITY = 70
"""Above guests and producers, which would otherwise starve their links; below the stall witness."""


def keep_real_time_running(journal: Journal) -> None:
    """Switch off the throttling of real-time threads: it would stop an emulated CPU 50 ms in each second."""
    found = REAL_TIME_RUNTIME.read_text().strip()
    if found != "-1":
        journal.record("sysctl", path=str(REAL_TIME_RUNTIME), value=found)
        REAL_TIME_RUNTIME.write_text("-1\n")


def allow_congestion_control(journal: Journal, name: str) -> None:
    """Let the bench's namespaces choose a congestion control: the kernel asks the host's list."""
    found = ALLOWED_CONGESTION_CONTROL.read_text().strip()
    if name not in found.split():
        journal.record("sysctl", path=str(ALLOWED_CONGESTION_CONTROL), value=found)
        ALLOWED_CONGESTION_CONTROL.write_text(f"{found} {name}\n")


def restore_sysctl(change: Mapping[str, Any]) -> None:
    """Undo action: write an old value back."""
    path = Path(str(change["path"]))
    if path.read_text().strip() != change["value"]:
        path.write_text(f"{change['value']}\n")


def forward_packets_first(journal: Journal) -> None:
    """Run the kernel's deferred packet work in real time.

    What does not fit into an interrupt is left to the threads `ksoftirqd`, of ordinary priority: on a CPU
    that an emulated processor keeps busy, packets of the bench's links wait for it.
    """
    for pid in _softirq_threads():
        policy, priority = os.sched_getscheduler(pid), os.sched_getparam(pid).sched_priority
        if (policy, priority) != (os.SCHED_FIFO, SOFTIRQ_PRIORITY):
            journal.record("scheduler", pid=pid, policy=policy, priority=priority)
            os.sched_setscheduler(pid, os.SCHED_FIFO, os.sched_param(SOFTIRQ_PRIORITY))


def restore_scheduler(change: Mapping[str, Any]) -> None:
    """Undo action: give a softirq thread its policy back; harmless where there is none with this id."""
    pid = int(change["pid"])
    if pid in _softirq_threads():
        os.sched_setscheduler(pid, int(change["policy"]), os.sched_param(int(change["priority"])))


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
