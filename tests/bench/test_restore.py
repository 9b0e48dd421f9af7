# SPDX-License-Identifier: Apache-2.0
"""Benches and instants of the restore benchmark."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from bench.lab.killed_run import MARK, PROFILE, SUITE, marked_processes
from bench.targets.bench_restore import VIRTUAL_BENCH, drawn
from bench.targets.one_target_bench import OneTarget, standing_text, write_bench
from hw.bench import NodeKind, load_bench
from resources.every_target import TARGETS as KINDS
from resources.every_target import load_kind_suites

TARGETS = tuple(load_bench(VIRTUAL_BENCH).targets)


@pytest.mark.parametrize("target", TARGETS)
def test_each_target_of_a_bench_gets_one_of_its_own(tmp_path: Path, target: str) -> None:
    spec = load_bench(write_bench(VIRTUAL_BENCH, target, tmp_path).bench_file)
    assert set(spec.targets) == {target}
    assert set(spec.producers) == set(load_bench(VIRTUAL_BENCH).producers)
    assert spec.virtual is not None


@pytest.mark.parametrize("target", TARGETS)
def test_a_standing_target_is_a_real_one_to_its_runs(tmp_path: Path, target: str) -> None:
    file = tmp_path / "standing.yaml"
    file.write_text(standing_text(OneTarget(VIRTUAL_BENCH, target), tmp_path, "bw-x"))
    spec = load_bench(file)
    assert spec.virtual is None
    assert {node.kind for node in spec.nodes.values()} == {NodeKind.LOCAL, NodeKind.LABGRID}
    [entry] = spec.labgrid_targets.values()
    assert not any("Power" in driver for driver in entry["drivers"])


@pytest.mark.parametrize("target", TARGETS)
def test_the_profile_of_the_runs_that_are_killed_has_their_suite(target: str) -> None:
    without = load_kind_suites(KINDS / target, profile=PROFILE).profile.without
    assert not {SUITE.removeprefix("robot/"), "daq_replay"} & {*without}


def test_pieces_of_a_series_are_the_whole_series() -> None:
    whole = drawn(1, "windows", "kills", 1, 20)
    assert whole == drawn(1, "windows", "kills", 1, 7) + drawn(1, "windows", "kills", 8, 13)
    assert all(0.0 <= share < 1.0 for _, share in whole)
    assert whole != drawn(2, "windows", "kills", 1, 20)


def test_what_a_run_has_started_is_known_by_its_mark_while_it_lives() -> None:
    mark = f"test-{os.getpid()}"
    with subprocess.Popen(
        ["sh", "-c", "sleep 60 & exec sleep 61"], env={**os.environ, MARK: mark}
    ) as process:
        deadline = time.monotonic() + 5
        while sorted(marked_processes(mark).values()) != ["sleep 60", "sleep 61"]:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.kill()
        process.wait()
        [(pid, command)] = marked_processes(mark).items()
        assert command == "sleep 60"
        os.kill(pid, 9)
