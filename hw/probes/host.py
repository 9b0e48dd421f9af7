# SPDX-License-Identifier: Apache-2.0
"""Programs, environments and disk space of this machine as a bench host."""

from __future__ import annotations

import os
import platform
import resource
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from hw.capability import Capability, State
from hw.probes import privileges
from hw.tools import BUILDS, HOST_BUILD

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGE_LISTS = (
    REPOSITORY / "hw" / "host" / "packages.txt",
    *sorted(REPOSITORY.glob("targets/*/packages.txt")),
)
"""Those of the host, and those of each kind of target."""
SET_UP = "make setup (as root)"

DISK_NEEDED_BYTES = 2_000_000_000
DISK_WANTED_BYTES = 5_000_000_000


@dataclass(frozen=True)
class ListedPackage:
    """One line of packages.txt."""

    name: str
    use: str
    source: str
    minimum: str


def parse_package_list(text: str) -> list[ListedPackage]:
    """Read the text of packages.txt.

    Raises:
        ValueError: Names the line that has not four columns.
    """
    packages: list[ListedPackage] = []
    for number, line in enumerate(text.splitlines(), start=1):
        columns = line.partition("#")[0].split()
        if not columns:
            continue
        if len(columns) != 4:
            raise ValueError(
                f"packages.txt:{number}: {len(columns)} columns, must be 4: package use source minimum"
            )
        packages.append(ListedPackage(*columns))
    return packages


def packages() -> list[Capability]:
    """Compare the installed Debian packages with the list: those of a bench, and those of tests and lint."""
    listed = [package for file in PACKAGE_LISTS for package in parse_package_list(file.read_text())]
    installed = _installed_versions([package.name for package in listed])
    by_use = {
        key: [package for package in listed if package.use == use]
        for key, use in (("packages", "bench"), ("packages-dev", "dev"))
    }
    return [judge_packages(key, each, installed, other_system()) for key, each in by_use.items()]


def other_system() -> str:
    """Return the name of this machine's system where it is not Debian's; empty: it is."""
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        return "a system without os-release"
    return "" if release.get("ID") == "debian" else release.get("PRETTY_NAME", release.get("ID", "Linux"))


def _installed_versions(names: list[str]) -> dict[str, str]:
    """Return the versions of those packages that are installed, in Debian's notation."""
    answer = subprocess.run(
        ["dpkg-query", "-W", "-f", "${Package} ${db:Status-Status} ${Version}\n", *names],
        capture_output=True,
        text=True,
    ).stdout
    rows = (line.split() for line in answer.splitlines())
    return {row[0]: row[2] for row in rows if len(row) == 3 and row[1] == "installed"}


def _older(version: str, minimum: str) -> bool:
    """Compare two versions as Debian does."""
    if minimum == "-":
        return False
    return subprocess.run(["dpkg", "--compare-versions", version, "lt", minimum]).returncode == 0


def judge_packages(
    key: str, listed: list[ListedPackage], installed: dict[str, str], system: str = ""
) -> Capability:
    """Judge the installed versions against the listed packages.

    Args:
        key: Of the capability.
        listed: What has to be there.
        installed: Versions by package.
        system: The system's name, where it is not Debian.
    """
    absent = [package.name for package in listed if package.name not in installed]
    old = [
        f"{package.name} {installed[package.name]} (needs {package.minimum})"
        for package in listed
        if package.name in installed and _older(installed[package.name], package.minimum)
    ]
    if absent or old:
        words = (["absent: " + " ".join(absent)] if absent else []) + (
            ["too old: " + ", ".join(old)] if old else []
        )
        if system:
            words.insert(0, f"{system}, and Benchwright's host is Debian 12 or 13")
            remedy = f"take Debian 12 or 13; {SET_UP} says, before it installs, what apt lacks here"
            return Capability(key, State.MISSING, "; ".join(words), remedy)
        return Capability(key, State.MISSING, "; ".join(words), SET_UP)
    return Capability(key, State.OK, f"all {len(listed)} present")


def emulator() -> Capability:
    """Ask QEMU for its version."""
    return _program("qemu", ["qemu-system-x86_64", "--version"])


def wine() -> Capability:
    """Ask Wine for its version; Debian's package alone puts it into no folder of PATH."""
    path = shutil.which("wine64") or "/usr/lib/wine/wine64"
    return _program("wine", [path, "--version"])


