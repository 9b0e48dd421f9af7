# SPDX-License-Identifier: Apache-2.0
"""Where stamps are taken as they are, the measured error of the target's clock is a part of U."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from reports.clock_sync.answers import clock_compare
from reports.clock_sync.trial import Lock, Timecard
from reports.daq_replay.evidence import load_replay
from reports.daq_replay.replay_clock import ReplayClock, ServerLine, measured_clock
from reports.daq_replay.verdict import ReplayResults, judge_latency
from reports.errors import RecordError
from tests.reports.sample_clock import compare_answer
from tests.reports.sample_run import START_TAI_NS, Disturbance, requirement_of, write_evidence

MS = 1_000_000
HOST = ServerLine("host", START_TAI_NS, 2_000 * MS, -25_000, 100_000, 7_000)
GUEST = ServerLine("guest", START_TAI_NS, -5 * MS, 0, 200_000, 9_000)
CLOCK = ReplayClock(
    clock="chrony",
    server="grandmaster",
    lock=Lock(9.0, "five in a row"),
    timecard=Timecard("card", 0, "shared memory"),
    max_abs_ns=140_000,
    reference_bound_ns=500,
    bracket_ns=4_000,
    readings=6_000,
    faults=(),
    lines=(HOST, GUEST),
)


def _replay(folder: Path, clock: ReplayClock | None, disturbance: Disturbance | None = None) -> ReplayResults:
    write_evidence(folder, disturbance or Disturbance(), seed=5)
    if clock is not None:
        clock.write(folder)
    replay = load_replay(folder).replay()
    recv = dataclasses.replace(replay.recv, correction="none", clocks=())
    return dataclasses.replace(replay, recv=recv)


def test_the_error_of_the_clock_is_a_part_of_u_of_every_stream(tmp_path: Path) -> None:
    replay = _replay(tmp_path, CLOCK)
    for stream in replay.recv.streams:
        found = judge_latency(stream.id, requirement_of(stream.id), replay)
        parts = {part.name: part.value for part in found.uncertainty.parts}
        line = GUEST if stream.producer == 12 else HOST
        assert found.verdict.outcome == "pass"
        assert parts == {
            "target_clock": 140_000,
            "reference": 500,
            "bracket": 4_000,
            "clock_offset": line.bound_ns,
            "clock_residual": line.residual_ns,
        }


def test_the_line_to_the_time_service_is_a_part_of_u(tmp_path: Path) -> None:
    """What is turned from one clock to another is off by what the turning is off."""
    replay = _replay(tmp_path, CLOCK)
    turned = dataclasses.replace(replay, recv=dataclasses.replace(replay.recv, own_line_ns=12_000))
    parts = [
        {part.name: part.value for part in judge_latency(13, requirement_of(13), each).uncertainty.parts}
        for each in (replay, turned)
    ]
    assert parts[1] == parts[0] | {"own_clock_line": 12_000}


def test_a_clock_as_wrong_as_the_budget_passes_nothing(tmp_path: Path) -> None:
    replay = _replay(tmp_path, dataclasses.replace(CLOCK, max_abs_ns=20 * MS))
    found = judge_latency(13, requirement_of(13), replay)
    assert found.verdict.outcome == "inconclusive"
    assert "not capable" in found.verdict.reason


@pytest.mark.parametrize(
    ("clock", "reason"),
    [
        (None, "clock error unknown: no correction and no stated bound"),
        (dataclasses.replace(CLOCK, faults=("the clock stepped by 5 ns",)), "the clock stepped by 5 ns"),
        (dataclasses.replace(CLOCK, max_abs_ns=None), "clock error unknown: no reading"),
        (dataclasses.replace(CLOCK, lines=()), "clock error unknown: no line for clock host"),
    ],
)
def test_an_error_that_is_not_known_passes_nothing(
    tmp_path: Path, clock: ReplayClock | None, reason: str
) -> None:
    found = judge_latency(13, requirement_of(13), _replay(tmp_path, clock))
    assert found.verdict.outcome == "inconclusive"
    assert reason in found.verdict.reason


def test_stalls_are_found_by_the_line_of_the_clock_that_stamped_them(tmp_path: Path) -> None:
    disturbed = Disturbance(path_delay_ns={33: 15 * MS}, stalled=True)
    same = dataclasses.replace(HOST, offset_ns=0, rate_ppb=0)
    right = _replay(tmp_path, dataclasses.replace(CLOCK, lines=(same, GUEST)), disturbed)
    assert judge_latency(33, requirement_of(33), right).verdict.outcome == "inconclusive"
    wrong = dataclasses.replace(right, clock=CLOCK)
    assert judge_latency(33, requirement_of(33), wrong).verdict.outcome == "fail"


def test_a_line_is_followed_by_its_rate() -> None:
    assert HOST.offset_at(START_TAI_NS + 10**9) - HOST.offset_ns == -25_000


def test_a_comparison_that_was_over_before_the_replay_is_a_fault() -> None:
    ended = clock_compare(compare_answer(complete=False))
    found = measured_clock("chrony", "gm", CLOCK.lock, CLOCK.timecard, ended, ())
    assert found.faults == ()
    assert found.max_abs_ns == max(-(ended.offset.min_ns or 0), ended.offset.max_ns or 0)
    assert (found.reference_bound_ns, found.bracket_ns, found.readings) == (400, 450, ended.offset.n)
    early = dataclasses.replace(ended, complete=True)
    assert measured_clock("chrony", "gm", CLOCK.lock, CLOCK.timecard, early, ()).faults
    stepped = dataclasses.replace(ended, steps=((1, 50_000),))
    assert measured_clock("chrony", "gm", CLOCK.lock, CLOCK.timecard, stepped, ()).faults


def test_it_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    assert ReplayClock.read(CLOCK.write(tmp_path)) == CLOCK
    (tmp_path / "clock.json").write_text('{"schema": "benchwright.replay_clock/1"}')
    with pytest.raises(RecordError, match=r"clock\.json"):
        ReplayClock.read(tmp_path / "clock.json")
