# SPDX-License-Identifier: Apache-2.0
"""Who has this machine's CPUs: a bench that it makes, or others.

What others run slows a bench down though it outranks them: they share caches and memory with it, and an
emulator needs more of its CPU for the same work. The kernel counts what all control groups have run, a
bench's own (`hw.virtual.cpu_account`) among them; the rest is others'.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hw.virtual import cpu_account

PROC = Path("/proc")
NAMED_MAX = 3
_TIMES = slice(11, 15)
"""Behind the name in /proc/PID/stat: utime, stime, cutime and cstime, in ticks (proc_pid_stat(5))."""


@dataclass(frozen=True)
class MachineUse:
    """What has run on this machine so far, or between two instants; in ns of CPU time.

    Attributes:
        at_ns: Monotonic clock; between two instants, how long.
        every_ns: All that ran, on all CPUs.
        own_ns: The bench of this process, and targets that share this machine's CPUs.
        others_ns: What others' processes have run that are still there, by id and name of the program.
    """

    at_ns: int
    every_ns: int
    own_ns: int
    others_ns: Mapping[int, tuple[str, int]]

    def since(self, before: MachineUse) -> MachineUse:
        """Return what has run since an earlier instant."""
        gained = {
            number: (name, ns - before.others_ns.get(number, ("", 0))[1])
            for number, (name, ns) in self.others_ns.items()
        }
        every_ns, own_ns = self.every_ns - before.every_ns, self.own_ns - before.own_ns
        return MachineUse(self.at_ns - before.at_ns, every_ns, own_ns, gained)

    def largest(self) -> list[tuple[str, int]]:
        """Return the names of others' programs that ran most, at most NAMED_MAX, and how long, in ns."""
        by_name: Counter[str] = Counter()
        for name, ns in self.others_ns.values():
            by_name[name] += max(0, ns)
        return [(name, ns) for name, ns in by_name.most_common(NAMED_MAX) if ns]


def machine_use() -> MachineUse | None:
    """Return what has run on this machine so far; None: its kernel keeps no account of it."""
    usage = cpu_account.usage()
    if usage is None:
        return None
    return MachineUse(time.monotonic_ns(), *usage, _others())


def _others() -> dict[int, tuple[str, int]]:
    """Return name and time in ns of each process outside of the bench, by its id."""
    tick_ns = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
    found: dict[int, tuple[str, int]] = {}
    for folder in PROC.iterdir():
        if not folder.name.isdigit():
            continue
        try:
            if cpu_account.is_own((folder / "cgroup").read_text()):
                continue
            head, _, rest = (folder / "stat").read_text(errors="replace").rpartition(")")
            ticks = sum(map(int, rest.split()[_TIMES]))
        except (OSError, ValueError):
            continue  # it has ended meanwhile
        found[int(folder.name)] = head.partition("(")[2], ticks * tick_ns
    return found
