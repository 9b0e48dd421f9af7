# SPDX-License-Identifier: Apache-2.0
"""Where the native tools are that `make setup` has built, and the versions of what the bench works with."""

from __future__ import annotations

import configparser
import platform
import subprocess
from importlib import metadata
from pathlib import Path

from hw.errors import CapabilityError, ConfigError

ROOT = Path(__file__).resolve().parent.parent
HOST_BUILD = "linux"
"""Folder below `.build/` of what this machine itself runs."""
BUILD = ROOT / ".build"


TOOL_FOLDERS = (
    "traffic-gen",
    *sorted(str(path.parent.relative_to(ROOT)) for path in ROOT.glob("targets/*/*/**/meson.build")),
)
"""Folders, in the source tree as in each build's, whose programs are put on nodes, whatever their depth."""
MACHINE_PROPERTY = "benchwright_machine"


def cross_builds(root: Path, *, dynamic: bool = False) -> dict[str, str]:
    """Return machine → build, by the cross files of all kinds: `targets/*/cross/BUILD.ini`.

    A machine may have two: one whose programs are linked statically, `static = true` in the file, and one
    whose programs can load libraries.

    Args:
        root: Of the source tree.
        dynamic: Only builds whose programs can load libraries; else a machine's static one, if it has both.

    Raises:
        ConfigError: A cross file does not say its machine, or another one is for it and links its programs
            alike, or is of the same name.
    """
    static: dict[str, str] = {}
    loading: dict[str, str] = {}
    for file in sorted(root.glob("targets/*/cross/*.ini")):
        machine_file = configparser.ConfigParser(interpolation=None)
        machine_file.read(file)
        machine = machine_file.get("properties", MACHINE_PROPERTY, fallback="").strip("'")
        if not machine:
            raise ConfigError(f"{file}: [properties] {MACHINE_PROPERTY}: missing: what `uname -m` says there")
        is_static = machine_file.getboolean("project options", "static", fallback=False)
        builds = static if is_static else loading
        if machine in builds or file.stem in (*static.values(), *loading.values()):
            raise ConfigError(f"{file}: there is another build {file.stem} or for {machine}")
        builds[machine] = file.stem
    return loading if dynamic else loading | static


BUILDS = {"x86_64": "static", **cross_builds(ROOT)}
"""Machine, as `uname -m` says on a node, → build whose programs run there, whatever its shared libraries."""
DYNAMIC_BUILDS = {platform.machine(): HOST_BUILD, **cross_builds(ROOT, dynamic=True)}
"""Machine → build whose programs can load libraries, where the machine has those that they need."""
NATIVE_TOOLS = ("bw-traffic", "bw-clock", "bw-edge")
PYTHON_TOOLS = ("labgrid", "scapy")
PROGRAMS = {
    "qemu": ("qemu-system-x86_64", "--version"),
    "tcpdump": ("tcpdump", "--version"),
    "tc": ("tc", "-V"),
}


def tool_versions() -> dict[str, str]:
    """Return the versions of what the bench works with, as each tool says; a missing one is left out."""
    versions = {name: metadata.version(name) for name in PYTHON_TOOLS}
    native = {name: (str(local_tool(name)), "--version") for name in NATIVE_TOOLS}
    for name, command in {**native, **PROGRAMS}.items():
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=10)
        except OSError:
            continue
        lines = (done.stdout or done.stderr).splitlines()
        if lines:
            versions[name] = lines[0].strip()
    return versions


def local_tool(name: str, machine: str = "", *, dynamic: bool = False) -> Path:
    """Return the path of a native tool.

    Args:
        name: `bw-traffic`, `bw-wander`, …
        machine: What `uname -m` says on the node that it is for; empty: for this machine.
        dynamic: One that can load libraries; this machine's always can.

    Raises:
        CapabilityError: It has not been built, or nothing of the kind is built for such a machine.
    """
    build = _build(name, machine, dynamic=dynamic)
    for folder in TOOL_FOLDERS:
        for file in (build / folder / name, build / folder / f"{name}.exe"):
            if file.exists():
                return file
    raise CapabilityError(f"{name} is missing in {build.relative_to(ROOT)}: run `make setup`")


def local_library(name: str, machine: str = "") -> Path:
    """Return the path of a shared library of the native tools.

    Args:
        name: Of its file, such as `libbwtime.so`.
        machine: What `uname -m` says on the node that it is for; empty: for this machine.

    Raises:
        CapabilityError: It has not been built, or programs for such a machine load no libraries.
    """
    build = _build(name, machine, dynamic=True)
    for folder in ("traffic-gen", "targets"):
        for file in (build / folder).rglob(name):
            return file
    raise CapabilityError(f"{name} is missing in {build.relative_to(ROOT)}: run `make setup`")


def _build(name: str, machine: str, *, dynamic: bool) -> Path:
    """Return the folder of the build for a machine; raises CapabilityError where there is none."""
    builds = DYNAMIC_BUILDS if dynamic else BUILDS
    if machine and machine not in builds:
        if machine in BUILDS:
            raise CapabilityError(
                f"{name}: programs for {machine} are linked statically and load no libraries; those that do"
                f" are built for: {', '.join(builds)}"
            )
        raise CapabilityError(f"{name}: not built for {machine}; there are: {', '.join(builds)}")
    return BUILD / (builds[machine] if machine else HOST_BUILD)
