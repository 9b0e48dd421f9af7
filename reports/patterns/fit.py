# SPDX-License-Identifier: Apache-2.0
"""A shape in coloured noise: height by generalised least squares, other parameters by their posterior.

Where a ramp jumps or a change begins is known to a value or so, and the likelihood has steps there: no normal
approximation holds. Intervals are quantiles of a Markov chain under a flat prior, which cover what they say
where the place of a pattern is anybody's guess.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from reports.dependence import Floats
from reports.patterns.noise import Noise, scale_of

Shape = Callable[[Floats], Floats | None]
"""Of parameters to a pattern of height 1, shape (n,); None: no such pattern."""

CLIMB_STEPS = 100
CHAIN_STEPS = 4000
MISSING = 1.5
"""Of usual distances: where one is longer, values are missing."""
SETTLE_STEPS = 400


class Height(NamedTuple):
    """Of a shape: estimate, standard deviation, by how much it lowers the sum of squares, and that sum."""

    value: float
    deviation: float
    gain: float
    left: float


class Fit:
    """Values in coloured noise about an unknown level, to which shapes are fitted."""

    def __init__(self, values: Floats, noise: Noise, distances: Floats | None = None) -> None:
        """Whiten the values, and take the level out.

        Args:
            values: Shape (n,).
            noise: Theirs.
            distances: Of each value from the one before it, in usual ones, shape (n,): news of a noise that
                wanders are larger where values are missing, by how many are; others by what is seen.
        """
        self.noise = noise
        self.weights = np.ones(len(values))
        after_gap = np.zeros(len(values), np.bool_) if distances is None else distances > MISSING
        if distances is not None and noise.wanders:
            self.weights = 1 / noise.deviations_after(distances)
        elif after_gap.sum() >= 8:
            news = noise.news(values - np.median(values))
            larger = scale_of(news[after_gap]) / scale_of(news[~after_gap])
            self.weights[after_gap] = 1 / max(larger, 1.0)
        level = self.weights * noise.news(np.ones(len(values)))
        self._level = level / math.sqrt(float(level @ level) or 1.0)
        self.news = self._without_level(self.weights * noise.news(values - np.median(values)))
        self.square = float(self.news @ self.news)

    def _without_level(self, news: Floats) -> Floats:
        along = news @ self._level
        return news - (along * self._level if news.ndim == 1 else np.multiply.outer(along, self._level))

    def whitened(self, shape: Floats) -> Floats:
        """Return a shape as it is in the news, shape (n,) or (k, n)."""
        return self._without_level(self.weights * self.noise.news(shape))

    def height(self, shape: Floats) -> Height:
        """Fit the height of a shape."""
        white = self.whitened(shape)
        norm = float(white @ white) or 1e-300
        value = float(white @ self.news) / norm
        gain = value * value * norm
        left = max(self.square - gain, 1e-12 * self.square)
        return Height(value, math.sqrt(left / len(white) / norm), gain, left)


class Posterior(NamedTuple):
    """The best parameters, with the height last, and draws of them, shape (draws, parameters + 1)."""

    best: Floats
    draws: Floats


def climb(fit: Fit, shape: Shape, start: Sequence[float], scales: Sequence[float]) -> Floats:
    """Return the parameters of the largest gain, from a start that is near, by steps that become shorter."""
    rng = np.random.default_rng(1)
    best = np.array(start, np.float64)
    first = shape(best)
    gain = fit.height(first).gain if first is not None else 0.0
    for step in range(CLIMB_STEPS):
        tried = best + rng.standard_normal(len(best)) * np.array(scales) * 0.02 ** (step / CLIMB_STEPS)
        made = shape(tried)
        if made is not None and (found := fit.height(made).gain) > gain:
            best, gain = tried, found
    return best


def posterior(fit: Fit, shape: Shape, start: Floats, scales: Sequence[float]) -> Posterior:
    """Return draws of the parameters of a shape, from their best."""
    rng = np.random.default_rng(2)
    count = len(fit.news)
    now = best = np.array(start, np.float64)
    first = shape(now)
    if first is None:
        raise ValueError("a chain begins where no shape is")
    height = best_height = fit.height(first)
    width = np.array(scales, np.float64)
    draws: list[Floats] = []
    for step in range(CHAIN_STEPS):
        tried = now + rng.standard_normal(len(now)) * width * math.exp(rng.uniform(-2, 0.7))
        made = shape(tried)
        accepted = False
        if made is not None:
            other = fit.height(made)
            accepted = math.log(rng.random() + 1e-300) < count / 2 * math.log(height.left / other.left)
            if accepted:
                now, height = tried, other
                if other.gain > best_height.gain:
                    best, best_height = tried, other
        if step < SETTLE_STEPS:
            width *= 1.04 if accepted else 0.98
        else:
            draws.append(np.append(now, height.value + height.deviation * rng.standard_normal()))
    return Posterior(np.append(best, best_height.value), np.array(draws))


def draws_of(chance: Callable[[Floats], float], start: Floats, widths: Floats, steps: int) -> Floats:
    """Return draws of parameters by their log-likelihood, shape (draws, parameters), from a start near them.

    Args:
        chance: The log-likelihood; -inf: no such parameters.
        start: Shape (parameters,).
        widths: Of steps, likewise; they adapt in the first sixth.
        steps: Of the chain.
    """
    rng = np.random.default_rng(5)
    now, was = start, chance(start)
    draws: list[Floats] = []
    for step in range(steps):
        tried = now + widths * rng.standard_normal(len(start)) * math.exp(rng.uniform(-2, 0.7))
        found = chance(tried)
        accepted = math.log(rng.random() + 1e-300) < found - was
        if accepted:
            now, was = tried, found
        if step < steps // 6:
            widths = widths * (1.04 if accepted else 0.98)
        else:
            draws.append(now)
    return np.array(draws)
