# SPDX-License-Identifier: Apache-2.0
"""What targets that are namespaces of this machine take of its CPUs, by the scheduler's own account.

A control group has all their processes, whatever these start and at whatever priority. The kernel counts what
a group has run on each CPU, in ns (`cpuacct`). The group is one for all benches of this machine, and stays.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from hw.errors import BenchError, CapabilityError
from hw.virtual import network

NAMESPACES = Path("/run/netns")
MOUNTS = Path("/proc/self/mounts")
OWN_MOUNT = Path("/run/benchwright/cpuacct")
"""Where a machine that has version 2 of control groups alone, which counts no single CPU, gets `cpuacct`."""
CONTROLLER = "cpuacct"
GROUP = "benchwright"


def inside() -> list[str]:
    """Return what stands before a command that is to run in the group; raises as `usage_file`."""
    enter = 'echo $$ >"$0/cgroup.procs" && exec "$@"'
    return ["sh", "-c", enter, str(_folder())]


def usage_file() -> Path:
    """Return the file of what the group has run so far, in ns, CPU by CPU; 0 where nothing has run inside.

    It can be opened in a namespace, too, where /sys is another one, as long as this process lives.

    Raises:
        CapabilityError: This machine's kernel keeps no such account.
    """
    return Path(f"/proc/{os.getpid()}/root{_folder()}/cpuacct.usage_percpu")


def count(part: str, namespaces: Collection[str]) -> Path:
    """Count all processes that run in namespaces now, and what they start, as a part of the group.

    Args:
        part: Its name; the group's own account has what its parts have.
        namespaces: Names of network namespaces of this machine.

    Returns:
        The file of what the part has run so far, in ns.

    Raises:
        CapabilityError: This machine's kernel keeps no such account.
    """
    folder = _folder(part)
    wanted = {(place.st_dev, place.st_ino) for name in namespaces for place in [(NAMESPACES / name).stat()]}
    entrance = folder / "cgroup.procs"
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended meanwhile
            place = (process / "ns" / "net").stat()
            if (place.st_dev, place.st_ino) in wanted:
                entrance.write_text(process.name)
    return folder / "cpuacct.usage"


def _folder(part: str = "") -> Path:
    """Return the folder of the group or a part of it, made where it is not there, as after each boot."""
    folder = _mount() / GROUP / part
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _no_account(error) from error
    return folder


def _mount() -> Path:
    for line in MOUNTS.read_text().splitlines():
        _, place, kind, options = line.split()[:4]
        if kind == "cgroup" and CONTROLLER in options.split(","):
            return Path(place)
    OWN_MOUNT.mkdir(parents=True, exist_ok=True)
    try:
        network.run("mount", "-t", "cgroup", "-o", CONTROLLER, GROUP, str(OWN_MOUNT))
    except BenchError as error:
        raise _no_account(error) from error
    return OWN_MOUNT


def _no_account(error: Exception) -> CapabilityError:
    return CapabilityError(f"no account of what a target takes of this machine's CPUs: {error}")
