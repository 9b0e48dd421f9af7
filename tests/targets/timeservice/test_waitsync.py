# SPDX-License-Identifier: Apache-2.0
"""`bw-timectl waitsync` against services that come, that do not get a time, that end, and that never come."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from hw.tools import local_tool
from tests.patience import HANG_S
from tests.targets.timeservice.lab import QUICK, TimedProcess, ToldServer, timectl

pytestmark = pytest.mark.simulated


def wait_for(page: Path, timeout_s: int) -> subprocess.Popen[str]:
    """Begin to wait."""
    argv = [str(local_tool("bw-timectl")), "waitsync", "--page", str(page), "--timeout-s", str(timeout_s)]
    return subprocess.Popen(argv, stderr=subprocess.PIPE, text=True)


def end_of(waiting: subprocess.Popen[str]) -> tuple[int, str]:
    """Return the exit code, and what was said."""
    said = waiting.communicate(timeout=HANG_S)[1]
    return waiting.returncode, said


def test_it_waits_for_a_service_that_comes(page: Path) -> None:
    waiting = wait_for(page, round(HANG_S))
    assert waiting.poll() is None
    with ToldServer() as server, TimedProcess(page, "--server", server.text, *QUICK):
        assert end_of(waiting) == (0, "")


def test_time_out_of_a_service_without_a_time(page: Path) -> None:
    with ToldServer() as server:
        server.lie = "silent"
        with TimedProcess(page, "--server", server.text, *QUICK) as timed:
            timed.until_state("starting", "no server answers")
            assert end_of(wait_for(page, 1)) == (1, "bw-timectl: waitsync: no server answers\n")
            assert timed.end() == 0
    # It has ended, and no other one comes.
    code, said = end_of(wait_for(page, 0))
    assert (code, said) == (2, "bw-timectl: waitsync: the service has ended\n")


def test_service_that_has_ended_though_its_last_time_holds(page: Path) -> None:
    with ToldServer() as server, TimedProcess(page, "--server", server.text, *QUICK) as timed:
        timed.until_state("synchronised")
        assert timed.end() == 0
        assert timectl(page, "tracking")["synchronised"]
        assert end_of(wait_for(page, 0)) == (2, "bw-timectl: waitsync: the service has ended\n")
        waiting = wait_for(page, round(HANG_S))
        with TimedProcess(page, "--server", server.text, *QUICK):
            assert end_of(waiting) == (0, "")


def test_no_service_and_none_comes(page: Path) -> None:
    code, said = end_of(wait_for(page, 1))
    assert code == 2
    assert "no service has made it" in said


def test_bad_input_is_never(page: Path) -> None:
    code, said = end_of(wait_for(page, -1))
    assert code == 2
    assert "timeout-s" in said
