# SPDX-License-Identifier: Apache-2.0
"""Sync error by sync interval, side by side with Table 2 of the DAQ paper.

Offsets are device - reference in ns: the paper's sign is turned (reports/clock_sync/daq-table2.csv).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from reports.errors import RecordError
from reports.paper_table import table_rows

TABLE = Path(__file__).with_name("daq-table2.csv")

_COLUMNS = ["interval_s", "n", "min_ns", "max_ns", "mean_ns"]


@dataclass(frozen=True, slots=True)
class SyncRow:
    """One line: the offsets of a run at one sync interval.

    Attributes:
        interval_s: Interval of synchronisation; None: synchronised for a while, then cut off (holdover).
        reading: How the clocks were read: sequential (the paper's way) or bracketed.
        n: Samples.
        min_ns: Smallest offset.
        max_ns: Largest offset.
        mean_ns: Mean offset.
    """

    interval_s: float | None
    reading: str
    n: int
    min_ns: int
    max_ns: int
    mean_ns: float


@dataclass(frozen=True, slots=True)
class SyncComparison:
    """A measured row beside the paper's; None where one of them has no such row."""

    paper: SyncRow | None
    measured: SyncRow | None


def paper_rows(path: Path = TABLE) -> tuple[SyncRow, ...]:
    """Return the paper's rows in its order, with our sign.

    Raises:
        RecordError: The file is wrong; the message says file, line and field.
    """
    return tuple(_row(where, fields) for where, fields in table_rows(path, _COLUMNS))


def _row(where: str, fields: list[str]) -> SyncRow:
    try:
        interval_s = float(fields[0]) if fields[0] else None
        n, low, high, mean = (int(text) for text in fields[1:])
    except ValueError as error:
        raise RecordError(f"{where}: {error}; need whole numbers of ns") from error
    if n < 1 or not low <= mean <= high or (interval_s is not None and not 0 < interval_s < math.inf):
        raise RecordError(f"{where}: need interval_s > 0 or none, n >= 1, min_ns <= mean_ns <= max_ns")
    return SyncRow(interval_s, "sequential", n, low, high, mean)


def side_by_side(measured: Sequence[SyncRow], paper: Sequence[SyncRow]) -> tuple[SyncComparison, ...]:
    """Put measured rows beside the paper's.

    A measured row stands beside the paper's row of the same interval; where there are two (30 s), beside that
    whose number of samples is nearer by ratio. Paper's rows without a measurement and measured rows without
    a paper's row (intervals of the profile `ci`) stand alone. Order: the paper's, then the rest by interval,
    holdover last; several readings of one interval in the order in which they were given.
    """
    beside: dict[int, list[SyncRow]] = {place: [] for place in range(len(paper))}
    alone: list[SyncRow] = []
    for row in measured:
        same = [place for place, known in enumerate(paper) if known.interval_s == row.interval_s]
        if same and row.n > 0:
            beside[min(same, key=lambda place: abs(math.log(paper[place].n / row.n)))].append(row)
        else:
            alone.append(row)
    pairs: list[SyncComparison] = []
    for place, rows in beside.items():
        pairs += [SyncComparison(paper[place], row) for row in rows] or [SyncComparison(paper[place], None)]
    return (*pairs, *(SyncComparison(None, row) for row in _by_interval(alone)))


def _by_interval(rows: Iterable[SyncRow]) -> list[SyncRow]:
    return sorted(rows, key=lambda row: math.inf if row.interval_s is None else row.interval_s)
