# SPDX-License-Identifier: Apache-2.0
"""What a bench, and targets that are namespaces of this machine, take of its CPUs: the scheduler's account.

A control group has all processes of such targets, whatever these start and at whatever priority. The kernel
counts what a group has run on each CPU, in ns (`cpuacct`). The group is one for all benches of this machine,
and stays. Another one has the process that opens a bench, and all that it starts, as long as the bench is
open.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from hw.errors import BenchError, CapabilityError
from hw.virtual import network

NAMESPACES = Path("/run/netns")
MOUNTS = Path("/proc/self/mounts")
OWN_MOUNT = Path("/run/benchwright/cpuacct")
"""Where a machine that has version 2 of control groups alone, which counts no single CPU, gets `cpuacct`."""
CONTROLLER = "cpuacct"
MEMBERS = "cgroup.procs"
GROUP = "benchwright"
LAB = f"{GROUP}-lab-"
"""Before the id of the process that has a bench open."""


@contextmanager
def lab() -> Generator[None]:
    """Count this process, and all that it starts, as a bench while the context lasts.

    Harmless where this machine's kernel keeps no account. Groups of processes that were killed are removed.
    """
    before = None
    with suppress(OSError, CapabilityError):
        before = _enter_lab()
    try:
        yield
    finally:
        if before is not None:
            _enter(before)
            _remove(_lab())


def _enter_lab() -> Path:
    """Put this process into a group of its own; return the one that it was in."""
    before = _mount() / _group_of(Path("/proc/self/cgroup").read_text()).strip("/")
    for each in _mount().glob(f"{LAB}*"):
        _remove(each)
    _lab().mkdir(exist_ok=True)
    _enter(_lab())
    return before


def _lab() -> Path:
    return _mount() / f"{LAB}{os.getpid()}"


def usage() -> tuple[int, int] | None:
    """Return what has run since this machine started, in ns of CPU time: of everybody, of bench and targets.

    None: this process has no bench open, or the kernel keeps no account.
    """
    try:
        every, *own = (
            int((folder / "cpuacct.usage").read_text()) for folder in (_mount(), _lab(), _folder())
        )
    except (OSError, ValueError, CapabilityError):
        return None
    return every, sum(own)


def is_own(cgroup: str) -> bool:
    """Say whether a process is a bench's, or its target's, by its /proc/PID/cgroup."""
    name = _group_of(cgroup).strip("/").partition("/")[0]
    return name in (GROUP, f"{LAB}{os.getpid()}")


def _group_of(cgroup: str) -> str:
    """Return the path of the group of `cpuacct`; the root's where there is none."""
    for line in cgroup.splitlines():
        _, controllers, path = line.split(":", 2)
        if CONTROLLER in controllers.split(","):
            return path
    return "/"


def _enter(folder: Path) -> None:
    (folder / MEMBERS).write_text(f"{os.getpid()}\n")


def _remove(folder: Path) -> None:
    """Remove a group, unless somebody is still in it."""
    with suppress(OSError):
        folder.rmdir()


def inside() -> list[str]:
    """Return what stands before a command that is to run in the group; raises as `usage_file`."""
    enter = f'echo $$ >"$0/{MEMBERS}" && exec "$@"'
    return ["sh", "-c", enter, str(_folder())]


def usage_file() -> Path:
    """Return the file of what the group has run so far, in ns, CPU by CPU; 0 where nothing has run inside.

    It can be opened in a namespace, too, where /sys is another one, as long as this process lives.

    Raises:
        CapabilityError: This machine's kernel keeps no such account.
    """
    return Path(f"/proc/{os.getpid()}/root{_folder()}/cpuacct.usage_percpu")


@contextmanager
def counted(part: str, namespaces: Collection[str]) -> Generator[Path]:
    """Count all processes that run in namespaces now, and what they start, as a part of the group.

    Afterwards they go back to their own groups, and what they have started to that of the first of them.

    Args:
        part: Its name; the group's own account has what its parts have.
        namespaces: Names of network namespaces of this machine.

    Yields:
        The file of what the part has run so far, in ns.

    Raises:
        CapabilityError: This machine's kernel keeps no such account.
    """
    folder, mount = _folder(part), _mount()
    wanted = {(place.st_dev, place.st_ino) for name in namespaces for place in [(NAMESPACES / name).stat()]}
    entrance = folder / MEMBERS
    came_from: dict[str, Path] = {}
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended meanwhile
            place = (process / "ns" / "net").stat()
            if (place.st_dev, place.st_ino) in wanted:
                came_from[process.name] = mount / _group_of((process / "cgroup").read_text()).strip("/")
                entrance.write_text(process.name)
    try:
        yield folder / "cpuacct.usage"
    finally:
        home = next(iter(came_from.values()), mount / GROUP)
        for number in entrance.read_text().split():
            with suppress(OSError):
                (came_from.get(number, home) / MEMBERS).write_text(number)
        _remove(folder)


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
