# SPDX-License-Identifier: Apache-2.0
"""Points of InfluxDB's line protocol (the syntax is the same for 1.x, 2.x and 3.x).

    measurement,tag=value field=1.5,count=3i,name="text" 1795000000000000000

A point that this module writes is read by each of those servers as it was meant. What they would drop without
a word (a field named `time`) or read differently (a backslash before a delimiter) is refused here.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from dashboards.errors import PointError

Field = float | int | bool | str

INT64_MIN, INT64_MAX = -(1 << 63), (1 << 63) - 1
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_RESERVED = frozenset({"time", "_time", "_field", "_measurement"})
_IN_NAME = str.maketrans({character: f"\\{character}" for character in ", "})
_IN_TAG = _IN_NAME | str.maketrans({"=": "\\="})
_UNSAFE = re.compile(r"[\x00-\x1f\x7f\\]")


@dataclass(frozen=True, slots=True)
class Point:
    """One point of a series.

    Attributes:
        measurement: Name of the measurement.
        tags: What makes the series, with `measurement`; indexed by the server.
        fields: Values. A field must never change its type: a server refuses an integer where it has floats.
        time_ns: Nanoseconds since 1970-01-01, UTC, as InfluxDB counts (without leap seconds).
    """

    measurement: str
    tags: Mapping[str, str]
    fields: Mapping[str, Field]
    time_ns: int

    def __post_init__(self) -> None:
        """Refuse a point that a server would reject, drop or misread; raises PointError."""
        for kind, name in (("measurement", self.measurement), *(("tag", n) for n in self.tags)):
            _check_name(kind, name)
        for name, value in self.tags.items():
            if not value or _UNSAFE.search(value):
                raise PointError(
                    f"{self.measurement}: tag {name}: {value!r} is empty, or has a backslash or control"
                )
        if not self.fields:
            raise PointError(f"{self.measurement}: no field")
        for name, value in self.fields.items():
            _check_name("field", name)
            self._check_field(name, value)
        if not INT64_MIN + 2 <= self.time_ns < INT64_MAX:  # InfluxDB keeps the outermost ones for itself
            raise PointError(f"{self.measurement}: time {self.time_ns} ns is outside int64")

    def _check_field(self, name: str, value: Field) -> None:
        where = f"{self.measurement}: field {name}"
        if isinstance(value, float) and not math.isfinite(value):
            raise PointError(f"{where}: {value} is not finite; leave the field out")
        if isinstance(value, int) and not INT64_MIN <= value <= INT64_MAX:
            raise PointError(f"{where}: {value} is outside int64")
        if isinstance(value, str) and ("\n" in value or "\0" in value):
            raise PointError(f"{where}: a line break in {value[:40]!r}")

    @property
    def series(self) -> str:
        """Return what names the point's series: measurement and tags, tags sorted, as in the line."""
        tags = "".join(f",{name}={self.tags[name].translate(_IN_TAG)}" for name in sorted(self.tags))
        return self.measurement.translate(_IN_NAME) + tags

    def line(self) -> str:
        """Return the point as a line without its end."""
        return line_of(self.series, self.fields, self.time_ns)


def line_of(series: str, fields: Mapping[str, Field], time_ns: int) -> str:
    """Return the line of a point whose series is written already, without its end."""
    written = ",".join(f"{name}={_field(fields[name])}" for name in sorted(fields))
    return f"{series} {written} {time_ns}"


def tag_text(text: str, length_max: int = 64) -> str:
    """Return a text that is fit for a tag: no control characters, no backslash, of bounded length.

    A longer one ends in digits of its hash, so that two of them stay two.
    """
    cleaned = _UNSAFE.sub("_", text.strip())
    if len(cleaned) <= length_max:
        return cleaned
    return f"{cleaned[: length_max - 9]}~{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def field_text(text: str, length_max: int = 1000) -> str:
    """Return a text that is fit for a string field: on one line, of bounded length."""
    cleaned = " ".join(text.replace("\0", " ").split())
    return cleaned if len(cleaned) <= length_max else cleaned[: length_max - 1] + "…"


def _check_name(kind: str, name: str) -> None:
    if not _NAME.fullmatch(name) or name in _RESERVED:
        raise PointError(
            f"{kind} {name!r}: letters, digits and '_', a letter first, and none of the reserved names"
        )


def _field(value: Field) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return f"{value}i"
    if isinstance(value, float):
        return repr(value)
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
