# SPDX-License-Identifier: Apache-2.0
"""A timeline as tables for pandas, polars, DuckDB and others; pyarrow writes them, where it is installed.

`events.parquet` has a row an event, by time; a column that its track does not have is null. `flows.parquet`
has a row a flow: `cause` and `effect`, numbers of rows in `events.parquet`.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reports.errors import MissingCapabilityError, RecordError
from reports.timeline.clock_record import Times
from reports.timeline.placed_events import Timeline, merged_order

EVENTS, FLOWS = "events.parquet", "flows.parquet"
CHUNK = 1 << 20
HOW_TO_GET = ".build/uv/bin/uv pip install --python .build/venv/bin/python pyarrow"


def require_pyarrow() -> None:
    """Raise MissingCapabilityError, which says how to get it, unless pyarrow is installed."""
    try:
        import_module("pyarrow.parquet")
    except ImportError as error:
        raise MissingCapabilityError(f"Parquet needs pyarrow ({error}): {HOW_TO_GET}") from error


def write_parquet(timeline: Timeline, folder: Path) -> None:
    """Write a timeline as tables.

    Args:
        timeline: What is written.
        folder: It is made; it must not exist.

    Raises:
        MissingCapabilityError: pyarrow is not installed.
        RecordError: There is no event, or a column has two types.
        OSError: It cannot be written.
    """
    require_pyarrow()
    arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    timeline.require_events()
    kinds = _kinds(timeline, arrow)
    about = {"place": timeline.place, "axis": timeline.axis, "axis_by": timeline.by}
    about["tai_utc_s"] = str(timeline.tai_utc_s)
    schema = arrow.schema(list(kinds.items()), metadata=about)
    folder.mkdir(parents=True)
    order = merged_order(timeline.tracks)
    with parquet.ParquetWriter(folder / EVENTS, schema) as writer:
        for begin in range(0, order.size, CHUNK):
            writer.write_table(_table(timeline, order[begin : begin + CHUNK], schema, arrow))
    row = np.empty(order.size, np.int64)
    row[order] = np.arange(order.size)
    flows, offsets = timeline.flows, timeline.offsets
    ends = {
        "cause": row[offsets[flows.from_track] + flows.from_index],
        "effect": row[offsets[flows.to_track] + flows.to_index],
    }
    parquet.write_table(arrow.table(ends), folder / FLOWS)


def _kinds(timeline: Timeline, arrow: Any) -> dict[str, Any]:
    """Return the types of all columns; raises RecordError: two tracks differ in one."""
    text = arrow.dictionary(arrow.int32(), arrow.string())
    kinds: dict[str, Any] = {"node": text, "lane": text}
    for track in timeline.tracks:
        for key, column in track.all_columns.items():
            if key in ("node", "lane"):
                raise RecordError(f"{timeline.place}: a column cannot be called {key!r}")
            kind = arrow.binary() if column.dtype.kind == "S" else arrow.from_numpy_dtype(column.dtype)
            kind = text if key == "name" else kind
            if kinds.setdefault(key, kind) != kind:
                raise RecordError(f"{track.node}, {track.lane}: {key}: of another type than in other tracks")
    return kinds


def _table(timeline: Timeline, order: Times, schema: Any, arrow: Any) -> Any:
    """Return a table of some events, numbers as of `merged_order`."""
    tracks, offsets = timeline.tracks, timeline.offsets
    track = np.searchsorted(offsets, order, side="right") - 1
    rows = {number: np.flatnonzero(track == number) for number in np.unique(track).tolist()}
    columns: list[Any] = []
    all_names = list(dict.fromkeys(name for each in tracks for name in each.names))
    number_of = {name: number for number, name in enumerate(all_names)}
    for each in schema:
        if each.name in ("node", "lane"):
            texts = [getattr(one, each.name) for one in tracks]
            columns.append(arrow.DictionaryArray.from_arrays(track.astype(np.int32), texts).cast(each.type))
            continue
        columns.append(_column(timeline, each, order, rows, number_of, arrow))
    return arrow.Table.from_arrays(columns, schema=schema)


def _column(
    timeline: Timeline,
    about: Any,
    order: Times,
    rows: dict[int, Times],
    number_of: dict[str, int],
    arrow: Any,
) -> Any:
    """Return one column; `rows` are by track those that its events have in the table."""
    parts: list[tuple[Times, NDArray[Any]]] = []
    for number, at in rows.items():
        track = timeline.tracks[number]
        column = track.all_columns.get(about.name)
        if column is None:
            continue
        part = column[order[at] - timeline.offsets[number]]
        if about.name == "name":
            part = np.array([number_of[name] for name in track.names], np.int64)[part]
        parts.append((at, part))
    if not parts:
        return arrow.nulls(order.size, about.type)
    kind: np.dtype[Any] = np.result_type(*[part.dtype for _, part in parts])
    values, missing = np.zeros(order.size, kind), np.ones(order.size, np.bool_)
    for at, part in parts:
        values[at], missing[at] = part, False
    if about.name == "name":
        return arrow.DictionaryArray.from_arrays(values.astype(np.int32), list(number_of))
    return arrow.array(values, type=about.type, mask=missing)
