# SPDX-License-Identifier: Apache-2.0
"""What can be measured, and of what: the rows of all capabilities.

Records, outcome, points of the store, followed series and distributions read it here. `build_record` refuses
a quantity that no capability has.
"""

from __future__ import annotations

from reports.capabilities import rows_of_all
from reports.capability import Quantity, Series

AXES: dict[str, str] = rows_of_all(lambda capability: capability.axes)
"""What a value may be of besides target and stack, the first one first in titles, and the word before it."""
SERIES: dict[str, Series] = rows_of_all(lambda capability: capability.series)
QUANTITIES: dict[str, Quantity] = rows_of_all(lambda capability: capability.quantities)
PART_MEANINGS: dict[str, str] = rows_of_all(lambda capability: capability.part_meanings)
"""Parts of U, by the names that records have for them."""
INSTRUMENT_CHECKS: frozenset[str] = frozenset(name for name, row in QUANTITIES.items() if row.is_check)
"""Quantities by which the bench checks itself: they cannot fail the target, only leave it undecided."""


def axis_words(axis: str, value: str) -> str:
    """Return a value of an axis as pages show it."""
    return f"{AXES.get(axis) or ''} {value}".lstrip()


def producer_of(stream: int) -> int:
    """Return the producer that sends a stream: an id is its number, then a digit for the message type."""
    return stream // 10


def family_of(axis: str, value: str) -> str:
    """Return in words what a value of an axis is one of several of; empty: it stands by itself."""
    return f"producer {producer_of(int(value))}" if axis == "stream" and value.isdecimal() else ""


def has_distribution(quantity: str) -> bool:
    """Tell whether the evidence of a record holds a distribution; a difference of two samples has none."""
    return quantity in QUANTITIES and QUANTITIES[quantity].has_distribution
