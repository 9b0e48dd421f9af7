# SPDX-License-Identifier: Apache-2.0
"""The fields of a run's points as the store keeps them: a column a line, compressed.

    series [3,4]
    time_ns [1795000000000000000,1795000000000000000]
    field:n [20,7]
    field:value_ns [1.5,null]

Between name and JSON is a tab. A float stays a float and an integer an integer; null: the point has no such
field. To read one field, one line is parsed.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast

from dashboards.errors import StoreError
from dashboards.line_protocol import Field

Identity = tuple[int, int]
"""A point in the store: id of its series, and its time in ns since 1970 UTC."""
_FIELD = "field:"
_JSON = json.JSONEncoder(separators=(",", ":"))
_LEVEL = 3
"""Of compression: 6 makes a run a tenth smaller, and takes twice the time."""
_LENGTH_MAX = 1 << 28
"""Bytes of one run's fields; more is no run, but a damaged store."""


class Content:
    """Fields of the points of a run: a column a field, a place in each column a point."""

    def __init__(self, path: Path, lines: dict[str, str]) -> None:
        """Take the lines by their first words; raises StoreError where they are damaged."""
        self._path, self._lines = path, lines
        self._columns: dict[str, list[Field | None]] = {}
        series, times_ns = (self._list(name) for name in ("series", "time_ns"))
        if len(series) != len(times_ns):
            raise StoreError(f"{path}: damaged: {len(series)} series at {len(times_ns)} times in one run")
        self.places: dict[Identity, int] = {
            identity: place for place, identity in enumerate(zip(series, times_ns, strict=True))
        }
        """The place of each point in the columns."""

    def column(self, field: str) -> list[Field | None]:
        """Return what each point says in a field; raises StoreError where it is damaged."""
        found: list[Any] | None = self._columns.get(field)
        if found is None:
            name = f"{_FIELD}{field}"
            found = [None] * len(self.places)
            if name in self._lines:
                found = self._list(name)
            if len(found) != len(self.places):
                raise StoreError(f"{self._path}: damaged: {field}: {len(found)} of {len(self.places)} points")
            self._columns[field] = found
        return found

    def points(self) -> dict[Identity, dict[str, Field]]:
        """Return the fields of every point; raises StoreError where they are damaged."""
        fields = [name.removeprefix(_FIELD) for name in self._lines if name.startswith(_FIELD)]
        columns = [(field, self.column(field)) for field in fields]
        return {
            identity: {field: value for field, column in columns if (value := column[place]) is not None}
            for identity, place in self.places.items()
        }

    def _list(self, name: str) -> list[Any]:
        try:
            found: object = json.loads(self._lines[name])
        except (ValueError, KeyError, RecursionError) as error:
            raise StoreError(f"{self._path}: damaged: {name} of a run: {error}") from error
        if not isinstance(found, list):
            raise StoreError(f"{self._path}: damaged: {name} of a run is no list")
        return cast("list[Any]", found)


def pack(points: Iterable[tuple[Identity, Mapping[str, Field]]]) -> bytes:
    """Return the fields of a run's points as the store keeps them."""
    listed = list(points)
    columns: dict[str, list[Field | None]] = {
        "series": [identity[0] for identity, _ in listed],
        "time_ns": [identity[1] for identity, _ in listed],
    }
    for name in sorted({name for _, fields in listed for name in fields}):
        columns[f"{_FIELD}{name}"] = [fields.get(name) for _, fields in listed]
    lines = [f"{name}\t{_JSON.encode(column)}" for name, column in columns.items()]
    return zlib.compress("\n".join(lines).encode(), _LEVEL)


def unpack(path: Path, content: bytes) -> Content:
    """Return the fields of a run's points; raises StoreError where they are damaged."""
    if not content:
        return Content(path, {"series": "[]", "time_ns": "[]"})
    try:
        reader = zlib.decompressobj()
        text = reader.decompress(content, _LENGTH_MAX)
        if not reader.eof:
            raise StoreError(f"{path}: damaged: the points of a run have no end")
        lines = (line.partition("\t") for line in text.decode().split("\n"))
        return Content(path, {name: column for name, _, column in lines})
    except (zlib.error, ValueError, TypeError) as error:
        raise StoreError(f"{path}: damaged: the points of a run: {error}") from error
