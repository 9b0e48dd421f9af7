# SPDX-License-Identifier: Apache-2.0
"""bw-timed hands its time on: chronyd hears it as a reference clock; the kernel: test_time_service.py."""

from __future__ import annotations

import statistics
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.targets.timed_lab import DEADLINE_S, QUICK, Timed, ToldServer, find_chronyd

pytestmark = [pytest.mark.simulated, pytest.mark.slow]

UNIT = 77
KEY = 0x4E545030 + UNIT
AHEAD_S = 0.25


@contextmanager
def listening_chronyd(folder: Path) -> Generator[Path]:
    """Run a chronyd that hears the time service and touches no clock; give its log of the reference clock."""
    config, logs = folder / "chrony.conf", folder / "logs"
    logs.mkdir()
    config.write_text(
        f"refclock SHM {UNIT} refid BWT poll 0 dpoll -2 filter 4\nlog refclocks\nlogdir {logs}\ncmdport 0\n"
        f"bindcmdaddress /\npidfile {folder}/chronyd.pid\ndriftfile {folder}/drift\n"
    )
    argv = [str(find_chronyd(folder)), "-x", "-d", "-u", "root", "-f", str(config)]
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield logs / "refclocks.log"
        finally:
            process.terminate()
            process.wait(20)
            subprocess.run(["ipcrm", "-M", hex(KEY)], check=False, stderr=subprocess.DEVNULL)


def offsets_s(log: Path) -> list[float]:
    """Return the offsets that chronyd has taken: the reference clock is ahead where they are positive."""
    lines = log.read_text().splitlines() if log.exists() else []
    fields = [line.split() for line in lines if " BWT " in line]
    return [float(each[6]) for each in fields if each[3].isdigit()]


def test_chronyd_hears_the_time_of_the_service(tmp_path: Path) -> None:
    """The server is a quarter of a second ahead of this machine, and so is what chronyd hears."""
    feed = ("--feed", "chrony", "--feed-unit", str(UNIT))
    with ToldServer() as server:
        server.ahead_s = AHEAD_S
        with Timed(tmp_path / "page", "--server", server.text, *QUICK, *feed) as timed:
            timed.syncs(3)
            with listening_chronyd(tmp_path) as log:
                deadline_s = time.monotonic() + DEADLINE_S
                while len(offsets_s(log)) < 8:
                    assert time.monotonic() < deadline_s, log.read_text() if log.exists() else "no log"
                    time.sleep(0.2)
                heard_s = statistics.median(offsets_s(log))
            assert timed.end() == 0
    assert abs(heard_s - AHEAD_S) < 0.05


def test_a_feed_that_is_not_permitted_is_a_missing_capability(tmp_path: Path) -> None:
    """Who may not set the clock is told so at once, before any reader is told a time."""
    argv = ["--server", "127.0.0.1", *QUICK, "--feed", "kernel"]
    prefix = ("setpriv", "--bounding-set=-sys_time", "--inh-caps=-sys_time", "--")
    with Timed(tmp_path / "page", *argv, prefix=prefix) as timed:
        assert timed.process.wait(60) == 3
        assert timed.process.stderr is not None
        assert "--feed kernel: Operation not permitted" in timed.process.stderr.read()
