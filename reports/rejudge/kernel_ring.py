# SPDX-License-Identifier: Apache-2.0
"""A recording of a kernel's events, as docs/timeline.md says it: a plain reader, event by event."""

from __future__ import annotations

import gzip
import re
import struct
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path

RECORDING_MAX_BYTES = 1 << 30
_FIELD = re.compile(r"field: ?[^;]*?(\w+)(?:\[[^;]*\])?;\s*offset:(\d+);\s*size:(\d+)")
Places = Mapping[str, tuple[int, int]]
"""Fields by their names: where each begins in an event, and its bytes."""


class KernelRing:
    """One file.

    Attributes:
        dropped: Events for which there was no room.
        is_whole: No page says that events are lost before it, every ring is there, and no event is cut.
    """

    def __init__(self, file: Path) -> None:
        try:
            with gzip.open(file, "rb") as packed:
                raw = packed.read(RECORDING_MAX_BYTES)
        except (EOFError, zlib.error) as error:
            raise ValueError(f"{file.name}: {error}") from error
        text = raw.partition(b"\npages: ")[0].decode("utf-8", "replace")
        self._order = "<" if text.startswith("byte order: little\n") else ">"
        parts = [each.partition("\n") for each in re.split(r"^file: ", text, flags=re.MULTILINE)[1:]]
        files = {name: content for name, _, content in parts}
        self._page = _places(files["events/header_page"])
        self._formats: dict[int, tuple[str, Places]] = {}
        for name, content in files.items():
            if found := re.search(r"^ID: (\d+)$", content, re.MULTILINE):
                own = name.removeprefix("events/").removesuffix("/format")
                self._formats[int(found[1])] = own, _places(content.partition("\nprint fmt")[0])
        stats = [content for name, content in files.items() if name.endswith("/stats")]
        self.dropped = sum(
            int(each) for one in stats for each in re.findall(r"^dropped events: (\d+)$", one, re.MULTILINE)
        )
        self._events: list[tuple[int, bytes, int]] = []
        self.is_whole = True
        at, rings = len(text) + 1 if b"\npages: " in raw else len(raw), 0
        while head := re.compile(rb"pages: cpu(\d+) (\d+)\n").match(raw, at):
            at = head.end() + int(head[2])
            self._cpu = int(head[1])
            self._pages(raw[head.end() : at])
            rings += 1
        self.is_whole = self.is_whole and at == len(raw) and rings == len(stats)

    @property
    def cpus(self) -> list[int]:
        """Return the CPUs that had an event."""
        return sorted({cpu for _, _, cpu in self._events})

    def events(self, name: str, cpu: int | None = None) -> Iterator[tuple[int, Mapping[str, bytes]]]:
        """Yield time in ns and the fields' bytes of each event of a name, of one CPU or all, by time."""
        for time_ns, raw, at_cpu in sorted(self._events, key=lambda event: event[0]):
            own, places = self._formats[self._number(raw[:2])]
            if own == name and cpu in (None, at_cpu):
                yield time_ns, {key: raw[at : at + size] for key, (at, size) in places.items()}

    def number(self, fields: Mapping[str, bytes], name: str) -> int:
        """Return a field as a number that is not below 0."""
        return self._number(fields[name])

    def _number(self, raw: bytes) -> int:
        return int.from_bytes(raw, "little" if self._order == "<" else "big")

    def _pages(self, raw: bytes) -> None:
        data_at, data_bytes = self._page["data"]
        if data_at % 4 or data_bytes % 4:
            raise ValueError(f"pages of {data_bytes} bytes of data, from byte {data_at}")
        size = data_at + data_bytes
        if len(raw) % size:
            self.is_whole = False
        for at in range(0, len(raw) - size + 1, size):
            self._one_page(raw[at : at + size])

    def _one_page(self, page: bytes) -> None:
        (stamp_at, stamp_bytes), (commit_at, commit_bytes) = self._page["timestamp"], self._page["commit"]
        time_ns = self._number(page[stamp_at : stamp_at + stamp_bytes])
        commit = self._number(page[commit_at : commit_at + commit_bytes])
        if commit & 1 << 31:  # events are lost before it
            self.is_whole = False
        at = self._page["data"][0]
        end = min(at + (commit & (1 << 27) - 1), len(page))
        while at + 4 <= end:
            (word,) = struct.unpack_from(f"{self._order}I", page, at)
            kind, delta = (word & 31, word >> 5) if self._order == "<" else (word >> 27, word & (1 << 27) - 1)
            second = struct.unpack_from(f"{self._order}I", page, at + 4)[0] if at + 8 <= len(page) else 0
            if kind == 29 and not delta:
                return
            if kind == 30:
                time_ns += (second << 27) + delta
                at += 8
            elif kind == 31:
                time_ns = (second << 27) + delta | time_ns & 0xF8 << 56
                at += 8
            else:
                time_ns += 0 if kind == 29 and delta == 1 else delta
                first = at + (8 if kind in (0, 29) else 4)
                at = at + 4 + (-(-second // 4) * 4 if kind in (0, 29) else 4 * kind)
                if at > end or at <= first - 4:
                    self.is_whole = False
                    return
                if kind != 29:
                    self._events.append((time_ns, page[first:at], self._cpu))


def _places(content: str) -> Places:
    return {name: (int(at), int(size)) for name, at, size in _FIELD.findall(content)}
