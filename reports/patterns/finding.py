# SPDX-License-Identifier: Apache-2.0
"""What is found in a series: a kind, its parameters, and how often chance shows as much."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reports.dependence import Floats

CHANCE = 0.0002
"""Of each search: how often a series without the pattern may show it; of all together below 2 %."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter and its interval of 95 %, in one unit.

    Attributes:
        value: The estimate.
        low: Lower end of the interval.
        high: Upper end of it.
        unit: Such as `s`; `value` is the unit of the series, `value/s` that by the second.
    """

    value: float
    low: float
    high: float
    unit: str

    @classmethod
    def about(cls, value: float, deviation: float, unit: str) -> Parameter:
        """Return a parameter whose estimate is normal, with its standard deviation."""
        return cls(value, value - 1.96 * deviation, value + 1.96 * deviation, unit)

    @classmethod
    def of_draws(cls, draws: Floats, unit: str) -> Parameter:
        """Return a parameter by draws of it: their median and quantiles."""
        low, middle, high = (float(each) for each in np.quantile(draws, (0.025, 0.5, 0.975)))
        return cls(middle, low, high, unit)


@dataclass(frozen=True, slots=True)
class Finding:
    """A pattern.

    Attributes:
        kind: Its name, as in docs/patterns.md.
        parameters: By name.
        false_alarms: How often series of the fitted noise alone show as much, by surrogate series.
        says: What it means, a sentence; empty where the parameters say all.
    """

    kind: str
    parameters: dict[str, Parameter]
    false_alarms: float
    says: str = ""
