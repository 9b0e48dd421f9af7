# SPDX-License-Identifier: Apache-2.0
"""How a machine's kernel lays out its ring of events, by its own format files (tracefs, `events/`).

The description of a ring is text: a line `byte order: little` or `byte order: big`, and behind a line
`file: PATH` of each file its content: `events/header_page`, `events/header_event`, `events/*/*/format`, and
`per_cpu/cpuN/stats`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass

from reports.errors import RecordError

BYTE_ORDERS = {"little": "<", "big": ">"}
EVENT_HEADER = {
    "type_len": "5 bits", "time_delta": "27 bits", "array": "32 bits", "padding": "type == 29",
    "time_extend": "type == 30", "time_stamp": "type == 31", "data max type_len": "== 28",
}  # fmt: skip
"""What `events/header_event` says; the kernel's source has no other (`include/linux/ring_buffer.h`)."""
PAGE_MAX_BYTES = 1 << 20
RECORD_MAX_BYTES = 1 << 16
LINE_MAX = 1000
"""Characters of the line of a field."""

_FIELD = re.compile(
    r"\s*field: ?(?P<type>[^;]*?)(?P<name>[A-Za-z_]\w*)(?P<count>\[[^];]*\])?;"
    r"\s*offset:(?P<offset>\d{1,9});\s*size:(?P<size>\d{1,9});(?:\s*signed:(?P<signed>[01]);)?"
)
_TEXT = re.compile(r"(?:__data_loc |__rel_loc )?(?:const )?char ?\[[^]]*\]")
_DROPPED = re.compile(r"^dropped events: (\d{1,18})$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a page's header or of an event.

    Attributes:
        declared: Its type as C has it, with the number of elements of an array: `char[16]`.
        offset: From the begin of the header or the event, bytes.
        size: Bytes; of data of variable length those of their place and length.
        signed: Whether its numbers are.
    """

    name: str
    declared: str
    offset: int
    size: int
    signed: bool

    @property
    def end(self) -> int:
        """Return where it ends, bytes."""
        return self.offset + self.size

    @property
    def is_variable(self) -> bool:
        """Say whether the event holds place and length here, and the data behind its other fields."""
        return self.declared.startswith(("__data_loc", "__rel_loc"))

    @property
    def is_text(self) -> bool:
        """Say whether it holds characters, ended by a zero."""
        return (
            re.fullmatch(r"(?:__data_loc |__rel_loc )?(?:const )?char ?\[[^]]*\]", self.declared) is not None
        )


@dataclass(frozen=True, slots=True)
class PageFormat:
    """A page (sub-buffer) of the ring.

    Attributes:
        stamp: When its first event was, or what that is counted from.
        commit: How many bytes of data it holds, and two flags.
        data_offset: Where they begin, bytes.
        page_bytes: All of it.
    """

    stamp: Field
    commit: Field
    data_offset: int
    page_bytes: int


@dataclass(frozen=True, slots=True)
class EventFormat:
    """A type of events.

    Attributes:
        name: Group and name: `sched/sched_switch`.
        number: By which events say that they are of it.
        fields: In the kernel's order, those that all events have first.
    """

    name: str
    number: int
    fields: tuple[Field, ...]

    @property
    def fixed_bytes(self) -> int:
        """Return what an event has at least; data of variable length stand behind it."""
        return max(field.end for field in self.fields)


@dataclass(frozen=True)
class KernelFormats:
    """What a machine says of its ring.

    Attributes:
        order: `<` or `>`, as numpy has it.
        page: Of the pages.
        events: By their numbers.
        dropped: By CPU, events for which there was no room.
    """

    order: str
    page: PageFormat
    events: Mapping[int, EventFormat]
    dropped: Mapping[int, int]


def parse_formats(text: str) -> KernelFormats:
    """Read the description of a ring; raises RecordError, which names the kernel's file."""
    head, *parts = re.split(r"^file: ", text, flags=re.MULTILINE)
    order = BYTE_ORDERS.get(head.strip().removeprefix("byte order: "))
    if order is None:
        raise RecordError("description of a kernel's ring: begins with no byte order")
    files = {name.strip(): content for name, _, content in (part.partition("\n") for part in parts)}
    for name in ("events/header_page", "events/header_event"):
        if name not in files:
            raise RecordError(f"description of a kernel's ring: lacks {name}")
    _check_event_header(files["events/header_event"])
    events: dict[int, EventFormat] = {}
    dropped: dict[int, int] = {}
    for name, content in files.items():
        if name.endswith("/format"):
            event = _event(name, content)
            events[event.number] = event
        elif counted := re.fullmatch(r"per_cpu/cpu(\d{1,5})/stats", name):
            found = _DROPPED.search(content)
            if not found:
                raise RecordError(f"{name}: does not say how many events were dropped")
            dropped[int(counted[1])] = int(found[1])
    return KernelFormats(order, _page(files["events/header_page"]), events, dropped)


def _check_event_header(content: str) -> None:
    for name, said in EVENT_HEADER.items():
        pattern = rf"^\s*{re.escape(name)}\s*:?\s*{re.escape(said)}\s*$"
        if not re.search(pattern, content, re.MULTILINE):
            raise RecordError(f"events/header_event: does not say {name} {said}")


def _fields(where: str, content: str, bytes_max: int) -> list[Field]:
    found: list[Field] = []
    for line in content.splitlines():
        if not line.lstrip().startswith("field:"):
            continue
        match = _FIELD.fullmatch(line.rstrip()) if len(line) < LINE_MAX else None
        if not match:
            raise RecordError(f"{where}: cannot read {line.strip()[:100]!r}")
        declared = (match["type"].strip() + (match["count"] or "")).replace(" [", "[")
        field = Field(
            match["name"], declared, int(match["offset"]), int(match["size"]), match["signed"] == "1"
        )
        if field.end > bytes_max:
            raise RecordError(f"{where}: {field.name} ends at byte {field.end}")
        found.append(field)
    return found


def _page(content: str) -> PageFormat:
    where = "events/header_page"
    fields = {field.name: field for field in _fields(where, content, PAGE_MAX_BYTES)}
    try:
        stamp, commit, data = (fields[name] for name in ("timestamp", "commit", "data"))
    except KeyError as missing:
        raise RecordError(f"{where}: lacks {missing}") from missing
    behind = max(stamp.end, commit.end)
    if stamp.size != 8 or commit.size not in (4, 8) or data.offset < behind:
        raise RecordError(f"{where}: not of a ring that is known here")
    if data.offset % 4 or data.size % 4 or not data.size:
        raise RecordError(f"{where}: pages of {data.end} bytes, data from byte {data.offset}")
    return PageFormat(stamp, commit, data.offset, data.end)


def _event(where: str, content: str) -> EventFormat:
    number = re.search(r"^ID: (\d{1,5})$", content, re.MULTILINE)
    fields = tuple(_fields(where, content.partition("\nprint fmt:")[0], RECORD_MAX_BYTES))
    first = fields[0] if fields else None
    if not number or not first or (first.name, first.offset, first.size) != ("common_type", 0, 2):
        raise RecordError(f"{where}: lacks the ID, or does not begin with common_type of two bytes")
    names = [field.name for field in fields]
    if len(set(names)) != len(names):
        raise RecordError(f"{where}: has two fields of one name")
    by_place = sorted(fields, key=lambda field: (field.offset, field.end))
    if any(field.offset < before.end for before, field in itertools.pairwise(by_place)):
        raise RecordError(f"{where}: fields lie over each other")
    for field in fields:
        if field.is_variable and field.size != 4:
            raise RecordError(f"{where}: {field.name}: place and length take {field.size} bytes, not 4")
    name = where.removeprefix("events/").removesuffix("/format")
    return EventFormat(name, int(number[1]), fields)