def _program(key: str, command: list[str]) -> Capability:
    """Run a program that prints its version and ends."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired) as error:
        return judge_program(key, command[0], "", str(error))
    return judge_program(key, command[0], done.stdout, done.stderr if done.returncode else "")


def judge_program(key: str, name: str, output: str, error: str) -> Capability:
    """Judge what a program has answered when asked for its version."""
    lines = output.strip().splitlines()
    if error or not lines:
        reason = (error.strip().splitlines() or ["no answer"])[-1]
        return Capability(key, State.MISSING, f"{name} does not run: {reason}", SET_UP)
    return Capability(key, State.OK, lines[0])


def python_environment() -> Capability:
    """Look for the locked Python environment."""
    python = REPOSITORY / ".build" / "venv" / "bin" / "python"
    version = ".".join(str(number) for number in sys.version_info[:3])
    stamps = (
        {path.name for path in (REPOSITORY / ".build" / "stamp").glob("python-*")}
        if python.exists()
        else set[str]()
    )
    return judge_python_environment(version, stamps)


def judge_python_environment(version: str, stamps: set[str]) -> Capability:
    """Judge the stamps that set-up has left (hw/host/python.sh)."""
    if "python-dev" in stamps:
        return Capability(
            "python", State.OK, f"environment complete, with tools of development; this is Python {version}"
        )
    if "python-bench" in stamps:
        return Capability("python", State.OK, f"environment of a bench; this is Python {version}")
    return Capability("python", State.MISSING, "no environment in .build/venv", "make setup")


def native_tools() -> Capability:
    """Run the native tool of this host; look for those of the targets."""
    build = REPOSITORY / ".build"
    tool = build / HOST_BUILD / "traffic-gen" / "bw-traffic"
    if tool.exists():
        runs = _program("native", [str(tool), "--help"])
        if runs.state is State.MISSING:
            return Capability("native", State.MISSING, runs.found, "make setup")
    targets = {
        name: any((build / name / "traffic-gen" / file).exists() for file in ("bw-traffic", "bw-traffic.exe"))
        for name in BUILDS.values()
    }
    return judge_native_tools({HOST_BUILD: tool.exists(), **targets})


def judge_native_tools(built: dict[str, bool]) -> Capability:
    """Judge which variants of the native tools are built."""
    absent = [name for name, there in built.items() if not there]
    if absent:
        return Capability("native", State.MISSING, f"not built: {' '.join(absent)}", "make setup")
    return Capability("native", State.OK, f"built: {' '.join(built)}")


def cache_folder() -> Path:
    """Return the folder of guest images: $BENCHWRIGHT_CACHE, else ~/.cache/benchwright."""
    return Path(os.environ.get("BENCHWRIGHT_CACHE") or Path.home() / ".cache" / "benchwright")


def disk() -> Capability:
    """Measure the free space where results and guest images go."""
    try:
        folders = {"results": _existing(REPOSITORY / "results"), "guest images": _existing(cache_folder())}
    except RuntimeError as error:
        return Capability("disk", State.MISSING, f"guest images: {error}", "set HOME, or BENCHWRIGHT_CACHE")
    refusals = {what: refusal for what, folder in folders.items() if (refusal := write_refusal(folder))}
    return judge_disk({what: shutil.disk_usage(folder).free for what, folder in folders.items()}, refusals)


def _existing(folder: Path) -> Path:
    """Return the folder, or the nearest one above it that exists."""
    return next(path for path in (folder, *folder.parents) if path.exists())


def write_refusal(folder: Path) -> str:
    """Say why nothing can be written in a folder; empty: it can."""
    if not folder.is_dir():
        return f"{folder} is no folder"
    if os.access(folder, os.W_OK | os.X_OK):
        return ""
    read_only = bool(os.statvfs(folder).f_flag & os.ST_RDONLY)
    return f"no right to write in {folder}" + (", which is on a read-only file system" if read_only else "")


def judge_disk(free_bytes: dict[str, int], refusals: dict[str, str] | None = None) -> Capability:
    """Judge the free space by purpose, in bytes, and by purpose why nothing can be written."""
    if refusals:
        words = "; ".join(f"{what}: {refusal}" for what, refusal in refusals.items())
        remedy = "give the right to write, or set BENCHWRIGHT_CACHE to a folder that has it"
        return Capability("disk", State.MISSING, words, remedy)
    found = ", ".join(f"{free / 1e9:.1f} GB for {what}" for what, free in free_bytes.items())
    least = min(free_bytes.values())
    if least >= DISK_WANTED_BYTES:
        return Capability("disk", State.OK, found)
    state = State.LIMITED if least >= DISK_NEEDED_BYTES else State.MISSING
    return Capability(
        "disk", state, found, "free space, or set BENCHWRIGHT_CACHE to a folder on a larger disk"
    )


def locked_memory() -> Capability:
    """Say whether this process can lock memory, as real-time programs must."""
    soft, _hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    return judge_locked_memory(soft, privileged=not privileges.lacking("CAP_IPC_LOCK"))


def judge_locked_memory(limit_bytes: int, *, privileged: bool) -> Capability:
    """Judge the limit of locked memory; -1 is none, and who has CAP_IPC_LOCK is bound by none."""
    if privileged or limit_bytes < 0 or limit_bytes >= 256 << 20:
        return Capability("memlock", State.OK, "memory can be locked")
    return Capability(
        "memlock",
        State.LIMITED,
        f"at most {limit_bytes >> 10} KiB of memory can be locked: page faults may delay real-time threads",
        "run as root (in a container with --cap-add=IPC_LOCK),"
        " or memlock unlimited in /etc/security/limits.conf",
    )
