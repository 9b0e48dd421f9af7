# SPDX-License-Identifier: Apache-2.0
"""What a node's kernel has counted since it was started: read by one command, before a load and after it.

They are proc(5)'s, of all that runs there; those of a network namespace are its machine's, but for its
interfaces.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from hw.protocols import Node

COMMAND = (
    "cat",
    "/proc/uptime",
    "/proc/self/status",
    "/proc/stat",
    "/proc/net/dev",
    "/proc/diskstats",
    "/proc/mounts",
)
TICKS_PER_S = 100
"""Of /proc/stat: USER_HZ, the same on every processor that the project knows."""
SECTOR_BYTES = 512
"""Of /proc/diskstats, whatever a disk's own are."""

_UPTIME = re.compile(r"([0-9]+\.[0-9]+) [0-9]+\.[0-9]+\n")
_ALLOWED = re.compile(r"^Cpus_allowed_list:\s+([0-9,-]+)$", re.MULTILINE)
_CPU = re.compile(r"^cpu +([0-9 ]+)$", re.MULTILINE)
_SWITCHES = re.compile(r"^ctxt ([0-9]+)$", re.MULTILINE)
_FORKS = re.compile(r"^processes ([0-9]+)$", re.MULTILINE)
_INTERFACE = re.compile(r"^ *(\S+):((?: +[0-9]+){16})$", re.MULTILINE)
_DISK = re.compile(r"^ *[0-9]+ +[0-9]+ (\S+)((?: [0-9]+){11,})$", re.MULTILINE)
_MOUNT = re.compile(r"^\S+ (/\S*) (\S+) (r[ow])\b\S* 0 0$", re.MULTILINE)
_WHOLE_DISK = re.compile(r"(?:[shv]d[a-z]+|xvd[a-z]+|nvme[0-9]+n[0-9]+|mmcblk[0-9]+)\Z")
"""Neither a partition nor what lies on other disks, which would be counted twice."""
_USER, _NICE, _SYSTEM, _IRQ, _SOFTIRQ = 0, 1, 2, 5, 6
_RECEIVED, _SENT = 0, 8
_SECTORS_WRITTEN = 6


@dataclass(frozen=True)
class Counters:
    """One reading; None: the node does not say.

    Attributes:
        uptime_s: Since the start of the node.
        processors: That a program may use there.
        cpu_s: CPU time that was worked, interrupts with it; neither idle nor stolen.
        disk_bytes: Written to whole disks.
        sent_bytes: By all interfaces but the loopback; likewise `received_bytes`.
        mounts: Types of file systems by where they are mounted, and whether those are `ro` or `rw`.
    """

    uptime_s: float | None = None
    processors: int | None = None
    cpu_s: float | None = None
    forks: int | None = None
    context_switches: int | None = None
    disk_bytes: int | None = None
    sent_bytes: int | None = None
    received_bytes: int | None = None
    mounts: Mapping[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])

    @property
    def known(self) -> bool:
        """Tell whether the node has counters at all."""
        return self.uptime_s is not None

    def file_system(self, folder: str) -> str:
        """Return the type of the file system that a folder is on, such as `ext4`; empty: unknown."""
        return self._on(folder)[0]

    def is_writable(self, folder: str) -> bool:
        """Tell whether a folder is known to be on a file system that can be written."""
        return self._on(folder)[1] == "rw"

    def _on(self, folder: str) -> tuple[str, str]:
        on = [mount for mount in self.mounts if f"{folder}/".startswith(f"{mount.rstrip('/')}/")]
        return self.mounts[max(on, key=len)] if on else ("", "")


def read_counters(node: Node) -> Counters:
    """Read all that a node has; nothing of one without /proc, such as a Windows machine.

    Raises:
        BenchError: The node cannot be reached.
    """
    return counters_of(node.run(COMMAND, check=False).stdout)


def counters_of(text: str) -> Counters:
    """Return the counters of what the command has printed; files that were not there are left out."""
    uptime = _UPTIME.match(text)
    if uptime is None:
        return Counters()
    cpu = _CPU.search(text)
    ticks = [int(word) for word in cpu[1].split()] if cpu else []
    interfaces = [
        [int(word) for word in numbers.split()] for name, numbers in _INTERFACE.findall(text) if name != "lo"
    ]
    disks = [
        [int(word) for word in numbers.split()]
        for name, numbers in _DISK.findall(text)
        if _WHOLE_DISK.match(name)
    ]
    return Counters(
        uptime_s=float(uptime[1]),
        processors=_count(_ALLOWED.search(text)),
        cpu_s=sum(ticks[each] for each in (_USER, _NICE, _SYSTEM, _IRQ, _SOFTIRQ)) / TICKS_PER_S
        if len(ticks) > _SOFTIRQ
        else None,
        forks=_number(_FORKS.search(text)),
        context_switches=_number(_SWITCHES.search(text)),
        disk_bytes=sum(disk[_SECTORS_WRITTEN] for disk in disks) * SECTOR_BYTES if disks else None,
        sent_bytes=sum(each[_SENT] for each in interfaces) if interfaces else None,
        received_bytes=sum(each[_RECEIVED] for each in interfaces) if interfaces else None,
        mounts={place: (kind, form) for place, kind, form in _MOUNT.findall(text)},
    )


def _number(found: re.Match[str] | None) -> int | None:
    return int(found[1]) if found else None


def _count(found: re.Match[str] | None) -> int | None:
    """Return how many CPUs a list has, such as `0-3,8`."""
    if found is None:
        return None
    ends = [part.split("-") for part in found[1].split(",")]
    return sum(int(each[-1]) - int(each[0]) + 1 for each in ends)
