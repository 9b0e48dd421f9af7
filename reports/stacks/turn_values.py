# SPDX-License-Identifier: Apache-2.0
"""The value of one turn: a quantile of its latencies, or the share of its messages beyond their budget.

Messages of which the bench's machine took anything are left out. A lost message is later than any that came,
and beyond every budget: a stack that loses its late messages is not faster for it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from reports.stacks.turns import TypeMessages

MEDIAN, P99, OVER = "median", "p99", "over_budget"
STATISTICS = (MEDIAN, P99, OVER)
SHARES = {MEDIAN: 0.5, P99: 0.99}
TAKEN_SHARE_MAX = 0.1
"""A turn counts, if the bench's machine took something of no more of the messages that came."""


@dataclass(frozen=True, slots=True)
class TurnValue:
    """What one turn says.

    Attributes:
        value: A latency in ns, or a share of 1; infinite: the quantile is a lost message; None: it does not
            count.
        reason: Why it does not count; empty: it does.
    """

    value: float | None
    reason: str = ""


def value_of(messages: TypeMessages, statistic: str, budget_ns: int) -> TurnValue:
    """Return the value of a turn.

    Quantiles are Hazen's, the fifth definition of Hyndman and Fan (Sample quantiles in statistical packages,
    The American Statistician 50, 1996, 361-365): at the far end of skewed samples they are off the least on
    average, and a mean over turns takes over whatever the average is off.

    Args:
        messages: Of one type.
        statistic: One of STATISTICS.
        budget_ns: Of the type.
    """
    came, kept = len(messages.latency_ns), messages.kept_ns
    n = len(kept) + messages.lost
    if came - len(kept) > TAKEN_SHARE_MAX * came:
        return TurnValue(None, "the bench's machine took too much")
    if statistic == OVER:
        return TurnValue(beyond(messages, budget_ns) / n) if n else TurnValue(None, "too few messages")
    share = SHARES[statistic]
    place = n * share - 0.5
    if not 0 <= place <= n - 1:
        return TurnValue(None, "too few messages")
    if math.ceil(place) >= len(kept):
        return TurnValue(math.inf)
    ordered = np.partition(kept, [math.floor(place), math.ceil(place)])
    low, high = float(ordered[math.floor(place)]), float(ordered[math.ceil(place)])
    return TurnValue(low + (high - low) * (place - math.floor(place)))


def beyond(messages: TypeMessages, budget_ns: int) -> int:
    """Return how many messages were beyond the budget, lost ones among them."""
    return int(np.count_nonzero(messages.kept_ns > budget_ns)) + messages.lost
