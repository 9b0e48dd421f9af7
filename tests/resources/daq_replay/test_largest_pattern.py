# SPDX-License-Identifier: Apache-2.0
"""The bisection for the largest pattern: what it asks, what it finds, and when it finds nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hw.bench import load_bench
from hw.errors import CapabilityError, MeasurementError
from reports import Limit, RunFolder
from reports.clock_sync.verdict import BENCH_STALLED
from reports.daq_replay.evidence import load_replay
from reports.daq_replay.verdict import ReplayResults
from reports.largest_pattern.capability import QUANTITY
from reports.largest_pattern.search import (
    FILE,
    FOLDER,
    LargestPattern,
    TrialOutcome,
    largest_pattern_measurement,
    read_largest_pattern,
)
from reports.record.document import write_document
from reports.run.integrity import sha256_file
from resources.daq_replay.evidence import LatencyEvidence, ReplayAttempt
from resources.daq_replay.largest_pattern import (
    Boundary,
    LargestPatternSearch,
    last_answer,
    producer_order,
    search,
)
from resources.daq_replay.pattern import Pattern, load_pattern
from resources.daq_replay.plan import ReplaySettings
from resources.daq_replay.requirements import load_requirements
from resources.profiles import load_profile
from resources.requirements_file import load_requirements_file
from tests.reports.sample_run import TABLE_1, Disturbance, write_evidence

ROOT = Path(__file__).resolve().parents[3]
SPEC = load_bench(ROOT / "hw" / "benches" / "virtual.yaml")
PATTERN = ROOT / "traffic-gen" / "patterns" / "daq12.toml"
REQUIREMENTS = ROOT / "robot" / "daq_replay" / "requirements"
LIGHTEST_FIRST = (9, 8, 1, 11, 10, 3, 5, 4, 7, 6, 12, 2)
MS = 1_000_000


@dataclass
class FakeTarget:
    """A target that takes `capacity` producers; `said` overrides, trial by trial, what it shows."""

    capacity: int
    said: dict[tuple[int, bool], list[TrialOutcome]] = field(
        default_factory=dict[tuple[int, bool], list[TrialOutcome]]
    )
    asked: list[tuple[int, bool]] = field(default_factory=list[tuple[int, bool]])

    def __call__(self, size: int, whole: bool) -> TrialOutcome:
        """Make a trial."""
        self.asked.append((size, whole))
        planned = self.said.get((size, whole), [])
        if planned:
            return planned.pop(0)
        return "within" if size <= self.capacity else "over"


@pytest.mark.parametrize("offered", [1, 2, 7, 12])
@pytest.mark.parametrize("boundary_trials", [1, 3])
def test_every_capacity_is_found_and_both_sides_of_it_were_seen(offered: int, boundary_trials: int) -> None:
    for capacity in range(offered + 1):
        target = FakeTarget(capacity)
        assert search(offered, target, boundary_trials) == Boundary(capacity, capacity, capacity + 1)
        shown = [size for size, whole in target.asked if whole and size <= capacity]
        assert shown == ([capacity] * boundary_trials if capacity else [])
        assert capacity == offered or (capacity + 1) in {size for size, _ in target.asked}
        assert len(target.asked) <= 1 + offered.bit_length() + boundary_trials


def test_all_are_tried_first() -> None:
    """A target that takes them is done after two trials; one without a verdict there is searched further."""
    target = FakeTarget(12)
    search(12, target)
    assert target.asked == [(12, False), (12, True)]
    target = FakeTarget(9, {(12, False): ["no verdict"]})
    assert search(12, target) == Boundary(9, 9, 10)


def test_all_in_the_first_trial_needs_no_further_one() -> None:
    target = FakeTarget(12)
    assert search(12, target, 5, (12, "within")) == Boundary(12, 12, 13)
    assert target.asked == []


def test_the_search_goes_on_above_a_first_trial_that_is_within() -> None:
    for capacity in (10, 11, 12):
        target = FakeTarget(capacity)
        assert search(12, target, 1, (10, "within")) == Boundary(capacity, capacity, capacity + 1)
        assert min(size for size, _ in target.asked) > 10
        assert (10, True) not in target.asked
    target = FakeTarget(10)
    search(12, target, 3, (10, "within"))
    assert target.asked == [(12, False), (11, False), (10, True), (10, True)]


def test_the_search_goes_on_below_a_first_trial_that_is_over() -> None:
    target = FakeTarget(4)
    assert search(12, target, 1, (10, "over")) == Boundary(4, 4, 5)
    assert max(size for size, _ in target.asked) < 10


@pytest.mark.parametrize("expected", range(13))
def test_the_search_begins_with_what_was_found_before(expected: int) -> None:
    """Right, it takes two trials; wrong, the answer is the same."""
    for capacity in range(13):
        target = FakeTarget(capacity)
        assert search(12, target, 1, None, expected) == Boundary(capacity, capacity, capacity + 1)
        if expected == capacity and capacity:
            assert target.asked == [(capacity, True), (capacity + 1, False)][: 12 - capacity + 1]
        assert len(target.asked) <= (12).bit_length() + 3


def test_what_was_found_before_is_that_of_the_newest_run_of_bench_profile_and_target(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path, "virtual", "ci")
    order = (2, 1)

    def earlier(
        name: str, found: int, profile: str = "ci", target: str = "arm", broken: bool = False
    ) -> None:
        made = RunFolder.create(tmp_path / "made", "virtual", profile)
        folder = made.evidence_folder("daq_replay", target, FOLDER)
        write_document(folder / FILE, LargestPattern(order, found, found, found + 1, 59, 1, "", ()))
        if broken:
            (folder / FILE).write_text("{")
        made.path.rename(tmp_path / name)

    def place(target: str) -> Path:
        return Path("evidence", "daq_replay", target, FOLDER, FILE)

    assert last_answer(run, place("arm"), order) is None
    earlier("20250101T000000Z-virtual-ci", 1)
    earlier("20250102T000000Z-virtual-ci", 2)
    earlier("20250103T000000Z-virtual-soak", 0, profile="soak")
    earlier("20250104T000000Z-virtual-ci", 0, target="windows")
    earlier("20250105T000000Z-virtual-ci", 0, broken=True)
    assert last_answer(run, place("arm"), order) == 2
    assert last_answer(run, place("arm"), (1, 2)) is None
    assert last_answer(run, place("windows"), order) == 0


def test_nothing_at_all_is_within() -> None:
    target = FakeTarget(0)
    assert search(12, target) == Boundary(0, 0, 1)
    assert (1, False) in target.asked


def test_a_hope_of_a_short_trial_that_a_whole_one_does_not_confirm_is_given_up() -> None:
    target = FakeTarget(9, {(9, True): ["over"]})
    assert search(12, target) == Boundary(8, 8, 9)
    assert target.asked.count((9, True)) == 1
    assert target.asked[-1] == (8, True)


def test_one_whole_trial_that_is_over_outweighs_those_that_were_within() -> None:
    target = FakeTarget(9, {(9, True): ["within", "within", "over"]})
    assert search(12, target, 3) == Boundary(8, 8, 9)
    assert [size for size, whole in target.asked if whole] == [9, 9, 9, 8, 8, 8]


def test_where_even_the_first_trial_is_overturned_a_smaller_one_is_looked_for() -> None:
    target = FakeTarget(10, {(10, True): ["over"]})
    found = search(12, target, 2, (10, "within"))
    assert found == Boundary(9, 9, 10)


@pytest.mark.parametrize("whole", [False, True])
def test_a_trial_without_a_verdict_ends_the_search_without_a_number(whole: bool) -> None:
    size = 9
    found = search(12, FakeTarget(9, {(size, whole): ["no verdict"]}))
    assert found.found is None
    assert found.undecided == size
    assert found.low < size < found.high


def test_a_first_trial_without_a_verdict_does_so_too() -> None:
    target = FakeTarget(12)
    assert search(12, target, 1, (12, "no verdict")) == Boundary(None, 0, 13, 12)
    assert target.asked == []


def test_producers_are_added_the_lightest_first_after_those_of_the_suite() -> None:
    pattern = load_pattern(PATTERN)
    assert producer_order(pattern, (), pattern.producers) == LIGHTEST_FIRST
    assert producer_order(pattern, (12, 2), pattern.producers) == (12, 2, *LIGHTEST_FIRST[:-2])
    assert producer_order(pattern, pattern.producers, (2, 3)) == (3, 2)


def _evidence(
    folder: Path, producers: Sequence[int] = LIGHTEST_FIRST, simulated: bool = True
) -> LatencyEvidence:
    bench = cast("Any", SimpleNamespace(spec=replace(SPEC, simulated=simulated)))
    whole = load_requirements(REQUIREMENTS / "daq12.toml")
    asked = {stream: each for stream, each in whole.by_stream.items() if stream // 10 in producers}
    requirements = replace(whole, by_stream=asked, is_partial=True)
    target = SPEC.targets["linux-rt"]
    return LatencyEvidence(bench, target, "kernel", "two-way", load_profile("ci"), requirements, folder)


_judged: dict[str, ReplayResults] = {}


def _drawn(folder: Path, disturbance: Disturbance) -> ReplayResults:
    """Write the evidence of a replay and return it as it is judged; equal evidence is read once."""
    write_evidence(folder, disturbance, seed=0)
    name = repr(disturbance)
    if name not in _judged:
        _judged[name] = load_replay(folder).replay()
    return _judged[name]


class Replays:
    """Stands for the bench: each replay is drawn, disturbed as `plan` says, and the real way from there."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, plan: Mapping[int, Sequence[Disturbance]]) -> None:
        """Put it in the place of a replay.

        Args:
            monkeypatch: Undoes it.
            plan: By number of producers, the replays in their order; the last one is repeated.
        """
        self.plan = {size: list(found) for size, found in plan.items()}
        self.made: list[tuple[tuple[int, ...], int]] = []

        def attempt(
            evidence: LatencyEvidence, _pattern: Pattern, settings: ReplaySettings, *_: object
        ) -> None:
            self._attempt(evidence, settings)

        monkeypatch.setattr(LatencyEvidence, "_attempt", attempt)

    def _attempt(self, evidence: LatencyEvidence, settings: ReplaySettings) -> None:
        producers = settings.only_producers or tuple(TABLE_1)
        self.made.append((producers, settings.duration_ms))
        coming = self.plan.get(len(producers), [Disturbance()])
        folder = evidence.attempt_folder
        folder.mkdir(parents=True)
        disturbance = coming.pop(0) if len(coming) > 1 else coming[0]
        evidence.attempts.append(ReplayAttempt(folder, _drawn(folder, disturbance)))


