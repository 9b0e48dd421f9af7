# SPDX-License-Identifier: Apache-2.0
"""A timeline as a trace of Perfetto: a process a node, a thread a lane, arrows from cause to effect, U.

Source: protos/perfetto/trace/ of Perfetto 58 (trace_packet.proto, track_event/*.proto, clock_snapshot.proto)
and docs/reference/perfetto-manifest.md. Events that last are slices, the others instants; one that begins in
another one and ends behind it is no slice of Perfetto's: it is an instant, annotated with `duration_ns`.
Times of TAI are those of a clock of the trace's own, which one snapshot brings to REALTIME. Interval, U, tag
and columns of an event are its annotations.

    timeline.pftrace     all nodes
    nodes.tar            a trace a node, and perfetto_manifest.json, which names the machines
"""

from __future__ import annotations

import io
import json
import re
import tarfile
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from reports.timeline.clock_record import NS_PER_S, Times
from reports.timeline.placed_events import Timeline, Track, merged_order
from reports.timeline.protobuf_rows import Rows, message

TRACE, NODES, MANIFEST = "timeline.pftrace", "nodes.tar", "perfetto_manifest.json"
CHUNK = 1 << 16
REALTIME, MONOTONIC = 1, 3
TAI = 128
"""Clocks of a trace's own, known in all of it, are called by numbers from here on."""

# Numbers of fields, by message.
_TRACE_PACKET = 1
_CLOCK_SNAPSHOT, _TIMESTAMP, _SEQUENCE, _TRACK_EVENT, _INTERNED, _FLAGS = 6, 8, 10, 11, 12, 13
_CLOCK_ID, _DEFAULTS, _DESCRIPTOR = 58, 59, 60
_TYPE, _NAME_IID, _TRACK_UUID, _COUNTER, _ANNOTATION, _FLOW, _FLOW_END = 9, 10, 11, 30, 4, 47, 48
_ANNOTATION_NAME, _INT, _DOUBLE, _TEXT_IID = 1, 4, 5, 17
_EVENT_NAMES, _ANNOTATION_NAMES, _TEXTS = 2, 3, 29
_BEGIN, _END, _INSTANT, _COUNTED = 1, 2, 3, 4
_CLEARED, _NEEDS = 1, 2
_ANNOTATED = ("earliest_ns", "latest_ns", "u_ns", "tag", "duration_ns")


@dataclass(frozen=True, slots=True, eq=False)
class _Packets:
    """Of one track what its packets need, once each: slices have two."""

    track: Track
    uuid: int
    is_slice: NDArray[np.bool_]
    text_iids: dict[str, Times]
    flows_out: tuple[Times, Times]
    flows_in: tuple[Times, Times]


def write_perfetto(timeline: Timeline, folder: Path) -> None:
    """Write a timeline as one trace, and beside it the traces of its nodes.

    Args:
        timeline: What is written.
        folder: It is made; it must not exist.

    Raises:
        RecordError: There is no event.
        OSError: It cannot be written.
    """
    timeline.require_events()
    folder.mkdir(parents=True)
    with (folder / TRACE).open("xb") as file:
        _write_trace(timeline, file)
    names = _file_names(tuple(dict.fromkeys(each.node for each in timeline.tracks if len(each))))
    with tarfile.open(folder / NODES, "x") as archive:
        manifest = _manifest(timeline, names)
        _add(archive, MANIFEST, io.BytesIO(manifest), len(manifest))
        for node, name in names.items():
            with tempfile.TemporaryFile(dir=folder) as file:
                _write_trace(timeline.of_node(node), file)
                size_bytes = file.tell()
                file.seek(0)
                _add(archive, name, file, size_bytes)


def _add(archive: tarfile.TarFile, name: str, file: BinaryIO | io.BytesIO, size_bytes: int) -> None:
    about = tarfile.TarInfo(name)
    about.size, about.mode = size_bytes, 0o644
    archive.addfile(about, file)


def _file_names(nodes: tuple[str, ...]) -> dict[str, str]:
    """Return a file for each node; Perfetto passes over names that begin with a dot."""
    return {
        node: f"{number:02d}-{re.sub(r'[^A-Za-z0-9-]+', '-', node)}.pftrace"
        for number, node in enumerate(nodes, start=1)
    }


