# SPDX-License-Identifier: Apache-2.0
"""The page of the edge device (`registers.h` of bw-edge), and an oscilloscope that only listens."""

from __future__ import annotations

import contextlib
import json
import mmap
import socket
import struct
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.patience import HANG_S, wait_until
from tests.traffic_gen.clock.clock_page import LINE_WORDS_BYTES, Line

Json = dict[str, Any]

MAPPING_BYTES = 32768
EDGE_OFFSET = 4096
HORIZON = EDGE_OFFSET + 24
CALIBRATION, PHC_LINE = EDGE_OFFSET + 64, EDGE_OFFSET + 256
REFERENCE, OTHER = 1, 2
PULSE_NS = 100_000
ART_HZ = 38_400_000
SDP_HZ = 125_000_000


@dataclass(frozen=True, order=True)
class ObservedEdge:
    """An edge on the oscilloscope's time axis."""

    time_ps: int
    channel: int
    rising: bool


class ListeningScope:
    """An edge port: keeps all lines, in the order in which they came."""

    def __init__(self, port: int = 0) -> None:
        """Listen on loopback."""
        self._listener = socket.create_server(("127.0.0.1", port))
        self.port: int = self._listener.getsockname()[1]
        self.lines: list[Json] = []
        self._connection: socket.socket | None = None
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        """Return what `--scope` takes."""
        return f"127.0.0.1:{self.port}"

    def edges(self, channel: int | None = None, rising: bool | None = None) -> list[ObservedEdge]:
        """Return the edges that came, in their order; of one channel or direction only, perhaps."""
        seen = [
            ObservedEdge(line["time_ns"] * 1000 + line["fraction_ps"], line["channel"], line["rising"])
            for line in list(self.lines)
            if "channel" in line
        ]
        wanted = [edge for edge in seen if channel in (None, edge.channel)]
        return [edge for edge in wanted if rising in (None, edge.rising)]

    def wait_for_all(self, result: Json) -> None:
        """Return when every edge is here that a server which has ended says it sent."""
        scope = result["scope"]
        wait_for(lambda: len(self.edges()) >= scope["edges"] - scope["lost"], "edges that were sent")

    def disorder(self) -> list[Json]:
        """Return the lines that break the order of time, or the promise of a progress line."""
        broken: list[Json] = []
        latest_ps = 0
        for line in list(self.lines):
            promised_ps = line["until_ns"] * 1000 if "until_ns" in line else None
            time_ps = promised_ps if promised_ps is not None else line["time_ns"] * 1000 + line["fraction_ps"]
            # A promise is a whole nanosecond: it may lie below an edge that came before.
            if time_ps < latest_ps - (1000 if promised_ps is not None else 0):
                broken.append(line)
            latest_ps = max(latest_ps, time_ps)
        return broken

    def _serve(self) -> None:
        while True:
            try:
                self._connection, _ = self._listener.accept()
            except OSError:
                return
            with self._connection, self._connection.makefile("r", encoding="ascii") as stream:
                try:
                    for line in stream:
                        self.lines.append(json.loads(line))
                except (OSError, ValueError):
                    continue

    def close(self) -> None:
        """Hang up and listen no more; does nothing the second time."""
        for one in (self._listener, self._connection):
            with contextlib.suppress(OSError):
                if one:
                    one.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(HANG_S)


class Page:
    """A page whose guest is this machine: the counters are the same, and the line of the PHC is made up."""

    def __init__(self, path: Path, offset: int = 0, bound: int = 0) -> None:
        """Make the file; offset and bound are those of the counters, in ticks."""
        self.path = path
        path.write_bytes(bytes(MAPPING_BYTES))
        with path.open("r+b") as file:
            self.memory = mmap.mmap(file.fileno(), MAPPING_BYTES)
        self.offset = offset
        self.bound = bound
        self.published = 0
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def calibrate(self) -> None:
        """Store the offset of the counters."""
        struct.pack_into("<QQ", self.memory, CALIBRATION + 8, self.offset & 2**64 - 1, self.bound)
        struct.pack_into("<I", self.memory, CALIBRATION, 2)

    def horizon(self) -> int:
        """Return up to which tick all is decided."""
        return struct.unpack_from("<Q", self.memory, HORIZON)[0]

    def publish(self, counter: int, phc_ns: int, ns_per_tick: float) -> None:
        """Publish one line of the PHC."""
        self.published += 1
        line = Line(counter, phc_ns, ns_per_tick, published=self.published, source=b"phc")
        words = line.packed()
        self.memory[PHC_LINE + 8 : PHC_LINE + 8 + 2 * LINE_WORDS_BYTES] = words + words
        (sequence,) = struct.unpack_from("<I", self.memory, PHC_LINE)
        struct.pack_into("<I", self.memory, PHC_LINE, sequence + 2 & 2**32 - 1)

    def keep_publishing(self, origin: int, origin_ns: int, ns_per_tick: float) -> None:
        """Publish the same straight line again and again, from where the device stands or `bound` later."""

        def publish() -> None:
            while not self._stop.is_set():
                # The line holds at every tick: a whole number of ticks and of nanoseconds from its origin.
                ticks = max(self.horizon() + self.bound - origin, 0)
                steps = int(ticks * ns_per_tick) // 1000
                self.publish(
                    origin + round(steps * 1000 / ns_per_tick), origin_ns + steps * 1000, ns_per_tick
                )
                time.sleep(0.05)

        self._thread = threading.Thread(target=publish, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End it."""
        self._stop.set()
        if self._thread:
            self._thread.join()
        self.memory.close()


def wait_for(true: Any, what: str) -> None:
    """Return when something is true."""
    wait_until(lambda: bool(true()), what)


def work_pins(program: Path, page: Path | str, *arguments: object) -> Json:
    """Run edge-pins to its end; return its result."""
    argv = [str(program), str(page), *(str(argument) for argument in arguments)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=HANG_S, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
