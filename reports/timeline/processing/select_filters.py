# SPDX-License-Identifier: Apache-2.0
"""Filters that choose events, and that put events of several sources together."""

from __future__ import annotations

from math import ceil, floor, inf, isinf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reports.errors import RecordError
from reports.timeline.processing.data import Bools, Events, joined
from reports.timeline.processing.filters import ALL, Names, Range, named_filter


def within(column: NDArray[Any], between: Range) -> Bools:
    """Say which numbers lie in a range, to the last digit of both, shape (n,)."""
    low, high = between
    if column.dtype.kind == "i":
        low = low if isinf(low) else ceil(low)
        high = high if isinf(high) else floor(high)
    inside = np.ones(column.shape, np.bool_)
    if low != -inf:
        inside &= column >= low
    if high != inf:
        inside &= column <= high
    return inside


@named_filter("select")
def select(
    events: Events,
    *,
    node: Names = ALL,
    lane: Names = ALL,
    name: Names = ALL,
    tag: Range | None = None,
    time_ns: Range | None = None,
    since_first_ns: Range | None = None,
    column: str | None = None,
    between: Range | None = None,
    every: int = 1,
) -> Events:
    """Give those events for which all that is named is true.

    Args:
        events: Any.
        node: Its name.
        lane: Likewise.
        name: Likewise.
        tag: Of the event.
        time_ns: On the axis.
        since_first_ns: The same, from the first event of the input.
        column: With `between`: a column.
        between: Its values; what does not have it is left out.
        every: Of what is left the first, and each so manyeth behind it.
    """
    if (column is None) != (between is None):
        raise RecordError("column and between go together")
    if every < 1:
        raise RecordError(f"every: must be 1 or more, found {every}")
    chosen = np.ones(len(events), np.bool_)
    for key, names in (("node", node), ("lane", lane), ("name", name)):
        texts, codes = events.labels[key]
        if names is not ALL and texts:
            chosen &= np.array([names.match(text) for text in texts])[codes]
    tai_ns = events.numbers["tai_ns"]
    if tag is not None:
        chosen &= within(events.numbers["tag"], tag)
    if time_ns is not None:
        chosen &= within(tai_ns, time_ns)
    if since_first_ns is not None and len(events):
        chosen &= within(tai_ns - tai_ns[0], since_first_ns)
    if column is not None and between is not None:
        values, there = events.column(column)
        if values.dtype.kind == "S":
            raise RecordError(f"column {column!r}: texts have no range")
        chosen &= within(values, between) & there
    return events.take(np.flatnonzero(chosen)[::every])


@named_filter("join")
def join(*events: Events) -> Events:
    """Give all events of several steps in the order of their times.

    Args:
        events: By one clock.
    """
    return joined(events)
