# SPDX-License-Identifier: Apache-2.0
"""What the hypervisor takes from this machine's CPUs: time that no program of the machine can account for."""

from __future__ import annotations

import os
import re
from pathlib import Path

STAT = Path("/proc/stat")
_STEAL_FIELD = 8
_OF_A_CPU = re.compile(r"cpu[0-9]+ ")


def stolen_s(stat: str | None = None) -> tuple[float, ...]:
    """Return what the hypervisor has taken from each CPU since boot, in s; none where the system is silent.

    Args:
        stat: Text of /proc/stat; None: this machine's.
    """
    if stat is None:
        stat = STAT.read_text() if STAT.exists() else ""
    ticks_per_s = os.sysconf("SC_CLK_TCK")
    return tuple(
        int(line.split()[_STEAL_FIELD]) / ticks_per_s for line in stat.splitlines() if _OF_A_CPU.match(line)
    )
