# SPDX-License-Identifier: Apache-2.0
"""Threads of the virtual bench run where its file says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.simulation.processes import guests_of
from tests.simulation.trial import TARGET, Lab

pytestmark = [pytest.mark.simulated, pytest.mark.timed]


def placement(tid: int) -> tuple[int, set[int]]:
    """Return priority and CPUs of a thread."""
    return os.sched_getparam(tid).sched_priority, os.sched_getaffinity(tid)


def test_threads_of_the_target_run_where_the_bench_file_says(lab: Lab) -> None:
    guest = lab.bench.spec.labgrid_targets[TARGET]["resources"]["VirtualGuest"]
    process = guests_of(lab.bench.spec)[TARGET]
    vcpus = 0
    for task in Path(f"/proc/{process}/task").iterdir():
        is_vcpu = (task / "comm").read_text().startswith("CPU ")
        vcpus += is_vcpu
        kind = "vcpu" if is_vcpu else "main_loop"
        assert placement(int(task.name)) == (guest[f"{kind}_priority"], set(guest[f"{kind}_cpus"]))
    assert vcpus == guest["cpus"]