def _manifest(timeline: Timeline, names: dict[str, str]) -> bytes:
    files = [{"path": name, "machine": {"name": node}} for node, name in names.items()]
    clock = "REALTIME" if timeline.axis == "tai" else "MONOTONIC"
    about = {"benchwright.place": timeline.place, "benchwright.axis_by": timeline.by}
    inner = {"version": 1, "trace_time": {"clock": clock}, "files": files, "attributes": about}
    return json.dumps({"perfetto_manifest": inner}, indent=1).encode()


def _write_trace(timeline: Timeline, file: BinaryIO) -> None:
    """Write the packets of a trace: clock, tracks, then the events, lane by lane."""
    file.write(_packet((_CLOCK_SNAPSHOT, _snapshot(timeline))))
    nodes = {node: number for number, node in enumerate(timeline.nodes, start=1)}
    counters = {node: len(nodes) + number for node, number in nodes.items()}
    first = 2 * len(nodes) + 1
    for node, number in nodes.items():
        process = message((1, number), (6, node))
        file.write(_packet((_DESCRIPTOR, message((1, number), (3, process)))))
        counter = message((1, counters[node]), (5, number), (2, f"U of {node}"), (8, message((3, 1))))
        file.write(_packet((_DESCRIPTOR, counter)))
    for uuid, track in enumerate(timeline.tracks, start=first):
        thread = message((1, nodes[track.node]), (2, uuid), (5, track.lane))
        about = message((1, uuid), (5, nodes[track.node]), (4, thread))
        file.write(_packet((_DESCRIPTOR, about)))
    for number, track in enumerate(timeline.tracks):
        _write_track(timeline, number, track, first + number, file)
    for node, uuid in counters.items():
        _write_counter(timeline, node, uuid, file)


def _packet(*fields: tuple[int, int | bytes]) -> bytes:
    return message((_TRACE_PACKET, message(*fields)))


def _snapshot(timeline: Timeline) -> bytes:
    """Return what brings the clock of the axis to one that Perfetto knows."""
    start_ns = min(int(each.tai_ns[0]) for each in timeline.tracks if len(each))
    if timeline.axis == "monotonic":
        return message((1, message((1, MONOTONIC), (2, start_ns))), (2, MONOTONIC))
    utc_ns = max(0, start_ns - timeline.tai_utc_s * NS_PER_S)
    tai_ns = utc_ns + timeline.tai_utc_s * NS_PER_S
    both = [message((1, TAI), (2, tai_ns)), message((1, REALTIME), (2, utc_ns))]
    return message((1, both), (2, REALTIME))


def _clock_id(timeline: Timeline) -> int:
    return TAI if timeline.axis == "tai" else MONOTONIC


def _opening(timeline: Timeline, uuid: int, interned: bytes) -> bytes:
    """Return the first packet of a track, whose sequence is called as it is: its clock, and its names."""
    defaults = message((_CLOCK_ID, _clock_id(timeline)), (11, message((_TRACK_UUID, uuid))))
    return _packet((_SEQUENCE, uuid), (_FLAGS, _CLEARED), (_DEFAULTS, defaults), (_INTERNED, interned))


def _write_track(timeline: Timeline, number: int, track: Track, uuid: int, file: BinaryIO) -> None:
    if not len(track):
        return
    text_iids: dict[str, Times] = {}
    texts: list[bytes] = []
    for key, column in track.columns.items():
        if column.dtype.kind == "S":
            own, place = np.unique(column, return_inverse=True)
            text_iids[key] = place.astype(np.int64) + 1 + len(texts)
            texts += own.tolist()
    interned = message(
        (_EVENT_NAMES, _named([name.encode() for name in track.names])),
        (_ANNOTATION_NAMES, _named([key.encode() for key in (*_ANNOTATED, *track.columns)])),
        (_TEXTS, _named(texts)),
    )
    file.write(_opening(timeline, uuid, interned))
    flows = timeline.flows
    ids = np.arange(1, len(flows) + 1)
    own_out, own_in = flows.from_track == number, flows.to_track == number
    is_slice, order = _slices(track)
    packets = _Packets(
        track,
        uuid,
        is_slice,
        text_iids,
        _by_event(flows.from_index[own_out], ids[own_out]),
        _by_event(flows.to_index[own_in], ids[own_in]),
    )
    file.writelines(_encoded(packets, order[begin : begin + CHUNK]) for begin in range(0, order.size, CHUNK))


