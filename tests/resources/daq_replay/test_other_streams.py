# SPDX-License-Identifier: Apache-2.0
"""Streams that the target does not send: within their budgets, or named with the reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from reports.daq_replay.attempts import decide_streams
from reports.daq_replay.evidence import load_replay
from reports.daq_replay.verdict import ReplayResults
from resources.daq_replay.other_streams import OtherStreams, budgets_of_others, sort_other_streams
from resources.daq_replay.pattern import Pattern, load_pattern
from tests.reports.sample_run import Disturbance, write_evidence

ROOT = Path(__file__).resolve().parents[3]
MS = 1_000_000
OWN = (110, 111, 112, 113)
LATE = Disturbance(path_delay_ns={33: 15 * MS})
BENCH_STALLED = Disturbance(path_delay_ns={33: 15 * MS}, stalled=True)


@pytest.fixture(scope="module")
def pattern() -> Pattern:
    return load_pattern(ROOT / "traffic-gen" / "patterns" / "daq12.toml")


def _judged(folder: Path, pattern: Pattern, *disturbances: Disturbance) -> OtherStreams:
    attempts: list[ReplayResults] = []
    for number, disturbance in enumerate(disturbances):
        place = folder / str(number)
        place.mkdir()
        write_evidence(place, disturbance, seed=number)
        attempts.append(load_replay(place).replay())
    return sort_other_streams(decide_streams(budgets_of_others(pattern, OWN), attempts, allowed=3))


def test_all_others_of_a_quiet_replay_are_within_their_budgets(tmp_path: Path, pattern: Pattern) -> None:
    found = _judged(tmp_path, pattern, Disturbance())
    assert (found.failed, found.disturbed, found.undecided) == ({}, {}, {})
    assert set(found.within) == {stream.id for stream in pattern.streams} - set(OWN)
    assert str(found) == "44 of 44 other streams within their budgets"


def test_what_happens_to_the_targets_own_streams_is_judged_elsewhere(
    tmp_path: Path, pattern: Pattern
) -> None:
    found = _judged(tmp_path, pattern, Disturbance(path_delay_ns={113: 15 * MS}, lost={110: 3}))
    assert len(found.within) == 44


@pytest.mark.parametrize(
    ("disturbances", "kind", "stream"),
    [
        ([LATE, LATE, LATE], "failed", 33),
        ([Disturbance(lost={43: 1})] * 3, "failed", 43),
        ([LATE, LATE], "undecided", 33),
        ([BENCH_STALLED], "disturbed", 33),
        ([Disturbance(), LATE], "undecided", 33),
        ([Disturbance(generator_delay_ns={33: 15 * MS})], "undecided", 33),
    ],
)
def test_a_stream_that_was_not_within_its_budget_is_named(
    tmp_path: Path, pattern: Pattern, disturbances: list[Disturbance], kind: str, stream: int
) -> None:
    found = _judged(tmp_path, pattern, *disturbances)
    named = {"failed": found.failed, "disturbed": found.disturbed, "undecided": found.undecided}
    assert {name: list(streams) for name, streams in named.items() if streams} == {kind: [stream]}
    assert len(found.within) == 43
    assert f"stream {stream}: " in str(found)


def test_a_replay_that_the_machine_explains_counts_neither_way(tmp_path: Path, pattern: Pattern) -> None:
    for name in ("once", "twice"):
        (tmp_path / name).mkdir()
    once = _judged(tmp_path / "once", pattern, BENCH_STALLED, Disturbance())
    assert len(once.within) == 43, "nor does a single clean one beside it pass"
    twice = _judged(tmp_path / "twice", pattern, BENCH_STALLED, Disturbance(), Disturbance())
    assert len(twice.within) == 44
