# SPDX-License-Identifier: Apache-2.0
"""Network namespaces of a benchmark, and the programs that it runs in them.

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
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import FrameType
from typing import Any, Self

from hw.protocols import READY_S
from hw.virtual.network import create_namespace, delete_namespace, run

PREFIX = "bwx-bench"
Json = dict[str, Any]


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

    def wait_text(self, wanted: str, timeout_s: float = READY_S) -> None:
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


class Namespaces(ABC):
    """Namespaces by their places, a letter each."""

    def __init__(self, places: str) -> None:
        """Make nothing yet."""
        self.names = {place: f"{PREFIX}-{os.getpid()}-{place}" for place in places}
        self._programs: list[Program] = []
        self._scratch = tempfile.TemporaryDirectory(prefix=f"{PREFIX}-")
        self._around = ExitStack()

    @property
    def folder(self) -> Path:
        """Folder for plans, answers and captures; it goes with the namespaces."""
        return Path(self._scratch.name)

    def __enter__(self) -> Self:
        """Make the namespaces, and what is in them."""
        signal.signal(signal.SIGTERM, _interrupt)
        _remove_left_over()
        try:
            for namespace in self.names.values():
                create_namespace(namespace)
            self._join()
        except BaseException:
            self.__exit__()
            raise
        return self

    @abstractmethod
    def _join(self) -> None:
        """Make the links between them, and whatever else is needed."""

    def __exit__(self, *_: object) -> None:
        """End what still runs and remove the namespaces; a second interrupt waits until that is done."""
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            for program in self._programs:
                program.stop(signal.SIGKILL)
            for namespace in self.names.values():
                delete_namespace({"name": namespace})
            self._scratch.cleanup()
            self._around.close()
        finally:
            signal.signal(signal.SIGINT, before)

    def link(self, one: str, interface: str, other: str, peer: str) -> None:
        """Join two places by a veth pair, an end in each."""
        pair = f"{interface} netns {self.names[one]} type veth peer {peer} netns {self.names[other]}"
        run("ip", "link", "add", *pair.split())

    def set_up(self, place: str, interface: str, *addresses: str, mtu_bytes: int = 1500) -> None:
        """Give an interface its addresses, each with its prefix length, and put it up."""
        batch = "".join(f"address add {address} dev {interface}\n" for address in addresses)
        batch += f"link set {interface} mtu {mtu_bytes} up\n"
        run("ip", "-n", self.names[place], "-batch", "-", stdin=batch)

    def offloads_off(self, place: str, interface: str) -> None:
        """Have a frame of the link be one of the wire: what is compared are stacks, not a card's offloads."""
        off = ["rx", "off", "tx", "off", "sg", "off", "tso", "off", "gso", "off", "gro", "off"]
        run("ip", "netns", "exec", self.names[place], "ethtool", "-K", interface, *off)

    def start(
        self, namespace: str, argv: Sequence[str], cpu: int | None = None, priority: int = 0, name: str = ""
    ) -> Program:
        """Start a program.

        Args:
            namespace: One of `names`.
            argv: Its command line.
            cpu: Pin it there; a program that pins its own threads gets none.
            priority: SCHED_FIFO; 0: ordinary scheduling.
            name: Of its answer's file; empty: by its program and a number.
        """
        prefix = ["taskset", "-c", str(cpu)] if cpu is not None else []
        prefix += ["chrt", "-f", str(priority)] if priority else []
        log = self.folder / f"{name or f'{Path(argv[0]).name}-{len(self._programs)}'}.out"
        program = Program(namespace, [*prefix, *argv], log)
        self._programs.append(program)
        return program


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _remove_left_over() -> None:
    """Remove the namespaces of benchmarks that were killed: those whose process is gone."""
    for path in Path("/run/netns").glob(f"{PREFIX}-*"):
        match = re.fullmatch(rf"{PREFIX}-(\d+)-[a-z]", path.name)
        if match and not Path("/proc", match[1]).exists():
            delete_namespace({"name": path.name})
