# SPDX-License-Identifier: Apache-2.0
"""The delay of a path: the median time inside, less that without a delay."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reports.errors import ReportError
from reports.paths.condition import Condition
from reports.paths.datagrams import Integers
from reports.record.sampling import quantile_ranks

NS_PER_US = 1000


def median_ns(inside_ns: Integers) -> tuple[float, float]:
    """Return the median, and the larger side of its 95 % interval by ranks.

    Raises:
        ReportError: Fewer than six, which bound no median.
    """
    n = len(inside_ns)
    ranks = quantile_ranks(0.5, n) if n else None
    if ranks is None or ranks.lower is None or ranks.upper is None:
        raise ReportError(f"a median of {n} datagrams has no 95 % interval: six at least")
    ordered = np.sort(inside_ns)
    middle = float(np.median(ordered))
    return middle, max(middle - float(ordered[ranks.lower - 1]), float(ordered[ranks.upper - 1]) - middle)


def added_ns(inside_ns: Integers, without_ns: Sequence[Integers]) -> tuple[float, float]:
    """Return by how much a median is longer than without a delay, and its U: a sum of bounds.

    U: the sides of both intervals of medians, and by how much those without differ among themselves from
    their middle, where they were measured before and again afterwards.

    Args:
        inside_ns: Times inside with the delay.
        without_ns: Those without it, of each section.

    Raises:
        ReportError: Too few datagrams.
    """
    middle, side = median_ns(inside_ns)
    middles, sides = zip(*map(median_ns, without_ns), strict=True)
    drift = (max(middles) - min(middles)) / 2
    return middle - (max(middles) + min(middles)) / 2, side + max(sides) + drift


def delay_condition(asked_us: float, inside_ns: Integers, without_ns: Sequence[Integers]) -> Condition:
    """Return the delay, in us, beside what was asked."""
    added, u = (each / NS_PER_US for each in added_ns(inside_ns, without_ns))
    return Condition("delay", "us", asked_us, added, added - u, added + u)
