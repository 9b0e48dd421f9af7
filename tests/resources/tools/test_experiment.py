# SPDX-License-Identifier: Apache-2.0
"""Tools that measure together: all are ended, and what they have is kept after an error."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from hw.errors import BenchError, MeasurementError
from resources.tools.experiment import Experiment, silence
from tests.fake_bench import FakeBench


def _experiment(bench: Any) -> Experiment:
    return Experiment(bench)


def _job(bench: FakeBench, folder: Path) -> Any:
    return bench.node("node").start([], folder / "a")


def test_tools_are_ended_the_last_one_first_and_nothing_is_fetched_unasked(tmp_path: Path) -> None:
    bench = FakeBench()
    with _experiment(bench) as experiment:
        experiment.wait_ready([experiment.start("node", [], tmp_path / name) for name in ("a", "b")])
    assert bench.log == ["ready a", "ready b", "stop b", "stop a"]


@pytest.mark.parametrize("error", [MeasurementError("no"), KeyboardInterrupt()])
def test_what_has_been_measured_is_kept_when_it_is_broken_off(tmp_path: Path, error: BaseException) -> None:
    bench = FakeBench(lines=[{"type": "result", "value": 1}], lost="b")

    def break_off() -> None:
        with _experiment(bench) as experiment:
            for name in ("a", "b", "c"):
                experiment.start("node", [], tmp_path / name)
            experiment.keep(lambda: bench.log.append("keep"))
            raise error

    with pytest.raises(type(error)):
        break_off()
    assert bench.log == ["stop c", "stop b", "stop a", "fetch a", "fetch c", "keep"]
    assert json.loads((tmp_path / "c.ndjson").read_text())["value"] == 1


def test_of_tools_that_start_at_once_those_that_did_are_ended(tmp_path: Path) -> None:
    bench = FakeBench()

    def fail() -> Any:
        raise BenchError("it did not start")

    with pytest.raises(BenchError, match="did not start"), _experiment(bench) as experiment:
        experiment.start_at_once([lambda: _job(bench, tmp_path), fail])
    assert bench.log[:1] == ["stop a"]


def test_an_attempt_that_is_taken_over_is_ended_by_the_whole(tmp_path: Path) -> None:
    bench = FakeBench()
    with _experiment(bench) as experiment:
        with _experiment(bench) as attempt:
            attempt.start("node", [], tmp_path / "a")
            experiment.take_over(attempt)
        assert bench.log == []
    assert bench.log == ["stop a"]


def test_a_node_that_loses_its_power_breaks_the_silence(tmp_path: Path) -> None:
    bench: Any = FakeBench()
    bench.node("target").powered = False
    with pytest.raises(BenchError, match="target lost its power while it measured"):
        silence(bench, time.monotonic() + 3600, ["target"])


def test_an_answer_says_how_its_tool_ended(tmp_path: Path) -> None:
    bench = FakeBench(lines=[{"type": "result", "value": 1}])
    experiment, job = _experiment(bench), _job(bench, tmp_path)
    assert experiment.collect(job, 1).require_done().result["value"] == 1
    job.exit_code, job.lines = 4, [{"type": "result", "invalid_reasons": ["a step"]}]
    assert experiment.collect(job, 1).require_done().code == 4
    job.exit_code = 1
    with pytest.raises(MeasurementError, match="a ended with exit code 1: a step"):
        experiment.collect(job, 1).require_done()


@pytest.mark.parametrize(
    ("code", "how"),
    [(137, "was killed by signal 9"), (-15, "was killed by signal 15"), (3221225477, "ended with exit code")],
)
def test_a_tool_without_a_result_is_an_error_that_says_why(tmp_path: Path, code: int, how: str) -> None:
    bench = FakeBench(lines=[{"type": "ready"}], exit_code=code)
    with pytest.raises(MeasurementError, match=rf"a {how}.*left no result \(it said this\)"):
        _experiment(bench).collect(_job(bench, tmp_path), 1)
