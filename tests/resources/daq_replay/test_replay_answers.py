# SPDX-License-Identifier: Apache-2.0
"""What a replay refuses before it begins, and what it makes of the tools' answers."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hw.bench import load_bench
from hw.errors import CapabilityError
from hw.protocols import Job
from resources.clock_sync.lines import ClockLine
from resources.daq_replay.pattern import load_pattern
from resources.daq_replay.plan import ReplaySettings
from resources.daq_replay.replay import Replay, ReplayAnswers, _Programs  # pyright: ignore[reportPrivateUsage]
from resources.tools.experiment import DONE, Experiment

ROOT = Path(__file__).resolve().parents[3]
PATTERN = ROOT / "traffic-gen" / "patterns" / "daq12.toml"
SPEC = load_bench(ROOT / "hw" / "benches" / "virtual.yaml")
TARGET = SPEC.targets["linux-rt"]
TAI_UTC_S = 37


def _replay(folder: Path, correction: str = "two-way") -> Replay:
    bench = cast("Any", SimpleNamespace(spec=SPEC))
    settings = ReplaySettings(PATTERN, correction=correction, tai_utc_s=TAI_UTC_S)
    return Replay(bench, TARGET, load_pattern(PATTERN), settings, folder, lambda _line: None)


def _require_capable(replay: Replay, producers_bound_ns: int, own_bound_ns: int) -> None:
    """Have it ask whether the bench is capable, with clocks that are known so well."""
    own_clock = SPEC.nodes[TARGET.node].clock
    clocks = {SPEC.nodes[producer.node].clock for producer in SPEC.producers.values()}
    assert own_clock not in clocks
    lines = {name: ClockLine(name, 0, 0, 0, producers_bound_ns) for name in clocks}
    lines[own_clock] = ClockLine(own_clock, 0, 0, 0, own_bound_ns)
    replay._require_capable(lines, own_clock)  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_the_bounds_of_both_clocks_together_have_to_leave_room(tmp_path: Path, share: float) -> None:
    replay = _replay(tmp_path)
    budget_ns = min(stream.budget_ns for stream in replay.pattern.streams)
    own_ns = round(share * (budget_ns - 1))
    _require_capable(replay, budget_ns - 1 - own_ns, own_ns)
    with pytest.raises(CapabilityError, match="bench not capable: the clocks of producer"):
        _require_capable(replay, budget_ns - 1 - own_ns, own_ns + 1)
    with pytest.raises(CapabilityError, match="bench not capable: the clocks of producer"):
        _require_capable(replay, budget_ns - own_ns, own_ns)


def test_clocks_that_are_not_corrected_are_not_asked(tmp_path: Path) -> None:
    _require_capable(_replay(tmp_path, "none"), 10**12, 10**12)


def _collected(folder: Path, target_s: int, producer_s: int) -> ReplayAnswers:
    """Return what is made of answers that say this TAI - UTC."""
    said = {"recv": {"tai_utc_s": target_s}, "send-p01": {"tai_utc_s": producer_s}}

    def collect(job: Job, _timeout_s: float) -> SimpleNamespace:
        return SimpleNamespace(code=DONE, result=said[job.name])

    experiment = SimpleNamespace(collect=collect)
    recv, send = (cast("Job", SimpleNamespace(name=name)) for name in said)
    started = _Programs(0, recv, {"p01": send}, None, [])
    make = _replay(folder)._collect  # pyright: ignore[reportPrivateUsage]
    return make(cast("Experiment", experiment), started, {})


def test_answers_on_the_plans_time_scale_have_no_fault(tmp_path: Path) -> None:
    assert _collected(tmp_path, TAI_UTC_S, TAI_UTC_S).faults == []


@pytest.mark.parametrize("off_s", [-1, 1])
def test_another_tai_utc_than_the_plans_is_a_fault(tmp_path: Path, off_s: int) -> None:
    found = _collected(tmp_path, TAI_UTC_S + off_s, TAI_UTC_S).faults
    assert found == [f"TAI - UTC is {TAI_UTC_S + off_s} s on the target and {TAI_UTC_S} s in the plan"]
    found = _collected(tmp_path, TAI_UTC_S, TAI_UTC_S + off_s).faults
    assert found == [f"TAI - UTC is {TAI_UTC_S + off_s} s on p01 and {TAI_UTC_S} s in the plan"]
