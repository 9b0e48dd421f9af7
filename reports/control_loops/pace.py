# SPDX-License-Identifier: Apache-2.0
"""When a ring's messages were due at a steady pace, and how late the source's own clock made them.

A source sends by its clock. Whatever corrects that clock, slows it down or lets it run faster, moves what it
sends against a steady pace, though no program was late by its own clock.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from reports.causes.suspects import Times
from reports.control_loops.ring import Ring
from reports.dependence import Floats
from reports.timeline.sources import read_two_way_record

ON_TIME = 0.1
"""Of the messages, and of the readings of a clock, at least so many are on time."""
READINGS = 5
"""Of a clock: the median of so many counts."""
LEAST_NS = 300_000
"""A clock that is off by less may be its readings' own scatter."""


def due_ns(ring: Ring, folder: Path) -> Times:
    """Return when each message of the whole was due on the timeline, shape (n,): not after its writing.

    The source writes one an interval by its own clock, whose rate exchanges tell, or, where nobody asked it,
    the medians of both halves of the messages; who is on time is early.

    Raises:
        RecordError: The exchanges cannot be read.
    """
    number, sent_ns = ring.whole.number, ring.whole.sent.tai_ns
    nominal_ns = (number - number[0]) * (ring.facts.interval_us * 1000)
    behind = (sent_ns - sent_ns[0] - nominal_ns).astype(np.float64)
    course = _course(ring, folder)
    passed: Floats = nominal_ns.astype(np.float64)
    behind -= passed * (_slope(passed, behind) if course is None else _slope(*course))
    lag_ns = np.rint(behind - np.quantile(behind, ON_TIME)).astype(np.int64)
    return sent_ns - np.maximum(lag_ns, 0)


def clock_lag_ns(ring: Ring, due: Times, folder: Path) -> Times:
    """Return by how much the source's own clock was behind a steady one when messages were due, shape (n,).

    Where nobody asked that clock, or it was off by less than its readings tell, it was not.

    Raises:
        RecordError: The exchanges cannot be read.
    """
    course = _course(ring, folder)
    if course is None:
        return np.zeros(len(due), np.int64)
    at, behind = course
    lag: Floats = behind - at * _slope(at, behind)
    lag -= float(np.quantile(lag, ON_TIME))
    wanted: Floats = (due - ring.whole.sent.tai_ns[0]).astype(np.float64)
    found: Floats = np.interp(wanted, at, lag)
    return np.where(found > LEAST_NS, np.rint(found), 0).astype(np.int64)


def _course(ring: Ring, folder: Path) -> tuple[Floats, Floats] | None:
    """Return times since the first message, and by how much the source's clock is behind then, in ns.

    None: nobody asked it, or too seldom.
    """
    source, sent_ns = ring.facts.ends[0], ring.whole.sent.tai_ns
    if source.exchanges is None:
        return None
    record = read_two_way_record(folder / source.exchanges, source.node)
    during = (record.tai_ns >= sent_ns[0]) & (record.tai_ns <= sent_ns[-1])
    if during.sum() < 4 * READINGS:
        return None
    at_ns = (record.tai_ns[during] - sent_ns[0]).astype(np.float64)
    behind = (record.tai_ns[during] - record.local_ns[during]).astype(np.float64)
    smooth: Floats = np.median(np.lib.stride_tricks.sliding_window_view(behind, READINGS), axis=1)
    return at_ns[READINGS // 2 : READINGS // 2 + len(smooth)], smooth - smooth[0]


def _slope(at: Floats, value: Floats) -> float:
    """Return that of the line through the medians of both halves."""
    half = len(at) // 2
    (first, low), (last, high) = (
        (float(np.median(at[part])), float(np.median(value[part])))
        for part in (slice(half), slice(half, None))
    )
    return (high - low) / (last - first)
