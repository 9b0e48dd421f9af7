# SPDX-License-Identifier: Apache-2.0
"""Coefficients of values by columns, in coloured noise, where some values do not belong to it at all.

A value that heavy tails have put on a wrong line of a grid, or at the wrong one of two levels, pulls a least
square off to one side, and a clipped one still does. Tukey's biweight gives what is far off no weight; that
of the news, not of the values, which a noise that wanders takes far off. Deviations are those of what
Huber calls pseudo-values: psi(e) / mean(psi'(e)), of which ordinary least squares are the solution.
"""

from __future__ import annotations

import numpy as np

from reports.dependence import Floats
from reports.patterns.noise import Noise, scale_of

BIWEIGHT = 4.685
"""By the scatter: what is farther off has no weight; of normal noise that costs 5 % of the information."""
ROUNDS = 3


def regress(
    noise: Noise, columns: Floats, values: Floats, start: Floats, distances: Floats
) -> tuple[Floats, Floats]:
    """Return coefficients and their standard deviations, shape (k,) each.

    Args:
        noise: Of the values less the columns.
        columns: Shape (k, n); one of ones for the level.
        values: About 0, shape (n,).
        start: Coefficients, about, shape (k,).
        distances: Of each value from the one before it, in usual ones, shape (n,).
    """
    weights = 1 / noise.deviations_after(distances)
    white = weights * noise.news(columns)
    news = weights * noise.news(values)
    answer = start
    pseudo = news - start @ white
    for _ in range(ROUNDS):
        pseudo = news - answer @ white
        if not noise.wanders:
            pseudo = _pseudo(pseudo)
        answer = answer + np.linalg.lstsq(white.T, pseudo, rcond=None)[0]
    covariance = np.linalg.pinv(white @ white.T) * float(pseudo @ pseudo) / len(pseudo)
    return answer, np.sqrt(np.maximum(np.diag(covariance), 0))


def _pseudo(news: Floats) -> Floats:
    """Return pseudo-values of news, shape (n,); the news themselves where all are far off."""
    turn = np.clip(news / (BIWEIGHT * scale_of(news)), -1, 1)
    inside = 1 - turn**2
    slope = float((inside * (1 - 5 * turn**2)).mean())
    return news * inside**2 / slope if slope > 0 else news


def distances_of(times_s: Floats) -> Floats:
    """Return how far each time is from the one before it, in usual distances, shape (n,); 1 of the first."""
    steps = np.diff(times_s)
    return np.concatenate(([1.0], np.maximum(steps / (np.median(steps) or 1.0), 1.0)))
