# SPDX-License-Identifier: Apache-2.0
"""Where the first, more chaotic part of a series of delays ends, and whether there is one.

A scan for one change of level or spread. Values become normal scores of their ranks, for the level; and so
does, for the spread, how far each is from what the one before lets expect (an autoregression of order one, by
the second half): a change of that shows at once, though values depend on each other. Tails, however heavy,
weigh no more than ranks. A beginning of k values is compared with the rest by

    T(k) = k (n - k) / n · d' S^-1 d

where d has the differences of the means of both scores, and S is the long-run covariance of what follows, by
blocks that hardly depend on each other. The end is where T is largest. It is the end of a warm-up if chance
reaches that T at any k in less than CHANCE of all series, or LATE_CHANCE where it lies in the second half.

MSER-5, the usual choice, minimises the error of the mean: it always cuts something, and does not see a
change of the spread alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from reports.control_loops.trend import has_trend, middle_ranks
from reports.dependence import Floats, blocks_of
from reports.errors import ReportError

Integers: TypeAlias = NDArray[np.int64]

CHANCE = 0.02
"""How often a series without a warm-up may seem to have one."""
LATE_CHANCE = 0.005
"""Likewise, of one that ends in the second half: it makes the whole series unsettled."""
VALUES_MIN = 100
"""Fewer tell nothing of what follows a warm-up."""
PART_MIN = 8
"""Values of the shortest warm-up."""
REST_SHARE = 10
"""An end is looked for up to the last tenth, which has to tell what it is compared with."""
UNSETTLED = "the whole does not settle: it still changes in the second half of the pictures"
TINY = 1e-9
"""Of a variance: values that are all equal have none."""


@dataclass(frozen=True, slots=True)
class WarmUp:
    """The end of the first part of a series.

    Attributes:
        count: Values before the end; 0: there is no warm-up.
        end_s: Time of the first value that counts.
        length_s: From the first value to that.
        settles: The series does so within its first half: the first part ends there, and the second half
            neither rises nor falls by more than chance. Else what remains is no steady state that anybody
            knows; a first part that ends later is cut at half.
    """

    count: int
    end_s: float
    length_s: float
    settles: bool


def warm_up(times_s: Floats, values: Floats) -> WarmUp:
    """Find the end of the warm-up.

    Args:
        times_s: Of the values, in rising order, shape (n,).
        values: Delays in any unit, shape (n,).

    Raises:
        ReportError: Fewer than VALUES_MIN, times that do not rise, or values that are no numbers.
    """
    if len(values) < VALUES_MIN:
        raise ReportError(f"{len(values)} values do not tell where a warm-up ends: {VALUES_MIN} at least")
    if len(times_s) != len(values) or np.any(np.diff(times_s) < 0):
        raise ReportError("a warm-up needs a time for each value, in their order")
    if not np.isfinite(values).all():
        raise ReportError("a warm-up needs values that are numbers")
    half = len(values) // 2
    count = _first_part(values)
    if not count and half >= VALUES_MIN:
        # A disturbance in the second half may hide what the first one shows by itself.
        within = _first_part(values[:half])
        count = within if within <= half // 2 else 0
    count = max(count, _beyond_all_that_follows(values))
    settles = count <= half and not has_trend(values[half:])
    count = min(count, half)
    end_s = float(times_s[count])
    return WarmUp(count, end_s, end_s - float(times_s[0]), settles)


def _beyond_all_that_follows(values: Floats) -> int:
    """Return how many values at the beginning lie beyond the second half by more than its whole range.

    By ranks they are hardly told where what follows remembers for long; by their size they are beyond doubt.
    """
    half = len(values) // 2
    low, high = float(values[half:].min()), float(values[half:].max())
    width = max(high - low, TINY)
    is_within = (values[:half] >= low - width) & (values[:half] <= high + width)
    count = int(np.argmax(is_within)) if is_within.any() else half
    return count if count >= PART_MIN else 0


def _first_part(values: Floats) -> int:
    """Return how many values at the beginning are not like the rest; 0: all are."""
    n = len(values)
    level = _normal_scores(values)
    steady = level[n // 2 :] - level[n // 2 :].mean()
    memory = max(0.0, float(steady[1:] @ steady[:-1]) / max(float(steady @ steady), TINY))
    news = values - memory * np.concatenate((values[:1], values[:-1]))
    spread = _normal_scores(np.abs(news - np.median(news[n // 2 :])))
    scores = np.stack((level, spread))
    counts = np.arange(PART_MIN, n - n // REST_SHARE + 1)
    sums = np.cumsum(scores, axis=1)
    covariance, _ = _long_run_covariance(scores[:, n // 2 :])
    count = int(counts[np.argmax(_distance(sums, counts, covariance))])
    covariance, blocks = _long_run_covariance(scores[:, count:])
    distance = _distance(sums, counts, covariance)
    count = int(counts[np.argmax(distance)])
    if _chance(float(distance.max()), n, len(scores), blocks) > (CHANCE if count <= n // 2 else LATE_CHANCE):
        return 0
    return count


def _distance(sums: Floats, count: Integers, covariance: Floats) -> Floats:
    """Return T of beginnings of so many values, shape of `count`; `sums`: of the scores, up to each value."""
    n = sums.shape[1]
    inside = sums[:, count - 1]
    difference = inside / count - (sums[:, -1:] - inside) / (n - count)
    weighed = np.linalg.inv(covariance) @ difference
    return count * (n - count) / n * np.sum(difference * weighed, axis=0)


def _long_run_covariance(scores: Floats) -> tuple[Floats, int]:
    """Return n times the covariance of the means of all scores, shape (s, s), and of how many blocks."""
    length = blocks_of([*scores]).length
    count = scores.shape[1] // length
    means = scores[:, : count * length].reshape(len(scores), count, length).mean(axis=2)
    seen = np.cov(means) * length
    independent = np.cov(scores)
    # What blocks show is not less than what independent values have.
    return seen + np.diag(np.maximum(np.diag(independent) - np.diag(seen), TINY)), count


def _chance(distance: float, n: int, scores: int, blocks: int) -> float:
    """Return how often T reaches so much by chance at any k: that of log2(n)^2 ends that do not depend.

    Of each it is Hotelling's (1931), as few blocks know the covariance badly.
    """
    from scipy.special import fdtrc  # a tenth of a second for whatever lists the sections

    freedom = max(1, blocks - scores)
    return math.log2(n) ** 2 * float(fdtrc(scores, freedom, distance * freedom / (scores * (blocks - 1))))


def _normal_scores(values: Floats) -> Floats:
    """Return the normal quantiles of the ranks, shape (n,); equal values have that of their middle."""
    from scipy.special import ndtri  # likewise

    return np.asarray(ndtri((middle_ranks(values) - 0.5) / len(values)), dtype=np.float64)
