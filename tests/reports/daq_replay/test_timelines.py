# SPDX-License-Identifier: Apache-2.0
"""Messages of a replay on a timeline: each stamp in its place, with U of the clocks between."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from reports.daq_replay.emulation import TARGET_WITNESS
from reports.daq_replay.evidence import load_replay
from reports.daq_replay.timelines import READ, SENT, timeline_of, timelines_of
from reports.daq_replay.verdict import ReplayResults, stream_uncertainty
from reports.timeline.placed_events import Track
from tests.reports.sample_run import Disturbance, write_evidence

MS = 1_000_000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the evidence of a replay in which two streams were late."""
    found = tmp_path / "evidence" / "daq_replay" / "linux-rt" / "attempt-1"
    found.mkdir(parents=True)
    write_evidence(found, Disturbance(path_delay_ns={33: 15 * MS, 10: 120 * MS}), seed=3)
    return found


def _replay(folder: Path) -> ReplayResults:
    return load_replay(folder).replay()


def _events(track: Track) -> set[tuple[int, str, int]]:
    rows: list[tuple[int, int, int]] = np.stack([track.tai_ns, track.name, track.tag], 1).tolist()
    return {(time_ns, track.names[name], tag) for time_ns, name, tag in rows}


def test_every_stamp_of_every_message_has_its_place(folder: Path) -> None:
    replay = _replay(folder)
    timeline = timeline_of("x", replay)
    tracks = {(each.node, each.lane): each for each in timeline.tracks}
    for stream in {each.stream for each in replay.misses}:
        own = [each for each in replay.misses if each.stream == stream]
        sent, read = set[tuple[int, str, int]](), set[tuple[int, str, int]]()
        for each in own:
            at_ns, number = each.received_local_tai_ns, each.sequence
            sent.add((at_ns - each.received_minus_scheduled_ns, SENT[0], number))
            assert each.received_minus_sent_ns is not None
            assert each.kernel_stamp_local_tai_ns is not None
            sent.add((at_ns - each.received_minus_sent_ns, SENT[1], number))
            read |= {(each.kernel_stamp_local_tai_ns, READ[0], number), (at_ns, READ[1], number)}
        producer = replay.recv.stream(stream).producer
        assert _events(tracks[f"producer {producer}", f"stream {stream}"]) == sent
        assert _events(tracks["target", f"stream {stream}"]) == read
    assert len(timeline) == 4 * len(replay.misses) > 0
    assert not timeline.left_out


def test_u_is_the_streams_at_the_producer_and_none_at_the_target_whose_clock_it_is(folder: Path) -> None:
    replay = _replay(folder)
    for track in timeline_of("x", replay).tracks:
        u_ns = 0
        if track.node != "target":
            u_ns = round(
                stream_uncertainty(replay.recv.stream(int(track.lane.split()[1])), replay)[0].expanded
            )
            assert u_ns > 84_000
        assert set(track.u_ns.tolist()) == {u_ns}
        assert (track.tai_ns - track.earliest_ns == u_ns).all()
        assert (track.latest_ns - track.tai_ns == u_ns).all()


def test_flows_lead_from_sending_to_the_kernel_and_to_the_read_of_the_same_message(folder: Path) -> None:
    timeline = timeline_of("x", _replay(folder))
    steps: dict[tuple[str, int], set[tuple[str, str]]] = {}
    flows = timeline.flows
    for a, b, c, d in zip(flows.from_track, flows.from_index, flows.to_track, flows.to_index, strict=True):
        cause, effect = timeline.tracks[int(a)], timeline.tracks[int(c)]
        assert cause.lane == effect.lane
        assert cause.tag[b] == effect.tag[d]
        step = cause.names[int(cause.name[b])], effect.names[int(effect.name[d])]
        steps.setdefault((cause.lane, int(cause.tag[b])), set()).add(step)
    assert len(steps) == len(timeline) / 4
    assert set(map(frozenset, steps.values())) == {frozenset({(SENT[1], READ[0]), READ})}


def test_a_message_without_a_stamp_has_an_arrow_past_it(folder: Path) -> None:
    replay = _replay(folder)
    first, second, *_ = replay.misses
    bare = replace(first, kernel_stamp_local_tai_ns=None), replace(second, received_minus_sent_ns=None)
    for miss, events, expected in ((bare[0], 3, [(SENT[1], READ[1])]), (bare[1], 3, [READ])):
        timeline = timeline_of("x", replace(replay, misses=(miss,)))
        assert len(timeline) == events
        flows, tracks = timeline.flows, timeline.tracks
        ends = np.stack([flows.from_track, flows.from_index, flows.to_track, flows.to_index], 1)
        rows: list[list[int]] = ends.tolist()
        names = [(_name(tracks[a], b), _name(tracks[c], d)) for a, b, c, d in rows]
        assert names == expected


def _name(track: Track, number: int) -> str:
    return track.names[int(track.name[number])]


@pytest.mark.parametrize("how", ["no line", "stepped"])
def test_events_of_a_clock_that_is_not_known_are_left_out_and_counted(folder: Path, how: str) -> None:
    if how == "stepped":
        write_evidence(folder, Disturbance(path_delay_ns={33: 15 * MS}, clock_step_ns=40 * MS), seed=3)
    replay = _replay(folder)
    if how == "no line":
        replay = replace(replay, clock_of_producer={})
    timeline = timeline_of("x", replay)
    assert {each.node for each in timeline.tracks} == {"target"}
    assert len(timeline) == sum(timeline.left_out.values()) == 2 * len(replay.misses) > 0
    said = "clock error unknown: no line for the clock of producer" if how == "no line" else "broke its line"
    assert all(said in each for each in timeline.left_out)


def test_the_targets_own_witness_is_a_lane_a_processor(folder: Path, tmp_path: Path) -> None:
    answer = json.loads((folder / "witness.ndjson").read_text().splitlines()[-1])
    begin = _replay(folder).misses[0].received_local_tai_ns
    answer["windows"] = [[begin, begin + 4 * MS, 1], [begin - 900 * MS, begin - 800 * MS, 0]]
    (folder / TARGET_WITNESS).write_text(json.dumps(answer) + "\n")
    [timeline], problems = timelines_of(tmp_path)
    assert problems == []
    away = {
        each.lane: (each.tai_ns.tolist(), each.duration_ns.tolist())
        for each in timeline.tracks
        if each.lane.startswith("CPU")
    }
    assert away == {"CPU 0": ([begin - 900 * MS], [100 * MS]), "CPU 1": ([begin], [4 * MS])}


def test_a_replay_that_cannot_be_read_is_a_problem_and_no_timeline(folder: Path, tmp_path: Path) -> None:
    (folder / "recv.ndjson").write_text("{\n")
    timelines, [problem] = timelines_of(tmp_path)
    assert timelines == []
    assert problem.startswith("daq_replay/linux-rt/attempt-1: recv.ndjson")
