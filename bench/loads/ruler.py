# SPDX-License-Identifier: Apache-2.0
"""What a command and all that it starts take of a machine, whatever else runs there.

Started by `measure()` as the first process of a PID namespace, in which the next number tells how often a
process or thread was made. CPU time and context switches are those that the kernel sums up of processes that
were waited for (getrusage(2)), bytes likewise (/proc/PID/io; proc(5): `write_bytes`, what was caused to be
written to a disk, less `cancelled_write_bytes`, of files that were removed before they were).
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

WAIT_S = 3600


def measure(argv: Sequence[str], env: Mapping[str, str] | None = None) -> dict[str, float]:
    """Run a command to its end; what it says goes to stderr.

    Returns:
        `seconds`, and of each second: `cpu` in s, `forks`, `context_switches`, `written_bytes`; `disk_bytes`,
        those of `written_bytes` that reached, or will reach, a disk.

    Raises:
        RuntimeError: It failed.
    """
    command = ["unshare", "--pid", "--fork", "--kill-child", sys.executable, __file__, *argv]
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, check=False, timeout=WAIT_S)
    if done.returncode:
        raise RuntimeError(f"{argv[0]}: exit code {done.returncode}")
    found: dict[str, float] = json.loads(done.stdout)
    return found


def _io() -> dict[str, int]:
    lines = Path("/proc/self/io").read_text().splitlines()
    return {name: int(value) for name, _, value in (line.partition(": ") for line in lines)}


def _children_made() -> int:
    """Return how many processes and threads were made in this PID namespace besides this one."""
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return pid - 2


def _main(argv: list[str]) -> int:
    before, begin = _io(), time.monotonic()
    code = subprocess.run(argv, stdout=sys.stderr, check=False).returncode
    seconds = time.monotonic() - begin
    used, after = resource.getrusage(resource.RUSAGE_CHILDREN), _io()
    grown = {name: after[name] - before[name] for name in after}
    figures = {
        "cpu": used.ru_utime + used.ru_stime,
        "forks": _children_made(),
        "context_switches": used.ru_nvcsw + used.ru_nivcsw,
        "written_bytes": grown["wchar"],
        "disk_bytes": grown["write_bytes"] - grown["cancelled_write_bytes"],
    }
    print(json.dumps({"seconds": seconds, **{name: value / seconds for name, value in figures.items()}}))
    return code


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
