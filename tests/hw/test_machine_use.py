# SPDX-License-Identifier: Apache-2.0
"""What of this machine a bench uses, and what others do: by the kernel's account of control groups."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hw.errors import CapabilityError
from hw.virtual import cpu_account
from hw.virtual.machine_use import MachineUse, machine_use
from tests.patience import HANG_S

BUSY = "import time\nwhile time.process_time() < 0.3: pass\n"
WAITING = (
    "import sys, time\nsys.stdin.readline()\n" + BUSY + "print('done', flush=True)\nsys.stdin.readline()\n"
)
S = 10**9


def used_meanwhile(run: list[str]) -> MachineUse:
    before = machine_use()
    subprocess.run(run, check=True, timeout=HANG_S)
    after = machine_use()
    assert before is not None
    assert after is not None
    return after.since(before)


@pytest.mark.simulated
def test_what_a_bench_starts_is_its_own() -> None:
    with cpu_account.lab():
        use = used_meanwhile([sys.executable, "-c", BUSY])
    assert 0.3 * S <= use.own_ns <= use.every_ns


@pytest.mark.simulated
def test_a_target_that_shares_the_cpus_is_its_own_too() -> None:
    with cpu_account.lab():
        use = used_meanwhile([*cpu_account.inside(), sys.executable, "-c", BUSY])
    assert use.own_ns >= 0.3 * S


@pytest.mark.simulated
def test_what_ran_before_the_bench_was_opened_is_others_and_has_its_name(tmp_path: Path) -> None:
    program = tmp_path / "somebody"
    program.symlink_to(sys.executable)
    with subprocess.Popen(
        [program, "-c", WAITING], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        with cpu_account.lab():
            before = machine_use()
            other.stdin.write("go\n")
            other.stdin.flush()
            assert other.stdout.readline() == "done\n"
            after = machine_use()
        other.stdin.close()
    assert before is not None
    assert after is not None
    use = after.since(before)
    assert use.every_ns - use.own_ns >= 0.3 * S
    assert use.others_ns[other.pid] >= ("somebody", 280_000_000)


@pytest.mark.simulated
def test_the_process_goes_back_to_where_it_was_and_the_group_goes() -> None:
    def group() -> str:
        return Path("/proc/self/cgroup").read_text()

    before = group()
    with cpu_account.lab():
        assert f"{cpu_account.LAB}{os.getpid()}" in group()
        with cpu_account.lab():
            assert machine_use() is not None
        assert machine_use() is not None
    assert group() == before
    assert machine_use() is None


@pytest.mark.simulated
def test_groups_of_killed_processes_are_removed() -> None:
    code = (
        "import os, signal\nfrom hw.virtual import cpu_account\n"
        "with cpu_account.lab():\n    print(os.getpid(), flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=HANG_S)
    left = cpu_account.usage_file().parent.parent / f"{cpu_account.LAB}{done.stdout.strip()}"
    assert left.is_dir()
    with cpu_account.lab():
        assert not left.exists()


@pytest.mark.simulated
def test_a_kernel_without_the_account_costs_nothing_but_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> Path:
        raise CapabilityError("no account")

    monkeypatch.setattr(cpu_account, "_mount", none)
    with cpu_account.lab():
        assert machine_use() is None


def test_of_others_those_that_ran_most_are_named() -> None:
    use = MachineUse(
        S, 9 * S, S, {1: ("cc1", S), 2: ("cc1", 2 * S), 3: ("ld", 0), 4: ("sh", 5), 5: ("x", -1)}
    )
    assert use.largest() == [("cc1", 3 * S), ("sh", 5)]
