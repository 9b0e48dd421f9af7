# SPDX-License-Identifier: Apache-2.0
"""What follows gaps: values that are late, or early, and settle exponentially."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from reports.dependence import Floats
from reports.patterns.finding import CHANCE, Finding, Parameter
from reports.patterns.fit import Fit
from reports.patterns.gap import Gaps
from reports.patterns.series import Series
from reports.patterns.surrogate import false_alarms

DECAYS = 60


class Recovery(NamedTuple):
    """What follows gaps, and what it adds to the values, shape (n,)."""

    finding: Finding
    pattern: Floats


def find_recovery(series: Series, fit: Fit, gaps: Gaps, guess: bool = False) -> Recovery | None:
    """Return what follows the gaps of a series, if anything does.

    Args:
        series: For the times.
        fit: Of the values, in their noise.
        gaps: These.
        guess: What chance hardly shows is enough.
    """
    times_s = series.times_s
    period_s = gaps.finding.parameters["period"].value
    decays_s = np.geomspace(series.step_s / 2, period_s / 3, DECAYS)
    slack_s = series.step_s / 2  # the end of a gap is known to so much
    turn = np.searchsorted(gaps.ends_s, times_s + slack_s) - 1
    since_s = np.where(turn >= 0, times_s - gaps.ends_s[np.maximum(turn, 0)], np.inf)
    shapes = np.exp(-np.maximum(since_s, -slack_s) / decays_s[:, None])
    white = fit.whitened(shapes)
    norms = np.maximum((white**2).sum(axis=1), 1e-300)

    def gains(news: Floats) -> Floats:
        return (white @ news) ** 2 / norms / max(float(news @ news) / len(news), 1e-300)

    best = int(np.argmax(gains(fit.news)))
    heights = white @ fit.news / norms
    left = fit.news - heights[best] * white[best]
    seen = float(heights[best] ** 2 * norms[best] / (left @ left) * len(left))
    chance = false_alarms(seen, lambda news: float(gains(news).max()), left, guess)
    if chance > CHANCE:
        return None
    left_of = np.maximum(fit.square - heights**2 * norms, 1e-12 * fit.square)
    logs = -len(left) / 2 * np.log(left_of)
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    rng = np.random.default_rng(3)
    drawn = rng.choice(DECAYS, 4000, p=weights)
    wide = math.log(decays_s[1] / decays_s[0])
    decay = decays_s[drawn] * np.exp(rng.uniform(-wide / 2, wide / 2, len(drawn)))
    deviations = np.sqrt(left_of / len(left) / norms)
    tall = heights[drawn] + deviations[drawn] * rng.standard_normal(len(drawn))
    # Where the gaps end is known from their middle and length, each by two ends.
    end = gaps.finding.parameters["length"]
    tall *= 1 + (end.high - end.low) / 3.92 / math.sqrt(2) / decays_s[best] * rng.standard_normal(len(drawn))
    parameters = {
        name: Parameter.of_draws(each, unit)
        for name, each, unit in (("height", tall, "value"), ("decay", decay, "s"))
    }
    return Recovery(Finding("recovery", parameters, chance), heights[best] * shapes[best])
