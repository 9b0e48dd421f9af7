# SPDX-License-Identifier: Apache-2.0
"""Two network namespaces with a veth pair between them, and the plan files of runs across it."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reports.clock_sync.tai_utc import TAI_UTC_S
from resources.daq_replay.pattern import Pattern
from resources.daq_replay.pattern import Stream as PatternStream
from resources.daq_replay.plan_file import BASE_PORT, PlanClock, PlanFile, PlanProducer
from tests.link import End, Link
from tests.namespace import in_namespace
from tests.patience import HANG_S

CONSUMER = "10.77.0.100"
FOREIGNER = "10.77.0.200"
CLOCK_PORT = 19999
NONCE = 0x0123456789ABCDEF

Json = dict[str, Any]


def producer_address(number: int) -> str:
    """Return the source address of a producer."""
    return f"10.77.0.{number}"


def tai_ns() -> int:
    """Return the current TAI as bw-traffic reads it: where the kernel's TAI - UTC is 0, UTC + 37 s."""
    realtime_ns = time.clock_gettime_ns(time.CLOCK_REALTIME)
    kernel_ns = time.clock_gettime_ns(time.CLOCK_TAI)
    return kernel_ns if kernel_ns - realtime_ns > 10**9 else realtime_ns + TAI_UTC_S * 10**9


@dataclass(frozen=True)
class Stream:
    """One stream of a pattern."""

    id: int
    transport: str = "udp"
    size_bytes: int = 100
    period_us: int = 10_000
    budget_us: int = 1_000_000
    low_latency: bool = False

    def of_pattern(self) -> PatternStream:
        """Return it as a pattern has it."""
        producer, message_type = divmod(self.id, 10)
        period_ns, budget_ns = self.period_us * 1000, self.budget_us * 1000
        return PatternStream(
            self.id,
            producer,
            message_type,
            self.transport,
            self.size_bytes,
            period_ns,
            budget_ns,
            self.low_latency,
            0,
        )


def pattern_text(*streams: Stream) -> str:
    """Return a pattern file."""
    return Pattern("test", "tests", "", tuple(stream.of_pattern() for stream in streams)).text()


@dataclass(frozen=True)
class Plan:
    """A plan; times in ms. `start_tai_ns` is slot 0 in each producer's clock.

    `producer` is the address of all of them; empty: each has its own.
    """

    pattern: str
    producers: tuple[int, ...] = (1,)
    phase: str = "aligned-48"
    scale: int = 1
    warmup_ms: int = 500
    duration_ms: int = 1500
    grace_ms: int = 300
    correction: str = "none"
    nonce: int = NONCE
    start_tai_ns: int = field(default_factory=lambda: tai_ns() + 10**9)
    rate_ppb: int = 0
    consumer_clock: str = ""
    consumer: str = CONSUMER
    producer: str = ""
    capture_stamps: bool = True

    def write(self, path: Path) -> Path:
        """Write the plan file and return its path."""
        plan = PlanFile(
            nonce=f"{self.nonce:016x}",
            phase=self.phase,
            scale=self.scale,
            warmup_ms=self.warmup_ms,
            duration_ms=self.duration_ms,
            grace_ms=self.grace_ms,
            correction=self.correction,
            capture_stamps=self.capture_stamps,
            consumer=self.consumer,
            consumer_clock=self.consumer_clock,
            clocks=[PlanClock("peer", self._producer(1), CLOCK_PORT)],
            producers=[
                PlanProducer(number, self._producer(number), "peer", self.start_tai_ns, self.rate_ppb)
                for number in self.producers
            ],
        )
        path.write_text(plan.text(self.pattern))
        return path

    def _producer(self, number: int) -> str:
        return self.producer or producer_address(number)


class Tool:
    """A bw-traffic process in a namespace, whose answers are read line by line from a file."""

    def __init__(
        self, namespace: str, program: Path, arguments: list[str], log: Path, environment: dict[str, str]
    ) -> None:
        """Start it; `log` receives its stdout, and its stderr beside it. The environment is added to ours."""
        self.log = log
        self._error_log = log.with_suffix(".err")
        command = ["ip", "netns", "exec", namespace, str(program), *arguments]
        with log.open("wb") as out, self._error_log.open("wb") as err:
            self.process = subprocess.Popen(
                command, stdout=out, stderr=err, env={**os.environ, **environment}
            )

    def lines(self) -> list[Json]:
        """Return the complete lines that it has written."""
        return [json.loads(line) for line in self.log.read_text().split("\n")[:-1]]

    def errors(self) -> str:
        """Return its stderr."""
        return self._error_log.read_text()

    def wait_line(self, wanted: Callable[[Json], bool], timeout_s: float = HANG_S) -> Json:
        """Return the first line that is wanted; raise TimeoutError when it ends without, or in time."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            ended = self.process.poll() is not None
            for line in self.lines():
                if wanted(line):
                    return line
            if ended:
                break
            time.sleep(0.02)
        raise TimeoutError(f"no such line; stderr: {self.errors()}")

    def wait_ready(self) -> Json:
        """Wait for the line `ready`."""
        return self.wait_line(lambda line: line["type"] == "ready")

    def result(self, code: int = 0, timeout_s: float = HANG_S) -> Json:
        """Wait for its end, check the exit code, and return the last line."""
        found = self.process.wait(timeout_s)
        assert found == code, f"exit code {found}, not {code}; stderr: {self.errors()}; {self.lines()[-1:]}"
        last = self.lines()[-1]
        assert last["type"] == "result"
        return last

    def stop(self) -> None:
        """Ask it to end."""
        self.process.send_signal(signal.SIGTERM)

    def close(self) -> None:
        """Kill it if it still runs."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


