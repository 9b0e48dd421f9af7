# SPDX-License-Identifier: Apache-2.0
"""A whole qualification that is ended by SIGKILL, and what it leaves on this machine.

Its processes carry a mark in their environment, which their children inherit: whoever has it and lives on is
a survivor, whatever its name.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from hw.journal import JOURNAL_FOLDER
from hw.session import RUN_FOLDER
from hw.virtual import windows
from tests.bench.report import REPOSITORY

SUITE = "robot/daq_replay/latency_budgets.robot"
LONG_TESTS = "largest-pattern"
LISTENER = "tests.bench.short_profile.ShortProfile"
MARK = "BENCHWRIGHT_KILLED_RUN"
SYSCTLS = ("kernel/sched_rt_runtime_us", "net/ipv4/tcp_allowed_congestion_control")
RUN_DEADLINE_S = 240.0
ENDING_S = 60.0
"""For the rest of a run to end after one of its processes was killed."""


class Victim(Enum):
    """Which process of a run the signal goes to."""

    ROBOT = "robot"
    """The one that holds the bench: the largest, which the kernel would choose when memory runs out."""
    QUALIFY = "qualify"
    """Its parent, with which it ends."""


@dataclass(frozen=True)
class Place:
    """Where runs take place."""

    bench_file: Path
    target: str
    namespace: str = ""
    """Network namespace that runs are in; empty: this process's own."""


class Run:
    """A short qualification of one target in processes of its own."""

    def __init__(self, place: Place, folder: Path) -> None:
        """Start it.

        Args:
            place: Where.
            folder: For its run folder and what it says.
        """
        folder.mkdir(parents=True)
        self.results = folder / "results"
        self._log = folder / "log"
        self.mark = f"{os.getpid()}-{folder.name}"
        argv = ["nsenter", f"--net=/run/netns/{place.namespace}"] if place.namespace else []
        argv += [sys.executable, "-m", "resources.qualify", "--bench", str(place.bench_file)]
        argv += ["--suite", SUITE, "--targets", place.target, "--results", str(self.results)]
        argv += ["--", "--listener", LISTENER, "--exclude", LONG_TESTS]
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                argv,
                cwd=REPOSITORY,
                env={**os.environ, MARK: self.mark},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._start_s = time.monotonic()

    def wait(self) -> tuple[int, float]:
        """Return its exit code and how long it took, in s, after it has ended by itself."""
        try:
            code = self._process.wait(RUN_DEADLINE_S)
        finally:
            self._process.kill()
            self._process.wait()
        return code, time.monotonic() - self._start_s

    def kill_at(self, life_s: float, victim: Victim) -> bool:
        """Send SIGKILL at an age; return whether it came in time, when the rest of the run has ended."""
        try:
            self._process.wait(max(0.0, self._start_s + life_s - time.monotonic()))
        except subprocess.TimeoutExpired:
            os.kill(self._pid_of(victim), signal.SIGKILL)
            self._process.wait(ENDING_S)
            return True
        finally:
            self._process.kill()
            self._process.wait()
        return False

    def _pid_of(self, victim: Victim) -> int:
        """Return a process of the run; before Robot Framework is started that is the only one."""
        pid = self._process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return int(children[0]) if victim is Victim.ROBOT and children else pid

    def last_words(self) -> str:
        """Return the last line that it has said, which tells where it was."""
        lines = [line.strip() for line in self._log.read_text(errors="replace").splitlines() if line.strip()]
        return lines[-1][-160:] if lines else "(nothing)"

    def said(self) -> str:
        """Return all that it has said."""
        return self._log.read_text(errors="replace")

    def survivors(self, patience_s: float = 0.0) -> dict[int, str]:
        """Return the processes of the run that do not end within a time, with their command lines."""
        deadline = time.monotonic() + patience_s
        while (left := marked_processes(self.mark)) and time.monotonic() < deadline:
            time.sleep(0.2)
        return left


def marked_processes(mark: str) -> dict[int, str]:
    """Return the processes with a mark in their environment, with their command lines."""
    needle = f"{MARK}={mark}".encode()
    found: dict[int, str] = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if needle in (process / "environ").read_bytes().split(b"\0"):
                command = (process / "cmdline").read_bytes().replace(b"\0", b" ")
                found[int(process.name)] = command.decode(errors="replace").strip()
        except OSError:
            continue
    return found


def machine_state(bench_name: str) -> dict[str, object]:
    """Return all that a bench changes of this machine."""
    return {
        "namespaces": sorted(path.name for path in Path("/run/netns").glob(f"bw-{bench_name}-*")),
        "settings": [Path("/proc/sys", name).read_text() for name in SYSCTLS],
        "packet threads": _packet_threads(),
        "journal": (JOURNAL_FOLDER / f"{bench_name}.journal").exists(),
        "folder": (RUN_FOLDER / bench_name).exists(),
        "disks": sorted(path.name for path in windows.MEMORY.glob(f"bw-{bench_name}-*")),
    }


def _packet_threads() -> list[tuple[str, int, int]]:
    """Return policy and priority of the kernel's threads for deferred packet work."""
    found: list[tuple[str, int, int]] = []
    for comm in Path("/proc").glob("[0-9]*/comm"):
        try:
            name = comm.read_text().strip()
            if name.startswith("ksoftirqd/"):
                pid = int(comm.parent.name)
                found.append((name, os.sched_getscheduler(pid), os.sched_getparam(pid).sched_priority))
        except OSError:
            continue
    return sorted(found)
