# SPDX-License-Identifier: Apache-2.0
"""What is written for Perfetto is what its own messages read: events, order, flows, U, clock and manifest."""

from __future__ import annotations

import io
import json
import tarfile
from collections import defaultdict
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from perfetto.protos.perfetto.trace import perfetto_trace_pb2

from reports.errors import RecordError
from reports.timeline import export_perfetto
from reports.timeline.export_perfetto import MANIFEST, NODES, TRACE, write_perfetto
from reports.timeline.placed_events import Axis, Flows, Timeline, Track
from tests.reports.timeline.placed_sample import drawn_timeline

proto: Any = perfetto_trace_pb2


@dataclass
class ReadTrace:
    """What a trace says, its names resolved.

    Attributes:
        events: By node and lane: type, time, name, annotations, flows begun and ended.
        counters: By node: time and value.
        snapshot: Clock and time.
    """

    events: dict[tuple[str, str], list[tuple[Any, ...]]] = field(default_factory=lambda: defaultdict(list))
    counters: dict[str, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))
    snapshot: dict[int, int] = field(default_factory=dict[int, int])
    clock_ids: set[int] = field(default_factory=set[int])


def read_back(data: bytes) -> ReadTrace:
    """Parse a trace by Perfetto's messages, as its documentation says they are to be understood."""
    trace, found = proto.Trace(), ReadTrace()
    trace.ParseFromString(data)
    processes: dict[int, str] = {}
    lanes: dict[int, tuple[str, str]] = {}
    counters: dict[int, str] = {}
    states: dict[int, dict[str, Any]] = {}
    for packet in trace.packet:
        if packet.HasField("clock_snapshot"):
            found.snapshot = {each.clock_id: each.timestamp for each in packet.clock_snapshot.clocks}
            continue
        if packet.HasField("track_descriptor"):
            about = packet.track_descriptor
            if about.HasField("process"):
                processes[about.process.pid] = about.process.process_name
            elif about.HasField("counter"):
                counters[about.uuid] = processes[about.parent_uuid]
                assert about.name == f"U of {processes[about.parent_uuid]}"
            else:
                lanes[about.uuid] = (processes[about.thread.pid], about.thread.thread_name)
            continue
        sequence = packet.trusted_packet_sequence_id
        if packet.sequence_flags & 1:
            interned = packet.interned_data
            states[sequence] = {
                "names": {each.iid: each.name for each in interned.event_names},
                "keys": {each.iid: each.name for each in interned.debug_annotation_names},
                "texts": {each.iid: each.str for each in interned.debug_annotation_string_values},
                "track": packet.trace_packet_defaults.track_event_defaults.track_uuid,
            }
            found.clock_ids.add(packet.trace_packet_defaults.timestamp_clock_id)
        if not packet.HasField("track_event"):
            continue
        assert packet.sequence_flags & 2
        state, event = states[sequence], packet.track_event
        if event.type == proto.TrackEvent.TYPE_COUNTER:
            found.counters[counters[state["track"]]].append((packet.timestamp, event.counter_value))
            continue
        annotations: dict[str, Any] = {}
        for each in event.debug_annotations:
            kind = each.WhichOneof("value")
            value = getattr(each, kind)
            annotations[state["keys"][each.name_iid]] = state["texts"][value] if "iid" in kind else value
        own = (event.type, packet.timestamp, state["names"].get(event.name_iid), annotations)
        found.events[lanes[state["track"]]].append(
            (*own, list(event.flow_ids), list(event.terminating_flow_ids))
        )
    return found


def truth(timeline: Timeline, number: int) -> list[tuple[Any, ...]]:
    """Return what has to be read of a track whose events do not overlap."""
    track, flows = timeline.tracks[number], timeline.flows
    rows: list[tuple[Any, ...]] = []
    for k, time_ns in enumerate(track.tai_ns.tolist()):
        keys = ("earliest_ns", "latest_ns", "u_ns", "tag", *track.columns)
        annotations = {key: track.all_columns[key][k].item() for key in keys}
        out = np.flatnonzero((flows.from_track == number) & (flows.from_index == k)) + 1
        into = np.flatnonzero((flows.to_track == number) & (flows.to_index == k)) + 1
        duration_ns = int(track.duration_ns[k])
        kind = proto.TrackEvent.TYPE_SLICE_BEGIN if duration_ns else proto.TrackEvent.TYPE_INSTANT
        rows.append(
            (kind, time_ns, track.names[int(track.name[k])], annotations, out.tolist(), into.tolist())
        )
        if duration_ns:
            rows.append((proto.TrackEvent.TYPE_SLICE_END, time_ns + duration_ns, None, {}, [], []))
    return rows


@pytest.mark.parametrize("chunk", [1 << 16, 7])
@pytest.mark.parametrize("axis", ["tai", "monotonic"])
def test_perfetto_reads_every_event_flow_and_u(
    tmp_path: Path, axis: Axis, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export_perfetto, "CHUNK", chunk)
    timeline = drawn_timeline(axis=axis)
    expected = [truth(timeline, number) for number in range(3)]
    write_perfetto(timeline, tmp_path / "out")
    found = read_back((tmp_path / "out" / TRACE).read_bytes())
    for track, rows in zip(timeline.tracks[:3], expected, strict=True):
        assert found.events.pop((track.node, track.lane)) == rows
    assert not found.events


