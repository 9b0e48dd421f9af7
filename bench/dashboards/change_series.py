# SPDX-License-Identifier: Apache-2.0
"""Generated series of results: a level, noise, and a step of so many standard deviations."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]

BASELINE_RUNS = 40
STEP_RUNS = 52
STATIONARY_RUNS = 60
STEP_SIGMA = 2.0
LEVEL = 100.0
"""The level around which, or above which, noise lies; in the unit of the series."""


@dataclass(frozen=True)
class Noise:
    """Noise of unit standard deviation, and how it and a step become values.

    Attributes:
        draw: Returns so many values of the noise, standard deviation 1.
        values: Returns the values of a series from the sum of noise and step.
    """

    draw: Callable[[np.random.Generator, int], Values]
    values: Callable[[Values], Values] = lambda sum_: LEVEL * (1 + 0.05 * sum_)


def _log_normal(sigma_ln: float, rng: np.random.Generator, n: int) -> Values:
    variance_ln = sigma_ln**2
    deviation = math.sqrt(math.expm1(variance_ln) * math.exp(variance_ln))
    return np.exp(sigma_ln * rng.standard_normal(n)) / deviation


def _autoregressive(share: float, rng: np.random.Generator, n: int) -> Values:
    fresh = rng.standard_normal(n) * math.sqrt(1 - share**2)
    noise = np.empty(n)
    last = rng.standard_normal()
    for place in range(n):
        last = share * last + fresh[place]
        noise[place] = last
    return noise


def _with_outliers(share: float, rng: np.random.Generator, n: int) -> Values:
    return rng.standard_normal(n) + 20 * (rng.random(n) < share)


NOISES: dict[str, Noise] = {
    "normal": Noise(lambda rng, n: rng.standard_normal(n)),
    # Log-normal, and the step a factor: both are what they are on the logarithmic scale.
    "log_normal": Noise(lambda rng, n: rng.standard_normal(n), lambda sum_: LEVEL * np.exp(0.5 * sum_)),
    # The same noise, but the step is added to the values: 2 of *their* standard deviations.
    "log_normal_added": Noise(lambda rng, n: _log_normal(0.5, rng, n), lambda sum_: LEVEL * sum_),
    # Not judged by the bars.
    "log_normal_1_added": Noise(lambda rng, n: _log_normal(1.0, rng, n), lambda sum_: LEVEL * sum_),
    "largest_of_many": Noise(lambda rng, n: rng.gumbel(0, math.sqrt(6) / math.pi, n)),
    "exponential": Noise(lambda rng, n: rng.exponential(1, n)),
    "heavy_tails": Noise(lambda rng, n: rng.standard_t(5, n) / math.sqrt(5 / 3)),
    "outliers": Noise(lambda rng, n: _with_outliers(0.03, rng, n)),
    "autocorrelated": Noise(lambda rng, n: _autoregressive(0.3, rng, n)),
}
JUDGED = ("normal", "log_normal", "log_normal_added")


def series(name: str, seed: int, *, step_sigma: float, runs: int, purpose: int = 5) -> Values:
    """Return a series of one of NOISES, with a step after BASELINE_RUNS.

    Args:
        name: Which noise.
        seed: Number of the series.
        step_sigma: Height of the step in standard deviations of the noise; 0: stationary.
        runs: Length of the series.
        purpose: Series of another purpose are others: 5 is judged, parameters were chosen on 993 .. 997.
    """
    noise = NOISES[name]
    rng = np.random.default_rng([purpose, list(NOISES).index(name), step_sigma != 0, seed])
    total = noise.draw(rng, runs)
    total[BASELINE_RUNS:] += step_sigma
    return noise.values(total)
