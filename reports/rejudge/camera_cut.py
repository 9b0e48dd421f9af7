# SPDX-License-Identifier: Apache-2.0
"""Whether pictures at the beginning of a camera's loop may be left out: docs/control-loops.md, warm-up.

Where a warm-up ends is a matter of statistics, and two ways to it differ by some pictures. What is asked here
holds for each way: no more than half is left out, and what is left out differs from the rest, in level or in
scatter. To leave out too little flatters nobody.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import median

FEW = 100
"""Of fewer values nobody looks for an end: up to a third does not count."""
ALIKE_Z = 2.0
"""Standard deviations within which two means of ranks are alike, were values independent."""


def cut_problems(took: Mapping[int, int], cut: int, captured: int, rest: int) -> Iterator[str]:
    """Name what speaks against a cut.

    Args:
        took: The whole loop of each picture with one, in ns, by picture.
        cut: Pictures at the beginning that do not count.
        captured: How many pictures there are.
        rest: So many were captured while the target rested, which never count.
    """
    numbers = sorted(took)
    values = [took[number] for number in numbers]
    most = max(captured // 2 if len(values) >= FEW else captured // 3, rest)
    if cut > most:
        yield f"{cut} pictures are left out, allowed: {most} at most"
    first = sum(number < cut for number in numbers)
    # A disturbance in the second half may hide what the first one shows by itself.
    parts = [
        part for part in (values, values[: len(values) // 2]) if len(part) >= FEW and 0 < first < len(part)
    ]
    if cut > rest and parts and all(_alike(part, first) for part in parts):
        yield f"{cut} pictures are left out, they are like the others"


def _alike(values: Sequence[int], first: int) -> bool:
    second = values[len(values) // 2 :]
    middle = median(second)
    off = [value - middle for value in second]
    memory = sum(a * b for a, b in pairwise(off)) / (sum(a * a for a in off) or 1)
    news = [0.0, *(abs(b - middle - max(memory, 0) * (a - middle)) for a, b in pairwise(values))]
    scatter = [abs(value - middle) for value in values]
    return all(abs(_z(each, first)) < ALIKE_Z for each in (values, scatter, news))


def _z(values: Sequence[float], first: int) -> float:
    """Return how far the mean rank of the first is from what chance has (Wilcoxon)."""
    order = sorted(range(len(values)), key=values.__getitem__)
    rank = {place: number for number, place in enumerate(order, 1)}
    n = len(values)
    off = sum(rank[place] for place in range(first)) - first * (n + 1) / 2
    return off / math.sqrt(first * (n - first) * (n + 1) / 12)
