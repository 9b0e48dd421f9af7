# SPDX-License-Identifier: Apache-2.0
"""What is written as Parquet is read back whole by pyarrow."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reports.errors import RecordError
from reports.timeline import export_parquet
from reports.timeline.export_parquet import EVENTS, FLOWS, write_parquet
from reports.timeline.placed_events import Flows, merged_order
from tests.reports.timeline.placed_sample import drawn_timeline

parquet: Any = import_module("pyarrow.parquet")


@pytest.mark.parametrize("chunk", [1 << 20, 11])
def test_every_event_is_a_row_and_every_flow_leads_to_its_own(
    tmp_path: Path, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export_parquet, "CHUNK", chunk)
    timeline = drawn_timeline()
    expected: list[dict[str, Any]] = []
    for track in timeline.tracks:
        for k in range(len(track)):
            row: dict[str, Any] = {"event": None, "ratio": None, "comm": None}
            row |= {key: column[k].item() for key, column in track.all_columns.items()}
            expected.append(row | {"node": track.node, "lane": track.lane, "name": track.names[row["name"]]})
    order = merged_order(timeline.tracks).tolist()
    write_parquet(timeline, tmp_path / "out")
    events = parquet.read_table(tmp_path / "out" / EVENTS)
    rows = events.to_pylist()
    assert rows == [expected[number] for number in order]
    assert events.schema.metadata[b"axis"] == b"tai"
    flows = parquet.read_table(tmp_path / "out" / FLOWS).to_pylist()
    own, times = timeline.flows, np.concatenate([each.tai_ns for each in timeline.tracks])
    causes = times[timeline.offsets[own.from_track] + own.from_index].tolist()
    effects = times[timeline.offsets[own.to_track] + own.to_index].tolist()
    assert [rows[each["cause"]]["tai_ns"] for each in flows] == causes
    assert [rows[each["effect"]]["tai_ns"] for each in flows] == effects


def test_a_column_of_two_types_and_a_timeline_of_no_event_are_refused(tmp_path: Path) -> None:
    timeline = drawn_timeline()
    first = replace(timeline.tracks[0], columns={"ratio": np.zeros(300, np.int64)})
    with pytest.raises(RecordError, match="target, CPU 0: ratio: of another type"):
        write_parquet(replace(timeline, tracks=(first, *timeline.tracks[1:])), tmp_path / "out")
    with pytest.raises(RecordError, match="no event has a place"):
        write_parquet(replace(timeline, tracks=timeline.tracks[3:], flows=Flows()), tmp_path / "out")
    assert not list(tmp_path.iterdir())
