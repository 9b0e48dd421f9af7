# SPDX-License-Identifier: Apache-2.0
"""A whole qualification that is ended by SIGKILL, and what it leaves on this machine.

Its processes carry a mark in their environment, which their children inherit: whoever has it and lives on is
a survivor, whatever its name.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from bench.lab.report import REPOSITORY
from hw.bench import BenchSpec
from hw.journal import JOURNAL_FOLDER
from hw.reservation import LOCK_FOLDER, lock_file
from hw.session import RUN_FOLDER
from hw.virtual import windows
from hw.virtual.bench_network import namespace_of
from hw.virtual.host import SETTINGS
from tests.simulation.processes import bench_processes

SUITE = "robot/daq_replay/latency_budgets.robot"
LONG_TESTS = "largest-pattern"
PROFILE = "ci"
"""Of those that leave the suite out for no target; the listener makes it short."""
LISTENER = "bench.lab.short_profile.ShortProfile"
MARK = "BENCHWRIGHT_KILLED_RUN"
SYSCTLS = ("kernel/sched_rt_runtime_us", "net/ipv4/tcp_allowed_congestion_control")
RUN_DEADLINE_S = 240.0
ENDING_S = 60.0
"""For the rest of a run to end after one of its processes was killed."""
LEFT_BY_OTHERS_S = 20.0
"""For the next start of another bench whose run was killed."""


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
        argv += ["--suite", SUITE, "--profile", PROFILE, "--targets", place.target]
        argv += ["--results", str(self.results), "--", "--listener", LISTENER, "--exclude", LONG_TESTS]
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


@dataclass(frozen=True)
class MachineState:
    """All that a bench changes of this machine."""

    own: dict[str, object]
    """What no other bench touches."""
    settings: dict[str, object] | None
    """What all benches share; None: another one is open, and has it as it needs it."""

    def changes(self, before: MachineState) -> dict[str, tuple[object, object]]:
        """Return what has changed, as before and now; settings count if no bench was open at either time."""
        was, now = dict(before.own), dict(self.own)
        if before.settings is not None and self.settings is not None:
            was |= before.settings
            now |= self.settings
        return {name: (was.get(name), now.get(name)) for name in was | now if was.get(name) != now.get(name)}


def machine_state(spec: BenchSpec) -> MachineState:
    """Return all that a bench, which this process does not have open, changes of this machine."""
    namespaces = [namespace_of(spec.name, node) for node in spec.nodes]
    own: dict[str, object] = {
        "namespaces": sorted(name for name in namespaces if Path("/run/netns", name).exists()),
        "processes": sorted(" ".join(command) for command in bench_processes(spec).values()),
        "journal": (JOURNAL_FOLDER / f"{spec.name}.journal").exists(),
        "folder": (RUN_FOLDER / spec.name).exists(),
        "disks": sorted(path.name for name in namespaces for path in windows.MEMORY.glob(f"{name}-*")),
    }
    return MachineState(own, _settings())


def _settings() -> dict[str, object] | None:
    """Return the settings that benches share, unless one is open.

    What a killed run of another bench has left is given back by its next start; what was left by the one that
    is looked at stays.
    """
    deadline_s = time.monotonic() + LEFT_BY_OTHERS_S
    while True:
        with (
            lock_file(LOCK_FOLDER / f"{SETTINGS}.lock") as decided,
            lock_file(LOCK_FOLDER / f"{SETTINGS}.holders") as holders,
        ):
            fcntl.flock(decided, fcntl.LOCK_EX)
            try:
                fcntl.flock(holders, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return None
            left = (JOURNAL_FOLDER / f"{SETTINGS}.journal").exists()
            if not left or time.monotonic() > deadline_s:
                texts = {name: Path("/proc/sys", name).read_text() for name in SYSCTLS}
                return {**texts, "packet threads": _packet_threads(), "settings left changed": left}
        time.sleep(0.2)


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
