# SPDX-License-Identifier: Apache-2.0
"""Latencies, losses and stalls over the time of a replay: on one clock, and true to the evidence."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import cast

import pytest

from reports.daq_replay.evidence import load_replay
from reports.daq_replay.over_time import BINS, replay_over_time
from reports.daq_replay.section import gather_latency
from reports.errors import RecordError
from reports.section import TargetData
from reports.tools.answers import recv_progress
from tests.reports.sample_run import DURATION_MS, START_TAI_NS, Disturbance, make_run, write_evidence

MS = 1_000_000
S = 1_000_000_000
LATE = Disturbance(path_delay_ns={33: 15 * MS}, lost={12: 3}, stalled=True)


def test_misses_losses_and_the_largest_so_far_stand_where_they_were(tmp_path: Path) -> None:
    write_evidence(tmp_path, LATE, seed=3)
    evidence = load_replay(tmp_path)
    found = replay_over_time(evidence.replay(), recv_progress(tmp_path / "recv.ndjson", (12, 33)), (12, 33))
    assert found.length_ns == DURATION_MS * MS
    late = found.streams[33]
    wanted = [
        (miss.received_local_tai_ns - START_TAI_NS, miss.received_minus_scheduled_ns)
        for miss in evidence.misses
        if miss.stream == 33
    ]
    assert list(late.late) == wanted
    assert late.largest[-1] == (DURATION_MS * MS, max(latency for _, latency in late.largest))
    assert [latency for _, latency in late.largest[:-1]] == sorted({latency for _, latency in late.largest})
    assert late.largest[0][0] == 10 * S
    assert late.lost == ()
    assert found.streams[12].lost == (10 * S,)
    assert found.streams[12].late == ()


def test_stalls_are_on_the_time_of_the_messages_that_they_held_up(tmp_path: Path) -> None:
    write_evidence(tmp_path, LATE, seed=3)
    replay = load_replay(tmp_path).replay()
    found = replay_over_time(replay, (), (33,))
    assert {length for _after, length in found.stalls or ()} == {LATE.stall_ns}
    for (received, latency), (stalled, length) in zip(
        found.streams[33].late, found.stalls or (), strict=True
    ):
        assert received - latency < stalled < stalled + length < received
    pause = (replay.witness.windows[0][0] - S, replay.witness.windows[0][0]) if replay.witness else (0, 0)
    paused = replay_over_time(dataclasses.replace(replay, emulator_pauses=(pause,)), (), (33,))
    assert max(length for _after, length in paused.stalls or ()) in (LATE.stall_ns, S)
    unknown = replay_over_time(dataclasses.replace(replay, witness_clock="nobody's"), (), (33,))
    assert unknown.stalls is None
    assert unknown.streams == found.streams


def test_many_misses_leave_the_largest_of_each_part(tmp_path: Path) -> None:
    write_evidence(tmp_path, LATE, seed=3)
    replay = load_replay(tmp_path).replay()
    miss = next(miss for miss in replay.misses if miss.stream == 33)
    many = tuple(
        dataclasses.replace(miss, received_minus_scheduled_ns=11 * MS + number, received_local_tai_ns=at)
        for number, at in enumerate(range(START_TAI_NS, START_TAI_NS + DURATION_MS * MS, MS))
    )
    late = replay_over_time(dataclasses.replace(replay, misses=many), (), (33,)).streams[33].late
    assert len(late) == BINS
    assert late[-1][1] == many[-1].received_minus_scheduled_ns


def test_what_the_consumer_told_is_read_whole_lines_alone(tmp_path: Path) -> None:
    write_evidence(tmp_path, LATE, seed=3)
    recv = tmp_path / "recv.ndjson"
    whole = recv_progress(recv, (12,))
    assert [each.streams[12][1] for each in whole] == [3] * len(whole)
    ready, *rest = recv.read_text().splitlines()
    recv.write_text("\n".join([ready, *rest[:2], rest[2][:40]]))
    assert recv_progress(recv, (12,)) == whole[:2]
    recv.write_text("\n".join(['{"type": "ready"}', *rest, ""]))
    assert recv_progress(recv, (12,)) == ()
    broken = json.loads(rest[0]) | {"streams": [[12, 1, 1]]}
    recv.write_text("\n".join([ready, json.dumps(broken), ""]))
    with pytest.raises(RecordError, match="five integers"):
        recv_progress(recv, (12,))


def test_only_streams_that_did_not_pass_are_drawn_over_time(tmp_path: Path) -> None:
    for disturbance, drawn in ((LATE, True), (Disturbance(), False)):
        run = make_run(tmp_path / str(drawn), disturbance)
        records = run.records().measurements
        section = gather_latency(TargetData(run.path, records, records, "linux-rt", ("linux-rt",)))
        assert section is not None
        (instrument,) = cast("list[dict[str, str]]", section.figures[0]["instruments"])
        assert bool(instrument["over_time"]) is bool(instrument["worst"]) is drawn
        if drawn:
            assert "DAQ-033, stream 33: inconclusive" in instrument["over_time"]
            assert "DAQ-012, stream 12: fail" in instrument["over_time"]
            assert "stream 11:" not in instrument["over_time"]
            assert "stall, its length" in instrument["over_time"]
