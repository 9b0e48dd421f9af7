# SPDX-License-Identifier: Apache-2.0
"""Two network namespaces joined by a veth pair, and the programs that a benchmark runs in them.

What sends runs on the first CPU, what receives on the second. The namespaces are removed at the end, also
after an interrupt; what a killed benchmark left is removed by the next.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from hw.virtual.network import PRODUCER_SYSCTLS, create_namespace, delete_namespace, run, set_sysctls
from tests.bench.report import REPOSITORY

PROGRAM = REPOSITORY / ".build" / "linux" / "traffic-gen" / "bw-traffic"
PREFIX = "bwx-bench"
CONSUMER = "10.76.255.1"
PRIORITY = 50
RECEIVER_INTERFACE = "r0"

# As on the virtual bench, but for the congestion control: a namespace may choose this one on any host.
SYSCTLS = {**PRODUCER_SYSCTLS, "net.ipv4.tcp_congestion_control": "reno"}

Json = dict[str, Any]


def producer_address(number: int) -> str:
    """Return the source address of a producer, 1 to 60,000."""
    return f"10.76.{number // 250}.{number % 250 + 1}"


def sender_cpu() -> int:
    """Return the CPU of what sends."""
    return min(os.sched_getaffinity(0))


def receiver_cpu() -> int:
    """Return the CPU of what receives: another one, where there is one."""
    return sorted(os.sched_getaffinity(0))[:2][-1]


class Program:
    """A program that runs in a namespace; its stdout and stderr go to files."""

    def __init__(self, namespace: str, argv: Sequence[str], log: Path) -> None:
        """Start it; `log` receives its stdout."""
        self.log = log
        self._error_log = log.with_suffix(".err")
        with log.open("wb") as out, self._error_log.open("wb") as err:
            self.process = subprocess.Popen(
                ["ip", "netns", "exec", namespace, *argv], stdin=subprocess.DEVNULL, stdout=out, stderr=err
            )

    def errors(self) -> str:
        """Return what it wrote to stderr."""
        return self._error_log.read_text(errors="replace")

    def wait_text(self, wanted: str, timeout_s: float = 10.0) -> None:
        """Wait until stdout or stderr contains a text.

        Raises:
            TimeoutError: It ended without, or in time did not write it.
        """
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            ended = self.process.poll() is not None
            if wanted in self.log.read_text(errors="replace") or wanted in self.errors():
                return
            if ended:
                break
            time.sleep(0.02)
        raise TimeoutError(f"{self.process.args}: no {wanted!r}; stderr: {self.errors()}")

    def wait(self, timeout_s: float) -> str:
        """Wait for its end and return its stdout.

        Raises:
            RuntimeError: It failed.
        """
        code = self.process.wait(timeout_s)
        if code != 0:
            raise RuntimeError(f"{self.process.args}: exit code {code}: {self.errors()}")
        return self.log.read_text()

    def stop(self, number: signal.Signals = signal.SIGINT) -> None:
        """Ask it to end and wait; kill it if it does not."""
        if self.process.poll() is None:
            self.process.send_signal(number)
            try:
                self.process.wait(10.0)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


class Pair:
    """Namespaces of a sender and a receiver."""

    def __init__(self, producers: int = 1) -> None:
        """Take the number of producers' addresses that the sender gets."""
        self.sender = f"{PREFIX}-{os.getpid()}-s"
        self.receiver = f"{PREFIX}-{os.getpid()}-r"
        self._producers = producers
        self._programs: list[Program] = []
        self._scratch = tempfile.TemporaryDirectory(prefix=f"{PREFIX}-")

    @property
    def folder(self) -> Path:
        """Folder for plans, answers and captures; it goes with the namespaces."""
        return Path(self._scratch.name)

    def __enter__(self) -> Pair:
        """Make the namespaces."""
        signal.signal(signal.SIGTERM, _interrupt)
        _remove_left_over()
        try:
            for namespace in (self.sender, self.receiver):
                create_namespace(namespace)
                set_sysctls(namespace, SYSCTLS)
            link = f"link add s0 netns {self.sender} type veth peer r0 netns {self.receiver}\n"
            run("ip", "-batch", "-", stdin=link)
            addresses = [
                f"address add {producer_address(number)}/16 dev s0"
                for number in range(1, self._producers + 1)
            ]
            run("ip", "-n", self.sender, "-batch", "-", stdin="\n".join([*addresses, "link set s0 up", ""]))
            batch = f"address add {CONSUMER}/16 dev r0\nlink set r0 up\n"
            run("ip", "-n", self.receiver, "-batch", "-", stdin=batch)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """End what still runs and remove the namespaces; a second interrupt waits until that is done."""
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            for program in self._programs:
                program.stop(signal.SIGKILL)
            for namespace in (self.sender, self.receiver):
                delete_namespace({"name": namespace})
            self._scratch.cleanup()
        finally:
            signal.signal(signal.SIGINT, before)

    def start(
        self, namespace: str, argv: Sequence[str], cpu: int | None = None, priority: int = 0
    ) -> Program:
        """Start a program.

        Args:
            namespace: `pair.sender` or `pair.receiver`.
            argv: Its command line.
            cpu: Pin it there; a program that pins its own threads gets none.
            priority: SCHED_FIFO; 0: ordinary scheduling.
        """
        prefix = ["taskset", "-c", str(cpu)] if cpu is not None else []
        prefix += ["chrt", "-f", str(priority)] if priority else []
        log = self.folder / f"{Path(argv[0]).name}-{len(self._programs)}.out"
        program = Program(namespace, [*prefix, *argv], log)
        self._programs.append(program)
        return program


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _remove_left_over() -> None:
    """Remove the namespaces of benchmarks that were killed: those whose process is gone."""
    for path in Path("/run/netns").glob(f"{PREFIX}-*"):
        match = re.fullmatch(rf"{PREFIX}-(\d+)-[sr]", path.name)
        if match and not Path("/proc", match[1]).exists():
            delete_namespace({"name": path.name})