def test_u_is_a_counter_of_each_node(tmp_path: Path) -> None:
    timeline = drawn_timeline()
    write_perfetto(timeline, tmp_path / "out")
    found = read_back((tmp_path / "out" / TRACE).read_bytes())
    assert set(found.counters) == {"producer 4", "target"}
    for node, values in found.counters.items():
        own = [each for each in timeline.tracks if each.node == node]
        every = sorted((t, u) for each in own for t, u in zip(each.tai_ns, each.u_ns, strict=True))
        changes = [pair for k, pair in enumerate(every) if k == 0 or pair[1] != every[k - 1][1]]
        assert values == changes


def test_the_clock_is_tai_that_a_snapshot_brings_to_utc(tmp_path: Path) -> None:
    write_perfetto(drawn_timeline(), tmp_path / "tai")
    found = read_back((tmp_path / "tai" / TRACE).read_bytes())
    [own] = found.clock_ids
    assert found.snapshot[own] - found.snapshot[proto.BUILTIN_CLOCK_REALTIME] == 37_000_000_000
    write_perfetto(drawn_timeline(axis="monotonic"), tmp_path / "monotonic")
    found = read_back((tmp_path / "monotonic" / TRACE).read_bytes())
    assert found.clock_ids == set(found.snapshot) == {proto.BUILTIN_CLOCK_MONOTONIC}


def test_each_node_has_a_trace_of_its_own_that_the_manifest_names(tmp_path: Path) -> None:
    timeline = drawn_timeline()
    write_perfetto(timeline, tmp_path / "out")
    whole = read_back((tmp_path / "out" / TRACE).read_bytes())
    with tarfile.open(tmp_path / "out" / NODES) as archive:
        files = {each.name: (archive.extractfile(each) or io.BytesIO()).read() for each in archive}
    manifest = json.loads(files.pop(MANIFEST))["perfetto_manifest"]
    assert manifest["version"] == 1
    assert {each["path"] for each in manifest["files"]} == set(files)
    assert not any(part.startswith(".") for name in files for part in name.split("/"))
    by_node = {each["machine"]["name"]: read_back(files[each["path"]]) for each in manifest["files"]}
    assert set(by_node) == {"producer 4", "target"}
    for node, found in by_node.items():
        assert found.counters == {node: whole.counters[node]}
        own = {key: [row[:4] for row in rows] for key, rows in whole.events.items() if key[0] == node}
        assert {key: [row[:4] for row in rows] for key, rows in found.events.items()} == own


def _lasting(times: list[int], durations: list[int]) -> Timeline:
    tai_ns = np.array(times)
    zero = np.zeros_like(tai_ns)
    track = Track(
        "n", "l", ("x",), tai_ns, tai_ns, tai_ns, zero, np.array(durations), zero, np.arange(tai_ns.size)
    )
    return Timeline("p", "monotonic", "a clock", (track,))


def _nested(data: bytes) -> tuple[dict[int, tuple[int, int]], dict[int, int]]:
    """Return slices as a stack gives them, (begin, end) by tag, and durations of instants by tag."""
    [rows] = read_back(data).events.values()
    stack: list[tuple[int, int]] = []
    slices: dict[int, tuple[int, int]] = {}
    instants: dict[int, int] = {}
    for kind, time_ns, _, about, _, _ in rows:
        if kind == proto.TrackEvent.TYPE_SLICE_BEGIN:
            stack.append((about["tag"], time_ns))
        elif kind == proto.TrackEvent.TYPE_SLICE_END:
            tag, begin_ns = stack.pop()
            slices[tag] = (begin_ns, time_ns)
        else:
            instants[about["tag"]] = about.get("duration_ns", 0)
    assert not stack
    return slices, instants


def test_slices_that_begin_or_end_together_lie_in_one_another(tmp_path: Path) -> None:
    write_perfetto(_lasting([10, 10, 10, 15, 20, 20], [5, 10, 0, 5, 7, 7]), tmp_path / "out")
    slices, instants = _nested((tmp_path / "out" / TRACE).read_bytes())
    assert slices == {0: (10, 15), 1: (10, 20), 3: (15, 20), 4: (20, 27), 5: (20, 27)}
    assert instants == {2: 0}


def test_of_events_that_cross_no_end_is_taken_for_another_ones(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    times, durations = np.sort(rng.integers(0, 1000, 200)), rng.integers(0, 90, 200)
    write_perfetto(_lasting(times.tolist(), durations.tolist()), tmp_path / "out")
    slices, instants = _nested((tmp_path / "out" / TRACE).read_bytes())
    assert len(slices) + len(instants) == 200
    assert slices
    for tag, (begin_ns, end_ns) in slices.items():
        assert (begin_ns, end_ns - begin_ns) == (times[tag], durations[tag])
    for tag, duration_ns in instants.items():
        assert duration_ns == durations[tag]


def test_a_timeline_of_no_event_is_refused(tmp_path: Path) -> None:
    empty = replace(drawn_timeline(), tracks=drawn_timeline().tracks[3:], flows=Flows())
    with pytest.raises(RecordError, match="no event has a place"):
        write_perfetto(empty, tmp_path / "out")
    assert not list(tmp_path.iterdir())