class Lab:
    """Namespaces `producers` and `consumer` with a veth pair, and the processes in them."""

    def __init__(self, program: Path, folder: Path) -> None:
        """Take the program to run and a folder for plans and answers."""
        self.program = program
        self.folder = folder
        self.producers = f"bw-t{os.getpid()}p"
        self.consumer = f"bw-t{os.getpid()}c"
        sources = [*(producer_address(number) for number in range(1, 25)), FOREIGNER]
        producers = End(self.producers, "p0", tuple(f"{address}/24" for address in sources))
        self._link = Link(producers, End(self.consumer, "c0", (f"{CONSUMER}/24",)))
        self._tools: list[Tool] = []

    def __enter__(self) -> Lab:
        """Make the namespaces."""
        self._link.make()
        return self

    def __exit__(self, *_: object) -> None:
        """Kill what still runs and remove the namespaces."""
        for tool in self._tools:
            tool.close()
        self._link.remove()

    def _start(self, namespace: str, arguments: list[str], environment: dict[str, str] | None = None) -> Tool:
        log = self.folder / f"{arguments[0]}-{len(self._tools)}.ndjson"
        tool = Tool(namespace, self.program, arguments, log, environment or {})
        self._tools.append(tool)
        return tool

    def recv(self, plan: Path, *options: str, environment: dict[str, str] | None = None) -> Tool:
        """Start the consumer."""
        return self._start(self.consumer, ["recv", str(plan), *options], environment)

    def send(
        self,
        plan: Path,
        producers: str = "all",
        *options: str,
        environment: dict[str, str] | None = None,
    ) -> Tool:
        """Start producers."""
        return self._start(
            self.producers, ["send", str(plan), "--producer", producers, *options], environment
        )

    def exchange(self, *options: str) -> Tool:
        """Start the consumer's exchanges with the producers' clock."""
        return self._start(
            self.consumer, ["offset", "--peer", f"{producer_address(1)}:{CLOCK_PORT}", *options]
        )

    def begin_replay(self, plan: Plan, *options: str) -> tuple[Tool, Tool]:
        """Start the consumer of a plan, with options; once it is ready, all producers. Return both."""
        path = plan.write(self.folder / "plan.toml")
        recv = self.recv(path, *options)
        recv.wait_ready()
        return recv, self.send(path)

    def serve(self) -> Tool:
        """Start the responder of the two-way exchange."""
        return self._start(self.producers, ["offset", "--serve", f"{producer_address(1)}:{CLOCK_PORT}"])

    def break_connections(self, stream_id: int) -> None:
        """Reset the TCP connections of a stream in the consumer's kernel."""
        command = ["ip", "netns", "exec", self.consumer, "ss", "-t", "-K", "state", "established"]
        subprocess.run([*command, f"sport = :{BASE_PORT + stream_id}"], check=True, capture_output=True)

    @contextlib.contextmanager
    def sockets(self) -> Generator[SocketMaker]:
        """Give sockets of the producers' namespace; all of them are closed at the end."""
        maker = SocketMaker(self.producers)
        try:
            yield maker
        finally:
            maker.close()


class SocketMaker:
    """Opens sockets in a namespace."""

    def __init__(self, namespace: str) -> None:
        """Take the namespace's name."""
        self._namespace = namespace
        self._sockets: list[socket.socket] = []

    def open(self, kind: socket.SocketKind, source: str, port: int = 0) -> socket.socket:
        """Open a socket bound to a source address."""
        made = in_namespace(self._namespace, lambda: socket.socket(socket.AF_INET, kind))
        self._sockets.append(made)
        made.settimeout(HANG_S)
        made.bind((source, port))
        return made

    def connect(self, source: str, stream_id: int) -> socket.socket:
        """Open a TCP connection to the consumer's port of a stream.

        The consumer may put a foreigner out before connect() has returned: `is_put_out` tells.
        """
        sock = self.open(socket.SOCK_STREAM, source)
        with contextlib.suppress(ConnectionResetError):
            sock.connect((CONSUMER, BASE_PORT + stream_id))
        return sock

    def close(self) -> None:
        """Close all sockets."""
        for sock in self._sockets:
            sock.close()


def is_put_out(sock: socket.socket) -> bool:
    """Tell whether the consumer ends this connection within its time-out, or has done so already."""
    try:
        return sock.recv(1) == b""
    except ConnectionResetError:
        return True
    except OSError as error:
        if error.errno == errno.ENOTCONN:  # it was reset while it was being made
            return True
        raise


def streams_by_id(result: Json) -> dict[int, Json]:
    """Return the streams of a result by their ids."""
    return {stream["id"]: stream for stream in result["streams"]}
