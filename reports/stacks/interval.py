# SPDX-License-Identifier: Apache-2.0
"""The difference of two stacks over rounds of turns: its interval, its p-value, and what would be missed.

A round's difference is one value: turns of both stacks that follow each other form a block, in which drift
cancels. Over the rounds Student's t tells the interval (JCGM 100:2008, G.3; Box, Hunter and Hunter,
Statistics for Experimenters, 2nd edition, 3.2). It is preferred to a bootstrap over blocks: rounds are few,
eight to some thirty, where percentiles of a bootstrap are too narrow by about sqrt((n - 1) / n) and the
normal instead of Student's quantile; and the difference of two skewed values of like shape is nearly
symmetric, which is what t asks for. That the messages within a turn depend on each other, and that each
turn's start has a chance of its own, is in the scatter of the rounds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from reports.dependence import Floats

POWER = 0.95
"""With which a difference as large as `smallest_seen` would have been claimed."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A mean difference over rounds.

    Attributes:
        value: Second less first, in the unit of the values.
        standard: Its standard uncertainty, above 0.
        freedom: Degrees of freedom of that: rounds less one.
    """

    value: float
    standard: float
    freedom: int

    @property
    def p_value(self) -> float:
        """Return how often a value so far from 0 comes, were there no difference: two-sided."""
        from scipy.special import stdtr  # a tenth of a second for whatever lists the sections

        return 2 * float(stdtr(self.freedom, -abs(self.value) / self.standard))

    def half_width(self, level: float, comparisons: int) -> float:
        """Return half of the interval that holds with those of all comparisons of a run (Bonferroni).

        Args:
            level: How often any of them may miss its truth, in 0..1.
            comparisons: In the run, at least 1.
        """
        return self.standard * _quantile(self.freedom, 1 - level / (2 * comparisons))

    def smallest_seen(self, level: float, comparisons: int) -> float:
        """Return the detection limit: a true difference so large is claimed with the chance POWER.

        The half width decides, and beyond it the value scatters: both add up (Currie, Limits for qualitative
        detection and quantitative determination, Analytical Chemistry 40, 1968, 586-593). A claim by a later
        step of Holm's needs less, never more.
        """
        return self.half_width(level, comparisons) + self.standard * _quantile(self.freedom, POWER)


def _quantile(freedom: int, share: float) -> float:
    from scipy.special import stdtrit  # likewise

    return float(stdtrit(freedom, share))


def mean_difference(first: Floats, second: Floats, least_standard: float = 0.0) -> Difference:
    """Return the mean of second less first.

    Args:
        first: The first stack's values, a round each, shape (rounds,), at least 2.
        second: The second's, in the same rounds.
        least_standard: The standard uncertainty is no smaller.
    """
    apart = second - first
    seen = float(np.std(apart, ddof=1)) / math.sqrt(len(apart))
    return Difference(float(apart.mean()), max(seen, least_standard), len(apart) - 1)


def share_standard(beyond: tuple[int, int], of: tuple[int, int]) -> float:
    """Return the least standard uncertainty of the difference of two shares.

    Where few messages or none are beyond, rounds scatter less than the true shares leave open. As after one
    more beyond and one more inside in each (Agresti and Caffo, Simple and effective confidence intervals for
    proportions and differences of proportions, The American Statistician 54, 2000, 280-288).

    Args:
        beyond: Counts of both.
        of: Of how many.
    """
    shares = [(each + 1) / (n + 2) for each, n in zip(beyond, of, strict=True)]
    return math.sqrt(sum(p * (1 - p) / (n + 2) for p, n in zip(shares, of, strict=True)))
