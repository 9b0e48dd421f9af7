# SPDX-License-Identifier: Apache-2.0
"""Whose datagram is it? Each captured segment of a stream of pictures, by its place among the bytes.

The stream is put together again and read as pictures, whose check values say that it is what was sent.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from zlib import crc32

import numpy as np

from reports.control_loops.picture import HEADER_BYTES, MAGIC, PictureHeader, parse_header
from reports.errors import RecordError, ReportError
from reports.paths.pcap import Integers
from reports.paths.tcp_streams import NONE, Flags, TcpStream, read_tcp_streams

NEVER = -1


@dataclass(frozen=True, eq=False)
class Pictures:
    """Pictures in the order of the stream.

    Attributes:
        number: As the header has it, or, where that is missing, its neighbours' say; NONE. Shape (p,).
        begin: Place of the first byte of the header, shape (p,).
        size_bytes: With the header, shape (p,); NONE: the stream ends within the header.
        first_ns: When the first segment with bytes of it was seen for the first time, shape (p,); NEVER.
        complete_ns: When the last byte that was missing was seen, shape (p,); NEVER: one still is.
        last_ns: When the last segment with bytes of it was seen, sent again or not, shape (p,); NEVER.
        missing_bytes: That nobody has brought, shape (p,); NONE: the size is not known.
        is_damaged: Its bytes are there, and their check value differs, shape (p,).
    """

    number: Integers
    begin: Integers
    size_bytes: Integers
    first_ns: Integers
    complete_ns: Integers
    last_ns: Integers
    missing_bytes: Integers
    is_damaged: Flags


@dataclass(frozen=True, slots=True)
class StreamEnd:
    """The header behind the last picture.

    Attributes:
        begin, end: Places of its first byte, and of the first one behind it.
        count: How many pictures there were, as it says.
    """

    begin: int
    end: int
    count: int


@dataclass(frozen=True, eq=False)
class PictureStream:
    """A stream whose segments have their pictures.

    Attributes:
        stream: Its segments: when each was seen, first and last byte, what was seen before.
        first_picture, last_picture: Of each segment the place among `pictures` of that of its first and last
            byte, shape (n,); NONE: those bytes are of no known picture, or of the stream's end.
        pictures: All of them.
        end: None: the capture does not have it.
    """

    stream: TcpStream
    first_picture: Integers
    last_picture: Integers
    pictures: Pictures
    end: StreamEnd | None = None

    @property
    def is_assigned(self) -> Flags:
        """Return which segments have a picture, or the stream's end, at both ends, shape (n,).

        So has one with no byte of the stream at all.
        """
        is_empty = (self.stream.first_byte == NONE) & self.stream.is_spare
        first, last = (
            (picture != NONE) | self._is_of_the_end(place)
            for picture, place in (
                (self.first_picture, self.stream.first_byte),
                (self.last_picture, self.stream.last_byte),
            )
        )
        return (first & last) | is_empty

    def _is_of_the_end(self, place: Integers) -> Flags:
        if self.end is None:
            return np.zeros(len(place), dtype=bool)
        return (place >= self.end.begin) & (place < self.end.end)

    def problems(self) -> list[str]:
        """Return a sentence for each picture and segment that is not as it should be."""
        name, pictures = self.stream.name, self.pictures
        found = [
            f"{name}: bytes {begin} to {end - 1} of the stream are missing"
            for begin, end in self.stream.missing.tolist()
        ]
        for number, size, missing, damaged in zip(
            pictures.number.tolist(),
            pictures.size_bytes.tolist(),
            pictures.missing_bytes.tolist(),
            pictures.is_damaged.tolist(),
            strict=True,
        ):
            if size == NONE:
                found.append(f"{name}: the stream ends within the header of a picture")
            elif missing:
                found.append(f"{name}: picture {number}: {missing} of {size} bytes are missing")
            elif damaged:
                found.append(f"{name}: picture {number} has damaged pixels: their CRC-32 differs")
        found += [f"{name}: {each}" for each in self._wrong_numbers()]
        for flags, what in (
            (self.stream.is_different, "has other bytes than were seen there first"),
            ((self.stream.first_byte == NONE) & ~self.stream.is_spare, "lies outside of the stream"),
            (~self.is_assigned & (self.stream.first_byte != NONE), "has bytes of no known picture"),
        ):
            found += [
                f"{name}: segment {number}, byte {self.stream.first_byte[number]}: {what}"
                for number in np.flatnonzero(flags).tolist()
            ]
        return found

    def _wrong_numbers(self) -> list[str]:
        """Return what is wrong with the pictures' numbers, beside each other and the end's count."""
        numbers = [each for each in self.pictures.number.tolist() if each != NONE]
        found = [
            f"picture {number} comes behind picture {before}"
            for before, number in pairwise(numbers)
            if number <= before
        ]
        first, count = min(numbers, default=0), max(numbers, default=NONE) + 1
        if self.end is not None:
            found += [
                f"picture {number} is none of the {self.end.count} that there were, by the stream's end"
                for number in numbers
                if number >= self.end.count
            ]
            if behind := len(self.stream.content) - self.end.end:
                found.append(f"{behind} bytes follow the stream's end")
            first, count = 0, max(count, self.end.count)
        came = [first - 1, *sorted(set(numbers)), count]
        return found + [
            f"picture {low + 1} never came"
            if high == low + 2
            else f"pictures {low + 1} to {high - 1} never came"
            for low, high in pairwise(came)
            if high > low + 1
        ]


def read_picture_streams(
    path: Path, source: str = "", source_port: int = 0, destination: str = "", destination_port: int = 0
) -> tuple[PictureStream, ...]:
    """Return the streams of pictures of these ends in a capture; what is empty or 0 may be any.

    Raises:
        ReportError: Not a pcap file of Ethernet frames; frames that were not kept whole; a connection whose
            beginning is not in the capture; one that does not carry pictures, with the place.
    """
    streams = read_tcp_streams(path, source, source_port, destination, destination_port)
    return tuple(map(assigned, streams))


def assigned(stream: TcpStream) -> PictureStream:
    """Find the pictures of a stream and whose bytes each segment has; raises ReportError: no pictures."""
    parts = list(_pictures(stream))
    found = [each for each in parts if isinstance(each, _Found)]
    begin = np.array([each.begin for each in found], dtype=np.int64)
    end = np.array([each.end for each in found], dtype=np.int64)
    first, last = (_picture_of(places, begin, end) for places in (stream.first_byte, stream.last_byte))
    first_ns, complete_ns, last_ns = (np.full(len(found), NEVER, dtype=np.int64) for _ in range(3))
    missing = np.array([each.missing_bytes(stream) for each in found], dtype=np.int64)
    for number, each in enumerate(found):
        carriers = stream.carriers(each.begin, each.end)
        if len(carriers):
            times = stream.time_ns[carriers]
            first_ns[number] = times.min()
            complete_ns[number] = times.max() if missing[number] == 0 else NEVER
    # Those with any byte of a segment; its ends may be of no picture.
    low = np.searchsorted(end, stream.first_byte, "right").tolist()
    high = np.searchsorted(begin, stream.last_byte, "right").tolist()
    for own, to, time_ns, at in zip(
        low, high, stream.time_ns.tolist(), stream.first_byte.tolist(), strict=True
    ):
        if at != NONE:
            last_ns[own:to] = np.maximum(last_ns[own:to], time_ns)
    pictures = Pictures(
        np.array([each.number for each in found], dtype=np.int64),
        begin,
        np.array([each.size_bytes for each in found], dtype=np.int64),
        first_ns,
        complete_ns,
        last_ns,
        missing,
        np.array([each.is_damaged(stream) for each in found], dtype=bool),
    )
    stream_end = next((each for each in parts if isinstance(each, StreamEnd)), None)
    return PictureStream(stream, first, last, pictures, stream_end)


@dataclass(frozen=True, slots=True)
class _Found:
    """A picture of the stream; `header`: None: not seen; `is_cut`: the stream ends within it."""

    begin: int
    end: int
    number: int
    header: PictureHeader | None
    is_cut: bool = False

    @property
    def size_bytes(self) -> int:
        return NONE if self.is_cut else self.end - self.begin

    def missing_bytes(self, stream: TcpStream) -> int:
        return NONE if self.is_cut else stream.missing_bytes(self.begin, self.end)

    def is_damaged(self, stream: TcpStream) -> bool:
        if self.header is None or self.missing_bytes(stream):
            return False
        pixels = memoryview(stream.content)[self.begin + HEADER_BYTES : self.end]
        return crc32(pixels) != self.header.pixels_crc


def _pictures(stream: TcpStream) -> Iterator[_Found | StreamEnd]:
    """Read the stream up to its end; behind a header that is missing the next one that is there goes on."""
    at, size = 0, len(stream.content)
    before: PictureHeader | None = None
    while at < size:
        if at + HEADER_BYTES > size and MAGIC.startswith(stream.content[at : at + len(MAGIC)]):
            yield _Found(at, size, NONE if before is None else before.number + 1, None, is_cut=True)
            return
        if stream.missing_bytes(at, min(size, at + HEADER_BYTES)) == 0:
            try:
                header = parse_header(bytes(stream.content[at : at + HEADER_BYTES]))
            except RecordError as error:
                where = "the first picture" if before is None else f"what follows picture {before.number}"
                raise ReportError(f"{stream.name}: byte {at}: {where} {error}") from None
            if header.is_end:
                yield StreamEnd(at, at + header.size_bytes, header.number)
                return
            yield _Found(at, at + header.size_bytes, header.number, header)
            at, before = at + header.size_bytes, header
            continue
        behind = _next_header(stream, at)
        if behind is None:
            return
        place, header = behind
        # The end's number is how many there were, as that of a further picture would be.
        if before is not None and place - at == before.size_bytes and header.number == before.number + 2:
            yield _Found(at, place, before.number + 1, None)
        at = place


def _next_header(stream: TcpStream, at: int) -> tuple[int, PictureHeader] | None:
    """Return the first valid header behind a place; pixels that look like one do not have its check value."""
    while (at := stream.content.find(MAGIC, at + 1)) >= 0:
        if stream.missing_bytes(at, at + HEADER_BYTES) == 0:
            try:
                return at, parse_header(bytes(stream.content[at : at + HEADER_BYTES]))
            except RecordError:
                continue
    return None


def _picture_of(places: Integers, begin: Integers, end: Integers) -> Integers:
    """Return the picture of each byte, shape (n,); NONE: of none."""
    if len(begin) == 0:
        return np.full(len(places), NONE, dtype=np.int64)
    number = np.searchsorted(begin, places, "right") - 1
    return np.where((number >= 0) & (places < end[np.maximum(number, 0)]), number, NONE)
