# SPDX-License-Identifier: Apache-2.0
"""How a machine that is a network namespace of this one is started: where it runs, its log, when it is up."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from hw.errors import BenchError
from hw.virtual import cpu_account, network
from hw.virtual.console_log import put_aside, wait_for_boot

LOG = "console.log"
"""In the machine's folder: what it says."""


def in_namespace(namespace: str, cpus: Sequence[int]) -> list[str]:
    """Return what stands before a command that is to run in a namespace, on these CPUs; none: on any.

    What it takes of them is counted. Raises as `hw.virtual.cpu_account.usage_file`.
    """
    placed = ["taskset", "--cpu-list", ",".join(map(str, cpus))] if cpus else []
    return [*cpu_account.inside(), "ip", "netns", "exec", namespace, *placed]


def start(
    name: str, namespace: str, argv: Sequence[str], log: Path, environment: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Start a machine; return the process that lives as long as it, when it is up.

    Args:
        name: Of the machine.
        namespace: Its own; where it does not come up, all that runs there is ended.
        argv: Its first process.
        log: Gets what it says; that of a boot before is put aside.
        environment: Of the process; None: this one's.

    Raises:
        BenchError: It does not come up; the text quotes its log.
    """
    put_aside(log)
    # To its end: a session of the machine may write to it as well.
    with log.open("ab") as output:
        process = subprocess.Popen(
            argv,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        wait_for_boot(name, log, lambda: process.poll() is None)
    except BenchError:
        network.end_processes(namespace)
        process.wait()
        raise
    return process
