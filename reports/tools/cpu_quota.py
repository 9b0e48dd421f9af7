# SPDX-License-Identifier: Apache-2.0
"""Is a CPU quota used up? It shows in when a machine's pauses end.

A hypervisor or a container that may have so much of the CPUs in each period gets nothing once it has had it,
until the next period begins (`cpu.max` of Linux's control groups; its period is 100 ms unless set). No count
of stolen time has that. All such pauses end at one place of the period, however long they are; others end
anywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reports.record.sampling import binomial_cdf

PERIOD_NS = 100_000_000
LEAST_NS = 2_000_000
"""Shorter pauses do not count: a scheduler's tick of 4 ms and less has places in the period, too."""
PLACE_NS = 2_000_000
"""Ends within so much are at one place; the clock of who sets the quota drifts against ours meanwhile."""
ENDS_MIN = 5
SHARE_MIN = 0.25
"""Of their time: a quota that took less is not worth a word."""
CHANCE_MAX = 1e-4


@dataclass(frozen=True, slots=True)
class CpuQuota:
    """Pauses that end where a quota would end them.

    Attributes:
        pauses: Of LEAST_NS and more.
        ended: Of these, at one place of the period.
        share: Of the time of all.
        chance: That so many of pauses which end anywhere do, at the place where most do.
    """

    pauses: int
    ended: int
    share: float
    chance: float

    @property
    def is_seen(self) -> bool:
        """Say whether there is a quota."""
        return self.ended >= ENDS_MIN and self.share >= SHARE_MIN and self.chance < CHANCE_MAX

    @property
    def words(self) -> str:
        """Return what is to be said; empty: nothing."""
        if not self.is_seen:
            return ""
        ended = f"{self.ended} of its {self.pauses} pauses, {100 * self.share:.0f} % of their time"
        place = f"one place of each {PERIOD_NS // 10**6} ms"
        return f"{ended}, end at {place}: a CPU quota of its hypervisor or container is used up"


def cpu_quota(windows: Sequence[tuple[int, int]]) -> CpuQuota:
    """Look for a quota in a measurement of some minutes.

    Args:
        windows: (start, end) of pauses by one clock, ns; of several CPUs, too.
    """
    pauses: list[tuple[int, int]] = []
    for start_ns, end_ns in sorted(windows):
        if end_ns - start_ns < LEAST_NS:
            continue
        if pauses and start_ns <= pauses[-1][1]:  # another CPU's part of the same pause
            pauses[-1] = pauses[-1][0], max(pauses[-1][1], end_ns)
        else:
            pauses.append((start_ns, end_ns))
    if not pauses:
        return CpuQuota(0, 0, 0.0, 1.0)
    windows_ns: NDArray[np.int64] = np.array(pauses, dtype=np.int64)
    lengths_ns, places_ns = np.diff(windows_ns, axis=1)[:, 0], windows_ns[:, 1] % PERIOD_NS
    order = np.argsort(places_ns)
    around = np.concatenate((places_ns[order], places_ns[order] + PERIOD_NS))
    counts = np.searchsorted(around, places_ns[order] + PLACE_NS, side="right") - np.arange(len(pauses))
    first, ended = int(np.argmax(counts)), int(np.max(counts))
    chosen = np.roll(order, -first)[:ended]
    share = float(np.sum(lengths_ns[chosen]) / np.sum(lengths_ns))
    others = len(pauses) - 1
    chance = (others + 1) * (1 - binomial_cdf(ended - 2, others, PLACE_NS / PERIOD_NS))
    return CpuQuota(len(pauses), ended, share, min(1.0, max(0.0, chance)))
