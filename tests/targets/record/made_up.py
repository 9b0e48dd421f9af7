# SPDX-License-Identifier: Apache-2.0
"""Records of made-up programs, whose faults are known, as either system's recorder would write them.

A busy machine is made up, too: calls, and the program's own time, take longer by chance.
"""

from __future__ import annotations

import importlib
import json
import random
import sys
from pathlib import Path
from typing import Any

READER_FOLDER = Path(__file__).resolve().parents[3] / "targets/linux/userstack/record"
NS_PER_MS = 1_000_000
STALL_PART, STALL_MS = 0.03, 8.0
"""How many calls a busy machine holds up, and by how much on average."""
WINDOWS_ERRORS = {"EAGAIN": "WSAEWOULDBLOCK"}


def what_delays() -> Any:
    """Return the program's module."""
    sys.path.insert(0, str(READER_FOLDER))
    try:
        return importlib.import_module("what_delays")
    finally:
        sys.path.remove(str(READER_FOLDER))


class Program:
    """A record that is made call by call; each thread has its own time."""

    def __init__(self, *, windows: bool, stalls: random.Random | None = None) -> None:
        """Take the system, and what draws the stalls of a busy machine."""
        self.windows = windows
        self._stalls = stalls
        self._now_ns: dict[int, int] = {}
        self.lines: list[dict[str, Any]] = []

    def _stall_ns(self) -> int:
        if self._stalls is None or self._stalls.random() >= STALL_PART:
            return 0
        return round(self._stalls.expovariate(1 / STALL_MS) * NS_PER_MS)

    def own(self, time_ms: float, thread: int = 1) -> None:
        """Let a thread have time outside of calls."""
        now_ns = self._now_ns.get(thread, NS_PER_MS)
        self._now_ns[thread] = now_ns + round(time_ms * NS_PER_MS) + self._stall_ns()

    def call(self, kind: str, took_ms: float = 0.005, thread: int = 1, **more: Any) -> None:
        """Make a call; a thread has 1 µs of its own before each."""
        self.own(0.001, thread)
        begin_ns = self._now_ns[thread]
        duration_ns = round(took_ms * NS_PER_MS) + self._stall_ns()
        self._now_ns[thread] += duration_ns
        line: dict[str, Any] = {"process": 9, "thread": thread}
        line |= {"begin_monotonic_ns": begin_ns, "duration_ns": duration_ns}
        line |= {"call": kind} | ({"function": kind} if self.windows else {}) | more
        if self.windows and line.get("errno") in WINDOWS_ERRORS:
            line["errno"] = WINDOWS_ERRORS[line["errno"]]
        if "errno" not in line:
            line.setdefault("result", 0)
        self.lines.append(line)

    def connect(self, socket: int = 1, thread: int = 1, kind: int = 1) -> None:
        """Make a socket, connected to port 7000 and its number."""
        self.call("socket", thread=thread, socket=socket, domain=2, type=kind)
        self.call("connect", thread=thread, socket=socket, address=["10.0.0.2", 7000 + socket])

    def send(self, size: int = 32, socket: int = 1, thread: int = 1) -> None:
        """Send all of so many bytes."""
        self.call("send", thread=thread, socket=socket, asked=size, flags=0, result=size)

    def receive(self, size: int, room: int, took_ms: float = 0.005, socket: int = 1, thread: int = 1) -> None:
        """Receive so many bytes."""
        self.call("receive", took_ms, thread, socket=socket, asked=room, flags=0, result=size)

    def nothing_there(self, socket: int = 1) -> None:
        """Ask a socket that has nothing and does not block."""
        self.call("receive", socket=socket, asked=64, flags=0, errno="EAGAIN")

    def select(self, took_ms: float, timeout_ms: float, *ready: int, thread: int = 1) -> None:
        """Wait for sockets."""
        pairs = [[socket, 1] for socket in ready]
        timeout_ns = round(timeout_ms * NS_PER_MS)
        self.call("wait", took_ms, thread, timeout_ns=timeout_ns, ready=pairs, result=len(ready))

    def write(self, path: Path) -> Path:
        """Write the record, each line where its call ends."""
        lines = sorted(self.lines, key=lambda line: line["begin_monotonic_ns"] + line["duration_ns"])
        if self.windows:
            head = {"record": "bw-accel --watch", "version": 1, "machine": "Windows", "state": "complete"}
            lines.insert(0, head | {"calls": len(lines), "lost": 0})
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return path
