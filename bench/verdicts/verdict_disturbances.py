# SPDX-License-Identifier: Apache-2.0
"""Disturbances of the machine that a virtual bench runs on, for `bench_verdicts`.

None of them touches the target's own programs: whatever they do to its messages, the target is not to blame.
All of it ends with the context, with this process, and by itself.

    python -m bench.verdicts.verdict_disturbances memory MIB SECONDS
    python -m bench.verdicts.verdict_disturbances disk MIB SECONDS

are the two loads that are programs of their own.
"""

from __future__ import annotations

import mmap
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random

from bench.lab.report import RESULTS
from bench.verdicts.verdict_faults import (
    LIFE_S,
    NONE,
    SHARED_PAUSE_US,
    Parameters,
    Site,
    hog_arguments,
    hog_result,
    shared_cpu,
)
from hw.drivers.local import LocalJob
from hw.drivers.owned import start_owned
from hw.errors import BenchError, BenchwrightError, CapabilityError

HOG_PRIORITY = 99
DEADLINE = 100
"""Priority of a hog that asks for SCHED_DEADLINE."""
STOPPER_PRIORITY = 95
BUSY_SHARE_PERCENT = 30
PERIOD_US = 100_000
"""Of a bandwidth limit, as the kernel's own default (cgroup v2, cpu.max). That itself would have no
effect: it limits ordinary threads, and the bench runs the emulator's at real-time priorities."""
BLOCK_BYTES = 4 << 20
PAUSE_S = 0.05

Facts = dict[str, int]


@dataclass(frozen=True)
class DisturbanceKind:
    """A row of the table of disturbances.

    Attributes:
        name: In options and results.
        what: What it does, for people.
        ranges: What is drawn, uniformly, ends included; the unit is in the name.
        disturb: Disturbs while the context lasts; gives what was done, which is filled in at the end.
        targets: Kinds of target that it makes sense with; empty: any.
    """

    name: str
    what: str
    ranges: Mapping[str, tuple[int, int]]
    disturb: Callable[[Site, Parameters], AbstractContextManager[Facts]]
    targets: frozenset[str] = frozenset()

    def draw(self, random: Random) -> dict[str, int]:
        """Draw how severe it is."""
        return {name: random.randint(*limits) for name, limits in self.ranges.items()}


@contextmanager
def _none(_site: Site, _drawn: Parameters) -> Generator[Facts]:
    yield {}


# -- other programs


@contextmanager
def _running(name: str, argv: Sequence[str], stem: Path) -> Generator[LocalJob]:
    """Run a program of this machine while the context lasts; it never outlives this process."""
    job = start_owned(name, argv, stem)
    try:
        yield job
    finally:
        job.stop()
        try:
            job.wait(5.0)
        except BenchError:
            job.kill()


