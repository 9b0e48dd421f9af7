# SPDX-License-Identifier: Apache-2.0
"""Which of several comparisons show a difference, so that all of them together err at one level."""

from __future__ import annotations

from collections.abc import Sequence


def shown(p_values: Sequence[float], level: float) -> list[bool]:
    """Return which hypotheses fall, by Holm's step-down.

    The smallest p is held against level / m, the next against level / (m - 1), and so on up to the first
    that is not below its bound: with it all further ones stand. The chance that any true hypothesis falls is
    at most `level`, however they depend on each other (Holm, A simple sequentially rejective multiple test
    procedure, Scandinavian Journal of Statistics 6, 1979, 65-70).

    Args:
        p_values: Of each hypothesis, in 0..1.
        level: Of all of them together, in 0..1.
    """
    falls = [False] * len(p_values)
    for step, place in enumerate(sorted(range(len(p_values)), key=lambda place: p_values[place])):
        if not p_values[place] <= level / (len(p_values) - step):
            break
        falls[place] = True
    return falls
