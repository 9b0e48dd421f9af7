# SPDX-License-Identifier: Apache-2.0
"""A stream that a standstill of the bench left undecided is judged by a further replay; nothing else is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hw.bench import load_bench
from hw.errors import CapabilityError, MeasurementError
from reports import RunFolder
from reports.manifest import count_outcomes
from reports.replay_evidence import load_replay
from reports.tally import effective
from resources.latency import LatencyEvidence, ReplayAttempt
from resources.pattern import load_pattern
from resources.plan import ReplaySettings
from resources.profiles import load_profile
from resources.requirements import load_requirements
from tests.reports.sample_run import Disturbance, write_evidence

ROOT = Path(__file__).resolve().parents[2]
SPEC = load_bench(ROOT / "hw" / "benches" / "virtual.yaml")
MS = 1_000_000
QUIET = Disturbance()
STOOD_STILL = Disturbance(path_delay_ns={33: 15 * MS}, stalled=True)
TARGET_LATE = Disturbance(path_delay_ns={33: 15 * MS})
ANOTHER_LATE = Disturbance(path_delay_ns={43: 15 * MS})
GENERATOR_LATE = Disturbance(generator_delay_ns={33: 15 * MS})
NOT_QUIET = Disturbance(stalled_fraction=0.02)


def _evidence(folder: Path, simulated: bool = True, clock: str = "two-way") -> LatencyEvidence:
    bench = cast("Any", SimpleNamespace(spec=replace(SPEC, simulated=simulated)))
    requirements = load_requirements(ROOT / "robot" / "requirements" / "daq12.toml")
    profile = load_profile("ci")
    return LatencyEvidence(bench, SPEC.targets["linux-rt"], "kernel", clock, profile, requirements, folder)


def _run(folder: Path) -> RunFolder:
    return RunFolder.create(folder / "results", "virtual", "ci", simulated=True)


def _add(evidence: LatencyEvidence, run: RunFolder, disturbance: Disturbance) -> None:
    folder = run.evidence_folder("daq_replay", f"attempt-{len(evidence.attempts) + 1}")
    write_evidence(folder, disturbance, seed=len(evidence.attempts))
    evidence.attempts.append(ReplayAttempt(folder, load_replay(folder).replay()))


@pytest.mark.parametrize(
    ("attempts", "undecided", "outcomes"),
    [
        ([QUIET], [], ["pass"]),
        ([STOOD_STILL], [33], ["inconclusive"]),
        ([STOOD_STILL, QUIET], [], ["inconclusive", "pass"]),
        ([STOOD_STILL, STOOD_STILL], [33], ["inconclusive", "inconclusive"]),
        ([STOOD_STILL, TARGET_LATE], [], ["inconclusive", "fail"]),
        ([TARGET_LATE], [], ["fail"]),
        ([GENERATOR_LATE], [], ["inconclusive"]),
        ([QUIET, STOOD_STILL], [], ["pass"]),
        ([QUIET, TARGET_LATE], [], ["pass", "fail"]),
    ],
)
def test_the_first_undisturbed_attempt_decides_and_a_fail_stands(
    tmp_path: Path, attempts: list[Disturbance], undecided: list[int], outcomes: list[str]
) -> None:
    run, evidence = _run(tmp_path), _evidence(tmp_path)
    for disturbance in attempts:
        _add(evidence, run, disturbance)
    assert evidence.undecided() == undecided
    records = evidence.records(33, run, "a test")
    assert [record.outcome for record in records] == outcomes
    assert len(effective(records)) == 1
    worst = "fail" if "fail" in outcomes else outcomes[-1]
    assert effective(records)[0].outcome == worst
    counts = count_outcomes(records)  # by which the exit code is chosen
    assert (counts[worst], sum(counts.values())) == (1, 1)
    folders = [{Path(file.path).parent.name for file in record.evidence} for record in records]
    assert all(len(names) == 1 for names in folders)
    assert folders[0] == {"attempt-1"}


def test_a_bench_that_was_not_quiet_leaves_all_streams_to_the_next_attempt(tmp_path: Path) -> None:
    run, evidence = _run(tmp_path), _evidence(tmp_path)
    _add(evidence, run, NOT_QUIET)
    assert len(evidence.undecided()) == 48
    _add(evidence, run, QUIET)
    assert evidence.undecided() == []
    assert effective(evidence.records(10, run, "a test"))[0].outcome == "pass"


def test_a_run_in_which_a_stream_failed_is_not_repeated(tmp_path: Path) -> None:
    run, evidence = _run(tmp_path), _evidence(tmp_path)
    _add(evidence, run, replace(STOOD_STILL, path_delay_ns={33: 15 * MS}))
    assert evidence.undecided() == [33]
    _add(evidence, run, ANOTHER_LATE)
    assert evidence.undecided() == []


def test_real_hardware_gets_no_second_attempt(tmp_path: Path) -> None:
    run, evidence = _run(tmp_path), _evidence(tmp_path, simulated=False)
    _add(evidence, run, STOOD_STILL)
    assert evidence.undecided() == []


@pytest.mark.parametrize("second", [QUIET, STOOD_STILL])
def test_there_are_no_more_attempts_than_the_profile_allows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, second: Disturbance
) -> None:
    run, evidence = _run(tmp_path), _evidence(tmp_path)
    coming = iter([STOOD_STILL, second, *[STOOD_STILL] * 8])
    lasted_ms: list[int] = []

    def attempt(_pattern: object, settings: ReplaySettings, *_others: object) -> None:
        lasted_ms.append(settings.duration_ms)
        _add(evidence, run, next(coming))

    monkeypatch.setattr(evidence, "_attempt", attempt)
    said: list[str] = []
    pattern = ROOT / "traffic-gen" / "patterns" / "daq12.toml"
    evidence.replay(load_pattern(pattern), ReplaySettings(pattern), said.append)
    assert len(evidence.attempts) == (2 if second is QUIET else evidence.profile.replay_attempts)
    assert len(said) == len(evidence.attempts) - 1
    assert lasted_ms[0] == 60_000
    assert set(lasted_ms[1:]) == {15_000}  # stream 33 comes ten times a second, 99 samples are asked for


def test_a_further_replay_lasts_until_the_slowest_undecided_stream_has_its_samples(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, evidence = _run(tmp_path), _evidence(tmp_path)
    coming = iter([NOT_QUIET, QUIET])
    lasted_ms: list[int] = []

    def attempt(_pattern: object, settings: ReplaySettings, *_others: object) -> None:
        lasted_ms.append(settings.duration_ms)
        _add(evidence, run, next(coming))

    monkeypatch.setattr(evidence, "_attempt", attempt)
    pattern = ROOT / "traffic-gen" / "patterns" / "daq12.toml"
    evidence.replay(load_pattern(pattern), ReplaySettings(pattern), lambda _line: None)
    assert lasted_ms == [60_000, 59_400]  # 1.2 x 99 samples, 500 ms apart


def test_nothing_is_judged_before_it_was_replayed(tmp_path: Path) -> None:
    with pytest.raises(MeasurementError, match="nothing has been replayed"):
        _evidence(tmp_path).records(33, _run(tmp_path), "a test")


def test_a_clock_that_cannot_be_put_on_a_target_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CapabilityError, match="'sundial': must be one of two-way, free-run, chrony"):
        _evidence(tmp_path, clock="sundial")
