# SPDX-License-Identifier: Apache-2.0
"""How often noise alone shows as much: a statistic of surrogate series, their news drawn anew.

In the news of a fitted noise a surrogate series is a permutation of them: it has their tails and no order.
As rare as a finding has to be, nobody could count it, so the tail is a Gumbel's of the statistic's
logarithm, by its moments over the surrogates: it decays as a power of the statistic, more slowly than that
of normal noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from reports.dependence import Floats

SURROGATES = 20
MORE = 60
SURE, UNSURE = 1e-7, 0.02
"""Between them more surrogates decide: the width of so few is known to a sixth."""
FIRST = 4
"""Of them: what does not exceed these is chance."""
EULER = 0.5772


def false_alarms(
    seen: float,
    statistic: Callable[[Floats], float],
    news: Floats,
    guess: bool = False,
    logarithm: bool = True,
) -> float:
    """Return how often noise alone reaches a statistic.

    Args:
        seen: The statistic of the series.
        statistic: Of news of shape (n,), positive.
        news: Those of the noise, the pattern in question taken out.
        guess: Only hold it against the first ones: 0 if it exceeds all of them.
        logarithm: The tail is that of its logarithm; else its own, for what no tail of the news enlarges.
    """
    rng = np.random.default_rng(len(news))
    found = [statistic(rng.permutation(news)) for _ in range(FIRST)]
    if seen <= max(found):
        return 1.0
    if guess:
        return 0.0
    found += [statistic(rng.permutation(news)) for _ in range(SURROGATES - FIRST)]
    chance = _tail(seen, found, logarithm)
    if chance < SURE or chance > UNSURE:
        return chance
    found += [statistic(rng.permutation(news)) for _ in range(MORE)]
    return _tail(seen, found, logarithm)


def _tail(seen: float, found: list[float], logarithm: bool) -> float:
    """Return how often a Gumbel's statistic, or its logarithm, reaches one, by the moments of those found."""
    drawn: Floats = np.log1p(found).astype(np.float64) if logarithm else np.array(found, np.float64)
    width = max(float(drawn.std(ddof=1)), 1e-3) * math.sqrt(6) / math.pi
    at = ((math.log1p(seen) if logarithm else seen) - (float(drawn.mean()) - EULER * width)) / width
    return float(-np.expm1(-np.exp(-at)))
