# SPDX-License-Identifier: Apache-2.0
"""A target without timecard: whose clocks are asked, and that a clock known to be wrong has to fail."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hw.bench import BenchSpec, load_bench
from hw.errors import CapabilityError, MeasurementError
from reports.clock_sync.trial import ClockTrial, Timecard, TrialFacts
from reports.clock_sync.two_way_reference import SERVER_FILE, TARGET_FILE, TWO_WAY
from resources.clock_sync.judge import ClockJudge
from resources.clock_sync.lab import ClockLab
from resources.clock_sync.requirements import load_clock_requirements
from resources.clock_sync.two_way_trial import measure_by_two_way
from resources.profiles import load_profile
from tests.fake_bench import FakeBench
from tests.reports.clock_sync.test_two_way_reference import answer, trial
from tests.reports.sample_clock import offset_requirement

ROOT = Path(__file__).resolve().parents[3]
REQUIREMENTS = ROOT / "robot" / "clock_sync" / "requirements" / "clock_sync_windows_virtual.toml"
REQUIREMENT = offset_requirement("CLK-AS-FOUND", "as-found", limit_ns=500_000, lock_within_s=1)
ERROR_NS = 3_000_000_000


@pytest.fixture(scope="module")
def spec() -> BenchSpec:
    return replace(load_bench(ROOT / "hw" / "benches" / "virtual.yaml"), witness=None)


def _measure(bench: Any, folder: Path, interval_s: float | None, node: str = "windows") -> ClockTrial:
    card = Timecard(TWO_WAY, 0, "the control network")
    facts = TrialFacts("a-stack", "sync", interval_s, "idle", "none", None, None, None, card)
    target = replace(bench.spec.targets["windows"], node=node)
    return measure_by_two_way(bench, target, facts, 15, folder)


def test_a_clock_as_found_is_held_against_this_machines(spec: BenchSpec, tmp_path: Path) -> None:
    bench = FakeBench(spec, lines=[answer()])
    found = _measure(bench, tmp_path, None)
    assert [(job.node, job.argv[0], *job.argv[2:4]) for job in bench.jobs] == [
        ("windows", "/windows/bw-traffic", "--serve", "10.78.0.110:19999"),
        ("switch", "/switch/bw-traffic", "--peer", "10.78.0.110:19999"),
    ]
    assert found.filtered.offset.n == 120
    assert not (tmp_path / SERVER_FILE).exists()


def test_a_clock_that_follows_the_time_server_is_held_against_it(spec: BenchSpec, tmp_path: Path) -> None:
    bench = FakeBench(spec, lines=[answer()])
    found = _measure(bench, tmp_path, 64.0)
    asked = [job.argv[3] for job in bench.jobs if job.argv[2] == "--peer"]
    assert asked == ["10.78.0.110:19999", "10.78.0.50:19999"]
    assert found.filtered.reference_bound_ns is not None
    assert {TARGET_FILE, SERVER_FILE} < {file.name for file in tmp_path.iterdir()}


def test_a_clock_without_an_address_is_a_missing_capability(spec: BenchSpec, tmp_path: Path) -> None:
    bare = replace(spec, clocks={name: clock for name, clock in spec.clocks.items() if name != "windows"})
    with pytest.raises(CapabilityError, match=r"clock windows: .* add benchwright\.clocks\.windows"):
        _measure(FakeBench(bare), tmp_path, None)


def test_a_tool_that_fails_is_no_measurement(spec: BenchSpec, tmp_path: Path) -> None:
    with pytest.raises(MeasurementError, match="two-way-target ended with exit code 5"):
        _measure(FakeBench(spec, lines=[answer()], exit_code=5), tmp_path, None)


def _judge(spec: BenchSpec, folder: Path) -> ClockJudge:
    bench: Any = SimpleNamespace(spec=spec)
    return ClockJudge(ClockLab(bench, spec.targets["windows"], load_profile("ci"), folder, print))


@pytest.mark.parametrize("found_ns", [ERROR_NS, ERROR_NS + 6_000_000, ERROR_NS - 29_000_000])
def test_a_clock_known_to_be_wrong_is_found(spec: BenchSpec, tmp_path: Path, found_ns: int) -> None:
    """Producer 12 gains 100 ppm besides: 6 ms in a minute."""
    _judge(spec, tmp_path).require_known_error(
        trial(tmp_path, answer(offset_ns=found_ns)), REQUIREMENT, ERROR_NS
    )


@pytest.mark.parametrize(
    ("found_ns", "said"),
    [
        (0, "was judged pass, not fail"),
        (490_000, "inconclusive, not fail"),
        (-ERROR_NS, "was found \N{MINUS SIGN}3 s off"),
    ],
)
def test_a_bench_that_does_not_see_a_wrong_clock_is_told(
    spec: BenchSpec, tmp_path: Path, found_ns: int, said: str
) -> None:
    with pytest.raises(MeasurementError, match=said):
        _judge(spec, tmp_path).require_known_error(
            trial(tmp_path, answer(offset_ns=found_ns)), REQUIREMENT, ERROR_NS
        )


def test_each_stack_of_the_windows_bench_has_its_limit_with_a_source() -> None:
    requirements = load_clock_requirements(REQUIREMENTS)
    assert set(requirements.by_clock) == {"as-found", "w32time"}
    assert all(requirement.limit.source for requirement in requirements.by_clock.values())
