# SPDX-License-Identifier: Apache-2.0
"""What a key of a requirements file may hold: of these a capability makes what its quantities take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from reports.units import NS_PER_S, NS_PER_US


@dataclass(frozen=True, slots=True)
class Key:
    """What a key may hold, in words and as a check, and whether it has to be there."""

    wanted: str
    fits: Callable[[Any], bool]
    is_required: bool = True


Keys = dict[str, Key]


def text(*choices: str) -> Key:
    """Return a key of a text: one of the choices; without any each that is not empty."""
    if choices:
        return Key(f"one of {', '.join(choices)}", lambda value: value in choices)
    return Key("a text that is not empty", lambda value: isinstance(value, str) and bool(value))


def whole(low: int, high: int) -> Key:
    """Return a key of a whole number in low..high."""
    return Key(f"a whole number in {low}..{high}", lambda value: type(value) is int and low <= value <= high)


def number(low: float, high: float) -> Key:
    """Return a key of a number in low..high."""
    return Key(
        f"a number in {low:g}..{high:g}", lambda value: type(value) in (int, float) and low <= value <= high
    )


def optional(**keys: Key) -> Keys:
    """Return keys that need not be there."""
    return {name: replace(key, is_required=False) for name, key in keys.items()}


def upper_time(low_ns: int, high_ns: int) -> Keys:
    """Return the keys of an upper limit in low_ns..high_ns, stated in µs or in ns."""
    us = whole(max(1, low_ns // NS_PER_US), high_ns // NS_PER_US)
    return optional(upper_us=us, upper_ns=whole(low_ns, high_ns))


COUNT = whole(0, 1_000_000_000)
SAMPLES = whole(1, 1_000_000_000)
UP_TO_A_SECOND = upper_time(1, NS_PER_S)
LOST_PERCENT = optional(lost_percent=number(0, 100))
MASK = optional(mask=text(), mask_from_tau_s=number(0, 1e6), mask_to_tau_s=number(0, 1e6))
