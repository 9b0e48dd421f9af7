# SPDX-License-Identifier: Apache-2.0
"""Settings of this machine that the virtual bench changes while it is open, each through the undo journal."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hw.journal import Journal

REAL_TIME_RUNTIME = Path("/proc/sys/kernel/sched_rt_runtime_us")

ALLOWED_CONGESTION_CONTROL = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")


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
