# SPDX-License-Identifier: Apache-2.0
"""The scheduler's fair server, of Linux 6.12 and later (Documentation/scheduler/sched-deadline.rst).

Of a CPU that real-time threads keep busy it gives waiting ordinary threads so much of each second, 50 ms
unless somebody changes it, whatever `kernel.sched_rt_runtime_us` says. The kernel has it in debugfs, which a
machine need not have mounted, and which lockdown keeps to the kernel.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence

PLACE = "/sys/kernel/debug/sched/fair_server"
_READ = 'cd "$1" && for cpu in cpu*; do runtime=$(cat "$cpu/runtime") && echo "$cpu $runtime"; done'
_WRITE = 'echo "$3" >"$1/$2/runtime"'
_MOUNTED = '[ -d "$1" ] || mount -t debugfs debugfs /sys/kernel/debug || exit 3; '
_WITHIN_S = 10.0


def runtimes_ns() -> Mapping[str, int]:
    """Return what waiting threads get of each second, by CPU (`cpu0`); none: it is not there, or closed."""
    found = _run(_READ, [])
    rows = [line.split() for line in found.stdout.splitlines()] if found else []
    return {cpu: int(runtime) for cpu, runtime in rows}


def set_runtime_ns(cpu: str, runtime_ns: int) -> bool:
    """Set what waiting threads of a CPU get of each second; return whether the kernel has taken it."""
    done = _run(_WRITE, [cpu, str(runtime_ns)])
    return done is not None and done.returncode == 0


def _run(script: str, words: Sequence[str]) -> subprocess.CompletedProcess[str] | None:
    """Run a script where debugfs is mounted, for the script alone unless it is already."""
    argv = ["unshare", "--mount", "sh", "-c", _MOUNTED + script, "sh", PLACE, *words]
    try:
        return subprocess.run(argv, capture_output=True, text=True, timeout=_WITHIN_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
