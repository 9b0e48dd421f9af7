# SPDX-License-Identifier: Apache-2.0
"""The time service against servers of the tests: programs, a server that can be told to lie, namespaces."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any, Self

import pytest

from hw.tools import local_tool
from tests.link import End, Link
from tests.patience import HANG_S, wait_until
from tests.targets.lying_server import HONEST, ntp_now
from tests.targets.lying_server import answer as lying_answer
from tests.targets.timeservice.windows_programs import NATIVE, Programs

Json = dict[str, Any]

QUICK = (
    *("--interval-ms", "300", "--quick-interval-ms", "100", "--batch", "4", "--gap-us", "500"),
    *("--timeout-ms", "200", "--check-interval-ms", "100"),
)
"""Settings by which things happen within a second, and by which a busy machine contradicts nothing."""


class TimedProcess:
    """A running bw-timed whose log is read as it comes."""

    def __init__(
        self, page: Path, *arguments: str, prefix: Sequence[str] = (), programs: Programs = NATIVE
    ) -> None:
        """Start it."""
        self.page = page
        self.programs = programs
        argv = [
            *prefix,
            *programs.argv("bw-timed"),
            "--page",
            programs.page(page),
            "--any-counter",
            *arguments,
        ]
        self.process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.seen: list[Json] = []
        self._lines: queue.Queue[Json | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(json.loads(line))
        self._lines.put(None)

    def until(self, condition: Callable[[Json], bool]) -> Json:
        """Return the next line of the log that fulfils a condition."""
        deadline_s = time.monotonic() + HANG_S
        while True:
            try:
                line = self._lines.get(timeout=max(0.0, deadline_s - time.monotonic()))
            except queue.Empty:
                said = f"not within {HANG_S} s; the log ends with {self.seen[-5:]}"
                raise AssertionError(said) from None
            if line is None:
                raise AssertionError(f"it has ended: {self.seen[-5:]}")
            self.seen.append(line)
            if condition(line):
                return line

    def until_state(self, state: str, reason: str | None = None) -> Json:
        """Return the next change of the page's state to one."""
        return self.until(
            lambda line: (
                line["type"] == "state" and line["page_state"] == state and reason in (None, line["reason"])
            )
        )

    def syncs(self, count: int) -> Json:
        """Return the last of so many batches that were used."""
        return [self.until(lambda line: line["type"] == "sync") for _ in range(count)][-1]

    def ctl(self, verb: str) -> Json:
        """Return what bw-timectl says, of verbs that show something."""
        return timectl(self.page, verb, self.programs)

    def tell(self, verb: str) -> int:
        """Hold or resume; return the exit code."""
        argv = [*self.programs.argv("bw-timectl"), verb, "--page", self.programs.page(self.page)]
        return subprocess.run(argv, check=False, capture_output=True).returncode

    def kill(self) -> None:
        """Let it end without a word."""
        self.process.kill()
        self.process.wait()

    def end(self) -> int:
        """Ask it to end; return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(HANG_S)

    def __enter__(self) -> Self:
        """Give itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """End it in any case."""
        if self.process.poll() is None:
            self.kill()
        self._reader.join(HANG_S)
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()


def timectl(page: Path, verb: str, programs: Programs = NATIVE) -> Json:
    """Return what bw-timectl says as JSON."""
    argv = [*programs.argv("bw-timectl"), verb, "--json", "--page", programs.page(page)]
    done = subprocess.run(argv, check=False, capture_output=True, text=True)
    assert done.returncode in (0, 4), done.stderr
    return dict(json.loads(done.stdout))


def recompute(log: Path, *options: str) -> tuple[int, str, str]:
    """Return exit code, what it said, and its error."""
    argv = [str(local_tool("bw-timectl")), "recompute", str(log), *options]
    done = subprocess.run(argv, check=False, capture_output=True, text=True, timeout=HANG_S)
    return done.returncode, done.stdout, done.stderr


def write_lines(log: Path, lines: list[Json]) -> Path:
    """Write lines as bw-timed does; return the log."""
    log.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
    return log


def distance_ns(page: Path, ahead_ns: int = 0) -> tuple[int, int, Json]:
    """Read the page between two readings of this machine's clock.

    Returns:
        How far the time lies outside what the two readings allow; its bound; all that was said.
    """
    before_ns = time.time_ns() + ahead_ns
    said = timectl(page, "tracking")
    after_ns = time.time_ns() + ahead_ns
    assert said["synchronised"], said
    return max(before_ns - said["utc_ns"], said["utc_ns"] - after_ns, 0), said["bound_ns"], said


def check_true(page: Path, ahead_ns: int = 0) -> Json:
    """Check that the truth lies within the bound, as far as this machine's clock can tell."""
    distance, bound_ns, said = distance_ns(page, ahead_ns)
    assert distance <= bound_ns, said
    return said


