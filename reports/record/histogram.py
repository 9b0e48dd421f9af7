# SPDX-License-Identifier: Apache-2.0
"""The summary of a distribution that the native tools print: exact extremes and sparse buckets.

Format: docs/native-tools.md, `summary`. Times are int64 nanoseconds; buckets are no wider than 0.1 % of
their value.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar, cast

from reports.errors import RecordError
from reports.record.sampling import quantile_ranks

T = TypeVar("T")

Bucket = tuple[int, int, int]
"""Low edge in ns, width in ns, count."""


def _whole(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{value!r} is no integer")
    return value


def _number(value: object) -> float:
    return value if isinstance(value, float) else _whole(value)


def _optional(of: Callable[[object], T], value: object) -> T | None:
    return None if value is None else of(value)


@dataclass(frozen=True, slots=True)
class Quantile:
    """A quantile in ns with its 95 % interval; a bound that n samples cannot give is None."""

    value_ns: int
    lower_ns: int | None
    upper_ns: int | None


@dataclass(frozen=True, slots=True)
class Summary:
    """A distribution: number of samples, extremes and moments in ns, and its buckets."""

    n: int
    min_ns: int | None
    max_ns: int | None
    mean_ns: float | None
    stddev_ns: float | None
    overflow: int
    buckets: tuple[Bucket, ...]

    @classmethod
    def from_json(cls, data: object, where: str = "summary") -> Summary:
        """Read a summary of a tool's answer; raises RecordError where it contradicts itself."""
        if not isinstance(data, dict):
            raise RecordError(f"{where}: expected an object")
        found = cast("dict[str, object]", data)
        try:
            summary = cls(
                n=_whole(found["n"]),
                min_ns=_optional(_whole, found["min_ns"]),
                max_ns=_optional(_whole, found["max_ns"]),
                mean_ns=_optional(_number, found["mean_ns"]),
                stddev_ns=_optional(_number, found["stddev_ns"]),
                overflow=_whole(found["overflow"]),
                buckets=tuple(
                    (_whole(low), _whole(width), _whole(count))
                    for low, width, count in cast("list[list[object]]", found["buckets"])
                ),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise RecordError(f"{where}: {error!r}") from error
        summary.check(where)
        return summary

    def check(self, where: str) -> None:
        """Refuse counts that do not add up: a maximum of another sample set must never be judged."""
        counted = sum(count for _, _, count in self.buckets)
        if self.n < 0 or counted + self.overflow != self.n:
            raise RecordError(f"{where}: buckets hold {counted} + {self.overflow} overflow of n = {self.n}")
        if self.n and (self.min_ns is None or self.max_ns is None or self.min_ns > self.max_ns):
            raise RecordError(f"{where}: n = {self.n} with min {self.min_ns} and max {self.max_ns}")

    def quantile(self, quantile: float) -> Quantile | None:
        """Return a quantile with its 95 % interval from order statistics; None without samples.

        Lower bounds are the lower edges of their buckets, upper bounds the upper ones, both held inside
        the exact extremes. Samples in overflow lie above every bucket and read as the maximum.
        """
        if self.n == 0 or self.min_ns is None or self.max_ns is None:
            return None
        ranks = quantile_ranks(quantile, self.n)
        cumulated = list(itertools.accumulate(count for _, _, count in self.buckets))
        return Quantile(
            self._edge(ranks.rank, cumulated, 0.5),
            None if ranks.lower is None else self._edge(ranks.lower, cumulated, 0.0),
            None if ranks.upper is None else self._edge(ranks.upper, cumulated, 1.0),
        )

    def tells(self, quantile: float) -> bool:
        """Say whether there are samples enough that a quantile is another than the maximum."""
        return self.n > 0 and quantile_ranks(quantile, self.n).rank < self.n

    def _edge(self, rank: int, cumulated: list[int], share: float) -> int:
        """Return the place in ns, `share` of the way through its bucket, of the sample of a rank."""
        assert self.min_ns is not None
        assert self.max_ns is not None
        index = bisect_left(cumulated, rank)
        if index == len(self.buckets):
            return self.max_ns
        low, width, _ = self.buckets[index]
        return max(self.min_ns, min(self.max_ns, low + round(width * share)))

    def count_above(self, value_ns: int) -> int:
        """Return how many samples lie above a value in ns at least: those of buckets that begin there."""
        return self.overflow + sum(count for low, _, count in self.buckets if low > value_ns)

    def exceedance(self) -> list[tuple[int, float]]:
        """Return (ns, share of samples above it) at the upper edge of each bucket, ascending."""
        remaining = self.n
        points: list[tuple[int, float]] = []
        for low, width, count in self.buckets:
            remaining -= count
            points.append((low + width, remaining / self.n))
        return points


def merge(summaries: list[Summary]) -> Summary:
    """Return the distribution of all samples of several summaries together."""
    filled = [s for s in summaries if s.n and s.min_ns is not None and s.max_ns is not None]
    counts: dict[tuple[int, int], int] = {}
    for summary in filled:
        for low, width, count in summary.buckets:
            counts[(low, width)] = counts.get((low, width), 0) + count
    n = sum(s.n for s in filled)
    mean = sum((s.mean_ns or 0.0) * s.n for s in filled) / n if n else None
    return Summary(
        n=n,
        min_ns=min((s.min_ns for s in filled if s.min_ns is not None), default=None),
        max_ns=max((s.max_ns for s in filled if s.max_ns is not None), default=None),
        mean_ns=mean,
        stddev_ns=None,
        overflow=sum(s.overflow for s in filled),
        buckets=tuple((low, width, count) for (low, width), count in sorted(counts.items())),
    )
