# SPDX-License-Identifier: Apache-2.0
"""Values as a reader wants them: times and rates in the unit that suits them, others as they are."""

from __future__ import annotations

import math
from collections.abc import Iterable

DIGITS, DIGITS_MAX = 4, 17
"""Significant digits of a value: as a rule, and those that tell any two floats apart."""

NO_VALUE = "\u2013"
"""Shown where there is no value: an en dash."""

MINUS = "\u2212"
"""The minus sign: as wide as a digit, and never broken off its number."""

NS_PER_US = 1_000
NS_PER_MS = 1_000_000
NS_PER_S = 1_000_000_000

_STEPS = {
    "ns": ((NS_PER_S, "s"), (NS_PER_MS, "ms"), (NS_PER_US, "µs")),
    "bytes/s": ((10**9, "GB/s"), (10**6, "MB/s"), (10**3, "KB/s")),
}
"""Larger units of a unit, and what each is in it; bytes by thousands, as the papers count."""


def format_value(value: float | None, unit: str, digits: int = DIGITS) -> str:
    """Return a value with its unit, to `digits` significant digits; an en dash where there is none.

    Nanoseconds become s, ms or µs: 1234567 ns is `1.235 ms`, 10000000 ns is `10 ms`. Bytes/s become GB/s,
    MB/s or KB/s. The value is rounded for the eye only; verdicts never use this text.
    """
    return _format(value, unit, digits, strip=True)


def format_measured(value: float | None, unit: str, digits: int = DIGITS) -> str:
    """Return a measured value: like `format_value`, but with the zeros that say how well it is known."""
    return _format(value, unit, digits, strip=False)


def digits_to_tell(value: float | None, edges: Iterable[float | None], unit: str) -> int:
    """Return with how many digits a value does not look like an edge that it is not; at least 4.

    Of 10000400 ns beside a limit of 10 ms six: 10.0004 ms.
    """
    others = [edge for edge in edges if edge not in (None, value)]
    if value is None:
        return DIGITS
    return next(
        (
            digits
            for digits in range(DIGITS, DIGITS_MAX)
            if format_value(value, unit, digits) not in [format_value(edge, unit, digits) for edge in others]
        ),
        DIGITS_MAX,
    )


def _format(value: float | None, unit: str, digits: int, *, strip: bool) -> str:
    if value is None or not math.isfinite(value):
        return NO_VALUE
    factor, name = next((step for step in _STEPS.get(unit, ()) if abs(value) >= step[0]), (1, unit))
    exact = strip or (isinstance(value, int) and factor == 1)
    return f"{_significant(value / factor, digits, strip=exact)} {name}".rstrip()


def exact_value(value: float | None, unit: str) -> str:
    """Return a value as it was recorded, digits grouped: `1 234 567 ns`."""
    if value is None or not math.isfinite(value):
        return NO_VALUE
    text = f"{value:,}".replace(",", "\u202f").replace("-", MINUS)
    return f"{text} {unit}".rstrip()


def format_bytes(size_bytes: int) -> str:
    """Return a size in B or KB of 1000 bytes, as the papers count."""
    return f"{size_bytes} B" if size_bytes < 1000 else f"{size_bytes / 1000:g} KB"


def _significant(value: float, digits: int, *, strip: bool) -> str:
    if value == 0:
        return "0"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    text = f"{value:.{decimals}f}"
    text = text.rstrip("0").rstrip(".") if strip and "." in text else text
    return text.replace("-", MINUS)