class ToldServer:
    """An NTP server on the loopback, in basic mode, that lies and keeps silent as it is told."""

    def __init__(self, address: str = "127.0.0.1") -> None:
        """Serve in a thread."""
        self.lie = HONEST
        self.ahead_s = 0.0
        self.root_dispersion_s = 0.0
        self.precision_log2_s = -20
        self.leaps_at_ns: int | None = None
        self.requests: list[bytes] = []
        self._markers = 0
        self.before_answer: Callable[[socket.socket, bytes, tuple[str, int]], None] | None = None
        self.link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.link.bind((address, 0))
        self.text = "{}:{}".format(*self.link.getsockname())
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def asked(self) -> int:
        """Return how often it was asked until now; what was sent before has then been heard, however late."""
        marker = os.urandom(48)
        self._markers += 1
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
            own.sendto(marker, self.link.getsockname())
            wait_until(lambda: marker in self.requests, "what the server was sent")
        return len(self.requests) - self._markers

    def _answer(self, request: bytes) -> bytes | None:
        packet = lying_answer(request, self.lie)
        if packet is not None and self.root_dispersion_s:
            packet = packet[:8] + round(self.root_dispersion_s * 65536).to_bytes(4, "big") + packet[12:]
        if packet is None or self.lie != HONEST:
            return packet
        ahead_s, leap = self.ahead_s, 0
        if self.leaps_at_ns is not None:  # a second is inserted then, by its clock
            leaps = time.time_ns() + round(ahead_s * 10**9) >= self.leaps_at_ns
            ahead_s, leap = (ahead_s - 1, 0) if leaps else (ahead_s, 1)
        # A clock that is read in steps.
        stamp = (ntp_now(ahead_s) >> 32 + self.precision_log2_s << 32 + self.precision_log2_s).to_bytes(
            8, "big"
        )
        precision = self.precision_log2_s.to_bytes(1, "big", signed=True)
        first = (packet[0] | leap << 6).to_bytes(1, "big")
        return first + packet[1:3] + precision + packet[4:32] + stamp + stamp

    def _serve(self) -> None:
        while True:
            try:
                request, client = self.link.recvfrom(1024)
                if not client:  # the socket was shut down
                    return
                self.requests.append(request)
                if self.before_answer is not None:
                    self.before_answer(self.link, request, client)
                packet = self._answer(request)
                if packet is not None:
                    self.link.sendto(packet, client)
            except OSError:
                return

    def __enter__(self) -> Self:
        """Give itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the socket."""
        with contextlib.suppress(OSError):
            self.link.shutdown(socket.SHUT_RDWR)
        self.link.close()
        self._thread.join(HANG_S)


# ---- a real server, in a namespace of its own --------------------------------------------------------------

SERVER_ADDRESS, CLIENT_ADDRESS = "10.79.0.1", "10.79.0.2"


class Pair:
    """Two namespaces with a link between them."""

    def __init__(self) -> None:
        """Make them."""
        self.server, self.client = (f"bw-time{os.getpid()}{end}" for end in "sc")
        server = End(self.server, "t0", (f"{SERVER_ADDRESS}/24",))
        self._link = Link(server, End(self.client, "t0", (f"{CLIENT_ADDRESS}/24",)))
        self._link.make()

    def close(self) -> None:
        """Remove them."""
        self._link.remove()

    def inside(self, name: str) -> tuple[str, ...]:
        """Return what a command in one of them begins with."""
        return ("ip", "netns", "exec", name)


def find_chronyd(folder: Path) -> Path:
    """Return chronyd: this machine's, or Debian's package's, which is unpacked only; skip without."""
    found = shutil.which("chronyd", path="/usr/sbin:/usr/bin:/usr/local/sbin")
    if found:
        return Path(found)
    for argv in (["apt-get", "download", "chrony"], ["sh", "-c", "dpkg-deb -x chrony_*.deb ."]):
        with contextlib.suppress(OSError):
            subprocess.run(argv, cwd=folder, check=False, capture_output=True, timeout=120)
    if not (folder / "usr" / "sbin" / "chronyd").exists():
        pytest.skip("no chronyd on this machine, and its package cannot be had")
    return folder / "usr" / "sbin" / "chronyd"


@contextlib.contextmanager
def chronyd(program: Path, pair: Pair, folder: Path, keys: str = "") -> Generator[subprocess.Popen[bytes]]:
    """Serve this machine's time in the server's namespace; no clock is touched.

    Args:
        program: chronyd.
        pair: The namespaces.
        folder: For its files.
        keys: What stands in its file of keys; empty: it has none.
    """
    config = folder / "chrony.conf"
    config.write_text(
        f"local stratum 1\nallow 10.79.0.0/24\ncmdport 0\nbindcmdaddress /\npidfile {folder}/chronyd.pid\n"
        f"driftfile {folder}/drift\n" + (f"keyfile {folder}/chrony.keys\n" if keys else "")
    )
    (folder / "chrony.keys").write_text(keys)
    (folder / "chrony.keys").chmod(0o600)
    argv = [*pair.inside(pair.server), str(program), "-x", "-d", "-u", "root", "-f", str(config)]
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.terminate()
            process.wait(HANG_S)
