# SPDX-License-Identifier: Apache-2.0
"""What is written in the Common Trace Format is what babeltrace2, which shares nothing with it, reads."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from reports.errors import RecordError
from reports.timeline import export_ctf
from reports.timeline.export_ctf import write_ctf
from reports.timeline.placed_events import Axis, Flows, Timeline, merged_order
from tests.reports.timeline.placed_sample import drawn_timeline

Row = tuple[int, str, str, str, dict[str, str]]
_LINE = re.compile(r"\[(\d{20})\] (.*): \{ node = (.*), lane = (.*) \}, \{ (.*) \}, \{ (.*) \}")


def read_back(folder: Path) -> list[Row]:
    """Return what babeltrace2 reads: time, name, node, lane, and the fields by name, in its order."""
    argv = ["babeltrace2", "--clock-cycles", "--no-delta", str(folder)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    found: list[Row] = []
    for line in done.stdout.splitlines():
        matched = _LINE.fullmatch(line)
        assert matched, line
        time_ns, name, node, lane, *fields = matched.groups()
        values = dict(each.split(" = ") for part in fields for each in part.split(", "))
        found.append((int(time_ns), name, node, lane, values))
    return found


def truth(timeline: Timeline) -> list[Row]:
    """Return what has to be read."""
    rows: list[Row] = []
    for track in timeline.tracks:
        for k, time_ns in enumerate(track.tai_ns.tolist()):
            keys = ("u_ns", "earliest_ns", "latest_ns", "duration_ns", "tag")
            values = {key: str(getattr(track, key)[k]) for key in keys}
            for key, column in track.columns.items():
                value = column[k].item()
                values[key] = f'"{value.decode() or " "}"' if isinstance(value, bytes) else f"{value:g}"
                if column.dtype.kind == "i":
                    values[key] = str(value)
            name = track.names[int(track.name[k])].replace("\n", "?")
            rows.append((time_ns, name, f'"{track.node}"', f'"{track.lane}"', values))
    order = merged_order(timeline.tracks)
    return [rows[number] for number in order.tolist()]


@pytest.mark.parametrize("axis", ["tai", "monotonic"])
def test_babeltrace2_reads_every_event_in_order_with_all_of_its_fields(tmp_path: Path, axis: Axis) -> None:
    timeline = drawn_timeline(axis=axis)
    expected = truth(timeline)
    write_ctf(timeline, tmp_path / "trace")
    found = read_back(tmp_path / "trace")
    assert len(found) == len(timeline) == 900
    assert found == expected


def test_several_packets_a_stream_are_one_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export_ctf, "PACKET_EVENTS", 7)
    timeline = drawn_timeline()
    write_ctf(timeline, tmp_path / "trace")
    assert read_back(tmp_path / "trace") == truth(timeline)


def test_names_of_fields_may_be_words_of_the_description_language(tmp_path: Path) -> None:
    timeline = drawn_timeline(20)
    track = timeline.tracks[0]
    words = ("string", "struct", "int", "_x", "timestamp", "id")
    timeline = replace(
        timeline, tracks=(replace(track, columns=dict.fromkeys(words, track.tag)),), flows=_NO_FLOWS
    )
    write_ctf(timeline, tmp_path / "trace")
    assert read_back(tmp_path / "trace") == truth(timeline)


def test_a_trace_says_its_clock(tmp_path: Path) -> None:
    write_ctf(drawn_timeline(), tmp_path / "trace")
    argv = ["babeltrace2", "--component=source.ctf.fs", f'--params=inputs=["{tmp_path / "trace"}"]']
    argv += ["--component=sink.text.details", "--params=with-data=no"]
    said = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    assert "Origin is Unix epoch: Yes" in said
    assert "Frequency (Hz): 1,000,000,000" in said
    assert "ns of TAI since 1970, by the target's clock" in said


def test_a_timeline_of_no_event_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    empty = replace(drawn_timeline(), tracks=drawn_timeline().tracks[3:], flows=_NO_FLOWS)
    with pytest.raises(RecordError, match=r"^daq_replay/linux-rt/attempt-1: no event has a place"):
        write_ctf(empty, tmp_path / "trace")
    assert not list(tmp_path.iterdir())


_NO_FLOWS = Flows()
