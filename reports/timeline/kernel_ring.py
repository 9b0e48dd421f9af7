# SPDX-License-Identifier: Apache-2.0
"""Events of a kernel's ring, decoded from its raw pages: an array of each type of events.

Source: Linux, Documentation/trace/ring-buffer-design.rst, include/linux/ring_buffer.h, and the machine's own
format files. A word of 32 bits heads each event: 5 bits of type or length, 27 of time since the one before.
All pages are gone through at once, each by one event a step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reports.errors import RecordError
from reports.timeline.kernel_formats import EventFormat, Field, KernelFormats

LOST_UNCOUNTED = -1

_WORD_BYTES = 4
_DELTA_BITS = 27
_LONG, _PADDING, _EXTEND, _STAMP = 0, 29, 30, 31
_COMMIT_MASK = (1 << 27) - 1
_LOST, _LOST_COUNTED = 1 << 31, 1 << 30
_STAMP_TOP = 0xF8 << 56
"""An absolute time has 59 bits; the others are those of the page's time."""
_OWN = "time_ns", "place"

Words = NDArray[np.uint32]
Times = NDArray[np.uint64]
Numbers = NDArray[np.int64]
Records = NDArray[Any]
GAP = np.dtype([("place", "i8"), ("lost", "i8")])
"""Before the event of that place events are lost: how many, or LOST_UNCOUNTED."""


@dataclass(frozen=True)
class CpuRing:
    """What one CPU's ring holds.

    Attributes:
        cpu: Its number.
        events: By group and name (`sched/sched_switch`), in their order. Fields are those of the format,
            before them `time_ns` (of the trace's clock) and `place` (among all events of the CPU); data of
            variable length are `bytes`.
        gaps: Where events are lost, as GAP; also behind what is damaged.
        damages: What could not be decoded, with the byte of the file; the rest is whole.
    """

    cpu: int
    events: Mapping[str, Records]
    gaps: Records
    damages: Sequence[str]

    def require_whole(self, where: str) -> None:
        """Raise RecordError, which names the first damage, unless all of it was decoded."""
        if self.damages:
            more = f", and {len(self.damages) - 1} more" if len(self.damages) > 1 else ""
            raise RecordError(f"{where}: CPU {self.cpu}: {self.damages[0]}{more}")


@dataclass
class _Walk:
    """Events as they stand on the pages, from all steps so far."""

    pages: list[Numbers] = field(default_factory=list[Numbers])
    offsets: list[Numbers] = field(default_factory=list[Numbers])
    sizes: list[Numbers] = field(default_factory=list[Numbers])
    times_ns: list[Times] = field(default_factory=list[Times])
    damages: dict[int, tuple[int, str]] = field(default_factory=dict[int, tuple[int, str]])
    """By page, where in the file, and what."""

    def damaged(self, pages: Numbers, places: Numbers, said: str) -> None:
        """Note what is wrong with some pages."""
        for page, place in zip(pages.tolist(), places.tolist(), strict=True):
            self.damages[page] = place, said


def decode_ring(pages: bytes, formats: KernelFormats, cpu: int) -> CpuRing:
    """Decode the pages of one CPU, as `trace_pipe_raw` gives them.

    Args:
        pages: One behind the other, the oldest first.
        formats: Of the kernel that wrote them.
        cpu: Whose they are.
    """
    page_bytes = formats.page.page_bytes
    n, rest = divmod(len(pages), page_bytes)
    walk = _Walk()
    if rest:
        walk.damages[n] = n * page_bytes, f"the last page ends after {rest} of {page_bytes} bytes"
    table = np.frombuffer(pages, np.uint8, n * page_bytes).reshape(n, page_bytes)
    commits = _numbers(table, formats.page.commit, formats.order)
    _go_through(table, formats, (commits & np.uint64(_COMMIT_MASK)).astype(np.int64), walk)
    page = np.concatenate([np.empty(0, np.int64), *walk.pages])
    order = np.argsort(page, kind="stable")
    page = page[order]
    offsets = np.concatenate([np.empty(0, np.int64), *walk.offsets])[order]
    sizes = np.concatenate([np.empty(0, np.int64), *walk.sizes])[order]
    times_ns = np.concatenate([np.empty(0, np.uint64), *walk.times_ns])[order]
    gaps = _gaps(table, formats, commits, page, walk)
    damages = [f"byte {place}: {said}" for _, (place, said) in sorted(walk.damages.items())]
    events = _events(pages, formats, (offsets, sizes, times_ns), damages)
    return CpuRing(cpu, events, gaps, damages)


