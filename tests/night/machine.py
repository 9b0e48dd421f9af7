# SPDX-License-Identifier: Apache-2.0
"""What of this machine a duration depends on: which one it is, its load, and what others take from it."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path

from bench.lab.report import machine_facts

_STEAL_FIELD = 8
_OF_A_CPU = re.compile(r"cpu[0-9]+ ")


def stolen_s(stat: str | None = None) -> tuple[float, ...]:
    """Return what the hypervisor has taken from each CPU since boot, in s; `stat`: text of /proc/stat."""
    text = Path("/proc/stat").read_text() if stat is None else stat
    ticks_per_s = os.sysconf("SC_CLK_TCK")
    return tuple(
        int(line.split()[_STEAL_FIELD]) / ticks_per_s for line in text.splitlines() if _OF_A_CPU.match(line)
    )


def load() -> float:
    """Return the number of tasks that run or wait for a CPU, averaged over the last minute."""
    return os.getloadavg()[0]


def machine() -> dict[str, object]:
    """Return which machine this is: durations are compared with others of the same."""
    facts = machine_facts()
    return {"name": platform.node(), **{key: facts[key] for key in ("processor", "processors")}}
