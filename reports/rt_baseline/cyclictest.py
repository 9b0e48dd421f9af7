# SPDX-License-Identifier: Apache-2.0
"""What cyclictest (rt-tests) writes with `--json`: of each thread a histogram of whole microseconds."""

from __future__ import annotations

import itertools
from bisect import bisect_left
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from reports.errors import RecordError
from reports.record.json_text import load_json
from reports.tools.answers import Reader

FILE_VERSION = 1
"""Of the document: rt-tests 2.0 and later."""


@dataclass(frozen=True, slots=True)
class CpuWakeups:
    """How late the thread of one CPU woke up; a latency of n µs is at least n and less than n + 1.

    Attributes:
        cycles: That it has run, those beyond the histogram with them.
        counts: Latency in µs and how many, ascending.
        overflow: Cycles beyond the histogram.
    """

    cpu: int
    cycles: int
    min_us: int
    max_us: int
    counts: tuple[tuple[int, int], ...]
    overflow: int

    def at_rank_us(self, rank: int) -> int:
        """Return the latency of a rank, 1: the least; what overflows reads as the largest."""
        cumulated = list(itertools.accumulate(count for _, count in self.counts))
        place = bisect_left(cumulated, rank)
        return self.max_us if place == len(self.counts) else self.counts[place][0]

    def above_ns(self, limit_ns: int) -> list[tuple[int, int]]:
        """Return each latency above a time, in ns, and how many had it, ascending."""
        return [(us * 1000, count) for us, count in self.counts if us * 1000 > limit_ns]


@dataclass(frozen=True, slots=True)
class Cyclictest:
    """One run of cyclictest.

    Attributes:
        version: Of rt-tests.
        kernel: Release and version, as uname says them.
        realtime: The kernel says that it is PREEMPT_RT.
    """

    version: str
    kernel: str
    realtime: bool
    cpus: tuple[CpuWakeups, ...]


def read_cyclictest(path: Path) -> Cyclictest:
    """Read the document of a run; raises RecordError: names file and key."""
    try:
        document: dict[str, Any] = cast("dict[str, Any]", load_json(path.read_text("utf-8")))
        if document["file_version"] != FILE_VERSION:
            raise RecordError(f"{path.name}: file_version is {document['file_version']}, not {FILE_VERSION}")
        if document["return_code"] != 0:
            raise RecordError(f"{path.name}: cyclictest failed: return_code is {document['return_code']}")
        threads: dict[str, Any] = document["thread"]
        if not threads or len(threads) != document["num_threads"]:
            raise RecordError(f"{path.name}: {len(threads)} threads of {document['num_threads']}")
        system = document["sysinfo"]
        return Cyclictest(
            str(document["rt_test_version:"]),
            f"{system['release']} {system['version']}",
            bool(system["realtime"]),
            tuple(_cpu(each, f"{path.name}: thread {name}") for name, each in threads.items()),
        )
    except RecordError:
        raise
    except (OSError, ValueError, OverflowError, KeyError, TypeError, AttributeError) as error:
        raise RecordError(f"{path.name}: {type(error).__name__}: {error}") from error


def _cpu(thread: dict[str, Any], where: str) -> CpuWakeups:
    reader = Reader(thread, where)
    histogram = reader.child("histogram")
    counts = sorted((int(us), int(histogram.get(us, int))) for us in histogram.data)
    cpu, cycles, low, high = (int(reader.get(key, int)) for key in ("cpu", "cycles", "min", "max"))
    if cpu < 0:
        raise RecordError(f"{where}.cpu: {cpu}, must be 0 or more")
    overflow = cycles - sum(count for _, count in counts)
    if overflow < 0 or any(us < 0 or count < 1 for us, count in counts):
        raise RecordError(f"{where}: a histogram of more than its {cycles} cycles, or of less than none")
    if counts and counts[0][0] != low:
        raise RecordError(f"{where}: min is {low}, its histogram begins at {counts[0][0]}")
    if counts and (high < counts[-1][0] or (not overflow and high != counts[-1][0])):
        raise RecordError(f"{where}: max is {high}, its histogram ends at {counts[-1][0]}")
    return CpuWakeups(cpu, cycles, low, high, tuple(counts), overflow)
