# SPDX-License-Identifier: Apache-2.0
"""What a target's emulator was given: read from the witness's series, kept around late messages only."""

from __future__ import annotations

import dataclasses
import json
import struct
from collections.abc import Sequence
from pathlib import Path

import pytest

from reports.daq_replay.emulation import (
    EMULATION,
    TARGET_WITNESS,
    keep_emulation,
    pauses_of,
    read_emulation,
)
from reports.daq_replay.evidence import load_replay
from reports.daq_replay.late_message_plots import figure_late_messages
from reports.daq_replay.late_messages import AROUND_NS, latest_messages
from reports.daq_replay.verdict import StreamRequirement, judge_latency, witness_time
from reports.errors import RecordError
from reports.record.measurement import Limit
from reports.tools.witness_series import SERIES, read_series
from tests.reports.sample_run import DURATION_MS, START_TAI_NS, Disturbance, write_evidence

MS = 1_000_000
PERIOD_NS = 2 * MS
HOST_OFFSET_NS = 40_000
"""What the witness's clock is ahead of the consumer's in the sample."""


def _series(path: Path, cpus: Sequence[int] = (0, 1), stopped_ms: tuple[int, int] = (0, 0)) -> None:
    """Write a series as docs/native-tools.md says, in which the virtual processor runs half of the time.

    It does not run between two instants after the start.
    """

    def ran_ns(cpu: int, number: int) -> int:
        is_stopped = stopped_ms[0] < number * PERIOD_NS // MS <= stopped_ms[1]
        return MS if cpu == cpus[0] and not is_stopped else 0

    head = b"BWCAP1\n\0" + struct.pack("<IIq", len(cpus), 2, PERIOD_NS)
    head += struct.pack(f"<{len(cpus)}i", *cpus) + struct.pack("<2i", 4711, 4712)
    records = b"".join(
        struct.pack("<qiiii", START_TAI_NS + number * PERIOD_NS, 5_000, cpu, ran_ns(cpu, number), 0)
        for cpu in cpus
        for number in range(DURATION_MS * MS // PERIOD_NS)
    )
    path.write_bytes(head + records)


def test_what_lies_around_late_messages_is_kept_and_the_rest_goes(tmp_path: Path) -> None:
    write_evidence(tmp_path, Disturbance(path_delay_ns={33: 15 * MS}, stalled=True), seed=3)
    _series(tmp_path / SERIES)
    keep_emulation(tmp_path, load_replay(tmp_path).replay())
    assert not (tmp_path / SERIES).exists()
    evidence = load_replay(tmp_path)
    assert evidence.problems == ()
    messages = latest_messages(evidence.replay(), evidence.emulation.around)
    assert len(messages) == len(evidence.emulation.around) > 1
    for message in messages:
        span_ns = message.received_ns + 2 * AROUND_NS
        assert abs(len(message.vcpu_ran) - span_ns / PERIOD_NS) <= 1
        last_ns = message.received_ns + AROUND_NS + PERIOD_NS  # the reading after says what ran until the end
        assert all(-AROUND_NS <= time_ns <= last_ns for time_ns, _ in message.vcpu_ran)
        assert {ran_ns for _, ran_ns in message.vcpu_ran} == {MS}
    assert "Late messages" in figure_late_messages("late0", messages)


def _target_witness(path: Path, overdue_ms: Sequence[tuple[int, int]]) -> None:
    """Write the answer of a witness in the target that was overdue between instants after the start."""
    begin_ns = START_TAI_NS - HOST_OFFSET_NS
    result = {
        "type": "result",
        "tool": "bw-traffic witness",
        "stalled_fraction": 0.0,
        "period_ns": 2 * MS,
        "cpus": [],
        "windows": [[begin_ns + start * MS, begin_ns + end * MS, 0] for start, end in overdue_ms],
        "windows_dropped": 0,
    }
    path.write_text(json.dumps(result) + "\n")


def test_a_target_that_was_not_run_is_the_emulators_pause(tmp_path: Path) -> None:
    """Its witness was overdue twice: the first time the virtual processor did not run, then it did."""
    write_evidence(tmp_path, Disturbance(), seed=3)
    _series(tmp_path / SERIES, stopped_ms=(500, 520))
    _target_witness(tmp_path / TARGET_WITNESS, [(501, 521), (700, 730)])
    assert load_replay(tmp_path).replay().emulator_pauses == ()
    keep_emulation(tmp_path, load_replay(tmp_path).replay())
    ((start_ns, end_ns),) = load_replay(tmp_path).replay().emulator_pauses
    assert start_ns - START_TAI_NS == pytest.approx(500 * MS, abs=10_000)
    assert end_ns - START_TAI_NS == pytest.approx(520 * MS, abs=10_000)


IDLE, BUSY = 0, MS
NO_PAUSE: list[tuple[int, int]] = []


@pytest.mark.parametrize(
    ("ran", "pauses"),
    [
        ([IDLE] * 14, [(-2, 10)]),  # not run throughout: from where it may not have been due on
        ([BUSY] * 14, NO_PAUSE),  # it computed: whatever it did, it was run
        ([IDLE] * 4 + [BUSY] * 10, NO_PAUSE),  # idle before its witness was due: nobody wanted it
        ([BUSY] * 4 + [IDLE] * 3 + [BUSY] * 7, [(0, 3)]),
        ([BUSY] * 3 + [IDLE] * 3 + [BUSY, IDLE] + [BUSY] * 6, [(-1, 2), (3, 4)]),
        ([BUSY] * 13 + [IDLE], [(9, 10)]),
        ([], NO_PAUSE),
    ],
)
def test_pause_is_where_an_overdue_target_was_not_run(ran: list[int], pauses: list[tuple[int, int]]) -> None:
    """Readings each ms; the first interval ends 3 ms before the witness was due; its period is 2 ms."""
    readings = [(-4 * MS, 0)] * bool(ran) + [((number - 3) * MS, each) for number, each in enumerate(ran)]
    found = pauses_of(7 * MS, 17 * MS, 2 * MS, readings)
    assert found == [(7 * MS + start * MS, 7 * MS + end * MS) for start, end in pauses]


def test_a_pause_of_the_emulator_is_an_amount_like_any_other(tmp_path: Path) -> None:
    write_evidence(tmp_path, Disturbance(path_delay_ns={33: 15 * MS}, stalled=True), seed=3)
    replay = load_replay(tmp_path).replay()
    witness = dataclasses.replace(replay.witness, windows=()) if replay.witness else None
    alone = dataclasses.replace(replay, witness=witness)
    by_witness = witness_time(alone)
    assert by_witness is not None
    requirement = StreamRequirement("R", Limit(10 * MS, None, ""), 1)
    standings: list[str] = []
    for paused_ms in (0, 4, 14):
        pauses = [
            (arrived_ns - paused_ms * MS, arrived_ns)
            for arrived_ns in (by_witness(miss.received_local_tai_ns) or 0 for miss in alone.misses)
            if paused_ms
        ]
        judged = judge_latency(33, requirement, dataclasses.replace(alone, emulator_pauses=pauses))
        standings.append(judged.standing)
    assert standings == ["over", "over", "explained"]


def test_a_replay_without_late_messages_keeps_nothing(tmp_path: Path) -> None:
    write_evidence(tmp_path, Disturbance(), seed=3)
    _series(tmp_path / SERIES)
    keep_emulation(tmp_path, load_replay(tmp_path).replay())
    assert not (tmp_path / SERIES).exists()
    assert not (tmp_path / EMULATION).exists()
    keep_emulation(tmp_path, load_replay(tmp_path).replay())  # without a series: nothing to do


@pytest.mark.parametrize(("begin", "end"), [(0, 0), (1, None), (0, -3), (0, 20)])
def test_a_damaged_series_is_named_and_stays_as_it_is(tmp_path: Path, begin: int, end: int | None) -> None:
    """The replay is judged without it: it only tells more of what the witness's windows say."""
    write_evidence(tmp_path, Disturbance(path_delay_ns={33: 15 * MS}, stalled=True), seed=3)
    path = tmp_path / SERIES
    _series(path)
    path.write_bytes(path.read_bytes()[begin:end])
    with pytest.raises(RecordError, match=r"witness\.series"):
        read_series(path)
    keep_emulation(tmp_path, load_replay(tmp_path).replay())
    assert path.exists()
    assert not (tmp_path / EMULATION).exists()


def test_damaged_evidence_becomes_a_problem(tmp_path: Path) -> None:
    write_evidence(tmp_path, Disturbance(), seed=3)
    (tmp_path / EMULATION).write_text('{"stream":3}\n')
    with pytest.raises(RecordError, match=EMULATION):
        read_emulation(tmp_path / EMULATION)
    assert any(EMULATION in problem for problem in load_replay(tmp_path).problems)
