# SPDX-License-Identifier: Apache-2.0
"""The namespaces of benchmarks: gone after an interrupt, and after a kill with the next benchmark."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bench.lab.namespaces import PREFIX
from bench.lab.pair import Pair

pytestmark = [pytest.mark.simulated, pytest.mark.timed]

HOLD = """
from bench.lab.pair import Pair
with Pair() as pair:
    pair.start(pair.sender, ["sleep", "600"])
    print("up", flush=True)
    import time
    time.sleep(600)
"""


def hold(repository: Path) -> subprocess.Popen[str]:
    """Start a program that holds namespaces with a process in them."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD], cwd=repository, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    return process


def namespaces(pid: int) -> list[str]:
    """Return the namespaces of a benchmark."""
    return sorted(path.name for path in Path("/run/netns").glob(f"{PREFIX}-{pid}-*"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_leaves_nothing(repository: Path, number: signal.Signals) -> None:
    process = hold(repository)
    assert len(namespaces(process.pid)) == 2
    process.send_signal(number)
    process.communicate(timeout=30)
    assert process.returncode != 0
    assert namespaces(process.pid) == []


def test_the_next_one_removes_what_a_killed_one_left(repository: Path) -> None:
    process = hold(repository)
    process.kill()
    process.communicate()
    assert len(namespaces(process.pid)) == 2
    with Pair():
        assert namespaces(process.pid) == []
