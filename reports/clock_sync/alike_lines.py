# SPDX-License-Identifier: Apache-2.0
"""Lines of a large log that differ in their numbers alone, read together.

A line that its reader has taken, or refused, is a pattern: which of its columns are numbers is known, all
others have to be the same. Lines of the same length are held against it in arrays. What no pattern takes is
left for the reader, line by line; so a log comes to the same either way, and `tests/reports/clock_sync` holds
the one against the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

Bytes: TypeAlias = NDArray[np.uint8]
Flags: TypeAlias = NDArray[np.bool_]
Whole: TypeAlias = NDArray[np.int64]
Sign: TypeAlias = Literal["none", "minus", "any", "always"]
"""Of a number: it has none, may have a minus, either, or always has one."""

PATTERNS_MAX = 48
"""Of lines of one length; a log of more kinds is read line by line."""
LINES_MIN = 64
"""Fewer lines of one length are no bulk."""
_CHUNK = 1 << 17
_DIGITS_MAX = 15
"""Of a number, so that it fits, with the powers of ten that it is multiplied by, into 64 bits or 53."""
_ZERO, _SPACE, _PLUS, _MINUS = b"0 +-"
_TENS = np.array([10**k for k in range(19)], np.int64)
_POWERS = np.array([10.0**k for k in range(23)])


@dataclass(frozen=True, slots=True)
class Number:
    """Columns of a number; the spaces and the sign before its digits are part of `begin` to `end`.

    Attributes:
        begin: Of its whole part.
        end: Behind it.
        sign: What may stand before its first digit.
        fraction: Columns of the digits behind its point.
        exponent: Columns of the sign and the digits of its exponent.
    """

    begin: int
    end: int
    sign: Sign = "none"
    fraction: tuple[int, int] | None = None
    exponent: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Pattern:
    """What lines are like.

    Attributes:
        numbers: Those that are read.
        digits: Columns in which any digit may stand.
    """

    numbers: tuple[Number, ...]
    digits: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Decimals:
    """Numbers as they were written: mantissa by 10 ** power."""

    mantissa: Whole
    power: Whole

    def fits(self, shift: int) -> Flags:
        """Return which of them, times 10 ** shift, are exact here until they are rounded once."""
        power = self.power + shift
        room = _TENS[np.clip(18 - power, 0, 18)]
        return (power <= 18) & (power >= -18) & (np.abs(self.mantissa) < room)

    def rounded(self, shift: int) -> Whole:
        """Return them times 10 ** shift, half to even; of those that fit."""
        power = np.clip(self.power + shift, -18, 18)
        size = np.abs(self.mantissa)
        by = _TENS[np.maximum(-power, 0)]
        whole, rest = size // by, size % by
        is_up = (rest > by - rest) | ((rest == by - rest) & (whole % 2 == 1))
        return np.sign(self.mantissa) * np.where(
            power >= 0, size * _TENS[np.maximum(power, 0)], whole + is_up
        )

    def floats(self) -> NDArray[np.float64]:
        """Return them as the nearest floats, as Python reads them; of those that fit a shift of 0."""
        power = np.clip(self.power, -22, 22)
        large = self.mantissa * _POWERS[np.maximum(power, 0)]
        return np.where(power >= 0, large, self.mantissa / _POWERS[np.maximum(-power, 0)])


class Lines:
    """Where the lines of a text are."""

    def __init__(self, text: str) -> None:
        """Find them; the last one, which has no end, is none of them."""
        self.data: Bytes = np.frombuffer(text.encode("utf-8", errors="surrogatepass"), np.uint8)
        self._ends = np.flatnonzero(self.data == ord("\n"))
        self._begins = np.concatenate([[0], self._ends[:-1] + 1]) if len(self._ends) else self._ends
        self.is_left: Flags = np.ones(len(self._ends) + 1, bool)
        """Of each line, the last one among them: whether nobody has taken it yet."""

    def alike(self) -> list[tuple[int, Whole]]:
        """Return lengths, in bytes, and the places of all lines of each, where those are many."""
        lengths = self._ends - self._begins
        order = np.argsort(lengths, kind="stable")
        cuts = np.flatnonzero(np.diff(lengths[order])) + 1
        groups = np.split(order, cuts) if len(order) else []
        return [
            (int(lengths[each[0]]), each) for each in groups if len(each) >= LINES_MIN and lengths[each[0]]
        ]

    def columns(self, places: Whole, length: int) -> Bytes:
        """Return the bytes of lines of a length: a row a column of theirs."""
        first, last = places[0], places[-1]
        if last - first == len(places) - 1:  # one behind the other
            begin = self._begins[first]
            rows = self.data[begin : begin + len(places) * (length + 1)].reshape(-1, length + 1)[:, :length]
        else:
            rows = sliding_window_view(self.data, length)[self._begins[places]]
        return np.ascontiguousarray(rows.T)

    def take(self, places: Whole) -> None:
        """Note that lines have been read."""
        self.is_left[places] = False

    def left(self) -> list[int]:
        """Return the places of the lines that nobody has taken."""
        return np.flatnonzero(self.is_left).tolist()


def take_alike(
    lines: Lines,
    texts: Sequence[str],
    pattern_of: Callable[[str], Pattern | None],
    read: Callable[[str, Pattern, Whole, Bytes], Flags | None],
) -> None:
    """Read lines together, as far as they are like one that is read by itself.

    Args:
        lines: Where they are; those that were read are taken.
        texts: Of each line.
        pattern_of: The pattern of a line; None: it is read by itself.
        read: Reads a line by itself, and those like it, by their places and bytes; returns which of them it
            took, or None.
    """
    for length, every in lines.alike():
        left = every
        for _ in range(PATTERNS_MAX):
            if len(left) < LINES_MIN:
                break
            text = texts[int(left[0])]
            pattern = pattern_of(text) if len(text) == length and text.isascii() else None
            if pattern is None:
                left = left[1:]
                continue
            took = np.zeros(len(left), bool)
            for begin in range(0, len(left), _CHUNK):
                places = left[begin : begin + _CHUNK]
                data = lines.columns(places, length)
                same = _is_alike(data, np.frombuffer(text.encode(), np.uint8), pattern)
                is_all = same.all()
                found = None
                if same.any():
                    found = read(text, pattern, places[same], data if is_all else data[:, same])
                if found is not None:
                    took[begin : begin + _CHUNK][np.flatnonzero(same)[found]] = True
            took_places = left[took]
            lines.take(took_places)
            took[0] = True  # of whatever is left, the first is read by itself
            left = left[~took]


def _is_alike(data: Bytes, line: Bytes, pattern: Pattern) -> Flags:
    """Return which lines have digits and numbers where the pattern has them, and else the bytes of one."""
    varies = np.zeros(len(line), bool)
    varies[list(pattern.digits)] = True
    for number in pattern.numbers:
        for begin, end in (
            (number.begin, number.end),
            number.fraction or (0, 0),
            number.exponent or (0, 0),
        ):
            varies[begin:end] = True
    same = np.ones(data.shape[1], bool)
    for column in np.flatnonzero(~varies):
        same &= data[column] == line[column]
    for column in pattern.digits:
        same &= _is_digit(data[column])
    for number in pattern.numbers:
        same &= _is_whole(data[number.begin : number.end], number.sign)
        for begin, end in filter(None, (number.fraction, number.exponent)):
            is_exponent = (begin, end) == number.exponent
            if is_exponent:
                same &= _is_mark(data[begin], "any")
            same &= _is_digit(data[begin + is_exponent : end]).all(axis=0)
    return same


def _is_digit(data: Bytes) -> Flags:
    return (data - _ZERO) <= 9  # uint8: what lies below the digits is far above them


def _is_whole(data: Bytes, sign: Sign) -> Flags:
    """Return which lines have spaces, a sign as far as one may be, and digits up to the end."""
    digit, mark = _is_digit(data), _is_mark(data, sign)
    sound = digit[-1] & (digit | mark | (data == _SPACE)).all(axis=0)
    sound &= ((digit[:-1] | mark[:-1]) <= digit[1:]).all(axis=0)
    return sound & mark.any(axis=0) if sign == "always" else sound


def _is_mark(data: Bytes, sign: Sign) -> Flags:
    if sign == "none":
        return np.zeros(data.shape, bool)
    return data == _MINUS if sign == "minus" else (data == _MINUS) | (data == _PLUS)


def whole(data: Bytes) -> Whole:
    """Return the whole numbers of lines: digits, with a sign and spaces before them."""
    found = np.zeros(data.shape[1], np.int64)
    for column in data:
        digit = column - _ZERO
        found *= 10  # before the first digit it is 0
        found += np.where(digit <= 9, digit, 0)
    return np.where((data == _MINUS).any(axis=0), -found, found)


def decimals(data: Bytes, number: Number) -> Decimals:
    """Return the numbers of lines, with fraction and exponent."""
    part = data[number.begin : number.end]
    found = np.abs(whole(part))
    power = np.zeros(data.shape[1], np.int64)
    if number.fraction:
        begin, end = number.fraction
        found = found * _TENS[end - begin] + whole(data[begin:end])
        power -= end - begin
    if number.exponent:
        power += whole(data[slice(*number.exponent)])
    return Decimals(np.where((part == _MINUS).any(axis=0), -found, found), power)


def number_in(text: str, begin: int, end: int, sign: Sign, width_max: int) -> Number:
    """Return a whole number of a line, with the spaces before it but one that parts it from other words.

    Args:
        text: The line.
        begin: Where its sign or first digit is.
        end: Behind its last digit.
        sign: What may stand before its digits.
        width_max: Columns that it may take.
    """
    spaces = len(text[:begin]) - len(text[:begin].rstrip(" "))
    return Number(max(begin - max(spaces - 1, 0), end - width_max), end, sign)


def is_short(number: Number) -> bool:
    """Say whether a number, whatever its digits, is exact in what is worked out of it."""
    begin, end = number.fraction or (0, 0)
    return number.end - number.begin + end - begin <= _DIGITS_MAX + (number.sign != "none")