def _slices(track: Track) -> tuple[NDArray[np.bool_], Times]:
    """Return which events are slices, and the order of all packets: events, and n more than that their ends.

    A slice ends before another one begins at that time, and within the one that began before it.
    """
    n = len(track)
    is_slice = track.duration_ns > 0
    while True:
        ends = np.flatnonzero(is_slice)
        if not ends.size:
            return is_slice, np.arange(n)
        events = np.concatenate([np.arange(n), ends])
        is_end = np.arange(events.size) >= n
        times = track.tai_ns[events] + np.where(is_end, track.duration_ns[events], 0)
        within = np.where(is_end, -events, events)
        length_ns = np.where(is_slice, track.duration_ns, 0)[events]
        order = np.lexsort((within, np.where(is_end, 0, -length_ns), ~is_end, times))
        order = order[is_slice[events[order]] | is_end[order]]
        depth = np.cumsum(np.where(is_end[order], -1, 1)) + is_end[order]
        by_depth = events[order][np.argsort(depth, kind="stable")].reshape(-1, 2)
        crossed = by_depth[by_depth[:, 0] != by_depth[:, 1]]
        if not crossed.size:
            order = np.lexsort((within, np.where(is_end, 0, -length_ns), ~is_end, times))
            return is_slice, np.where(is_end, n + events, events)[order]
        is_slice[crossed[:, 0]] = False  # of two that cross, the one that another event's end has closed


def _named(names: Sequence[bytes]) -> list[bytes]:
    return [message((1, number), (2, name)) for number, name in enumerate(names, start=1)]


def _by_event(events: Times, ids: Times) -> tuple[Times, Times]:
    """Return flows in the order of their events."""
    order = np.argsort(events, kind="stable")
    return events[order], ids[order]


def _encoded(packets: _Packets, order: Times) -> bytes:
    """Return packets of a track, by their numbers as of `_slices`."""
    track, n = packets.track, len(packets.track)
    is_end = order >= n
    events, is_first = order - n * is_end, ~is_end
    lasts = packets.is_slice[events]
    times = track.tai_ns[events] + is_end * track.duration_ns[events]
    own = Rows(order.size).varint(_TYPE, np.where(is_end, _END, np.where(lasts, _BEGIN, _INSTANT)))
    own.varint(_NAME_IID, track.name[events] + 1, is_first)
    columns = track.all_columns
    for iid, key in enumerate((*_ANNOTATED, *track.columns), start=1):
        inner, column = Rows(order.size).varint(_ANNOTATION_NAME, iid), columns[key]
        if key in packets.text_iids:
            inner.varint(_TEXT_IID, packets.text_iids[key][events])
        elif column.dtype == np.float64:
            inner.fixed64(_DOUBLE, column[events])
        else:
            inner.varint(_INT, column[events])
        where = ~lasts & (column[events] > 0) if key == "duration_ns" else is_first
        own.message(_ANNOTATION, inner, where)
    for field, (at, ids) in ((_FLOW, packets.flows_out), (_FLOW_END, packets.flows_in)):
        begin, end = np.searchsorted(at, events), np.searchsorted(at, events, "right")
        for turn in range(int((end - begin).max(initial=0))):
            has = is_first & (begin + turn < end)
            own.fixed64(field, ids[np.minimum(begin + turn, ids.size - 1)], has)
    return _all_packets(packets.uuid, times, own)


def _all_packets(uuid: int, times: Times, events: Rows) -> bytes:
    packet = Rows(events.n).varint(_TIMESTAMP, times).varint(_SEQUENCE, uuid).varint(_FLAGS, _NEEDS)
    return Rows(events.n).message(_TRACE_PACKET, packet.message(_TRACK_EVENT, events)).encoded()


def _write_counter(timeline: Timeline, node: str, uuid: int, file: BinaryIO) -> None:
    """Write U of a node's events wherever it changes, in the order of their times."""
    tracks = [each for each in timeline.tracks if each.node == node and len(each)]
    if not tracks:
        return
    file.write(_opening(timeline, uuid, b""))
    order = merged_order(tracks)
    times = np.concatenate([each.tai_ns for each in tracks])[order]
    u_ns = np.concatenate([each.u_ns for each in tracks])[order]
    changed = np.flatnonzero(np.concatenate([[True], np.diff(u_ns) != 0]))
    for begin in range(0, changed.size, CHUNK):
        part = changed[begin : begin + CHUNK]
        events = Rows(part.size).varint(_TYPE, _COUNTED).varint(_COUNTER, u_ns[part])
        file.write(_all_packets(uuid, times[part], events))
