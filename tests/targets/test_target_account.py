# SPDX-License-Identifier: Apache-2.0
"""A target on the bench's own CPUs that stalls the witness: what it ran is told, and excuses nothing."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from hw.bench import WitnessSpec
from hw.drivers.labgrid_api import register_all
from hw.session import Bench
from reports.tools.answers import WitnessResult, last_result, witness_result
from resources.tools.witness import start_witness
from tests.patience import HANG_S

TARGET = "linux"
CPUS = tuple(sorted(os.sched_getaffinity(0)))
SEEN = 0.9
"""Of a burst of 20 ms at least; a period and a threshold of the witness, 350 us, are 2 % of it."""

# Three bursts of 20 ms of its own CPU time: a busy machine makes them longer, no weaker. Prints their sum.
HOG = """
import time
for _ in range(3):
    time.sleep(0.05)
    begun_ns = time.thread_time_ns()
    while time.thread_time_ns() - begun_ns < 20_000_000:
        pass
print(3 * 20_000_000)
"""
FIFO = ["chrt", "--fifo", "95"]
HIGHEST = ["chrt", "--fifo", "99"]
_TIMES = ("--sched-runtime", "50000000", "--sched-deadline", "100000000", "--sched-period", "100000000")
DEADLINE = ["chrt", "--deadline", *_TIMES, "0"]
ALL_CPUS = ["taskset", "--cpu-list", ",".join(map(str, CPUS))]
"""The class of deadlines takes no thread that is bound to some of the CPUs."""

register_all()


def _watched(bench: Bench, folder: Path, hog: list[str], *, of_target: bool) -> tuple[WitnessResult, int]:
    """Return what the witness saw of a hog, and what that has run, in ns."""
    spec, account = WitnessSpec("switch", CPUS, 100), bench.virtual.target_account()
    witness = start_witness(bench, spec, folder / "witness", 0, target=account)
    argv = [*ALL_CPUS, *hog, "python3", "-c", HOG]
    if of_target:
        told = bench.node(TARGET).run(argv, HANG_S).stdout
    else:
        told = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=HANG_S).stdout
    witness.stop()
    assert witness.wait(HANG_S) == 0
    return witness_result(last_result(witness.fetch())), int(told)


@pytest.mark.simulated
@pytest.mark.parametrize("hog", [FIFO, HIGHEST, DEADLINE], ids=["fifo-95", "fifo-99", "deadline"])
def test_what_the_target_took_excuses_nothing(bench: Bench, tmp_path: Path, hog: list[str]) -> None:
    found, ran_ns = _watched(bench, tmp_path, hog, of_target=True)
    assert found.target_ran_ns
    assert sum(found.target_ran_ns) >= SEEN * ran_ns
    stalled_ns = sum(end - start + found.period_ns for start, end, _cpu in found.windows)
    excused_ns = sum(end - start for start, end in found.pauses())
    assert excused_ns <= stalled_ns - SEEN * ran_ns


@pytest.mark.simulated
def test_what_a_stranger_took_is_a_pause(bench: Bench, tmp_path: Path) -> None:
    found, ran_ns = _watched(bench, tmp_path, FIFO, of_target=False)
    assert sum(end - start for start, end in found.pauses()) >= SEEN * ran_ns
