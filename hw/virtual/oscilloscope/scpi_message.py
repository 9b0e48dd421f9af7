# SPDX-License-Identifier: Apache-2.0
"""The syntax of program messages: units, headers, parameters (IEEE 488.2, chapter 7; SCPI-1999, volume 1)."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from hw.virtual.oscilloscope.scpi_errors import ScpiError

V = TypeVar("V")

_HEADER = re.compile(
    r"\s*(\*[A-Za-z]+|:?[A-Za-z]\w*(?::[A-Za-z]\w*)*)(\?)?(?:\s+(.*))?\s*", re.ASCII | re.DOTALL
)
_NUMBER = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*([A-Za-z]*)", re.ASCII)
_UNITS = ("S", "V", "HZ")
_PREFIXES = {"": 1.0, "K": 1e3, "M": 1e-3, "U": 1e-6, "N": 1e-9, "P": 1e-12, "G": 1e9}
_NO_MILLI = {"": 1.0, "MHZ": 1e6}
_SHOWN = 40


@dataclass(frozen=True)
class Unit:
    """One command or query of a message.

    Attributes:
        header: Mnemonics from the root, in upper case; a common command is one that begins with `*`.
        query: True with a question mark.
        parameters: As written, without the blanks around them.
    """

    header: tuple[str, ...]
    query: bool
    parameters: Parameters


def split_outside_quotes(text: str, separator: str) -> list[str]:
    """Split at a character, except where it stands in a quoted string.

    Raises:
        ScpiError: A string does not end.
    """
    parts: list[str] = []
    begin, quote = 0, ""
    for place, character in enumerate(text):
        if quote:
            if character == quote:
                quote = ""
        elif character in "\"'":
            quote = character
        elif character == separator:
            parts.append(text[begin:place])
            begin = place + 1
    if quote:
        raise ScpiError(151, text[begin : begin + _SHOWN])
    parts.append(text[begin:])
    return parts


def parse_unit(text: str, path: tuple[str, ...]) -> Unit:
    """Parse one unit.

    Args:
        text: Between two semicolons.
        path: Where a header without a leading colon begins: that of the unit before, without its last part.

    Raises:
        ScpiError: It is no program message unit.
    """
    match = _HEADER.fullmatch(text)
    if match is None:
        raise ScpiError(102, text.strip()[:_SHOWN])
    name, question, rest = match.groups()
    name = name.upper()
    if name.startswith("*"):
        header: tuple[str, ...] = (name,)
    elif name.startswith(":"):
        header = tuple(name[1:].split(":"))
    else:
        header = (*path, *name.split(":"))
    parameters = [part.strip() for part in split_outside_quotes(rest, ",")] if rest and rest.strip() else []
    if any(not part for part in parameters):
        raise ScpiError(102, text.strip()[:_SHOWN])
    return Unit(header, question is not None, Parameters(tuple(parameters)))


@dataclass(frozen=True)
class Parameters:
    """The parameters of a command, and how they are read. Every reader raises ScpiError."""

    texts: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.texts)

    def expect(self, low: int, high: int | None = None) -> None:
        """Check how many there are."""
        if len(self.texts) < low:
            raise ScpiError(109)
        if len(self.texts) > (low if high is None else high):
            raise ScpiError(108, self.texts[-1][:_SHOWN])

    def number(self, index: int = 0) -> float:
        """Return a number in base units: `5E-9`, `5 ns`, `5NS`."""
        text = self.texts[index]
        match = _NUMBER.fullmatch(text)
        if match is None:
            raise ScpiError(120 if text[:1].isdigit() else 104, text[:_SHOWN])
        value = float(match[1]) * _multiplier(match[2].upper())
        if not math.isfinite(value):
            raise ScpiError(222, text[:_SHOWN])
        return value

    def number_within(self, low: float, high: float, index: int = 0) -> float:
        """Return a number of a range."""
        value = self.number(index)
        if not low <= value <= high:
            raise ScpiError(222, self.texts[index][:_SHOWN])
        return value

    def integer_within(self, low: int, high: int, index: int = 0) -> int:
        """Return a whole number of a range."""
        value = self.number_within(low, high, index)
        if value != round(value):
            raise ScpiError(222, self.texts[index][:_SHOWN])
        return round(value)

    def choice(self, words: Mapping[str, V], index: int = 0) -> V:
        """Return what a word stands for. Keys are written as in the guides: `POSitive`."""
        text = self.texts[index].upper()
        for word, value in words.items():
            if text in {short_form(word), word.upper()}:
                return value
        raise ScpiError(224 if re.fullmatch(r"[A-Z]\w*", text, re.ASCII) else 104, text[:_SHOWN])

    def boolean(self, index: int = 0) -> bool:
        """Return ON or OFF; a number is rounded, and all but 0 is ON."""
        text = self.texts[index].upper()
        if text in {"ON", "OFF"}:
            return text == "ON"
        return round(self.number(index)) != 0

    def string(self, index: int = 0) -> str:
        """Return the content of a quoted string."""
        text = self.texts[index]
        if len(text) < 2 or text[0] not in "\"'" or text[-1] != text[0]:
            raise ScpiError(151, text[:_SHOWN])
        return text[1:-1]


def short_form(word: str) -> str:
    """Return the short form of a word of the guides: the part in capitals, with the digits at the end."""
    digits = re.search(r"\d*$", word)
    return re.sub(r"[a-z].*", "", word) + (digits.group() if digits and re.search("[a-z]", word) else "")


def _multiplier(suffix: str) -> float:
    if suffix in _NO_MILLI:
        return _NO_MILLI[suffix]
    for unit in _UNITS:
        if suffix.endswith(unit) and suffix.removesuffix(unit) in _PREFIXES:
            return _PREFIXES[suffix.removesuffix(unit)]
    raise ScpiError(131, suffix[:_SHOWN])
