# SPDX-License-Identifier: Apache-2.0
"""A CPU quota is told from pauses that end anywhere: drawn ones, and those of the kernel's own quota."""

from __future__ import annotations

import json
import os
import random
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from reports.tools.answers import last_result, witness_result
from reports.tools.cpu_quota import PERIOD_NS, cpu_quota
from tests.patience import HANG_S

MS = 1_000_000
QUOTA_US = 10_000
"""Of each period: little, which the group gets beside other tests, too."""
PROGRAM = ".build/linux/traffic-gen/bw-traffic"


def drawn(seed: int, count: int, ends_at_ns: int | None) -> list[tuple[int, int]]:
    """Return pauses of 2 to 30 ms on two CPUs, in 40 s; None: they end anywhere."""
    rng = random.Random(seed)
    windows: list[tuple[int, int]] = []
    for period in sorted(rng.sample(range(400), count)):
        place_ns = rng.randrange(PERIOD_NS) if ends_at_ns is None else ends_at_ns + rng.randrange(MS)
        end_ns = period * PERIOD_NS + place_ns
        windows += [(end_ns - rng.randrange(2 * MS, 30 * MS), end_ns - cpu * 100) for cpu in (0, 1)]
    return windows


@pytest.mark.parametrize("place_ms", [0, 34, 99])
def test_pauses_that_end_at_one_place_are_a_quota(place_ms: int) -> None:
    found = cpu_quota([])
    for seed in range(50):
        found = cpu_quota([*drawn(seed, 12, place_ms * MS + 500_000), *drawn(seed + 1000, 6, None)])
        assert found.is_seen, (seed, found)
        assert found.ended >= 12 - 3  # some of both overlap
    assert " of their time, end at one place of each 100 ms: a CPU quota of its hypervisor" in found.words


def test_pauses_that_end_anywhere_are_none() -> None:
    seen = [seed for seed in range(2000) if cpu_quota(drawn(seed, 3 + seed % 40, None)).is_seen]
    assert seen == []


def test_few_and_short_pauses_say_nothing() -> None:
    assert cpu_quota([]).words == ""
    assert cpu_quota(drawn(1, 4, 34 * MS)).words == ""
    short = [(period * PERIOD_NS, period * PERIOD_NS + MS) for period in range(100)]
    assert cpu_quota(short).pauses == 0


@contextmanager
def limited() -> Generator[Path]:
    """Make a control group with a quota, by the version of control groups that this machine has."""
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    first = [mount[1] for mount in mounts if mount[2] == "cgroup" and "cpu" in mount[3].split(",")]
    second = [
        mount[1]
        for mount in mounts
        if mount[2] == "cgroup2" and "cpu" in Path(mount[1], "cgroup.controllers").read_text().split()
    ]
    if not first and not second:
        pytest.skip("this machine has no control groups with a quota of CPUs")
    group = Path((first or second)[0], f"benchwright-quota-{os.getpid()}")
    if not first:
        (group.parent / "cgroup.subtree_control").write_text("+cpu")
    group.mkdir()
    try:
        if first:
            (group / "cpu.cfs_period_us").write_text(str(PERIOD_NS // 1000))
            (group / "cpu.cfs_quota_us").write_text(str(QUOTA_US))
            (group / "cpu.shares").write_text("262144")
        else:
            (group / "cpu.max").write_text(f"{QUOTA_US} {PERIOD_NS // 1000}")
            (group / "cpu.weight").write_text("10000")
        yield group
    finally:
        group.rmdir()


@pytest.mark.simulated
def test_quota_of_the_kernel_is_seen(repository: Path, tmp_path: Path) -> None:
    """The kernel counts how often it has throttled the group: truth, before it is looked for."""
    program, answer, pid = repository / PROGRAM, tmp_path / "witness.ndjson", tmp_path / "pid"
    with limited() as group:
        run = f"""
            echo $$ > {group}/cgroup.procs
            nice -n 19 sh -c 'while :; do :; done' & echo $! > {pid}
            {program} witness --cpu 0 --priority 0 --duration-ms 4000 > {answer}
            kill $(cat {pid})
        """
        subprocess.run(["taskset", "-c", "0", "sh", "-c", run], check=True, timeout=HANG_S)
        counts = dict(line.split() for line in (group / "cpu.stat").read_text().splitlines())
    assert int(counts["nr_throttled"]) > 20
    found = cpu_quota([(start, end) for start, end, _ in witness_result(last_result(answer)).windows])
    assert found.is_seen, (found, counts, json.loads(answer.read_text().splitlines()[-1])["cpus"])
