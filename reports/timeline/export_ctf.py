# SPDX-License-Identifier: Apache-2.0
"""A timeline as a trace in the Common Trace Format, which babeltrace2 and Trace Compass read.

Source: CTF 1.8.3 (diamon.org/ctf/v1.8.3). A folder: `metadata` in TSDL, and one stream file a track. All
integers are little-endian and aligned to bytes, so that an event is one record of an array. An empty
text of an event is written as a blank: for one without characters babeltrace2 2.0.4 shows that of the event
before.
"""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from reports.timeline.placed_events import Timeline, Track

MAGIC = 0xC1FC1FC1
PACKET_EVENTS = 1 << 16
_HEADER = [("id", "<u4"), ("time_ns", "<u8")]
_CONTEXT = ("u_ns", "earliest_ns", "latest_ns")
_FIELDS = ("duration_ns", "tag")

Schema = tuple[tuple[str, str], ...]
"""Name and type (`<i8`, `<f8` or `S16`) of further columns: tracks of one schema are of one stream class."""


def write_ctf(timeline: Timeline, folder: Path) -> None:
    """Write a timeline as one trace.

    Args:
        timeline: What is written.
        folder: It is made; it must not exist.

    Raises:
        RecordError: There is no event.
        OSError: It cannot be written.
    """
    timeline.require_events()
    folder.mkdir(parents=True)
    classes: dict[Schema, dict[str, int]] = {}
    for track in timeline.tracks:
        ids = classes.setdefault(_schema(track), {})
        for name in track.names:
            ids.setdefault(name, len(ids))
    room = _room(timeline)
    own_id = uuid.uuid5(uuid.NAMESPACE_URL, f"benchwright:{timeline.place}")
    (folder / "metadata").write_text(_metadata(timeline, classes, room, own_id), encoding="utf-8")
    stream_ids = {schema: number for number, schema in enumerate(classes)}
    for number, track in enumerate(timeline.tracks):
        if not len(track):
            continue
        schema = _schema(track)
        head = np.zeros(1, _packet_head(room))
        head["magic"], head["stream_id"] = MAGIC, stream_ids[schema]
        head["uuid"] = np.frombuffer(own_id.bytes, np.uint8)
        head["node"], head["lane"] = track.node.encode(), track.lane.encode()
        with (folder / f"stream-{number}").open("xb") as file:
            _write_packets(file, head, track, classes[schema])


def _schema(track: Track) -> Schema:
    return tuple(
        (key, f"S{max(1, column.dtype.itemsize)}" if column.dtype.kind == "S" else f"<{column.dtype.kind}8")
        for key, column in track.columns.items()
    )


def _room(timeline: Timeline) -> tuple[int, int]:
    """Return the bytes of the longest names of nodes and of lanes, with the zero behind them."""
    nodes = [len(each.node.encode()) for each in timeline.tracks]
    return max(nodes) + 1, max(len(each.lane.encode()) for each in timeline.tracks) + 1


def _packet_head(room: tuple[int, int]) -> np.dtype[Any]:
    return np.dtype(
        [
            ("magic", "<u4"), ("uuid", "u1", 16), ("stream_id", "<u4"),
            ("content_size", "<u8"), ("packet_size", "<u8"),
            ("timestamp_begin", "<u8"), ("timestamp_end", "<u8"),
            ("node", f"S{room[0]}"), ("lane", f"S{room[1]}"),
        ]
    )  # fmt: skip


