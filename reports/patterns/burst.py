# SPDX-License-Identifier: Apache-2.0
"""Bursts that come again: several values in a row that are late, at equal distances in time.

As of a retransmission timer, behind which all messages wait: the first is late by the most. Which values are
late is told by a median about each that is wider than a burst, so a level that moves slowly is none. A burst
is an event where it begins, as heavy as what its values are late by together; the distances of events are
what is held against chance. Some may be missing, or off the beat.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from reports.dependence import Floats
from reports.patterns.comb import comb, longest
from reports.patterns.filters import running_median
from reports.patterns.finding import CHANCE, Finding, Parameter
from reports.patterns.noise import scale_of
from reports.patterns.outlier import CLIP, FAR, Explained, Outliers, same_period
from reports.patterns.regular import regular
from reports.patterns.series import SEARCHED, Series
from reports.patterns.surrogate import false_alarms

AROUND = 255
"""Values whose median a burst is held against: of one that is longer than half of them nothing is seen."""
BESIDE = 9
"""Values whose median the level beside a burst is."""
VALUES_MIN = 3
"""Of a burst: fewer in a row are outliers."""
BROKEN = 2
"""Values in a row that are not late and do not end a burst."""
ALIKE = 0.5
"""Of the usual height or weight: what has less is not one of these bursts."""
SHARE_MAX = 0.25
"""Of a period: a longer part that is late is a pattern of another kind."""
USUAL = 2.0
"""Usual distances of values: by how much a length may differ from the median and count."""


def find_bursts(series: Series, explained: Sequence[Explained]) -> Outliers | None:
    """Return the bursts of a series, if they come again: all that are alike, on the beat or not.

    Args:
        series: The values.
        explained: Periods that have a cause already, as that of gaps: what follows these are no bursts.
    """
    off = series.values - running_median(series.values, AROUND)
    scatter = scale_of(off)
    begins, ends = _runs(off > FAR * scatter)
    if len(begins) < 4:
        return None
    sums = np.concatenate(([0.0], np.cumsum(np.clip(off / scatter, 0.0, CLIP))))
    weights = sums[ends] - sums[begins]
    step_s, at_s = series.step_s, series.times_s[begins]
    slot_s = max(step_s, series.length_s / SEARCHED)
    train = _slotted(at_s, weights, slot_s, series.length_s)
    found = comb(train)
    chance = false_alarms(float(found.powers.max()), lambda each: float(comb(each).powers.max()), train)
    if chance > CHANCE:
        return None
    period_s = longest(found) * slot_s
    again = regular(at_s, period_s, weights, near_s=1.5 * step_s + period_s / 50)
    if again is None or any(same_period(again.period.value, *each) for each in explained):
        return None
    bursts = [slice(begin, end) for begin, end in zip(begins, ends, strict=True)]
    level = _level(series, bursts)
    heights = np.array([(series.values[each] - level[each]).max() for each in bursts])
    usual = float(np.median(heights[again.which])), float(np.median(weights[again.which]))
    alike = (heights > ALIKE * usual[0]) & (weights > ALIKE * usual[1])
    hits = again.which[alike[again.which]]
    if len(hits) < 4:
        return None
    lengths_s = series.times_s[ends[hits] - 1] - series.times_s[begins[hits]] + step_s
    if float(np.median(lengths_s)) > SHARE_MAX * again.period.value:
        return None
    mask = np.zeros(len(off), np.bool_)
    for index in np.flatnonzero(alike):
        mask[bursts[index]] = True
    parameters = {
        "period": again.period,
        "height": _mean(heights[hits], 3 * scale_of(heights[hits]), 0.0, "value"),
        "length": _mean(lengths_s, USUAL * step_s, step_s / math.sqrt(12), "s"),
    }
    return Outliers(Finding("periodic_outlier", parameters, chance), mask)


def _runs(late: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return begins and ends of bursts: indices of the first value in, and of the first behind each."""
    places = np.flatnonzero(late)
    if not len(places):
        return places, places
    cuts = np.flatnonzero(np.diff(places) > BROKEN + 1)
    begins = places[np.concatenate(([0], cuts + 1))]
    ends = places[np.concatenate((cuts, [len(places) - 1]))] + 1
    counts = np.add.reduceat(late.astype(np.int64), begins)
    long = counts >= VALUES_MIN
    return begins[long], ends[long]


def _level(series: Series, bursts: Sequence[slice]) -> Floats:
    """Return where each value would lie without bursts, shape (n,): by those beside, as many are late."""
    kept = np.ones(len(series.values), np.bool_)
    for each in bursts:
        kept[each] = False
    beside = running_median(series.values[kept], BESIDE)
    return np.asarray(np.interp(series.times_s, series.times_s[kept], beside), np.float64)


def _slotted(at_s: Floats, weights: Floats, slot_s: float, length_s: float) -> Floats:
    """Return the sums of weights in slots of the whole series, less their mean."""
    which = np.rint(at_s / slot_s).astype(np.int64)
    train = np.bincount(which, weights, minlength=round(length_s / slot_s) + 1)
    return np.asarray(train - train.mean(), np.float64)


def _mean(values: Floats, within: float, least: float, unit: str) -> Parameter:
    """Return the mean of values that are near their median; least: of their standard deviation."""
    near = values[np.abs(values - np.median(values)) <= within]
    deviation = max(float(near.std(ddof=1)) if len(near) > 1 else 0.0, least)
    return Parameter.about(float(near.mean()), deviation / math.sqrt(len(near)), unit)
