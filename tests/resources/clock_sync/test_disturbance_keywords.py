# SPDX-License-Identifier: Apache-2.0
"""The keywords that disturb clocks: each time to lock is judged, and what failed leaves a record."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from robot.api import SkipExecution

from hw.bench import load_bench
from hw.errors import MeasurementError
from reports import RunFolder
from reports.clock_sync.disturbance import Disturbance, Event, write_disturbance
from reports.clock_sync.trial import ClockTrial, Lock, load_trial, write_trial
from reports.requirements import Requirement
from resources.clock_sync import disturbance_keywords as clock_disturbance
from resources.clock_sync.disturbance import ClockDisturber
from resources.clock_sync.disturbance_keywords import ClockDisturbanceLibrary
from resources.clock_sync.disturbance_settings import load_disturbances
from resources.clock_sync.judge import WITNESS_REQUIREMENT, ClockJudge
from resources.profiles import load_profile
from tests.reports.sample_clock import START_TAI_NS, compare_answer, offset_requirement, write_clock_trial

ROOT = Path(__file__).resolve().parents[3]
REQUIREMENT = offset_requirement("CLK-CHRONY", "chrony", limit_ns=2_000_000, lock_within_s=90)
STEP_NS = 1_000_000


class _Disturber:
    """Has disturbed a clock already: it locked after these times, and these steps were found."""

    def __init__(
        self, run: RunFolder, after_s: tuple[float, ...], steps_ns: tuple[int, ...] = (), profile: str = "ci"
    ) -> None:
        self.settings = load_disturbances(profile, simulated=True)
        self.lab = SimpleNamespace(profile=SimpleNamespace(name=profile))
        self._run = run
        self._after_s = after_s
        self._steps_ns = steps_ns

    def oscillator_trial(self, _requirement: object) -> tuple[ClockTrial, Disturbance]:
        return self._trial("oscillator")

    def step_trial(self, _requirement: object) -> tuple[ClockTrial, Disturbance, int]:
        return (*self._trial("step"), STEP_NS)

    def grandmaster_trial(self, _requirement: object) -> tuple[ClockTrial, Disturbance]:
        raise MeasurementError("ptp4l on linux-rt is gone")

    def _trial(self, kind: str) -> tuple[ClockTrial, Disturbance]:
        folder = self._run.evidence_folder("clock_sync", f"chrony-{kind}")
        steps = [{"time_tai_ns": START_TAI_NS, "step_ns": step_ns} for step_ns in self._steps_ns]
        write_clock_trial(folder, compare_answer(steps=steps))
        write_trial(folder, replace(load_trial(folder).facts, kind=kind))
        events = [Event("it", 2, Lock(after_s, "rule", 1.1), "") for after_s in self._after_s]
        done = Disturbance("chrony", kind, tuple(events))
        write_disturbance(folder, done)
        return load_trial(folder), done


def _library(
    monkeypatch: pytest.MonkeyPatch,
    run: RunFolder,
    after_s: tuple[float, ...],
    steps_ns: tuple[int, ...] = (),
    profile: str = "ci",
) -> ClockDisturbanceLibrary:
    spec = load_bench(ROOT / "hw" / "benches" / "virtual.yaml")
    bench, target = SimpleNamespace(spec=spec), spec.targets["linux-rt"]
    lab: Any = SimpleNamespace(bench=bench, target=target, profile=load_profile(profile))

    def requirement(clock: str) -> Requirement:
        return replace(REQUIREMENT, subject=("clock", clock))

    def library() -> Any:
        return SimpleNamespace(judge=ClockJudge(lab), requirement=requirement)

    def disturber(_self: object) -> ClockDisturber:
        return cast(ClockDisturber, _Disturber(run, after_s, steps_ns, profile))

    monkeypatch.setattr(clock_disturbance, "clock_library", library)
    monkeypatch.setattr(ClockDisturbanceLibrary, "disturber", property(disturber))
    return ClockDisturbanceLibrary()


def _outcomes(run: RunFolder) -> dict[tuple[str, str | None], str]:
    """Return the outcomes but that of the witnesses, by quantity and phase."""
    found = [record for record in run.records().measurements if record.requirement != WITNESS_REQUIREMENT]
    return {(record.quantity, record.conditions.phase): record.outcome for record in found}


def test_times_to_lock_and_the_offset_are_judged(monkeypatch: pytest.MonkeyPatch, run: RunFolder) -> None:
    _library(monkeypatch, run, (8.0, 12.0)).clock_should_follow_its_oscillator("chrony")
    records = {record.quantity: record for record in run.records().measurements}
    lock, offset = records["lock_time"], records["sync_offset"]
    assert (lock.value, lock.n, lock.n_required, lock.limit.upper) == (12.0, 2, 2, 90)
    assert {lock.outcome, offset.outcome} == {"pass"}
    assert [evidence.path.rsplit("/")[-1] for evidence in lock.evidence] == ["trial.json", "disturbance.json"]
    assert lock.conditions == offset.conditions


def test_one_late_lock_fails_and_the_offset_is_judged_all_the_same(
    monkeypatch: pytest.MonkeyPatch, run: RunFolder
) -> None:
    library = _library(monkeypatch, run, (8.0, 95.0))
    with pytest.raises(AssertionError, match="FAIL: CLK-CHRONY: 95 s is over 90 s"):
        library.clock_should_follow_its_oscillator("chrony")
    assert _outcomes(run) == {
        ("lock_time", "oscillator 1 s"): "fail",
        ("sync_offset", "oscillator 1 s"): "pass",
    }


def test_a_lock_that_is_missing_does_not_pass(monkeypatch: pytest.MonkeyPatch, run: RunFolder) -> None:
    with pytest.raises(AssertionError, match="INCONCLUSIVE: CLK-CHRONY: too few samples: 1 of 2"):
        _library(monkeypatch, run, (8.0,)).clock_should_follow_its_oscillator("chrony")


def test_a_step_that_is_seen_leaves_no_verdict_on_the_stack(
    monkeypatch: pytest.MonkeyPatch, run: RunFolder
) -> None:
    _library(monkeypatch, run, (9.0,), (STEP_NS,)).step_of_the_clock_should_be_seen("chrony")
    assert _outcomes(run) == {("lock_time", "step 1 s"): "pass", ("clock_step", "step 1 s"): "pass"}


def test_a_step_that_is_not_seen_fails_the_test(monkeypatch: pytest.MonkeyPatch, run: RunFolder) -> None:
    with pytest.raises(
        AssertionError, match="INCONCLUSIVE: BENCH-CLOCK-STEP: the clock stepped, and the trial"
    ):
        _library(monkeypatch, run, (9.0,)).step_of_the_clock_should_be_seen("chrony")


def test_what_could_not_be_disturbed_leaves_records_without_a_value(
    monkeypatch: pytest.MonkeyPatch, run: RunFolder
) -> None:
    with pytest.raises(Exception, match="MEASUREMENT ERROR: ptp4l on linux-rt is gone"):
        _library(monkeypatch, run, (), profile="nightly").clock_should_follow_the_grandmasters()
    assert _outcomes(run) == {("lock_time", "grandmaster"): "unset", ("sync_offset", "grandmaster"): "unset"}


def test_a_stack_that_the_profile_leaves_alone_is_skipped(
    monkeypatch: pytest.MonkeyPatch, run: RunFolder
) -> None:
    library = _library(monkeypatch, run, ())
    with pytest.raises(SkipExecution, match="profile ci does not disturb ptp-software so"):
        library.clock_should_follow_its_oscillator("ptp-software")
    with pytest.raises(SkipExecution):
        library.clock_should_stay_within_its_limit_over_an_impaired_path("chrony")
    with pytest.raises(SkipExecution):
        library.clock_should_follow_the_grandmasters("ptp-software")
