# SPDX-License-Identifier: Apache-2.0
"""How the witness is started, and what a replay says of a machine that takes much time from the bench."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hw.bench import load_bench
from resources.daq_replay.replay import MUCH_TAKEN, Replay
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
    said: list[str] = []
    replay = SimpleNamespace(
        bench=SimpleNamespace(spec=replace(SPEC, simulated=simulated)), progress=said.append
    )
    say_taken = Replay._say_taken  # pyright: ignore[reportPrivateUsage]
    answer: dict[str, Any] = {"cpus": [], "stalled_fraction": share, "windows": [], "windows_dropped": 0}
    say_taken(cast("Any", replay), answer)
    own = {"windows": [[0, 100, 0]], "period_ns": 10, "target_ran_ns": [110]}  # the target held it all
    say_taken(cast("Any", replay), answer | own)
    say_taken(cast("Any", replay), None)
    assert len(said) == bool(told)
    assert all(told in line for line in said)
