# SPDX-License-Identifier: Apache-2.0
"""Gaps that come again: times without values, by the times alone."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from reports.dependence import Floats
from reports.patterns.comb import comb, longest, slots
from reports.patterns.finding import CHANCE, Finding, Parameter
from reports.patterns.regular import regular
from reports.patterns.series import SEARCHED, Series
from reports.patterns.surrogate import false_alarms

LONGER = 1.5
"""By the usual distance: a longer one has a gap in it."""
WEIGHT_MAX = 4.0
"""Of a gap, in usual distances: one that is very long is no period."""


ROUGHER = 1.2
"""Middles of gaps go by steps, and are off together where the period is nearly a multiple of a step."""


class Gaps(NamedTuple):
    """Gaps that come again.

    Attributes:
        finding: Period and length.
        ends_s: When values should come again, by the fitted period and length.
    """

    finding: Finding
    ends_s: Floats


def find_gaps(series: Series) -> Gaps | None:
    """Return the gaps of a series, if they come again."""
    times_s, step_s = series.times_s, series.step_s
    distances = np.diff(times_s)
    if step_s <= 0:
        return None
    excess = np.clip(distances / step_s - LONGER, 0, WEIGHT_MAX)
    long = np.flatnonzero(excess)
    if len(long) < 4:
        return None
    middles = (times_s[1:] + times_s[:-1]) / 2
    slot_s = max(step_s, series.length_s / SEARCHED)
    train = slots(middles[long], excess[long], slot_s)
    if len(train) < 64:
        return None
    # The sums of other slots are 0: the mean is taken of all of them.
    train = np.bincount(np.rint((middles[long] - middles[0]) / slot_s).astype(np.int64), excess[long])
    train -= train.mean()
    found = comb(train)
    chance = false_alarms(float(found.powers.max()), lambda each: float(comb(each).powers.max()), train)
    if chance > CHANCE:
        return None
    period_s = longest(found) * slot_s
    again = regular(middles[long], period_s, excess[long], near_s=2 * step_s + period_s / 100)
    if again is None:
        return None
    lengths = distances[long[again.which]]
    usual = float(np.median(lengths))
    lengths = lengths[np.abs(lengths - usual) <= 2 * step_s]
    length = Parameter.about(
        float(lengths.mean()) - step_s, float(lengths.std(ddof=1)) / math.sqrt(len(lengths)), "s"
    )
    ends_s = again.first_s + again.turn * again.period.value + length.value / 2
    period = again.period
    wider = ROUGHER * (period.high - period.low) / 3.92
    period = Parameter.about(period.value, wider, "s")
    return Gaps(Finding("gap", {"period": period, "length": length}, chance), ends_s)
