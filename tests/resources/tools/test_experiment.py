# SPDX-License-Identifier: Apache-2.0
"""Tools that measure together: all are ended, and what they have is kept after an error."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from hw.errors import BenchError, MeasurementError
from hw.open_bench import Nodes
from hw.protocols import READY_S
from resources.tools.experiment import Experiment, silence


@dataclass
class _Job:
    """A tool that writes nothing by itself."""

    name: str
    path: Path
    log: list[str]
    code: int = 0
    lines: list[object] = field(default_factory=lambda: [{"type": "result", "value": 1}])
    ready: bool = True
    reachable: bool = True

    def process_id(self) -> int:
        return 1

    def wait_ready(self, timeout_s: float = READY_S) -> None:
        del timeout_s
        if not self.ready:
            raise BenchError(f"{self.name} is not ready")

    def wait(self, timeout_s: float) -> int:
        del timeout_s
        return self.code

    def stop(self) -> None:
        self.log.append(f"stop {self.name}")

    def fetch(self) -> Path:
        if not self.reachable:
            raise BenchError(f"{self.name}: its node does not answer")
        self.log.append(f"fetch {self.name}")
        self.path.write_text("".join(json.dumps(line) + "\n" for line in self.lines))
        self.path.with_suffix(".err").write_text("it said this\n")
        return self.path


@dataclass
class _Node:
    jobs: dict[str, _Job]
    powered: bool = True

    def start(self, argv: list[str], stem: Path) -> _Job:
        del stem
        return self.jobs[argv[0]]


class _Bench:
    def __init__(self, folder: Path, *names: str) -> None:
        self.log: list[str] = []
        self.jobs = {name: _Job(name, folder / f"{name}.ndjson", self.log) for name in names}
        self.one = _Node(self.jobs)

    def node(self, _name: str) -> _Node:
        return self.one

    def experiment(self) -> Experiment:
        return Experiment(cast("Nodes", self))


def test_tools_are_ended_the_last_one_first_and_nothing_is_fetched_unasked(tmp_path: Path) -> None:
    bench = _Bench(tmp_path, "a", "b")
    with bench.experiment() as experiment:
        experiment.wait_ready([experiment.start("node", [name], tmp_path) for name in ("a", "b")])
    assert bench.log == ["stop b", "stop a"]


@pytest.mark.parametrize("error", [MeasurementError("no"), KeyboardInterrupt()])
def test_what_has_been_measured_is_kept_when_it_is_broken_off(tmp_path: Path, error: BaseException) -> None:
    bench = _Bench(tmp_path, "a", "b", "c")
    bench.jobs["b"].reachable = False

    def break_off() -> None:
        with bench.experiment() as experiment:
            for name in ("a", "b", "c"):
                experiment.start("node", [name], tmp_path)
            experiment.keep(lambda: bench.log.append("keep"))
            raise error

    with pytest.raises(type(error)):
        break_off()
    assert bench.log == ["stop c", "stop b", "stop a", "fetch a", "fetch c", "keep"]
    assert json.loads((tmp_path / "c.ndjson").read_text())["value"] == 1


def test_of_tools_that_start_at_once_those_that_did_are_ended(tmp_path: Path) -> None:
    bench = _Bench(tmp_path, "a")

    def fail() -> Any:
        raise BenchError("it did not start")

    with pytest.raises(BenchError, match="did not start"), bench.experiment() as experiment:
        experiment.start_at_once([lambda: cast("Any", bench.jobs["a"]), fail])
    assert bench.log[:1] == ["stop a"]


def test_an_attempt_that_is_taken_over_is_ended_by_the_whole(tmp_path: Path) -> None:
    bench = _Bench(tmp_path, "a")
    with bench.experiment() as experiment:
        with bench.experiment() as attempt:
            attempt.start("node", ["a"], tmp_path)
            experiment.take_over(attempt)
        assert bench.log == []
    assert bench.log == ["stop a"]


def test_a_node_that_loses_its_power_breaks_the_silence(tmp_path: Path) -> None:
    bench = _Bench(tmp_path)
    bench.one.powered = False
    with pytest.raises(BenchError, match="target lost its power while it measured"):
        silence(cast("Nodes", bench), time.monotonic() + 3600, ["target"])


def test_an_answer_says_how_its_tool_ended(tmp_path: Path) -> None:
    bench = _Bench(tmp_path, "a")
    experiment, job = bench.experiment(), bench.jobs["a"]
    assert experiment.collect(job, 1).require_done().result["value"] == 1
    job.code, job.lines = 4, [{"type": "result", "invalid_reasons": ["a step"]}]
    assert experiment.collect(job, 1).require_done().code == 4
    job.code = 1
    with pytest.raises(MeasurementError, match="a ended with exit code 1: a step"):
        experiment.collect(job, 1).require_done()


@pytest.mark.parametrize(
    ("code", "how"),
    [(137, "was killed by signal 9"), (-15, "was killed by signal 15"), (3221225477, "ended with exit code")],
)
def test_a_tool_without_a_result_is_an_error_that_says_why(tmp_path: Path, code: int, how: str) -> None:
    bench = _Bench(tmp_path, "a")
    bench.jobs["a"].code, bench.jobs["a"].lines = code, [{"type": "ready"}]
    with pytest.raises(MeasurementError, match=rf"a {how}.*left no result \(it said this\)"):
        bench.experiment().collect(bench.jobs["a"], 1)
