# SPDX-License-Identifier: Apache-2.0
"""A target takes the place of a producer: in a view of the bench, in the verdicts, in the evidence."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hw import virtual_bench
from hw.bench import BenchSpec, load_bench
from hw.drivers import virtual_guest
from hw.errors import CapabilityError
from hw.session import Bench
from hw.virtual_bench import LocalVirtualBench
from reports import RunFolder
from reports.daq_replay.evidence import load_replay
from reports.daq_replay.role import REPLAY_ROLE, ReplayRole
from resources.daq_replay.evidence import LatencyEvidence
from resources.daq_replay.other_streams import sort_other_streams
from resources.daq_replay.pattern import Pattern, load_pattern
from resources.daq_replay.plan import ReplaySettings
from resources.daq_replay.producing_target import producing_target
from resources.daq_replay.replay import ReplayAnswers
from resources.daq_replay.requirements import load_requirements
from resources.profiles import load_profile
from tests.reports.sample_run import Disturbance, write_evidence

ROOT = Path(__file__).resolve().parents[3]
SPEC = load_bench(ROOT / "hw" / "benches" / "virtual.yaml")
MS = 1_000_000


@pytest.fixture(scope="module")
def pattern() -> Pattern:
    return load_pattern(ROOT / "traffic-gen" / "patterns" / "daq12.toml")


def test_the_target_has_the_producers_place_in_a_view_only() -> None:
    before = load_bench(SPEC.path)
    producing = producing_target(SPEC, "embedded", 11, "linux-rt")
    view = producing.in_place(SPEC)
    own = view.producers[11]
    assert (own.number, own.node, own.address) == (11, "embedded", SPEC.targets["embedded"].test_address)
    assert before == SPEC
    assert replace(view, producers=SPEC.producers) == SPEC
    assert {n: p for n, p in view.producers.items() if n != 11} == {
        n: p for n, p in SPEC.producers.items() if n != 11
    }
    assert str(producing.role) == "target embedded as producer 11 into linux-rt"


def test_a_real_impairment_node_is_not_on_the_targets_link() -> None:
    real = replace(SPEC, virtual=None)
    assert producing_target(real, "embedded", 11, "linux-rt").in_place(real).router is None


@pytest.mark.parametrize(
    ("spec", "arguments", "told"),
    [
        (SPEC, ("linux-rt", 11, "linux-rt"), "cannot produce into itself"),
        (SPEC, ("embedded", 11, "nobody"), "no target 'nobody'; there are: linux-rt, embedded, windows"),
        (SPEC, ("nobody", 11, "linux-rt"), "no target 'nobody'"),
        (SPEC, ("embedded", 13, "linux-rt"), "no producer 13"),
        (
            replace(SPEC, clocks={"host": SPEC.clocks["host"]}),
            ("embedded", 11, "linux-rt"),
            "clock 'embedded'",
        ),
    ],
)
def test_what_the_bench_lacks_is_named(spec: BenchSpec, arguments: tuple[str, int, str], told: str) -> None:
    with pytest.raises(CapabilityError, match=told):
        producing_target(spec, *arguments)


def test_a_view_of_a_bench_has_the_same_nodes() -> None:
    bench: Any = Bench.__new__(Bench)
    bench.spec = SPEC
    bench._nodes = {}
    view: Any = bench.described_by(producing_target(SPEC, "embedded", 11, "linux-rt").in_place(SPEC))
    view._nodes["embedded"] = "on"
    assert bench.node("embedded") == view.node("embedded") == "on"
    assert (bench.spec.producers[11].node, view.spec.producers[11].node) == ("p11", "embedded")


@pytest.mark.parametrize("real", ["", "linux-rt", "embedded"])
def test_a_virtual_target_that_produces_gives_way_to_its_consumer(
    monkeypatch: pytest.MonkeyPatch, real: str
) -> None:
    guests = {name: SimpleNamespace(vcpu_cpus=[1], vcpu_priority=40) for name in ("embedded", "linux-rt")}
    environment = SimpleNamespace(get_target=str)
    bench = LocalVirtualBench(SPEC, environment, Path(), ())

    def guest_of(name: str) -> SimpleNamespace | None:
        return None if name == real else guests[name]

    monkeypatch.setattr(virtual_guest, "guest_of", guest_of)
    monkeypatch.setattr(virtual_bench, "power_driver", len)
    bench.give_way("embedded", "linux-rt")
    bench.give_way("p11", "linux-rt")  # no machine of its own
    own = guests["embedded"]
    assert (own.vcpu_cpus, own.vcpu_priority) == (([1], 40) if real else ([], 39))
    assert guests["linux-rt"] == SimpleNamespace(vcpu_cpus=[1], vcpu_priority=40)
    bench.take_back_way("embedded")
    assert (own.vcpu_cpus, own.vcpu_priority) == ([1], 40)


def _evidence(run: RunFolder, role: ReplayRole | None) -> LatencyEvidence:
    requirements = load_requirements(ROOT / "robot" / "daq_producer" / "requirements" / "daq_producer.toml")
    bench = cast("Any", SimpleNamespace(spec=SPEC))
    folder = run.evidence_folder("daq_producer", "embedded")
    target = SPEC.targets["linux-rt"]
    return LatencyEvidence(bench, target, "kernel", "two-way", load_profile("ci"), requirements, folder, role)


def _take(evidence: LatencyEvidence, disturbance: Disturbance) -> None:
    folder = evidence.attempt_folder
    folder.mkdir()
    write_evidence(folder, disturbance, seed=len(evidence.attempts))

    recv = json.loads((folder / "recv.ndjson").read_text().splitlines()[-1])
    evidence.take(ReplayAnswers(folder, recv, {}, {}, []))


ROLE = ReplayRole("embedded", 11, "linux-rt")
LATE = Disturbance(generator_delay_ns={113: 15 * MS})


@pytest.mark.parametrize(
    ("role", "disturbance", "outcome", "told"),
    [
        (ROLE, Disturbance(), "pass", ""),
        (ROLE, LATE, "fail", "sent up to 15"),
        (None, LATE, "inconclusive", "generator late: sent up to 15"),
        (ROLE, Disturbance(path_delay_ns={113: 15 * MS}), "fail", "under way"),
        (ROLE, replace(LATE, stalled=True), "inconclusive", "the machine took up to"),
        (ROLE, Disturbance(lost={113: 1}), "fail", "1 lost"),
    ],
)
def test_lateness_of_the_target_that_sends_is_its_own(
    tmp_path: Path, role: ReplayRole | None, disturbance: Disturbance, outcome: str, told: str
) -> None:
    run = RunFolder.create(tmp_path, "virtual", "ci", simulated=True)
    evidence = _evidence(run, role)
    evidence.profile = replace(evidence.profile, replay_attempts=1)
    _take(evidence, disturbance)
    [record] = evidence.records(113, run, "a test")
    assert (record.outcome, record.requirement) == (outcome, "DAQ-P113")
    assert told in record.reason
    assert record.subject.target == ("embedded" if role else "linux-rt")
    kept = [file for file in record.evidence if file.path.endswith(f"/{REPLAY_ROLE}")]
    assert len(kept) == (1 if role else 0)
    assert load_replay(evidence.attempts[0].folder).role == role


OTHER_LATE = Disturbance(path_delay_ns={33: 15 * MS})
OWN_STALLED = Disturbance(path_delay_ns={113: 15 * MS}, stalled=True)


@pytest.mark.parametrize(
    ("attempts", "left", "others"),
    [
        ([replace(OTHER_LATE, stalled=True)], [list[int]()], "disturbed"),
        ([OWN_STALLED, Disturbance(), Disturbance()], [[113], [113], []], ""),
        ([OTHER_LATE, Disturbance(), Disturbance()], [[33], [33], []], ""),
        ([OTHER_LATE, OTHER_LATE, OTHER_LATE], [[33], [33], []], "failed"),
        ([OTHER_LATE, OTHER_LATE, Disturbance()], [[33], [33], []], "undecided"),
    ],
)
def test_a_miss_of_another_stream_has_to_come_again_and_only_the_targets_own_are_repeated_for_a_stall(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    pattern: Pattern,
    attempts: list[Disturbance],
    left: list[list[int]],
    others: str,
) -> None:
    evidence = _evidence(RunFolder.create(tmp_path, "virtual", "ci", simulated=True), ROLE)
    coming = iter(attempts)
    left_then: list[list[int]] = []
    lasted_ms: list[int] = []

    def attempt(_pattern: object, settings: ReplaySettings, *_others: object) -> None:
        lasted_ms.append(settings.duration_ms)
        _take(evidence, next(coming))
        left_then.append(evidence.undecided())

    monkeypatch.setattr(evidence, "_attempt", attempt)
    settings = ReplaySettings(ROOT / "traffic-gen" / "patterns" / "daq12.toml", duration_ms=20_000)
    of_one_clock = tuple(stream for stream in pattern.streams if stream.producer != 12)
    evidence.replay(replace(pattern, streams=of_one_clock), settings, lambda _line: None)
    assert left_then == left
    assert lasted_ms == [20_000, 15_000, 15_000][: len(attempts)]
    found = sort_other_streams(evidence.decided_others())
    named = {"failed": found.failed, "disturbed": found.disturbed, "undecided": found.undecided}
    assert {name: list(streams) for name, streams in named.items() if streams} == (
        {others: [33]} if others else {}
    )


def test_a_replay_lasts_until_the_targets_streams_have_their_samples(
    tmp_path: Path, pattern: Pattern
) -> None:
    evidence = _evidence(RunFolder.create(tmp_path, "virtual", "ci", simulated=True), ROLE)
    assert evidence.counting_ms(pattern, evidence.requirements.by_stream) == 15_000
    evidence.profile = load_profile("acceptance")
    assert evidence.counting_ms(pattern, evidence.requirements.by_stream) == 359_400


def test_the_known_delay_check_of_the_produced_path_is_no_attempt_at_the_other(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path, "virtual", "ci", simulated=True)
    phases: set[str | None] = set()
    for role in (ROLE, None):
        context = _evidence(run, role)._context(run, "known-delay check", "", ())  # pyright: ignore[reportPrivateUsage]
        phases.add(context.conditions.phase)
    assert phases == {"single-producer", "single-producer-11"}
