# SPDX-License-Identifier: Apache-2.0
"""A stream without a verdict is judged by further replays of a simulated bench, and how they decide."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hw.bench import load_bench
from hw.errors import CapabilityError, MeasurementError
from reports import RunFolder
from reports.daq_replay.attempts import EXPLAINED_MAX, DecidedStream
from reports.daq_replay.evidence import load_replay
from reports.record.histogram import Summary
from reports.run.manifest import count_outcomes
from reports.run.tally import effective
from resources.daq_replay.evidence import LatencyEvidence, ReplayAttempt
from resources.daq_replay.pattern import load_pattern
from resources.daq_replay.plan import ReplaySettings
from resources.daq_replay.replay import ReplayAnswers
from resources.daq_replay.requirements import load_requirements
from resources.profiles import load_profile
from tests.reports.sample_run import Disturbance, write_evidence

ROOT = Path(__file__).resolve().parents[3]
SPEC = load_bench(ROOT / "hw" / "benches" / "virtual.yaml")
MS = 1_000_000
QUIET = Disturbance()
BENCH_STALLED = Disturbance(path_delay_ns={33: 15 * MS}, stalled=True)
TARGET_LATE = Disturbance(path_delay_ns={33: 15 * MS})
ANOTHER_LATE = Disturbance(path_delay_ns={43: 15 * MS})
GENERATOR_LATE = Disturbance(generator_delay_ns={33: 15 * MS})


def _evidence(folder: Path, simulated: bool = True, clock: str = "two-way") -> LatencyEvidence:
    bench = cast("Any", SimpleNamespace(spec=replace(SPEC, simulated=simulated)))
    requirements = load_requirements(ROOT / "robot" / "daq_replay" / "requirements" / "daq12.toml")
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
        ([BENCH_STALLED], [33], ["inconclusive"]),
        ([BENCH_STALLED, QUIET], [33], ["inconclusive"] * 2),
        ([BENCH_STALLED, QUIET, QUIET], [], ["inconclusive", "pass", "pass"]),
        ([BENCH_STALLED, BENCH_STALLED], [33], ["inconclusive", "inconclusive"]),
        ([TARGET_LATE], [33], ["inconclusive"]),
        ([TARGET_LATE, TARGET_LATE], [33], ["inconclusive"] * 2),
        ([TARGET_LATE, TARGET_LATE, TARGET_LATE], [], ["fail"] * 3),
        ([TARGET_LATE, QUIET], [33], ["inconclusive"] * 2),
        ([TARGET_LATE, QUIET, QUIET], [], ["inconclusive", "pass", "pass"]),
        ([TARGET_LATE, QUIET, TARGET_LATE], [], ["inconclusive"] * 3),
        ([TARGET_LATE, QUIET, BENCH_STALLED], [33], ["inconclusive"] * 3),
        ([TARGET_LATE, BENCH_STALLED, QUIET], [33], ["inconclusive"] * 3),
        ([TARGET_LATE, BENCH_STALLED, QUIET, QUIET], [], ["inconclusive"] * 2 + ["pass"] * 2),
        ([BENCH_STALLED, TARGET_LATE, TARGET_LATE, TARGET_LATE], [], ["inconclusive"] + ["fail"] * 3),
        ([TARGET_LATE, ANOTHER_LATE, ANOTHER_LATE], [], ["pass", "pass", "fail"]),
        ([GENERATOR_LATE], [33], ["inconclusive"]),
        ([GENERATOR_LATE, QUIET], [33], ["inconclusive"] * 2),
        ([QUIET, BENCH_STALLED], [33], ["inconclusive"] * 2),
        ([QUIET, BENCH_STALLED, QUIET], [], ["pass"]),
        ([QUIET, TARGET_LATE], [33], ["inconclusive"] * 2),
        ([QUIET, TARGET_LATE, QUIET], [], ["inconclusive", "pass"]),
    ],
)
def test_a_fail_has_to_come_again_and_a_stream_with_a_miss_has_to_show_more(
    tmp_path: Path, attempts: list[Disturbance], undecided: list[int], outcomes: list[str]
) -> None:
    run, evidence = _run(tmp_path), _evidence(tmp_path)
    for disturbance in attempts:
        _add(evidence, run, disturbance)
    assert [stream for stream in evidence.undecided() if stream == 33] == undecided
    records = evidence.records(33, run, "a test")
    assert sorted(record.outcome for record in records) == sorted(outcomes)
    worst = "fail" if "fail" in outcomes else records[-1].outcome
    assert len(effective(records)) == 1
    assert effective(records)[0].outcome == worst == evidence.decided()[33].verdict.outcome
    assert (worst == "pass") is (outcomes[-1] == "pass")
    counts = count_outcomes(records)  # by which the exit code is chosen
    assert (counts[worst], sum(counts.values())) == (1, 1)
    folders = [{Path(file.path).parent.name for file in record.evidence} for record in records]
    assert all(len(names) == 1 for names in folders)
    assert len({name for names in folders for name in names}) == len(folders)


@pytest.mark.parametrize(
    ("attempts", "reason"),
    [
        ([TARGET_LATE, QUIET], "not confirmed: so in 1 of 2 replays"),
        ([TARGET_LATE, BENCH_STALLED], "not confirmed: so in 1 of 2 replays"),
        ([BENCH_STALLED, BENCH_STALLED], "the machine took up to"),
    ],
)
def test_without_a_verdict_the_reason_is_that_of_the_replay_that_counts_against_the_stream(
    tmp_path: Path, attempts: list[Disturbance], reason: str
) -> None:
    run, evidence = _run(tmp_path), _evidence(tmp_path)
    for disturbance in attempts:
        _add(evidence, run, disturbance)
    assert reason in evidence.decided()[33].verdict.reason
    assert reason in evidence.records(33, run, "a test")[-1].reason
    judged = [*evidence.decided()[33].judged, *evidence.decided()[33].judged[:1]]
    judged[-1] = replace(judged[-1], standing="short")
    assert reason.split(":")[0] in DecidedStream(tuple(judged), None, 3).verdict.reason


def test_a_replay_that_is_too_short_for_a_stream_takes_its_pass_away_from_nobody(tmp_path: Path) -> None:
    run, evidence = _run(tmp_path), _evidence(tmp_path)
    _add(evidence, run, TARGET_LATE)
    for _ in range(2):
        _add(evidence, run, QUIET)
        last = evidence.attempts[-1]
        few = [
            replace(stream, expected=10, received_minus_scheduled=few_of(stream.received_minus_scheduled))
            for stream in last.judged.recv.streams
            if stream.id != 33
        ]
        kept = [stream for stream in last.judged.recv.streams if stream.id == 33]
        recv = replace(last.judged.recv, streams=(*few, *kept))
        judged = replace(last.judged, recv=recv, sends=())  # those say how many they have scheduled
        evidence.attempts[-1] = replace(last, judged=judged)
    assert {each.outcome for each in evidence.decided().values()} == {"pass"}


def few_of(whole: Summary) -> Summary:
    """Return the fastest ten samples of a distribution."""
    low, width, _ = whole.buckets[0]
    return replace(whole, n=10, max_ns=low + width, overflow=0, buckets=((low, width, 10),))


def test_on_real_hardware_the_one_replay_decides(tmp_path: Path) -> None:
    run, evidence = _run(tmp_path), _evidence(tmp_path, simulated=False)
    _add(evidence, run, TARGET_LATE)
    assert evidence.undecided() == []
    assert [record.outcome for record in evidence.records(33, run, "a test")] == ["fail"]


def test_a_run_in_which_a_stream_failed_is_not_repeated(tmp_path: Path) -> None:
    run, evidence = _run(tmp_path), _evidence(tmp_path)
    evidence.profile = replace(evidence.profile, replay_attempts=5)
    for _ in range(3):
        assert evidence.attempts == [] or evidence.undecided() == [33]
        _add(evidence, run, TARGET_LATE)
    assert evidence.undecided() == []


def test_a_record_bears_the_names_of_what_was_measured(tmp_path: Path) -> None:
    run, evidence = _run(tmp_path), _evidence(tmp_path)
    _add(evidence, run, Disturbance())
    [record] = evidence.records(33, run, "a test")
    found = record.subject
    assert (found.bench, found.target, found.stack, found.clock) == (
        "virtual",
        "linux-rt",
        "kernel",
        "two-way",
    )
    assert (found.stream, record.conditions.profile, record.test) == ("33", "ci", "a test")


def test_real_hardware_gets_no_second_attempt(tmp_path: Path) -> None:
    run, evidence = _run(tmp_path), _evidence(tmp_path, simulated=False)
    _add(evidence, run, BENCH_STALLED)
    assert evidence.undecided() == []


@pytest.mark.parametrize("second", [QUIET, BENCH_STALLED])
def test_there_are_no_more_attempts_than_the_profile_allows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, second: Disturbance
) -> None:
    run, evidence = _run(tmp_path), _evidence(tmp_path)
    coming = iter([BENCH_STALLED, *[second] * 9])
    lasted_ms: list[int] = []

    def attempt(_pattern: object, settings: ReplaySettings, *_others: object) -> None:
        lasted_ms.append(settings.duration_ms)
        _add(evidence, run, next(coming))

    monkeypatch.setattr(evidence, "_attempt", attempt)
    said: list[str] = []
    pattern = ROOT / "traffic-gen" / "patterns" / "daq12.toml"
    evidence.replay(load_pattern(pattern), ReplaySettings(pattern), said.append)
    allowed = evidence.profile.replay_attempts + EXPLAINED_MAX
    assert len(evidence.attempts) == (3 if second is QUIET else allowed)
    assert len(said) == len(evidence.attempts) - 1
    assert all("33" in line for line in said)
    assert lasted_ms[0] == 60_000
    assert set(lasted_ms[1:]) == {15_000}  # stream 33 comes ten times a second, 99 samples are asked for


def test_a_further_replay_lasts_until_the_slowest_undecided_stream_has_its_samples(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, evidence = _run(tmp_path), _evidence(tmp_path)
    coming = iter([replace(BENCH_STALLED, path_delay_ns={33: 15 * MS, 90: 260 * MS}), QUIET, QUIET])
    left: list[list[int]] = []
    lasted_ms: list[int] = []

    def attempt(_pattern: object, settings: ReplaySettings, *_others: object) -> None:
        lasted_ms.append(settings.duration_ms)
        _add(evidence, run, next(coming))
        left.append(evidence.undecided())

    monkeypatch.setattr(evidence, "_attempt", attempt)
    pattern = ROOT / "traffic-gen" / "patterns" / "daq12.toml"
    evidence.replay(load_pattern(pattern), ReplaySettings(pattern), lambda _line: None)
    assert left == [[33, 90], [33, 90], []]
    assert lasted_ms == [60_000, 59_400, 59_400]  # 1.2 x 99 samples, 500 ms apart


def test_nothing_is_judged_before_it_was_replayed(tmp_path: Path) -> None:
    with pytest.raises(MeasurementError, match="nothing has been replayed"):
        _evidence(tmp_path).records(33, _run(tmp_path), "a test")


def test_a_clock_that_cannot_be_put_on_a_target_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CapabilityError, match="'sundial': must be one of two-way, free-run, chrony"):
        _evidence(tmp_path, clock="sundial")


def test_what_only_the_collector_saw_counts_beside_what_the_files_say(tmp_path: Path) -> None:
    evidence = _evidence(tmp_path)
    folder = evidence.attempt_folder
    folder.mkdir()
    write_evidence(folder, QUIET, seed=0)
    (folder / "witness.ndjson").write_text("{}\n")
    [said] = load_replay(folder).faults
    evidence.take(ReplayAnswers(folder, {}, {}, {}, [], ["recv ended with exit code 7", said]))
    [attempt] = evidence.attempts
    assert list(attempt.judged.faults) == ["recv ended with exit code 7", said]
    assert {each.verdict.outcome for each in evidence.decided().values()} == {"inconclusive"}
