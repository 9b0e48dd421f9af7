# SPDX-License-Identifier: Apache-2.0
"""Clocks that are asked beside what is measured: their responders go behind the programs of their nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from hw.bench import load_bench
from resources.timeline.clocks_asked import ask_clocks
from resources.tools.experiment import Experiment
from tests.fake_bench import FakeBench

ROOT = Path(__file__).resolve().parents[3]


def test_a_responder_goes_behind_the_programs_that_are_measured(tmp_path: Path) -> None:
    bench = FakeBench(load_bench(ROOT / "hw" / "benches" / "virtual.yaml"))
    with Experiment(cast("Any", bench)) as experiment:
        asked = ask_clocks(experiment, ["linux-rt", "p01", "producer-12"], tmp_path)
    assert sorted(asked.exchanges) == ["linux-rt", "producer-12"]
    priority = {
        (job.node, job.argv[2]): int(job.argv[job.argv.index("--priority") + 1]) for job in bench.jobs
    }
    served = {node: own for (node, verb), own in priority.items() if verb == "--serve"}
    assert served == {node: bench.node(node).priority - 1 for node in ("linux-rt", "producer-12")}
    assert {own for (_, verb), own in priority.items() if verb == "--peer"} == {bench.node("switch").priority}
