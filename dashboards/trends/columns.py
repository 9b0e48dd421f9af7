# SPDX-License-Identifier: Apache-2.0
"""Columns of values as short JSON, without losing a digit.

A column is one of: a plain list; `{"c": value}`, the same value in every row; `{"r": [value, rows, …]}`, runs
of equal values. A row without a value is `null`. Rows of a series name their run by its place in the list of
runs; `spans` writes these places as `[first, number, …]`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

Scalar = float | int | bool | str | None
Column = list[Scalar] | dict[str, Scalar] | dict[str, list[Scalar]]

_EXACT_MAX = 1 << 53
"""Largest integer up to which a browser's numbers have every integer."""


def column(values: Sequence[Scalar]) -> Column:
    """Return the shortest of the forms for these values."""
    plain = [_short(value) for value in values]
    groups = [(value, len(list(same))) for (_, value), same in groupby(plain, key=lambda v: (type(v), v))]
    if len(groups) == 1:
        return {"c": groups[0][0]}
    if 4 * len(groups) <= len(plain):
        return {"r": [item for group in groups for item in group]}
    return plain


def spans(places: Iterable[int]) -> list[int]:
    """Return rising integers as `[first, number, first, number, …]` of those that follow each other."""
    found: list[int] = []
    for place in places:
        if found and place == found[-2] + found[-1]:
            found[-1] += 1
        else:
            found += [place, 1]
    return found


def _short(value: Scalar) -> Scalar:
    """Return a float that is an integer as one, so that JSON writes no `.0`."""
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT_MAX:
        return int(value)
    return value