def _searched(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    plan: Mapping[int, Sequence[Disturbance]],
    producers: Sequence[int] = LIGHTEST_FIRST,
    simulated: bool = True,
) -> tuple[Replays, RunFolder, LargestPatternSearch]:
    run = RunFolder.create(tmp_path / "results", "virtual", "ci", simulated=simulated)
    evidence = _evidence(run.evidence_folder("daq_replay", "linux-rt"), producers, simulated)
    replays = Replays(monkeypatch, plan)
    pattern = load_pattern(PATTERN)
    settings = ReplaySettings(PATTERN, only_producers=evidence.requirements.producers)
    evidence.replay(pattern, settings, lambda _line: None)
    budgets = load_requirements(REQUIREMENTS / "daq12.toml")
    return replays, run, LargestPatternSearch(evidence, pattern, settings, budgets, run, lambda _line: None)


LATE_2 = Disturbance(path_delay_ns={23: 15 * MS})
STALLED = Disturbance(path_delay_ns={13: 15 * MS}, stalled=True)


def test_the_suites_own_replay_of_all_producers_is_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replays, run, made = _searched(tmp_path, monkeypatch, {})
    found = made.run()
    assert len(replays.made) == 1
    assert (found.found, found.order, len(found.trials)) == (12, LIGHTEST_FIRST, 1)
    assert found.trials[0].place == "evidence/daq_replay/linux-rt/attempt-1"
    assert found.fewest == 120  # stream 90 and its like come twice a second
    assert "misses of more than 2.5 % excluded with 95 %; all that the bench has" in found.confidence
    folder = run.path / "evidence" / "daq_replay" / "linux-rt" / "largest_pattern"
    assert read_largest_pattern(folder / "largest_pattern.json") == found
    [requirement] = load_requirements_file(REQUIREMENTS / "largest_pattern.toml", QUANTITY).requirements
    record = largest_pattern_measurement(found, requirement.id, requirement.limit, made.context("a test"))
    assert (record.outcome, record.value, record.unit, record.margin) == ("pass", 12, "producers", 11)
    assert (record.n, record.n_required, record.subject.target) == (120, 59, "linux-rt")
    assert {Path(each.path).name for each in record.evidence} >= {"largest_pattern.json", "recv.ndjson"}
    assert all(sha256_file(run.path / each.path) == each.sha256 for each in record.evidence)