def _write_packets(file: BinaryIO, head: NDArray[Any], track: Track, ids: dict[str, int]) -> None:
    kinds = [*_HEADER, *((key, "<i8") for key in (*_CONTEXT, *_FIELDS))]
    kinds += [(f"column {number}", kind) for number, (_, kind) in enumerate(_schema(track))]
    id_of_name = np.array([ids[name] for name in track.names], np.uint32)
    for begin in range(0, len(track), PACKET_EVENTS):
        part = slice(begin, begin + PACKET_EVENTS)
        events = np.empty(len(track.tai_ns[part]), np.dtype(kinds))
        events["id"], events["time_ns"] = id_of_name[track.name[part]], track.tai_ns[part]
        for key in (*_CONTEXT, *_FIELDS):
            events[key] = getattr(track, key)[part]
        for number, column in enumerate(track.columns.values()):
            events[f"column {number}"] = column[part]
            if column.dtype.kind == "S":
                events[f"column {number}"][column[part] == b""] = b" "
        head["content_size"] = head["packet_size"] = 8 * (head.nbytes + events.nbytes)
        head["timestamp_begin"], head["timestamp_end"] = events["time_ns"][0], events["time_ns"][-1]
        file.write(head.tobytes())
        events.tofile(file)


def _metadata(
    timeline: Timeline, classes: dict[Schema, dict[str, int]], room: tuple[int, int], own_id: uuid.UUID
) -> str:
    """Return the description of the trace in TSDL; babeltrace2 takes off one `_` before a field's name."""
    is_tai = timeline.axis == "tai"
    about = "ns of TAI since 1970" if is_tai else "ns since the start of the machine"
    clock_id = uuid.uuid5(own_id, timeline.axis)
    env = f"place = {_quoted(timeline.place)}; axis = {_quoted(timeline.axis)};"
    env += f" axis_by = {_quoted(timeline.by)}; tai_utc_s = {timeline.tai_utc_s};"
    clock = f'name = {timeline.axis}; uuid = "{clock_id}"; freq = 1000000000; offset_s = 0; offset = 0;'
    clock += f" absolute = {'TRUE' if is_tai else 'FALSE'};"
    clock += f" description = {_quoted(f'{about}, by {timeline.by}')};"
    mapped = f"map = clock.{timeline.axis}.value;"
    names = f"text _node[{room[0]}]; text _lane[{room[1]}];"
    lines = [
        "/* CTF 1.8 */",
        "typealias integer { size = 32; align = 8; signed = false; } := u32;",
        "typealias integer { size = 64; align = 8; signed = false; } := u64;",
        "typealias integer { size = 64; align = 8; signed = true; } := i64;",
        "typealias integer { size = 8; align = 8; signed = false; } := u8;",
        "typealias integer { size = 8; align = 8; signed = false; encoding = UTF8; } := text;",
        "typealias floating_point { exp_dig = 11; mant_dig = 53; align = 8; } := f64;",
        f'trace {{ major = 1; minor = 8; uuid = "{own_id}"; byte_order = le;',
        "  packet.header := struct { u32 magic; u8 uuid[16]; u32 stream_id; }; };",
        f"env {{ {env} }};",
        f"clock {{ {clock} }};",
        f"typealias integer {{ size = 64; align = 8; signed = false; {mapped} }} := clock_ns;",
    ]
    for number, (schema, ids) in enumerate(classes.items()):
        context = " ".join(f"i64 _{key};" for key in _CONTEXT)
        lines += [
            f"stream {{ id = {number};",
            "  event.header := struct { u32 id; clock_ns timestamp; };",
            f"  event.context := struct {{ {context} }};",
            "  packet.context := struct { u64 content_size; u64 packet_size;",
            f"    clock_ns timestamp_begin; clock_ns timestamp_end; {names} }}; }};",
        ]
        fields = " ".join([*(f"i64 _{key};" for key in _FIELDS), *(_field(*each) for each in schema)])
        lines += [
            f"event {{ id = {own}; name = {_quoted(name)}; stream_id = {number};"
            f" fields := struct {{ {fields} }}; }};"
            for name, own in ids.items()
        ]
    return "\n".join(lines) + "\n"


def _field(name: str, kind: str) -> str:
    if kind.startswith("S"):
        return f"text _{name}[{kind[1:]}];"
    return f"{'f64' if kind == '<f8' else 'i64'} _{name};"


def _quoted(text: str) -> str:
    """Return text as a string of TSDL, which has the escapes of C."""
    shown = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(each if each.isprintable() else "?" for each in shown) + '"'
