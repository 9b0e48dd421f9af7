# SPDX-License-Identifier: Apache-2.0
"""Whether a series still rises or falls, though its values depend on each other.

A line by least squares through the mean ranks of blocks that hardly depend on each other, and Student's t of
its slope, with two degrees of freedom less than blocks. Ranks make outliers weigh little, and any curve that
rises or falls nearly a line. How long the blocks are is told by what a line through all ranks leaves: the
trend itself is no dependence.
"""

from __future__ import annotations

import math

import numpy as np

from reports.dependence import Floats, blocks_of

CHANCE = 0.001
"""How often a steady series may seem to rise or fall."""


def has_trend(values: Floats) -> bool:
    """Tell whether a series rises or falls by more than chance.

    Args:
        values: In the order of time, at even steps, shape (n,), 8 at least.
    """
    from scipy.special import stdtr  # a tenth of a second for whatever lists the sections

    ranks = middle_ranks(values) / len(values)
    if np.ptp(ranks) == 0:
        return False
    left = _beside_a_line(ranks)[1]
    blocks = blocks_of([left])
    # What is no whole block is left out at the beginning.
    means = ranks[len(ranks) - blocks.count * blocks.length :].reshape(blocks.count, -1).mean(axis=1)
    slope, off = _beside_a_line(means)
    freedom = blocks.count - 2
    # Blocks scatter by no less than those of independent values.
    scatter = max(float(off @ off) / freedom, float(left @ left) / (len(ranks) - 2) / blocks.length)
    deviation = math.sqrt(scatter * 12 / (blocks.count * (blocks.count**2 - 1)))
    if deviation == 0:
        return True
    return 2 * float(stdtr(freedom, -abs(slope) / deviation)) < CHANCE


def middle_ranks(values: Floats) -> Floats:
    """Return the ranks from 1, shape (n,); equal values have that of their middle."""
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[which]


def _beside_a_line(values: Floats) -> tuple[float, Floats]:
    """Return the slope of a line by least squares for each step, and what it leaves, shape (n,)."""
    step = np.arange(len(values)) - (len(values) - 1) / 2
    slope = float(step @ values / (step @ step))
    return slope, values - values.mean() - slope * step
