# SPDX-License-Identifier: Apache-2.0
"""Clock records from what measures clocks: two-way time transfer, the time service, and chains of clocks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from reports.clock_sync.two_way_reference import read_offset_answer
from reports.errors import RecordError
from reports.timeline.clock_record import ClockLimits, ClockRecord, Times, nominal_ns
from reports.timeline.global_time import GlobalTime

ASYMMETRY_PERCENT = 50
"""The two ways of an exchange differ by at most so much of the round trip, as U takes it.

The same as the time service assumes where stamps are those of programs (docs/time-service.md).
"""
NEIGHBOURS = 64
"""The least round trip is looked for among so many exchanges on either side."""


def two_way_record(
    node: str,
    clock: str,
    exchanges: tuple[Times, Times, Times],
    *,
    is_counter: bool = False,
    limits: ClockLimits | None = None,
) -> ClockRecord:
    """Return a record from exchanges with the reference clock.

    The bound is half of the round trip. U takes what an exchange took beyond the shortest one near it as
    queued on one way, and the shortest one as asymmetric by `ASYMMETRY_PERCENT`.

    Args:
        node: Whose clock.
        clock: Its name.
        exchanges: Three arrays of shape (n,), in ns: TAI of the reference in the middle of an exchange, the
            clock less the reference then, half of the round trip.
        is_counter: Nobody can step it.
        limits: Of its oscillator; None: the usual ones.
    """
    tai_ns, offset_ns, half_ns = exchanges
    padded = np.pad(half_ns, NEIGHBOURS, mode="edge")
    least_ns = np.lib.stride_tricks.sliding_window_view(padded, 2 * NEIGHBOURS + 1).min(axis=1)
    u_ns = half_ns - least_ns + (least_ns * ASYMMETRY_PERCENT + 99) // 100
    return ClockRecord(
        node,
        clock,
        "two-way time transfer",
        is_counter,
        tai_ns + offset_ns,
        tai_ns,
        half_ns,
        np.minimum(u_ns, half_ns),
        limits or ClockLimits(),
    )


def read_two_way_record(path: Path, node: str, clock: str = "realtime") -> ClockRecord:
    """Read the answer of `bw-traffic offset`, which was asked by the node of the reference clock.

    Raises:
        RecordError: The file is missing or damaged, or has no exchange.
    """
    try:
        series = np.array(read_offset_answer(path).series, np.int64).reshape(-1, 3)
    except OverflowError as error:
        raise RecordError(f"{path.name}: series: {error}") from error
    if not series.size:
        raise RecordError(f"{path.name}: series: no exchange")
    return two_way_record(node, clock, (series[:, 0], series[:, 1], series[:, 2]))


def read_time_service_record(path: Path, node: str, tai_utc_s: int) -> ClockRecord:
    """Read the log of `bw-timed --log-exchanges`: a reading of the counter a batch.

    Args:
        path: The log; it may begin anew, with the service.
        node: The machine of the service.
        tai_utc_s: TAI - UTC.

    Raises:
        RecordError: Names the line.
    """
    rows: list[tuple[int, int, int, int, int]] = []
    hz = origin_ticks = origin_local_ns = 0
    for number, line in _lines(path):
        try:
            if line["type"] == "ready":
                hz, origin_ticks = int(line["counter_hz"]), int(line["origin_ticks"])
                origin_local_ns = int(line["origin_local_ns"])
            elif line["type"] == "sync" and "at_ticks" in line:
                ticks = int(line["at_ticks"])
                local_ns = origin_local_ns + _signed_ns(ticks - origin_ticks, hz)
                utc_ns = local_ns + int(line["line_offset_ns"])
                widest_ns = max(int(line["line_low_ns"]), int(line["line_high_ns"]))
                u_ns = min(round(line["line_u_ns"]), widest_ns)
                rows.append((ticks, hz, utc_ns + tai_utc_s * 1_000_000_000, widest_ns, u_ns))
        except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
            raise RecordError(f"{path.name}:{number}: {error!r}") from error
    if not rows:
        raise RecordError(f"{path.name}: no line `sync` with at_ticks: was it made with --log-exchanges?")
    if len({row[1] for row in rows}) > 1:
        raise RecordError(f"{path.name}: counter_hz: changes within the log")
    try:
        columns = np.array([(row[0], *row[2:]) for row in rows], np.int64).T
    except OverflowError as error:
        raise RecordError(f"{path.name}: a line `sync`: {error}") from error
    local_ns = nominal_ns(columns[0], rows[0][1])
    return ClockRecord(node, "counter", "time service", True, local_ns, *columns[1:])


def chained_record(inner: ClockRecord, outer: GlobalTime) -> ClockRecord:
    """Return the record of a clock that was read against another one of the same node.

    Args:
        inner: Readings of a clock against that other one; its `tai_ns` is what the other one showed.
        outer: TAI by the other one.

    Raises:
        RecordError: No reading has a place.
    """
    places = outer.place(inner.tai_ns)
    known = places.known
    if not known.any():
        raise RecordError(f"clock {inner.name}: no reading lies in the record of {outer.record.name}")
    bound_ns = places.bound_ns[known] + inner.bound_ns[known]
    return ClockRecord(
        inner.node,
        inner.clock,
        f"{inner.source}, {outer.record.source}",
        inner.is_counter,
        inner.local_ns[known],
        places.tai_ns[known],
        bound_ns,
        np.minimum(np.hypot(places.u_ns[known], inner.u_ns[known]).astype(np.int64) + 1, bound_ns),
        inner.limits,
    )


def _signed_ns(ticks: int, hz: int) -> int:
    """Return ticks of a counter in ns, to the nearest."""
    return (2 * ticks * 1_000_000_000 + hz) // (2 * hz)


def _lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the lines of a log with their numbers; a last line that was cut off is left out."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        raise RecordError(f"{path.name}: {error}") from error
    for number, line in enumerate(text.splitlines(keepends=True), start=1):
        if not line.endswith("\n"):
            return
        try:
            yield number, json.loads(line)
        except ValueError as error:
            raise RecordError(f"{path.name}:{number}: {error}") from error
