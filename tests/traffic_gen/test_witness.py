# SPDX-License-Identifier: Apache-2.0
"""The verb witness: it finds a stall that was made on purpose, where and when it was made."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

Json = dict[str, Any]

# Holds a CPU at a priority above the witness's, and prints from when to when, in TAI ns.
HOG = """
import os, sys, time
from tests.traffic_gen.lab import tai_ns
os.sched_setaffinity(0, {int(sys.argv[1])})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(95))
tai_ns()
start_ns = tai_ns()
while tai_ns() - start_ns < 40_000_000:
    pass
print(start_ns, tai_ns())
"""


def _witness(program: Path, *arguments: str) -> subprocess.Popen[str]:
    process = subprocess.Popen([program, "witness", *arguments], stdout=subprocess.PIPE, text=True)
    assert process.stdout
    assert json.loads(process.stdout.readline())["type"] == "ready"
    return process


def _result(process: subprocess.Popen[str]) -> Json:
    output, _ = process.communicate(timeout=30)
    return json.loads(output.splitlines()[-1])


@pytest.mark.simulated
def test_held_cpu_is_a_stall_window(bw_traffic: Path, repository: Path) -> None:
    cpu = max(os.sched_getaffinity(0))
    with _witness(bw_traffic) as process:
        hog = subprocess.run(
            [sys.executable, "-c", HOG, str(cpu)], cwd=repository, capture_output=True, text=True, check=True
        )
        process.send_signal(signal.SIGTERM)
        result = _result(process)
    start_ns, end_ns = (int(word) for word in hog.stdout.split())
    windows = [window for window in result["windows"] if window[2] == cpu]
    # The first wake-up that the hog delays is due within a period of its start.
    assert any(window[0] <= start_ns + 500_000 and window[1] >= end_ns for window in windows), result
    (watched,) = [entry for entry in result["cpus"] if entry["cpu"] == cpu]
    assert watched["stalls"] >= 1
    assert watched["max_ns"] >= end_ns - start_ns - 500_000
    assert result["stalled_ns"] >= end_ns - start_ns - 500_000
    assert result["stalled_fraction"] == pytest.approx(result["stalled_ns"] / result["elapsed_ns"])


def test_signal_ends_a_bounded_run_early(bw_traffic: Path) -> None:
    with _witness(bw_traffic, "--duration-ms", "60000") as process:
        process.send_signal(signal.SIGTERM)
        result = _result(process)
    assert process.returncode == 4
    assert result["complete"] is False


def test_all_cpus_are_watched_for_the_duration(bw_traffic: Path) -> None:
    with _witness(bw_traffic, "--duration-ms", "300") as process:
        result = _result(process)
    assert process.returncode == 0
    assert {entry["cpu"] for entry in result["cpus"]} == os.sched_getaffinity(0)
    assert result["elapsed_ns"] >= 300_000_000
    for entry in result["cpus"]:
        assert 0 < entry["samples"] <= result["elapsed_ns"] // 500_000


def test_absent_cpu_is_a_missing_capability(bw_traffic: Path) -> None:
    absent = max(os.sched_getaffinity(0)) + 1
    done = subprocess.run(
        [bw_traffic, "witness", "--cpu", str(absent), "--duration-ms", "100"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3
    assert f"CPU {absent} cannot be watched" in done.stderr
