# SPDX-License-Identifier: Apache-2.0
"""The virtual timecard's page as traffic-gen/clock/card/page.h lays it out, and bw-clock around it."""

from __future__ import annotations

import contextlib
import json
import mmap
import signal
import struct
import subprocess
import threading
import time
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.patience import HANG_S, wait_until

Json = dict[str, Any]

PAGE_BYTES = 4096
MAGIC = b"BWCARD01"
HOST_LINE, REPLY, REQUEST, GUEST_LINE = 1024, 1536, 2048, 3072
LINE_WORDS_BYTES = 96
UNIT_TSC = 1
TAI_UTC_S = 37
ENOUGH_NS = 2_000_000
"""Of CPU time for some dozens of samples: each costs microseconds."""


def run(
    program: Path, *arguments: str, timeout_s: float = HANG_S, user: int | None = None
) -> tuple[int, Json, str]:
    """Run bw-clock; return its exit code, its last line ({} when there is none), and its stderr."""
    done = subprocess.run(
        [program, *arguments], capture_output=True, text=True, timeout=timeout_s, check=False, user=user
    )
    lines = done.stdout.splitlines()
    return done.returncode, json.loads(lines[-1]) if lines else {}, done.stderr


@contextlib.contextmanager
def started(program: Path, *arguments: str) -> Generator[subprocess.Popen[str]]:
    """Start bw-clock and wait for its `ready`; end it at the end."""
    process = subprocess.Popen(
        [program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout
        line = process.stdout.readline()
        assert line, process.communicate()[1]
        assert json.loads(line)["type"] == "ready", line
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def let_work(process: subprocess.Popen[str], enough_ns: int = ENOUGH_NS) -> None:
    """Wait until bw-clock has had some time on a CPU: then it has taken samples."""
    begin_ns = _cpu_time_ns(process)
    wait_until(lambda: _cpu_time_ns(process) - begin_ns >= enough_ns, "CPU time of bw-clock")


def is_stopped(process: subprocess.Popen[str]) -> bool:
    """Tell whether all its threads are stopped by a signal."""
    stats = [(task / "stat").read_text() for task in Path(f"/proc/{process.pid}/task").iterdir()]
    return all(stat.rpartition(")")[2].split()[0] == "T" for stat in stats)


def _cpu_time_ns(process: subprocess.Popen[str]) -> int:
    """Return how long its threads have run."""
    tasks = Path(f"/proc/{process.pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks)


def finish(process: subprocess.Popen[str], stop: bool = True) -> tuple[int, Json]:
    """End a process that was started, and return its exit code and its last line."""
    if stop:
        process.send_signal(signal.SIGTERM)
    output, errors = process.communicate(timeout=HANG_S)
    assert output, errors
    return process.returncode, json.loads(output.splitlines()[-1])


@contextlib.contextmanager
def served(program: Path, *pages: str, source: str = "host") -> Generator[subprocess.Popen[str]]:
    """Serve pages (`NAME=FILE`)."""
    arguments = [part for page in pages for part in ("--page", page)]
    with started(program, "card", "serve", *arguments, "--source", source) as process:
        yield process


@dataclass(frozen=True)
class Line:
    """What a posting carries."""

    counter: int
    tai_ns: int
    ns_per_unit: float
    bound_ns: int = 100
    growth_ppb: int = 100
    wander_ppb_per_s: int = 100
    published: int = 1
    steps: int = 0
    source: bytes = b"fake"
    unit: int = UNIT_TSC

    def packed(self) -> bytes:
        """Return the words of a line."""
        words = struct.pack(
            "<QQqdqqqQQ16s",
            self.unit | TAI_UTC_S << 32,
            self.counter & 2**64 - 1,
            self.tai_ns,
            self.ns_per_unit,
            self.bound_ns,
            self.growth_ppb,
            self.wander_ppb_per_s,
            self.published,
            self.steps,
            self.source,
        )
        return words.ljust(LINE_WORDS_BYTES, b"\0")


class FakeServer:
    """A server whose counter and lines a test makes up; slow, so that its bounds are some microseconds."""

    def __init__(self, path: Path, counter_hz: int) -> None:
        """Make the page of a file."""
        path.write_bytes(bytes(PAGE_BYTES))
        with path.open("r+b") as file:
            self.page = mmap.mmap(file.fileno(), PAGE_BYTES)
        self.page[0:8] = MAGIC
        self.counter_hz = counter_hz
        self.shift = 0
        self.answers = 0
        self.publications = 0
        self.line_changes: Json = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._serve)

    def counter(self) -> int:
        """Return the made-up host's counter."""
        return time.monotonic_ns() * self.counter_hz // 10**9 + self.shift

    def publish(self) -> None:
        """Publish a line that holds now."""
        tai_ns = time.clock_gettime_ns(time.CLOCK_REALTIME) + TAI_UTC_S * 10**9
        made: Json = {"counter": self.counter(), "tai_ns": tai_ns, "ns_per_unit": 1e9 / self.counter_hz}
        words = Line(**(made | self.line_changes)).packed()
        self.page[HOST_LINE + 8 : HOST_LINE + 8 + 2 * LINE_WORDS_BYTES] = words + words
        (sequence,) = struct.unpack_from("<I", self.page, HOST_LINE)
        struct.pack_into("<I", self.page, HOST_LINE, sequence + 2 & 2**32 - 1)

    def _serve(self) -> None:
        answered = next_publish = 0.0
        while not self._stop.is_set():
            (number,) = struct.unpack_from("<I", self.page, REQUEST)
            if number != answered:
                struct.pack_into("<Q", self.page, REPLY, self.counter() & 2**64 - 1)
                struct.pack_into("<I", self.page, REPLY + 8, number)
                answered = number
                self.answers += 1
            now = time.monotonic()
            if now >= next_publish:
                self.publish()
                self.publications += 1
                next_publish = now + 0.02
            time.sleep(0)

    def __enter__(self) -> FakeServer:
        """Begin to serve."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        self._stop.set()
        self._thread.join()
        self.page.close()
