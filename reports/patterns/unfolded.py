# SPDX-License-Identifier: Apache-2.0
"""Values less the lines of a grid on which they lie: other patterns are held against the noise beside them.

A value lies on some line, at random, and that scatters by the grid's width. Where a line is lies open in the
mean of exp(2 pi i value / width) of the values about it, and its path is followed from value to value, as far
as it moves by less than half a width within them. What is left is the path and the noise about it: a level
that changes along a line moves the path; one that gives way to another by whole widths leaves it, and moves
the numbers of the lines.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reports.dependence import Floats

AROUND = 31
"""Values whose mean tells where a line is."""
TOGETHER_MIN = 0.4
"""Length of that mean, 0 .. 1, in half of all places: below it nobody knows the line of a value."""


class Path(NamedTuple):
    """Where lines are.

    Attributes:
        places: In widths, at each value, shape (n,); only their parts after the point are known.
        together: Length of the mean that tells so, 0 .. 1, likewise.
        off: How far each value is from the line next to it, -0.5 .. 0.5.
    """

    places: Floats
    together: Floats
    off: Floats


def path_of(turns: Floats) -> Path:
    """Return where lines are, by values in widths, shape (n,)."""
    turn = np.exp(2j * np.pi * (turns - np.median(turns)))
    sums = np.concatenate(([0j], np.cumsum(turn)))
    places = np.arange(len(turns))
    first = np.maximum(places - AROUND // 2, 0)
    last = np.minimum(places + AROUND // 2 + 1, len(turns))
    mean = (sums[last] - sums[first]) / (last - first)
    path = np.unwrap(np.angle(mean)) / (2 * np.pi) + np.median(turns)
    off = turns - path
    return Path(np.asarray(path, np.float64), np.abs(mean), off - np.rint(off))


class Unfolded(NamedTuple):
    """Values and their lines.

    Attributes:
        lines: Number of the line of each value, shape (n,).
        grid: What the grid adds to each, shape (n,): its line, and by how much all have drifted.
    """

    lines: NDArray[np.int64]
    grid: Floats


def unfolded(times_s: Floats, values: Floats, width: float, slope: float) -> Unfolded | None:
    """Return the line of each value; None: they are not told apart.

    Args:
        times_s: Shape (n,).
        values: All else that is known taken out, shape (n,).
        width: Of the grid.
        slope: Of all lines, in values by s.
    """
    drifted = slope * (times_s - times_s.mean())
    turns = (values - drifted) / width
    path = path_of(turns)
    if np.median(path.together) < TOGETHER_MIN:
        return None
    lines = np.rint(turns - path.places).astype(np.int64)
    return Unfolded(lines, width * lines + drifted)
