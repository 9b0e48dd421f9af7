# SPDX-License-Identifier: Apache-2.0
"""Points in programs of Python, recorded by `bw-events record` like those of C.

    points = bwevents.Points(Path("points.toml"))
    points.event("analysis.block", tag=7)
    with points.interval("analysis.pass", tag=7):
        ...

    # points.toml
    program = "analysis"
    [[point]]
    group = "analysis"
    name = "block"
    kind = "event"              # data (decoder), interval, counter, histogram (low, high, buckets)
    about = "a block is begun; tag: its number"

While nothing records, and while a point is off, a call costs a look into a table. A thread, a child after
`os.fork()` and a signal handler may record. The library is libbwevents.so, which BWEVENTS_LIBRARY may name.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys
import tomllib
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from operator import index
from pathlib import Path
from typing import Any, Final, cast

KINDS: Final = {"event": 1, "data": 2, "interval": 3, "counter": 4, "histogram": 5}
DATA_MAX_BYTES: Final = 4096
_LEAST, _MOST = -(2**63), 2**63 - 1
_TEXTS: Final = {"group": 24, "name": 40, "decoder": 24, "about": 144}
_NUMBERS: Final = ("low", "high", "buckets")


class PointsError(ValueError):
    """A file of points is wrong: it names file, point and key."""


class _Description(ctypes.Structure):
    _fields_ = (
        ("group", ctypes.c_char * 24),
        ("name", ctypes.c_char * 40),
        ("decoder", ctypes.c_char * 24),
        ("about", ctypes.c_char * 144),
        ("kind", ctypes.c_uint32),
        ("buckets", ctypes.c_uint32),
        ("low", ctypes.c_int64),
        ("high", ctypes.c_int64),
    )


class _Point(ctypes.Structure):
    _fields_ = (
        ("on", ctypes.POINTER(ctypes.c_uint8)),
        ("description", ctypes.POINTER(_Description)),
        ("events", ctypes.c_void_p),
        ("number", ctypes.c_uint32),
        ("_rest", ctypes.c_char * (32 - 3 * ctypes.sizeof(ctypes.c_void_p) - 4)),
    )


def _library() -> ctypes.CDLL:
    name = os.environ.get("BWEVENTS_LIBRARY", "libbwevents.so")
    try:
        library = ctypes.CDLL(name)
    except OSError as error:
        raise OSError(
            f"{error}: points need the library libbwevents.so; BWEVENTS_LIBRARY may name its file"
        ) from error
    point = ctypes.POINTER(_Point)
    library.bw_events_open.argtypes = (
        ctypes.c_char_p,
        ctypes.POINTER(_Description),
        ctypes.c_size_t,
        point,
        ctypes.POINTER(ctypes.c_void_p),
    )
    library.bw_events_close.argtypes = (ctypes.c_void_p, point, ctypes.c_size_t)
    library.bw_events_close.restype = None
    library.bw_event_write.argtypes = (point, ctypes.c_int64, ctypes.c_char_p, ctypes.c_size_t)
    library.bw_event_write.restype = None
    library.bw_events_ticks.argtypes = (point,)
    library.bw_events_ticks.restype = ctypes.c_uint64
    library.bw_interval_write.argtypes = (point, ctypes.c_uint64, ctypes.c_int64)
    library.bw_interval_write.restype = None
    library.bw_value_add.argtypes = (point, ctypes.c_int64)
    for name in ("bw_value_add", "bw_value_log", "bw_value_reset"):
        getattr(library, name).restype = None
    library.bw_value_log.argtypes = library.bw_value_reset.argtypes = (point,)
    return library


def _number(value: int) -> int:
    number = index(value)
    if not _LEAST <= number <= _MOST:
        raise OverflowError(f"{number} has more than 64 bits; allowed: {_LEAST} to {_MOST}")
    return number


def _described(path: Path, number: int, table: object) -> _Description:
    """Read a point of a file; raises PointsError."""
    where = f"{path}: point {number}"
    if not isinstance(table, dict):
        raise PointsError(f"{where}: must be a table [[point]]")
    entry = cast("dict[str, Any]", table)
    kind = entry.get("kind")
    if kind not in KINDS:
        raise PointsError(f"{where}: kind: {kind!r}; allowed: {', '.join(KINDS)}")
    allowed = {"kind", "group", "name", "about"}
    allowed |= {"decoder"} if kind == "data" else set(_NUMBERS) if kind == "histogram" else set()
    unknown = sorted(entry.keys() - allowed)
    missing = sorted(allowed - entry.keys() - {"about"})
    if unknown or missing:
        what = f"unknown key {unknown[0]}" if unknown else f"{missing[0]} is missing"
        raise PointsError(f"{where}: {what}; keys of kind {kind}: {', '.join(sorted(allowed))}")
    texts: dict[str, bytes] = {}
    for key, room in _TEXTS.items():
        text = entry.get(key, "")
        if not isinstance(text, str) or len(text.encode()) >= room:
            raise PointsError(f"{where}: {key}: {text!r}; must be a text of at most {room - 1} bytes")
        texts[key] = text.encode()
    for key in _NUMBERS:
        value = entry.get(key, 0)
        if not isinstance(value, int) or isinstance(value, bool) or not -(2**63) <= value < 2**63:
            raise PointsError(f"{where}: {key}: {value!r}; must be an integer of 64 bits")
    if kind == "histogram" and not (0 < entry["buckets"] <= 500 and entry["low"] < entry["high"]):
        raise PointsError(f"{where}: low must be below high, buckets 1 to 500")
    numbers = (entry.get("buckets", 0), entry.get("low", 0), entry.get("high", 0))
    return _Description(
        texts["group"], texts["name"], texts["decoder"], texts["about"], KINDS[kind], *numbers
    )


def _read(path: Path) -> tuple[str, list[_Description]]:
    try:
        content: Mapping[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise PointsError(f"{path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise PointsError(f"{path}: {error}") from error
    unknown = sorted(content.keys() - {"program", "point"})
    if unknown:
        raise PointsError(f"{path}: unknown key {unknown[0]}; allowed: program, point")
    program, entries = content.get("program"), content.get("point")
    if not isinstance(program, str) or not program:
        raise PointsError(f"{path}: program: {program!r}; must be a name")
    if not isinstance(entries, list) or not entries:
        raise PointsError(f"{path}: point: there must be at least one [[point]]")
    tables = cast("list[object]", entries)
    return program, [_described(path, number, table) for number, table in enumerate(tables, 1)]


class Points:
    """The points of a file, joined to the recording that started this program, if there is one."""

    def __init__(self, path: Path) -> None:
        """Read the file and open. A recording that cannot be joined is said, and the points stay off.

        Raises:
            PointsError: The file is wrong, or names a point twice.
            OSError: There is no library; without one there are no points, also where nothing records.
        """
        program, described = _read(path)
        self._library = _library()
        count = len(described)
        self._descriptions = (_Description * count)(*described)
        self._points = (_Point * count)()
        self._events = ctypes.c_void_p()
        result = self._library.bw_events_open(
            program.encode(), self._descriptions, count, self._points, ctypes.byref(self._events)
        )
        if result == -errno.EINVAL:
            raise PointsError(f"{path}: a group has a name twice, or one has a space or one of * ? . + ,")
        if result and result != -errno.ENOENT:
            folder = os.environ.get("BW_EVENTS")
            print(
                f"{program}: BW_EVENTS={folder}: {os.strerror(-result)}: no event is recorded",
                file=sys.stderr,
            )
        self._by_name = {
            f"{each.group.decode()}.{each.name.decode()}": (self._points[at], each.kind)
            for at, each in enumerate(described)
        }

    def _point(self, full_name: str, *kinds: int) -> _Point:
        point, kind = self._by_name[full_name]
        if kind not in kinds:
            raise TypeError(f"{full_name} is of another kind")
        return point

    @property
    def records(self) -> bool:
        """Say whether a recording was joined."""
        return bool(self._events)

    def is_on(self, full_name: str) -> bool:
        """Say whether a stream wants a point now.

        Args:
            full_name: GROUP.NAME.

        Raises:
            KeyError: There is none.
        """
        return bool(self._by_name[full_name][0].on[0])

    def event(self, full_name: str, tag: int = 0, data: bytes | bytearray | memoryview | None = None) -> None:
        """Record an event, with up to 4096 bytes if it is a point of data; what is more is cut off.

        Args:
            full_name: GROUP.NAME.
            tag: A number of 64 bits with its sign.
            data: What its decoder unpacks.

        Raises:
            KeyError: There is no such point.
            TypeError: It is of another kind, the tag is no integer, or the data are no bytes.
            OverflowError: The tag has more than 64 bits. Both also while the point is off.
        """
        point = self._point(full_name, KINDS["event"] if data is None else KINDS["data"])
        number = _number(tag)
        if data is not None and not isinstance(data, bytes):
            data = memoryview(data).tobytes()
        if point.on[0]:
            self._library.bw_event_write(ctypes.byref(point), number, data, len(data or b""))

    @contextmanager
    def interval(self, full_name: str, tag: int = 0) -> Generator[None]:
        """Record how long a block took, at its end, also if that raises.

        Args:
            full_name: GROUP.NAME.
            tag: A number of 64 bits with its sign.

        Raises:
            KeyError: There is no such point.
            TypeError: It is of another kind, or the tag is no integer.
            OverflowError: The tag has more than 64 bits. All of it before the block.
        """
        point = self._point(full_name, KINDS["interval"])
        number = _number(tag)
        began = self._library.bw_events_ticks(ctypes.byref(point)) if point.on[0] else 0
        try:
            yield
        finally:
            if point.on[0]:
                self._library.bw_interval_write(ctypes.byref(point), began, number)

    def add(self, full_name: str, value: int = 1) -> None:
        """Add to a counter, or count a value in a histogram; nothing is recorded by it.

        Args:
            full_name: GROUP.NAME.
            value: A number of 64 bits with its sign.

        Raises:
            KeyError: There is no such point.
            TypeError: It is of another kind, or the value is no integer.
            OverflowError: The value has more than 64 bits.
        """
        point = self._point(full_name, KINDS["counter"], KINDS["histogram"])
        number = _number(value)
        if point.on[0]:
            self._library.bw_value_add(ctypes.byref(point), number)

    def log(self, full_name: str) -> None:
        """Record what a counter or a histogram has come to; raises as `add`."""
        point = self._point(full_name, KINDS["counter"], KINDS["histogram"])
        if point.on[0]:
            self._library.bw_value_log(ctypes.byref(point))

    def reset(self, full_name: str) -> None:
        """Begin a counter or a histogram anew; raises as `add`."""
        point = self._point(full_name, KINDS["counter"], KINDS["histogram"])
        if point.on[0]:
            self._library.bw_value_reset(ctypes.byref(point))

    def close(self) -> None:
        """Turn the points off; no other thread may use them any more. Twice does no harm."""
        if self._events:
            self._library.bw_events_close(self._events, self._points, len(self._points))
            self._events = ctypes.c_void_p()
