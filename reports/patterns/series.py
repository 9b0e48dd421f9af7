# SPDX-License-Identifier: Apache-2.0
"""A series of values with their times, as it is searched: what cannot be used is left out, and said.

Values that are no numbers are left out, as a distance in time says as much. Times that go back, values that
are all equal, and too few of them are refused.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import numpy as np

from reports.dependence import Floats
from reports.errors import ReportError

LINE_MAX = 1 << 20
VALUES_MIN = 200
"""Fewer tell noise from no pattern."""
PERIODS_MIN = 4
"""Of whatever comes again: fewer are chance."""
LARGEST = 1e100
"""Of times and values: squares of larger ones have no number."""
STEPS_MAX, STEPS_OF_EACH = 2_000_000, 100
"""Usual distances in the time of a series, or in that of one value: a search takes a slot for each."""
SEARCHED = 8192
"""Longer series are searched as medians of at most so many blocks, where a pattern is longer than one. Beyond
10,000 values a linear algebra library uses threads, which wait for each other on a busy machine."""


@dataclass(frozen=True, slots=True)
class Series:
    """Values that are numbers, in the order of time.

    Attributes:
        times_s: Shape (n,), not falling, from 0.
        values: In one unit, shape (n,).
        remarks: What was left out.
    """

    times_s: Floats
    values: Floats
    remarks: tuple[str, ...] = ()

    @property
    def step_s(self) -> float:
        """Return the usual distance of values."""
        return float(np.median(np.diff(self.times_s)))

    @property
    def length_s(self) -> float:
        """Return the time from the first value to the last."""
        return float(self.times_s[-1] - self.times_s[0])

    def kept(self, which: np.ndarray) -> Series:
        """Return the values that a mask of shape (n,) keeps."""
        return Series(self.times_s[which], self.values[which], self.remarks)

    def thinned(self) -> Series:
        """Return medians of blocks that follow each other, SEARCHED at most.

        Where a ramp jumps within a block its median lies on either side, not between.
        """
        block = -(-len(self.values) // SEARCHED)
        if block == 1:
            return self
        whole = len(self.values) // block * block
        times_s, values = (each[:whole].reshape(-1, block) for each in (self.times_s, self.values))
        return Series(times_s.mean(axis=1), np.median(values, axis=1), self.remarks)


def series_of(times_s: Floats, values: Floats) -> Series:
    """Return a series that can be searched.

    Args:
        times_s: Shape (n,).
        values: In any unit, shape (n,); NaN: missing.

    Raises:
        ReportError: Times go back or are no numbers, values are all equal, or there are too few; most have
            no time of their own, or nearly all are missing.
    """
    if len(times_s) != len(values):
        raise ReportError(f"{len(times_s)} times for {len(values)} values")
    if not np.isfinite(times_s).all():
        raise ReportError(f"time of value {int(np.argmin(np.isfinite(times_s))) + 1} is no number")
    back = np.flatnonzero(np.diff(times_s) < 0)
    if len(back):
        at = int(back[0]) + 1
        raise ReportError(
            f"time goes back at value {at + 1}: from {times_s[at - 1]:.9g} s to {times_s[at]:.9g} s"
        )
    known = np.isfinite(values)
    remarks = (f"{int((~known).sum())} values are no numbers: left out",) if not known.all() else ()
    times_s, values = times_s[known], values[known]
    if len(values) < VALUES_MIN:
        raise ReportError(
            f"{len(values)} values are too few for any claim: {VALUES_MIN} at least{_wait(times_s)}"
        )
    for what, each in (("times", times_s), ("values", values)):
        if (large := float(np.abs(each).max())) > LARGEST:
            raise ReportError(f"{what} of {large:.3g}: {LARGEST:g} at most")
    if np.ptp(values) < 1 / LARGEST:
        raise ReportError("all values are equal: a constant has no pattern, nor noise to hold one against")
    longest_s = float(times_s[-1] - times_s[0])
    if longest_s < 1 / LARGEST:
        raise ReportError("all times are equal: nothing can be said of an order")
    step_s = float(np.median(np.diff(times_s)))
    if step_s <= 0:
        raise ReportError("most values have the time of the one before: they have no usual distance")
    if longest_s > step_s * max(STEPS_MAX, STEPS_OF_EACH * len(values)):
        raise ReportError(
            f"{longest_s:.4g} s are too long for values each {step_s:.3g} s: nearly all are missing"
        )
    return Series(times_s - times_s[0], values.astype(np.float64), remarks)


def _wait(times_s: Floats) -> str:
    """Say how long a series of the same distances would take."""
    if len(times_s) < 2 or times_s[-1] <= times_s[0]:
        return ""
    needed_s = (VALUES_MIN - 1) * float(times_s[-1] - times_s[0]) / (len(times_s) - 1)
    return f"; at this rate that takes {needed_s:.3g} s"


def read_csv(path: Path) -> tuple[Floats, Floats]:
    """Read times in s and values, the first two columns of a CSV file; a first line may name them.

    An empty value, or `nan`, is missing.

    Raises:
        ReportError: A line has no two columns, or text that is no number.
    """
    times: list[float] = []
    values: list[float] = []
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            for number, row in enumerate(csv.reader(_lines(file)), start=1):
                if not row:
                    continue
                try:
                    time_s, value = float(row[0]), float(row[1]) if row[1].strip() else math.nan
                except (ValueError, IndexError) as error:
                    if number == 1 and len(row) > 1:
                        continue
                    raise ReportError(
                        f"{path}: line {number}: no time and value: {','.join(row)[:40]!r}"
                    ) from error
                times.append(time_s)
                values.append(value)
    except (UnicodeDecodeError, csv.Error) as error:
        raise ReportError(f"{path}: no CSV file: {error}") from error
    return np.array(times, np.float64), np.array(values, np.float64)


def _lines(file: TextIO) -> Iterator[str]:
    """Yield the lines of a file; one without an end, as of /dev/zero, is none."""
    while line := file.readline(LINE_MAX):
        if len(line) == LINE_MAX:
            raise csv.Error(f"a line of {LINE_MAX} characters and more")
        yield line
