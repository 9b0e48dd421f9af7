# SPDX-License-Identifier: Apache-2.0
"""The offsets of a clock over time, cut where samples are missing.

Sign: offset = device - reference; positive: the device is ahead. Times and offsets are nanoseconds.
A gap stays a gap: no sample is moved, repeated or filled in. What follows each other at the series' own
interval, within half of it, is one stretch; statistics run inside stretches and are combined
(docs/clock-analysis.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reports.errors import ReportError

Offsets: TypeAlias = NDArray[np.int64 | np.float64]
Times: TypeAlias = NDArray[np.int64]

GAP_SHARE = 0.5
"""Two samples that are further from the interval than this share of it do not belong to one stretch."""

INTERVAL_TOLERANCE = 0.05
"""Share by which the mean interval of the samples may differ from the one that the caller states."""


@dataclass(frozen=True, eq=False, slots=True)
class Stretch:
    """Samples without a gap: times in ns, ascending, and offsets in ns, both of length n."""

    time_ns: Times
    offset_ns: Offsets

    def __len__(self) -> int:
        return len(self.offset_ns)


@dataclass(frozen=True, eq=False, slots=True)
class ClockSeries:
    """A series of offsets, in stretches, sampled every `tau0_ns`.

    Attributes:
        tau0_ns: Interval of the samples in ns; the mean over all stretches unless the caller knows it.
        stretches: What lies between the gaps, in the order of time; a lone sample is a stretch too.
    """

    tau0_ns: int
    stretches: tuple[Stretch, ...]

    @property
    def n(self) -> int:
        """Number of samples."""
        return sum(len(stretch) for stretch in self.stretches)

    @property
    def gaps(self) -> tuple[tuple[int, int], ...]:
        """Last time before and first time after each gap, ns."""
        return tuple(
            (int(before.time_ns[-1]), int(after.time_ns[0]))
            for before, after in zip(self.stretches, self.stretches[1:], strict=False)
        )

    def offsets(self) -> Offsets:
        """Return all offsets in ns, in one array."""
        if not self.stretches:
            return np.empty(0, np.int64)
        return np.concatenate([stretch.offset_ns for stretch in self.stretches])

    def times(self) -> Times:
        """Return all times in ns, in one array."""
        if not self.stretches:
            return np.empty(0, np.int64)
        return np.concatenate([stretch.time_ns for stretch in self.stretches])

    @classmethod
    def regular(cls, tau0_ns: int, offset_ns: ArrayLike, start_ns: int = 0) -> ClockSeries:
        """Take samples that are known to follow each other every `tau0_ns`, without a gap."""
        if tau0_ns <= 0:
            raise ReportError(f"tau0_ns: {tau0_ns}; need a positive interval")
        offsets = checked_offsets(offset_ns)
        times = start_ns + tau0_ns * np.arange(len(offsets), dtype=np.int64)
        return cls(tau0_ns, (Stretch(times, offsets),) if len(offsets) else ())

    @classmethod
    def from_samples(
        cls,
        time_ns: ArrayLike,
        offset_ns: ArrayLike,
        tau0_ns: int | None = None,
        breaks_ns: Sequence[int] = (),
    ) -> ClockSeries:
        """Cut samples into stretches.

        Args:
            time_ns: Time of each sample in ns. Time that repeats or runs back ends a stretch.
            offset_ns: Offset of each sample in ns.
            tau0_ns: The interval; without it the median interval finds the gaps, and the mean over the
                stretches is kept.
            breaks_ns: Times that no stretch may cross, for instance where the clock was stepped.

        Raises:
            ReportError: The arrays do not fit each other, a value is not finite, or the samples do not
                have the interval that was stated.
        """
        times, offsets = checked_times(time_ns), checked_offsets(offset_ns)
        if len(times) != len(offsets):
            raise ReportError(f"{len(times)} times with {len(offsets)} offsets")
        if tau0_ns is not None and tau0_ns <= 0:
            raise ReportError(f"tau0_ns: {tau0_ns}; need a positive interval")
        steps_ns = np.diff(times)
        forward = steps_ns[steps_ns > 0]
        if not len(forward):
            return cls(tau0_ns or 1, tuple(_cut(times, offsets, np.ones(len(steps_ns), bool))))
        nominal = float(tau0_ns or np.median(forward))
        ends = np.abs(steps_ns - nominal) > GAP_SHARE * nominal
        kept = steps_ns[~ends]
        mean = float(kept.mean()) if len(kept) else nominal
        if tau0_ns is not None and abs(mean - tau0_ns) > INTERVAL_TOLERANCE * tau0_ns:
            raise ReportError(f"samples every {mean:.0f} ns on the mean, but tau0_ns is said to be {tau0_ns}")
        for moment in breaks_ns:
            ends |= (times[:-1] < moment) & (times[1:] >= moment)
        return cls(tau0_ns or round(mean), tuple(_cut(times, offsets, ends)))


def _cut(times: Times, offsets: Offsets, ends: NDArray[np.bool_]) -> list[Stretch]:
    places = np.flatnonzero(ends) + 1
    pairs = zip(np.split(times, places), np.split(offsets, places), strict=True)
    return [Stretch(part, values) for part, values in pairs if len(part)]


def checked_times(time_ns: ArrayLike) -> Times:
    """Return times as int64 ns; raises ReportError for anything but whole numbers in one dimension."""
    times = np.asarray(time_ns)
    if times.ndim != 1 or (len(times) and times.dtype.kind not in "iu"):
        raise ReportError(
            f"time_ns: need whole ns in one dimension, not {times.dtype} of shape {times.shape}"
        )
    return times.astype(np.int64)


def checked_offsets(offset_ns: ArrayLike) -> Offsets:
    """Return offsets as int64 or float64 ns; raises ReportError where one is not a finite number."""
    offsets = np.asarray(offset_ns)
    if offsets.ndim != 1 or (len(offsets) and offsets.dtype.kind not in "iuf"):
        raise ReportError(
            f"offset_ns: need numbers in one dimension, not {offsets.dtype} of shape {offsets.shape}"
        )
    if offsets.dtype.kind != "f":
        return offsets.astype(np.int64)
    values = offsets.astype(np.float64)
    bad = int(np.count_nonzero(~np.isfinite(values)))
    if bad:
        raise ReportError(
            f"offset_ns: {bad} of {len(values)} samples are not finite; leave missing samples out"
        )
    return values