def test_a_target_that_is_asked_for_some_is_tried_with_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = {12: [LATE_2], 11: [Disturbance()]}
    replays, run, made = _searched(tmp_path, monkeypatch, plan, LIGHTEST_FIRST[:10])
    found = made.run()
    assert (found.found, found.low, found.high) == (11, 11, 12)
    assert [(trial.size, trial.outcome, trial.is_own) for trial in found.trials] == [
        (10, "within", True),
        (12, "over", False),
        (11, "within", False),
        (11, "within", False),
    ]
    # An over has to come again in three replays; the last two last as long as the stream that missed needs.
    assert [ms for _, ms in replays.made] == [60_000, 10_000, 15_000, 15_000, 10_000, 30_000]
    assert all(set(producers) == set(LIGHTEST_FIRST[: len(producers)]) for producers, _ in replays.made)
    assert found.trials[1].failed == (23,)
    assert found.beyond is found.trials[1]
    assert found.shown == (found.trials[3],)
    assert found.worst is not None
    assert "12: " in found.confidence
    assert "1 stream fails" in found.confidence
    kept = {each.path for each in made.context("a test").evidence}
    for number in (2, 3, 4):
        assert f"evidence/daq_replay/linux-rt/largest_pattern/trial-{number}/attempt-1/recv.ndjson" in kept
    assert (run.path / "evidence/daq_replay/linux-rt/largest_pattern/budgets.toml").is_file()


