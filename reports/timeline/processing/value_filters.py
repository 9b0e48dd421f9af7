# SPDX-License-Identifier: Apache-2.0
"""Filters from events to numbers: values, lengths with their U, histograms, statistics."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reports.errors import RecordError
from reports.timeline.processing.data import Events, Histogram, Pairs, Table, Values
from reports.timeline.processing.filters import Context, named_filter

BUCKETS_MAX = 10_000


@named_filter("values")
def values(events: Events, *, column: str) -> Values:
    """Give a column of events as values; without U, and where it is a time's U or duration, in ns.

    Args:
        events: Any.
        column: Its name.
    """
    found, there = events.column(column)
    if found.dtype.kind == "S":
        raise RecordError(f"column {column!r}: texts are no values")
    kept = np.flatnonzero(there & np.isfinite(found))
    value, none = found[kept], np.zeros(kept.size, found.dtype)
    unit = "ns" if column.endswith("_ns") else ""
    at_ns, tag = events.numbers["tai_ns"][kept], events.numbers["tag"][kept]
    return Values(unit, at_ns, tag, value, none, value, value, len(events) - kept.size)


@named_filter("interval")
def interval(pairs: Pairs) -> Values:
    """Give what lies between cause and effect, in ns: U by both ends' U, and the hard interval.

    Args:
        pairs: Begin and end.
    """
    begin, end = pairs.causes.numbers, pairs.effects.numbers
    first, second = begin["u_ns"].astype(np.float64), end["u_ns"].astype(np.float64)
    return Values(
        "ns",
        begin["tai_ns"],
        end["tag"],
        end["tai_ns"] - begin["tai_ns"],
        np.ceil(np.sqrt(first * first + second * second)).astype(np.int64),
        end["earliest_ns"] - begin["latest_ns"],
        end["latest_ns"] - begin["earliest_ns"],
    )


@named_filter("histogram")
def histogram(
    found: Values, *, low: float | None = None, high: float | None = None, buckets: int = 50
) -> Histogram:
    """Give how many values lie in buckets of one width.

    Args:
        found: Any.
        low: Lower edge of the first bucket; left out: the least value.
        high: Upper edge of the last one, which has it in it; left out: the greatest value.
        buckets: How many.
    """
    if not 1 <= buckets <= BUCKETS_MAX:
        raise RecordError(f"buckets: must be from 1 to {BUCKETS_MAX}, found {buckets}")
    value = found.value
    first = float(value.min() if low is None and value.size else low or 0)
    last = float(value.max() if high is None and value.size else first + 1 if high is None else high)
    if first == last and (low is None or high is None):
        last = math.nextafter(first + 1, math.inf)
    edges = np.linspace(first, last, buckets + 1)
    if not (np.diff(edges) > 0).all():
        raise RecordError(f"low, high: no {buckets} buckets fit between {first} and {last}")
    below, above = value < first, value > last
    inside = value[~(below | above)].astype(np.float64)
    bucket = np.minimum(np.searchsorted(edges, inside, side="right") - 1, buckets - 1)
    counts = np.bincount(bucket, minlength=buckets).astype(np.int64)
    return Histogram(found.unit, edges, counts, int(below.sum()), int(above.sum()))


def _rank(ascending: NDArray[Any], percent: int) -> Any:
    """Return the least value that at least so many percent of the values are not above."""
    return ascending[max(-(-percent * ascending.size // 100) - 1, 0)].item()


def _sum(value: NDArray[Any]) -> float | int:
    """Return the sum, exact of whole numbers, rounded once of others: the same on every machine."""
    if value.dtype.kind == "i":
        return (int((value >> 32).sum()) << 32) + int((value & 0xFFFFFFFF).sum())
    return math.fsum(value.tolist())


@named_filter("statistics")
def statistics(context: Context, *found: Values) -> Table:
    """Give count, least, median, p99, greatest, mean and standard deviation, a row for each input.

    Args:
        context: Of the step.
        found: Any; median and p99 are values that occur, the deviation is that of a sample.
    """
    keys = ("of", "unit", "count", "left_out", "min", "median", "p99", "max", "mean", "deviation")
    rows: list[list[Any]] = []
    for name, each in zip(context.inputs, found, strict=True):
        n, ascending = len(each), np.sort(each.value)
        row: list[Any] = [name, each.unit, n, each.left_out, None, None, None, None, None, None]
        if n:
            median, p99, mean = _rank(ascending, 50), _rank(ascending, 99), _sum(each.value) / n
            row[4:9] = [ascending[0].item(), median, p99, ascending[-1].item(), mean]
        if n > 1:
            away = each.value.astype(np.float64) - row[8]
            row[9] = math.sqrt(math.fsum((away * away).tolist()) / (n - 1))
        rows.append(row)
    return Table({key: [row[at] for row in rows] for at, key in enumerate(keys)})


@named_filter("unmatched")
def unmatched(context: Context, *pairs: Pairs) -> Table:
    """Give how many pairs there are, and causes and effects without the other, a row for each input.

    Args:
        context: Of the step.
        pairs: Any.
    """
    return Table(
        {
            "of": list(context.inputs),
            "pairs": [len(each) for each in pairs],
            "unmatched_causes": [each.unmatched_causes for each in pairs],
            "unmatched_effects": [each.unmatched_effects for each in pairs],
        }
    )
