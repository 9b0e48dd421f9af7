# SPDX-License-Identifier: Apache-2.0
"""bw-timed hands its time on: chronyd hears it as a reference clock; the kernel: test_clock_stack.py."""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.patience import HANG_S, wait_until
from tests.targets.timeservice.lab import QUICK, TimedProcess, ToldServer, find_chronyd

pytestmark = [pytest.mark.simulated, pytest.mark.slow]

UNIT = 77
AHEAD_S = 0.25
READ_VALID = f"""
import sys
from ctypes import CDLL, Structure, c_int, c_long, c_void_p

class Segment(Structure):
    _fields_ = [("mode", c_int), ("count", c_int), ("clock_s", c_long), ("clock_us", c_int),
                ("receive_s", c_long), ("receive_us", c_int), ("leap", c_int), ("precision", c_int),
                ("samples", c_int), ("valid", c_int)]

libc = CDLL(None)
libc.shmat.restype = c_void_p
sys.exit(Segment.from_address(libc.shmat(libc.shmget({0x4E545030 + UNIT}, 0, 0), None, 0o10000)).valid)
"""
"""Exit code: `valid` of the segment (struct shm_time in port_linux_feed.c)."""


@contextmanager
def own_memory() -> Generator[tuple[str, ...]]:
    """Give what a command begins with whose shared memory nobody else on this machine has."""
    own = Path("/proc/self/ns/ipc").readlink()
    with subprocess.Popen(["unshare", "--ipc", "sleep", "600"]) as holder:
        namespace = Path(f"/proc/{holder.pid}/ns/ipc")
        try:
            wait_until(lambda: namespace.readlink() != own, "shared memory of its own")
            yield ("nsenter", f"--ipc={namespace}")
        finally:
            holder.kill()


@contextmanager
def listening_chronyd(folder: Path, prefix: tuple[str, ...]) -> Generator[Path]:
    """Run a chronyd that hears the time service and touches no clock; give its log of the reference clock."""
    config, logs = folder / "chrony.conf", folder / "logs"
    logs.mkdir()
    config.write_text(
        f"refclock SHM {UNIT} refid BWT poll 0 dpoll -2 filter 4\nlog refclocks\nlogdir {logs}\ncmdport 0\n"
        f"bindcmdaddress /\npidfile {folder}/chronyd.pid\ndriftfile {folder}/drift\n"
    )
    argv = [*prefix, str(find_chronyd(folder)), "-x", "-d", "-u", "root", "-f", str(config)]
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield logs / "refclocks.log"
        finally:
            process.terminate()
            process.wait(HANG_S)


def offsets_s(log: Path) -> list[float]:
    """Return the offsets that chronyd has taken: the reference clock is ahead where they are positive."""
    lines = log.read_text().splitlines() if log.exists() else []
    fields = [line.split() for line in lines if " BWT " in line]
    return [float(each[6]) for each in fields if each[3].isdigit()]


def test_chronyd_hears_the_time_of_the_service(tmp_path: Path) -> None:
    """The server is a quarter of a second ahead of this machine, and so is what chronyd hears."""
    feed = ("--feed", "chrony", "--feed-unit", str(UNIT))
    with ToldServer() as server, own_memory() as prefix:
        server.ahead_s = AHEAD_S
        with TimedProcess(tmp_path / "page", "--server", server.text, *QUICK, *feed, prefix=prefix) as timed:
            timed.syncs(3)
            with listening_chronyd(tmp_path, prefix) as log:
                wait_until(lambda: len(offsets_s(log)) >= 8, "what chronyd hears")
                heard_s = statistics.median(offsets_s(log))
            assert timed.end() == 0
    assert abs(heard_s - AHEAD_S) < 0.05


def test_what_the_service_is_not_sure_of_any_more_is_handed_on_no_longer(tmp_path: Path) -> None:
    """Held, it hears no server until the bound is too wide; chronyd finds no sample then."""
    feed = ("--feed", "chrony", "--feed-unit", str(UNIT))
    bound = ("--drift-limit-ppb", "1000000", "--bound-max-ns", "10000000")  # in ten seconds from nothing
    arguments = (*QUICK, *feed, *bound)
    with (
        ToldServer() as server,
        own_memory() as prefix,
        TimedProcess(tmp_path / "page", "--server", server.text, *arguments, prefix=prefix) as timed,
    ):

        def is_valid() -> bool:
            return bool(subprocess.run([*prefix, sys.executable, "-c", READ_VALID], check=False).returncode)

        timed.syncs(3)
        wait_until(is_valid, "a sample")
        timed.tell("hold")
        wait_until(lambda: not timed.ctl("tracking")["synchronised"], "the end of the time")
        wait_until(lambda: not is_valid(), "the end of what is handed on")
        assert timed.ctl("tracking")["state"] == "holdover"
        assert timed.end() == 0


def test_a_feed_that_is_not_permitted_is_a_missing_capability(tmp_path: Path) -> None:
    """Who may not set the clock is told so at once, before any reader is told a time."""
    argv = ["--server", "127.0.0.1", *QUICK, "--feed", "kernel"]
    prefix = ("setpriv", "--bounding-set=-sys_time", "--inh-caps=-sys_time", "--")
    with TimedProcess(tmp_path / "page", *argv, prefix=prefix) as timed:
        assert timed.process.wait(HANG_S) == 3
        assert timed.process.stderr is not None
        assert "--feed kernel: Operation not permitted" in timed.process.stderr.read()
