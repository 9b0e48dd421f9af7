# SPDX-License-Identifier: Apache-2.0
"""How the witness is started, and what a replay says of a machine that takes much time from the bench."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hw.bench import load_bench
from resources.daq_replay.machine_use import MUCH_TAKEN, said_of_machine
from resources.tools.witness import start_witness
from tests.fake_bench import FakeBench

SPEC = load_bench(Path(__file__).resolve().parents[3] / "hw" / "benches" / "virtual.yaml")


@pytest.mark.parametrize("virtual", [True, False])
def test_processors_are_kept_awake_on_a_virtual_bench_only(tmp_path: Path, virtual: bool) -> None:
    bench: Any = FakeBench(SPEC if virtual else replace(SPEC, virtual=None))
    assert SPEC.witness is not None
    start_witness(bench, SPEC.witness, tmp_path / "witness", 5000)
    (job,) = bench.jobs
    assert bench.log == ["ready witness"]
    assert ("--awake" in job.argv) is virtual
    assert job.argv[job.argv.index("--cpu") + 1] == "0,1"
    assert job.argv[job.argv.index("--threshold-us") + 1] == "100"


@pytest.mark.parametrize(
    ("share", "simulated", "told"),
    [
        (MUCH_TAKEN, True, ""),
        (0.034, True, "3.4 % of the time: what it took is taken off each late message"),
        (0.034, False, "3.4 % of the time: late messages that this explains have no verdict"),
    ],
)
def test_it_is_said_where_the_machine_takes_much(share: float, simulated: bool, told: str) -> None:
    answer: dict[str, Any] = {"cpus": [], "stalled_fraction": share, "windows": [], "windows_dropped": 0}
    own = {"windows": [[0, 100, 0]], "period_ns": 10, "target_ran_ns": [110]}  # the target held it all
    said = [
        *said_of_machine(answer, simulated=simulated),
        *said_of_machine(answer | own, simulated=simulated),
    ]
    said += said_of_machine(None, simulated=simulated)
    assert len(said) == bool(told)
    assert all(told in line for line in said)


def test_a_quota_of_cpus_is_named() -> None:
    ends_ns = [number * 100_000_000 for number in range(1, 40)]
    answer: dict[str, Any] = {"cpus": [], "stalled_fraction": 0.1, "windows_dropped": 0}
    answer["windows"] = [[end_ns - 10_000_000, end_ns, 0] for end_ns in ends_ns]
    _, said = said_of_machine(answer, simulated=True)
    assert said.startswith(
        "39 of its 39 pauses, 100 % of their time, end at one place of each 100 ms: a CPU quota"
    )
