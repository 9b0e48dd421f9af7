# SPDX-License-Identifier: Apache-2.0
"""Values as a reader wants them: nanoseconds in the unit that suits them, other units as they are."""

from __future__ import annotations

import math

NO_VALUE = "\u2013"
"""Shown where there is no value: an en dash."""

NS_PER_US = 1_000
NS_PER_MS = 1_000_000
NS_PER_S = 1_000_000_000

_TIME_STEPS = ((NS_PER_S, "s"), (NS_PER_MS, "ms"), (NS_PER_US, "µs"))


def format_value(value: float | None, unit: str, digits: int = 4) -> str:
    """Return a value with its unit, to `digits` significant digits; an en dash where there is none.

    Nanoseconds become s, ms or µs: 1234567 ns is `1.235 ms`. The value is rounded for the eye only;
    verdicts never use this text.
    """
    if value is None or not math.isfinite(value):
        return NO_VALUE
    if unit != "ns":
        return f"{_significant(value, digits)} {unit}".rstrip()
    for factor, name in _TIME_STEPS:
        if abs(value) >= factor:
            return f"{_significant(value / factor, digits)} {name}"
    return f"{_significant(value, digits)} ns"


def exact_value(value: float | None, unit: str) -> str:
    """Return a value as it was recorded, digits grouped: `1 234 567 ns`."""
    if value is None or not math.isfinite(value):
        return NO_VALUE
    text = f"{value:,}".replace(",", "\u202f")
    return f"{text} {unit}".rstrip()


def format_bytes(size_bytes: int) -> str:
    """Return a size in B or KB of 1000 bytes, as the papers count."""
    return f"{size_bytes} B" if size_bytes < 1000 else f"{size_bytes / 1000:g} KB"


def _significant(value: float, digits: int) -> str:
    if value == 0:
        return "0"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    text = f"{value:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
