# SPDX-License-Identifier: Apache-2.0
"""How a 5 Series MSO writes replies: headers, long and short words, numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hw.virtual.oscilloscope.dialect import Raw, Word
from hw.virtual.oscilloscope.scpi_message import short_form
from hw.virtual.oscilloscope.scpi_tree import Suffixes

NOT_A_NUMBER = "9.91E+37"


class QuotedString(str):
    """A string, in double quotes on the wire."""

    __slots__ = ()


class Statistic(float):
    """A result of a measurement: fifteen digits."""

    __slots__ = ()


class Fields(tuple[tuple[str, object], ...]):
    """The reply to a query of a whole group: names below the group's header, and values."""

    __slots__ = ()


def engineering(value: float, decimals: int) -> str:
    """Return a number with an exponent that three divides, as the manuals print them: `4.0000E-9`."""
    if not math.isfinite(value):
        return NOT_A_NUMBER
    if value == 0:
        return "0.0E+0"
    exponent = math.floor(math.log10(abs(value)) / 3) * 3
    text = f"{value / 10.0**exponent:.{decimals}f}"
    if abs(float(text)) >= 1000:
        exponent += 3
        text = f"{value / 10.0**exponent:.{decimals}f}"
    return f"{text}E{exponent:+d}"


def statistic(value: float) -> str:
    """Return a result with all its digits: `23.5741246494459E-3`, and no exponent where it would be 0."""
    text = engineering(value, 13)
    if text in {NOT_A_NUMBER, "0.0E+0"}:
        return text
    mantissa, _, exponent = text.partition("E")
    mantissa = mantissa.rstrip("0").rstrip(".")
    return mantissa if exponent == "+0" else f"{mantissa}E{exponent}"


def word(text: str, verbose: bool) -> str:
    """Return a word in capitals, long or short."""
    return text.upper() if verbose else short_form(text).upper()


def header(pattern: str, suffixes: Suffixes, verbose: bool) -> str:
    """Return the header of a reply, with a colon before it."""
    numbers = iter(suffixes)
    parts = [
        word(part.removesuffix("<n>"), verbose) + (str(next(numbers)) if part.endswith("<n>") else "")
        for part in pattern.split(":")
    ]
    return ":" + ":".join(parts)


def value_text(value: object, verbose: bool) -> str:
    """Return a value as it stands in a reply."""
    match value:
        case bool():
            return str(int(value))
        case int():
            return str(value)
        case Statistic():
            return statistic(value)
        case float():
            return engineering(value, 4)
        case QuotedString():
            return '"' + value.replace('"', "'") + '"'
        case Word():
            return word(value, verbose)
        case Raw():
            return value
        case _:
            raise AssertionError(f"no form for {value!r}")


def group_text(pattern: str, fields: Sequence[tuple[str, object]], with_header: bool, verbose: bool) -> str:
    """Return a group of settings: `:WFMOUTPRE:BYT_NR 1;BIT_NR 8;...`, or the values alone."""
    if not with_header:
        return ";".join(value_text(value, verbose) for _, value in fields)
    parts = [f"{word(name, verbose)} {value_text(value, verbose)}" for name, value in fields]
    return f"{header(pattern, (), verbose)}:{';'.join(parts)}"