def _numbers(table: NDArray[np.uint8], at: Field, order: str) -> Times:
    """Return a field of each page's header."""
    packed = np.ascontiguousarray(table[:, at.offset : at.end])
    return packed.view(f"{order}u{at.size}")[:, 0].astype(np.uint64)


def _go_through(table: NDArray[np.uint8], formats: KernelFormats, committed: Numbers, walk: _Walk) -> None:
    """Find all events of all pages."""
    first, page_bytes = formats.page.data_offset, formats.page.page_bytes
    words: Words = (
        np.ascontiguousarray(table[:, first:]).view(f"{formats.order}u4").astype(np.uint32, copy=False)
    )
    data_bytes = page_bytes - first
    wrong = np.flatnonzero((committed > data_bytes) | (committed % _WORD_BYTES != 0))
    walk.damaged(wrong, wrong * page_bytes, "the page says that it holds more than it can, or half a word")
    times_ns = _numbers(table, formats.page.stamp, formats.order)
    ends = committed // _WORD_BYTES
    ends[wrong] = 0
    at = np.zeros(len(ends), np.int64)
    live = np.flatnonzero(at < ends)
    while live.size:
        here = at[live]
        kind, delta = _split(words[live, here], formats.order)
        second = words[live, np.minimum(here + 1, words.shape[1] - 1)].astype(np.int64)
        is_end = (kind == _PADDING) & (delta == 0)
        has_length = (kind == _LONG) | ((kind == _PADDING) & ~is_end)
        length = np.where(has_length, 1 + (second + 3) // _WORD_BYTES, 1 + kind)
        length[kind >= _EXTEND] = 2
        length[is_end] = (ends[live] - here)[is_end]
        wrong = (here + length > ends[live]) | (has_length & (second < _WORD_BYTES))
        if wrong.any():
            where = live[wrong] * page_bytes + first + here[wrong] * _WORD_BYTES
            walk.damaged(live[wrong], where, "an event is longer than its page, or shorter than its head")
        times_ns[live] = _times(times_ns[live], kind, delta, second)
        is_event = (kind < _PADDING) & ~wrong
        head = np.where(kind == _LONG, 2, 1)[is_event]
        whose = live[is_event]
        walk.pages.append(whose)
        walk.offsets.append(whose * page_bytes + first + (here[is_event] + head) * _WORD_BYTES)
        walk.sizes.append(np.where(kind == _LONG, second - _WORD_BYTES, kind * _WORD_BYTES)[is_event])
        walk.times_ns.append(times_ns[whose])
        at[live] = here + length
        live = live[~wrong & (at[live] < ends[live])]


def _split(heads: Words, order: str) -> tuple[Numbers, Times]:
    """Return type or length, and the time since the event before: bit fields go by the byte order."""
    if order == "<":
        return (heads & 31).astype(np.int64), (heads >> 5).astype(np.uint64)
    return (heads >> _DELTA_BITS).astype(np.int64), (heads & ((1 << _DELTA_BITS) - 1)).astype(np.uint64)


def _times(before_ns: Times, kind: Numbers, delta: Times, second: Numbers) -> Times:
    """Return the time after an event, of each page.

    An event that was thrown away is padding that has its time; 1 stands for none, for 0 would end the page
    (rb_event_discard, check_buffer).
    """
    long = (second.astype(np.uint64) << np.uint64(_DELTA_BITS)) + delta
    absolute = long | (before_ns & np.uint64(_STAMP_TOP))
    since = np.where(kind == _EXTEND, long, delta)
    since[(kind == _PADDING) & (delta == 1)] = 0
    return np.where(kind == _STAMP, absolute, before_ns + since)


def _gaps(
    table: NDArray[np.uint8], formats: KernelFormats, commits: Times, page: Numbers, walk: _Walk
) -> Records:
    """Return where events are lost: before pages that say so, and behind what is damaged."""
    found: list[tuple[int, int]] = []
    at = formats.page.commit
    for lossy in np.flatnonzero(commits & np.uint64(_LOST)).tolist():
        lost, end = LOST_UNCOUNTED, formats.page.data_offset + int(commits[lossy]) % (_COMMIT_MASK + 1)
        if int(commits[lossy]) & _LOST_COUNTED and end + at.size <= formats.page.page_bytes:
            lost = int(table[lossy, end : end + at.size].copy().view(f"{formats.order}i{at.size}")[0])
        found.append((int(np.searchsorted(page, lossy, "left")), lost))
    found += [(int(np.searchsorted(page, each, "right")), LOST_UNCOUNTED) for each in walk.damages]
    return np.array(sorted(found), GAP)


def _events(
    pages: bytes,
    formats: KernelFormats,
    found: tuple[Numbers, Numbers, Times],
    damages: list[str],
) -> dict[str, Records]:
    """Return the events of each type; add to the damages those that are of none, or too short."""
    offsets, sizes, times_ns = found
    numbers = np.zeros(len(offsets), np.int64)
    if len(offsets):
        pairs = np.lib.stride_tricks.sliding_window_view(np.frombuffer(pages, np.uint8), 2)[offsets]
        numbers = pairs.view(f"{formats.order}u2")[:, 0].astype(np.int64)
    for number in sorted(set(np.unique(numbers).tolist()) - set(formats.events)):
        places = offsets[numbers == number]
        damages.append(f"byte {places[0]}: {len(places)} events of type {number}, which has no format")
    events: dict[str, Records] = {}
    for form in formats.events.values():
        chosen = np.flatnonzero(numbers == form.number)
        short = sizes[chosen] < form.fixed_bytes
        if short.any():
            place = offsets[chosen[short][0]]
            damages.append(
                f"byte {place}: {int(short.sum())} events {form.name} are shorter than their format"
            )
            chosen = chosen[~short]
        events[form.name] = _records(pages, form, formats.order, offsets[chosen], sizes[chosen])
        own = events[form.name]
        own["time_ns"], own["place"] = times_ns[chosen], chosen
    return events


def _records(pages: bytes, form: EventFormat, order: str, offsets: Numbers, sizes: Numbers) -> Records:
    """Return events of one type, time and place empty."""
    columns: dict[str, Records] = {}
    raw = np.empty((0, form.fixed_bytes), np.uint8)
    if len(offsets):
        whole = np.frombuffer(pages, np.uint8)
        raw = np.lib.stride_tricks.sliding_window_view(whole, form.fixed_bytes)[offsets]
    for each in form.fields:
        part = raw[:, each.offset : each.end]
        if each.is_variable:
            columns[each.name] = _variable(pages, each, order, part, offsets, sizes)
        elif each.is_text:
            columns[each.name] = _text(part)
        else:
            columns[each.name] = _plain(part, each, order)
    kinds: list[Any] = [("time_ns", "u8"), ("place", "i8")]
    kinds += [(_column(name), column.dtype, column.shape[1:]) for name, column in columns.items()]
    records = np.zeros(len(offsets), np.dtype(kinds))
    for name, column in columns.items():
        records[_column(name)] = column
    return records


def _column(name: str) -> str:
    """Return what a field is called: one of the kernel's that is called as one of ours gets a mark."""
    return f"{name}_" if name in _OWN else name


def _plain(part: NDArray[np.uint8], of: Field, order: str) -> Records:
    """Return numbers, in the order of this machine; bytes where their size is none of a number."""
    packed = np.ascontiguousarray(part)
    elements = int(count[:-1]) if (count := of.declared.partition("[")[2])[:-1].isdecimal() else 1
    size = of.size // elements if elements and of.size % elements == 0 else of.size
    if not of.size or size not in (1, 2, 4, 8):
        return packed
    numbers = packed.view(f"{order}{'i' if of.signed else 'u'}{size}")
    native = numbers.astype(numbers.dtype.newbyteorder("="))
    return native[:, 0] if native.shape[1] == 1 else native


def _text(part: NDArray[np.uint8]) -> Records:
    """Return characters up to the first zero; what the kernel left behind it is nobody's."""
    if not part.shape[1]:
        return np.zeros(len(part), "S1")
    shown = np.logical_and.accumulate(part != 0, axis=1)
    return np.ascontiguousarray(np.where(shown, part, 0).astype(np.uint8)).view(f"S{part.shape[1]}")[:, 0]


def _variable(
    pages: bytes, of: Field, order: str, part: NDArray[np.uint8], offsets: Numbers, sizes: Numbers
) -> Records:
    """Return data whose place in the event and length the field tells; as much of them as the event has."""
    told = np.ascontiguousarray(part).view(f"{order}u4")[:, 0].astype(np.int64)
    begins = np.minimum((told & 0xFFFF) + (of.end if of.declared.startswith("__rel_loc") else 0), sizes)
    ends = np.minimum(begins + (told >> 16), sizes)
    places = zip((offsets + begins).tolist(), (offsets + ends).tolist(), strict=True)
    column = np.empty(len(offsets), object)
    column[:] = [pages[a:b].partition(b"\0")[0] if of.is_text else pages[a:b] for a, b in places]
    return column