def test_a_trial_that_the_bench_disturbed_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = {11: [STALLED, Disturbance()], 12: [LATE_2]}
    _, _, made = _searched(tmp_path, monkeypatch, plan, LIGHTEST_FIRST[:10])
    found = made.run()
    assert found.found == 11
    assert [trial.replays for trial in found.trials] == [1, 3, 3, 1]


@pytest.mark.parametrize(("simulated", "replays"), [(True, 5), (False, 1)])
def test_a_bench_that_never_stands_quiet_leaves_the_number_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, simulated: bool, replays: int
) -> None:
    plan = {11: [STALLED], 12: [STALLED]}
    _, _, made = _searched(tmp_path, monkeypatch, plan, LIGHTEST_FIRST[:10], simulated)
    found = made.run()
    assert found.found is None
    assert found.trials[-1].outcome == "no verdict"
    assert found.trials[-1].replays == replays
    [requirement] = load_requirements_file(REQUIREMENTS / "largest_pattern.toml", QUANTITY).requirements
    record = largest_pattern_measurement(found, requirement.id, requirement.limit, made.context("a test"))
    assert (record.outcome, record.value, record.margin) == ("pass", 10, 9), "ten were shown before"
    limit = Limit(None, 11, "a site")
    record = largest_pattern_measurement(found, requirement.id, limit, made.context("a test"))
    assert (record.outcome, record.value, record.margin) == ("inconclusive", None, None)
    assert record.reason.startswith("not found: at least 10; no verdict on 11 producers: ")
    assert BENCH_STALLED in record.reason


def test_a_profile_without_it_and_a_search_without_a_replay_are_refused(tmp_path: Path) -> None:
    evidence = _evidence(tmp_path)
    pattern, settings = load_pattern(PATTERN), ReplaySettings(PATTERN)
    run = RunFolder.create(tmp_path / "results", "virtual", "ci")
    with pytest.raises(MeasurementError, match="nothing has been replayed"):
        LargestPatternSearch(evidence, pattern, settings, evidence.requirements, run, print)
    evidence.profile = replace(evidence.profile, name="quick")
    with pytest.raises(CapabilityError, match=r"largest_pattern\.times\.toml has no table quick"):
        LargestPatternSearch(evidence, pattern, settings, evidence.requirements, run, print)


def test_it_is_looked_for_after_the_streams_were_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    api: Any = import_module("robot.api")
    suite = api.TestSuite.from_file_system(str(ROOT / "robot" / "daq_replay" / "latency_budgets.robot"))
    result = suite.run(
        output=None, log=None, report=None, console="none", variable=["BENCH:no-such-file.yaml"]
    )
    tests = [(test.name, test.status) for test in result.suite.all_tests]
    assert len(tests) == 49
    assert tests[0] == ("DAQ-010 Stream 10 Arrives Within 100 ms", "FAIL")
    assert tests[-1] == ("Largest Pattern Within The Budgets", "FAIL")