@contextmanager
def _busy(site: Site, drawn: Parameters) -> Generator[Facts]:
    """Take a share of each CPU, in bursts."""
    facts: Facts = {"bursts": 0, "busy_us": 0, "longest_us": 0, "cpu_us": 0}
    burst_us = (200, drawn["burst_max_us"])
    pause_us = (1, sum(burst_us) * (100 - BUSY_SHARE_PERCENT) // BUSY_SHARE_PERCENT)
    with ExitStack() as stack:
        jobs: list[LocalJob] = []
        for cpu in sorted(os.sched_getaffinity(0)):
            argv = [
                str(site.hog),
                *hog_arguments(cpu, HOG_PRIORITY, burst_us, pause_us, drawn["seed"] + cpu),
            ]
            stem = site.folder / f"hog-on-cpu-{cpu}"
            jobs.append(stack.enter_context(_running(f"hog on CPU {cpu}", argv, stem)))
            jobs[-1].wait_ready()
        yield facts
        for job in jobs:
            taken = hog_result(job)
            for key in ("bursts", "busy_us", "cpu_us"):
                facts[key] += taken[key]
            facts["longest_us"] = max(facts["longest_us"], taken["longest_us"])


@contextmanager
def _on_shared_cpu(site: Site, arguments: Sequence[str]) -> Generator[Facts]:
    """Run a hog of somebody else where the target runs."""
    facts: Facts = {}
    with _running("hog", [str(site.hog), *arguments], site.folder / "hog-of-a-stranger") as job:
        job.wait_ready()
        yield facts
        facts.update(hog_result(job))


def _stranger(site: Site, drawn: Parameters) -> AbstractContextManager[Facts]:
    burst_us = (13_000, drawn["burst_max_us"])
    return _on_shared_cpu(
        site, hog_arguments(shared_cpu(site), drawn["priority"], burst_us, SHARED_PAUSE_US, drawn["seed"])
    )


def _deadline(site: Site, drawn: Parameters) -> AbstractContextManager[Facts]:
    burst_us = (13_000, drawn["burst_max_us"])
    return _on_shared_cpu(site, hog_arguments(-1, DEADLINE, burst_us, SHARED_PAUSE_US, drawn["seed"]))


def _timers(site: Site, drawn: Parameters) -> AbstractContextManager[Facts]:
    burst_us = (drawn["burst_us"], drawn["burst_us"])
    arguments = hog_arguments(shared_cpu(site), 40, burst_us, SHARED_PAUSE_US, drawn["seed"], "timers")
    return _on_shared_cpu(site, arguments)


@contextmanager
def _load(site: Site, drawn: Parameters, what: str) -> Generator[Facts]:
    argv = [sys.executable, "-m", "bench.verdicts.verdict_disturbances", what, str(drawn["mib"]), str(LIFE_S)]
    facts: Facts = {}
    with _running(f"{what} load", argv, site.folder / f"{what}-load") as job:
        job.wait_ready()
        yield facts
        if _has_ended(job):
            raise BenchError(f"{job.name}: ended before the replay did")
    facts["rounds"] = len(job.fetch().read_text().splitlines()) - 1


def _has_ended(job: LocalJob) -> bool:
    try:
        job.wait(0.0)
    except BenchError:
        return False
    return True


def touch_memory(size_bytes: int, end_s: float) -> None:
    """Take memory, write to every page of it and give it back, until a time of the monotonic clock."""
    while time.monotonic() < end_s:
        with mmap.mmap(-1, size_bytes) as area:
            area[:: mmap.PAGESIZE] = b"\1" * (size_bytes // mmap.PAGESIZE)
        print('{"type":"round"}', flush=True)
        time.sleep(PAUSE_S)


def write_disk(size_bytes: int, end_s: float, folder: Path) -> None:
    """Write a file without a name, block by block to the disk itself, and empty it; again until a time."""
    block = os.urandom(BLOCK_BYTES)
    with tempfile.TemporaryFile(dir=folder) as file:
        while time.monotonic() < end_s:
            file.seek(0)
            file.truncate()
            for _ in range(size_bytes // BLOCK_BYTES):
                file.write(block)
                file.flush()
                os.fsync(file.fileno())
            print('{"type":"round"}', flush=True)
            time.sleep(PAUSE_S)


# -- the emulator


def emulator_of(control_socket: Path) -> int:
    """Return the process that emulates a guest: a child of this one, told to listen on a control socket.

    Raises:
        CapabilityError: There is none: the node is no guest under QEMU, or off.
    """
    socket = f"unix:{control_socket},".encode()
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        with suppress(OSError):
            if any(
                argument.startswith(socket) for argument in (folder / "cmdline").read_bytes().split(b"\0")
            ):
                status = (folder / "status").read_text()
                if f"\nPPid:\t{os.getpid()}\n" in status:
                    return int(folder.name)
    raise CapabilityError(f"{control_socket}: no emulator that this process has started")


class Stopper(threading.Thread):
    """Stops a process again and again, and lets it go on each time, whatever happens."""

    def __init__(self, pid: int, next_stop: Callable[[], tuple[float, float]]) -> None:
        """Hold on to a process.

        Args:
            pid: A child of this process.
            next_stop: Says how long it runs, then how long it is stopped, in s.
        """
        super().__init__(name=f"stopper of {pid}", daemon=True)
        self._process = os.pidfd_open(pid)
        self._next_stop = next_stop
        self._ended = threading.Event()
        self.facts: Facts = {"stops": 0, "stopped_us": 0, "longest_us": 0}

    def run(self) -> None:
        """Stop the process until `end`; with a real-time priority, so that a stop is as long as asked."""
        with suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(STOPPER_PRIORITY))
        with suppress(ProcessLookupError):  # the guest has lost its power
            while True:
                run_s, stop_s = self._next_stop()
                if self._ended.wait(run_s):
                    return
                self._stop_for(stop_s)

    def _stop_for(self, stop_s: float) -> None:
        begin_ns = time.monotonic_ns()
        try:
            signal.pidfd_send_signal(self._process, signal.SIGSTOP)
            self._ended.wait(stop_s)
        finally:
            signal.pidfd_send_signal(self._process, signal.SIGCONT)
        took_us = (time.monotonic_ns() - begin_ns) // 1000
        self.facts["stops"] += 1
        self.facts["stopped_us"] += took_us
        self.facts["longest_us"] = max(self.facts["longest_us"], took_us)

    def end(self) -> None:
        """Let the process run; return when it does."""
        self._ended.set()
        self.join()
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._process, signal.SIGCONT)
        os.close(self._process)


@contextmanager
def _stopping(site: Site, next_stop: Callable[[], tuple[float, float]]) -> Generator[Facts]:
    stopper = Stopper(emulator_of(site.bench.folder / site.target.node / "qmp.sock"), next_stop)
    stopper.start()
    try:
        yield stopper.facts
    finally:
        stopper.end()


def _emulator_stopped(site: Site, drawn: Parameters) -> AbstractContextManager[Facts]:
    random = Random(drawn["seed"])

    def next_stop() -> tuple[float, float]:
        return random.uniform(0.1, 1.0), random.uniform(2_000, drawn["stop_max_us"]) / 1e6

    return _stopping(site, next_stop)


def _throttled(site: Site, drawn: Parameters) -> AbstractContextManager[Facts]:
    stop_s = PERIOD_US * (100 - drawn["quota_percent"]) / 100 / 1e6
    return _stopping(site, lambda: (PERIOD_US / 1e6 - stop_s, stop_s))


_SEED = (0, 2**31 - 1)
_EMULATED = frozenset({"linux-rt", "embedded"})
_NATIVE = frozenset({"linux"})

DISTURBANCES: dict[str, DisturbanceKind] = {
    kind.name: kind
    for kind in (
        DisturbanceKind(NONE, "nothing", {}, _none),
        DisturbanceKind(
            "busy",
            f"loops at FIFO {HOG_PRIORITY} take {BUSY_SHARE_PERCENT} % of each CPU in bursts of 0.2 to 20 ms",
            {"burst_max_us": (1_000, 20_000), "seed": _SEED},
            _busy,
        ),
        DisturbanceKind(
            "stranger",
            "a process outside of the target, at FIFO 91 to 99 on its CPU, in bursts of 13 ms and more",
            {"priority": (91, 99), "burst_max_us": (30_000, 50_000), "seed": _SEED},
            _stranger,
            _NATIVE,
        ),
        DisturbanceKind(
            "deadline",
            "the same with SCHED_DEADLINE, over every priority, on whichever CPU",
            {"burst_max_us": (30_000, 50_000), "seed": _SEED},
            _deadline,
            _NATIVE,
        ),
        DisturbanceKind(
            "timers",
            "timers of a process outside of the target: interrupts of some 20 to 45 ms on its CPU",
            {"burst_us": (30_000, 45_000), "seed": _SEED},
            _timers,
            _NATIVE,
        ),
        DisturbanceKind(
            "memory",
            "a process takes memory, writes to every page of it and gives it back",
            {"mib": (64, 512)},
            lambda site, drawn: _load(site, drawn, "memory"),
        ),
        DisturbanceKind(
            "disk",
            "a process writes a file of bounded size and waits for the disk after each 4 MiB",
            {"mib": (16, 64)},
            lambda site, drawn: _load(site, drawn, "disk"),
        ),
        DisturbanceKind(
            "emulator-stopped",
            "the target's emulator is stopped (SIGSTOP) for 2 to 30 ms, every 0.1 to 1 s",
            {"stop_max_us": (3_000, 30_000), "seed": _SEED},
            _emulator_stopped,
            _EMULATED,
        ),
        DisturbanceKind(
            "throttled",
            "of each 100 ms the target's emulator gets 70 to 95, as under a bandwidth limit of its CPU",
            {"quota_percent": (70, 95)},
            _throttled,
            _EMULATED,
        ),
    )
}


def disturbances_of(target: str) -> dict[str, DisturbanceKind]:
    """Return the disturbances that make sense with a kind of target."""
    return {name: kind for name, kind in DISTURBANCES.items() if not kind.targets or target in kind.targets}


def main() -> int:
    """Run one of the loads until its time is over."""
    what, mib, seconds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    end_s = time.monotonic() + min(seconds, LIFE_S)
    print('{"type":"ready"}', flush=True)
    if what == "memory":
        touch_memory(mib << 20, end_s)
        return 0
    if what == "disk":
        RESULTS.mkdir(parents=True, exist_ok=True)
        write_disk(mib << 20, end_s, RESULTS)
        return 0
    print(f"{what}: must be one of memory, disk", file=sys.stderr)
    return BenchwrightError.exit_code


if __name__ == "__main__":
    sys.exit(main())
