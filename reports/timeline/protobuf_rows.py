# SPDX-License-Identifier: Apache-2.0
"""Protobuf messages of many events at once: a row of bytes an event, of which each says what it has.

Source: protobuf.dev/programming-guides/encoding. All numbers of a field are as wide as the largest, which
readers take: a varint may have more bytes than it needs. Every field then has one place in all rows, and what
an event does not have is cut out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reports.timeline.clock_record import Times

Bytes = NDArray[np.uint8]
Chosen = NDArray[np.bool_]
VARINT, FIXED64, BYTES = 0, 1, 2


class Rows:
    """One message an event, put together field by field; `n` of them."""

    def __init__(self, n: int) -> None:
        """Begin with empty messages."""
        self.n = n
        self._parts: list[tuple[Bytes, Chosen | None]] = []

    def varint(self, number: int, values: Times | int, where: Chosen | None = None) -> Rows:
        """Add an integer of 64 bits to those messages that are chosen; None: to all."""
        if isinstance(values, int):
            return self.raw(key(number, VARINT) + varint(values), where)
        return self._field(key(number, VARINT), _varints(values), where)

    def fixed64(self, number: int, values: NDArray[Any], where: Chosen | None = None) -> Rows:
        """Add an integer or a float of 64 bits, all eight bytes of it."""
        wire = np.ascontiguousarray(values.astype(values.dtype.newbyteorder("<")))
        return self._field(key(number, FIXED64), wire.view(np.uint8).reshape(self.n, 8), where)

    def message(self, number: int, inner: Rows, where: Chosen | None = None) -> Rows:
        """Add a message of as many rows."""
        self._field(key(number, BYTES), _varints(inner.lengths), where)
        for part, chosen in inner._parts:
            both = chosen if where is None else where if chosen is None else chosen & where
            self._parts.append((part, both))
        return self

    def raw(self, data: bytes, where: Chosen | None = None) -> Rows:
        """Add the same bytes to all messages that are chosen."""
        one = np.frombuffer(data, np.uint8)
        self._parts.append((np.broadcast_to(one, (self.n, one.size)), where))
        return self

    def _field(self, head: bytes, row: Bytes, where: Chosen | None) -> Rows:
        self.raw(head, where)
        self._parts.append((row, where))
        return self

    @property
    def lengths(self) -> Times:
        """Return how many bytes each message has, shape (n,)."""
        found = np.zeros(self.n, np.int64)
        for part, chosen in self._parts:
            found += part.shape[1] if chosen is None else chosen * part.shape[1]
        return found

    def encoded(self) -> bytes:
        """Return all messages, one behind the other."""
        width = sum(part.shape[1] for part, _ in self._parts)
        table = np.empty((self.n, width), np.uint8)
        all_have = all(chosen is None for _, chosen in self._parts)
        kept = np.empty((0, 0) if all_have else (self.n, width), np.bool_)
        at = 0
        for part, chosen in self._parts:
            place = slice(at, at + part.shape[1])
            table[:, place] = part
            if not all_have:
                kept[:, place] = True if chosen is None else chosen[:, None]
            at += part.shape[1]
        return table.tobytes() if all_have else table[kept].tobytes()


def _varints(values: Times) -> Bytes:
    """Return integers as varints of one width, shape (n, width)."""
    left = values.astype(np.uint64)
    width = max(1, -(-int(left.max(initial=0)).bit_length() // 7))
    row = np.empty((values.size, width), np.uint8)
    for place in range(width):
        row[:, place] = (left & np.uint64(0x7F)).astype(np.uint8) | (0x80 if place < width - 1 else 0)
        left >>= np.uint64(7)
    return row


def key(number: int, wire: int) -> bytes:
    """Return what a field begins with."""
    return varint(number << 3 | wire)


def varint(value: int) -> bytes:
    """Return an integer in as few bytes as it needs; one below 0 has ten."""
    left, found = value & (1 << 64) - 1, bytearray()
    while left > 0x7F:
        found.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*found, left])


def message(*fields: tuple[int, int | bytes | str | Sequence[bytes]]) -> bytes:
    """Return one message from numbers of fields and values: an integer, bytes, text, or several messages."""
    found = b""
    for number, value in fields:
        if isinstance(value, int):
            found += key(number, VARINT) + varint(value)
            continue
        value = value.encode() if isinstance(value, str) else value
        several = [value] if isinstance(value, bytes) else value
        found += b"".join(key(number, BYTES) + varint(len(each)) + each for each in several)
    return found
