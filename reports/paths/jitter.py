# SPDX-License-Identifier: Apache-2.0
"""The jitter of a path beside the distribution that was asked for.

netem adds to a delay its jitter times a number that it draws from a table of iproute2 (`netem/`, `*.dist`; 1
is 8192 in it); a uniform one needs no table. What would come before now comes at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from reports.errors import ReportError
from reports.paths.condition import Condition
from reports.paths.datagrams import Integers
from reports.paths.delay import NS_PER_US
from reports.record.sampling import quantile_ranks

_special: Any = import_module("scipy.special")  # has no types

Floats: TypeAlias = NDArray[np.float64]
Quantiles: TypeAlias = Callable[[Floats], Floats]

PERCENTILES = (10, 50, 90)
DATAGRAMS_MIN = 100
DRAWN = 20
"""Times as many as were seen, so that what is drawn scatters little."""
NORMAL_99 = 2.5758
TABLE_END = 4.0
"""Where the 16 bits of a table end."""


def _normal(share: Floats) -> Floats:
    found: Floats = np.clip(_special.ndtri(share), -TABLE_END, TABLE_END)
    return found


def _pareto(share: Floats) -> Floats:
    """Return those of Pareto's distribution of shape 3, less its mean, in units of 0.75."""
    found: Floats = np.minimum(((1 - share) ** (-1 / 3) - 1.5) * 4 / 3, TABLE_END)
    return found


DISTRIBUTIONS: Mapping[str, Quantiles] = {
    "uniform": lambda share: 2 * share - 1,
    "normal": _normal,
    "pareto": _pareto,
    "paretonormal": lambda share: _normal(share) / 4 + 3 * _pareto(share) / 4,
}
"""Name → what lies at shares of 1, in units of the jitter, about the delay."""


@dataclass(frozen=True)
class Jitter:
    """What was asked of the jitter of a path; times in us."""

    delay_us: float
    jitter_us: float
    distribution: str
    """One of DISTRIBUTIONS."""
    correlation_percent: float = 0.0

    def drawn_us(self, count: int, random: np.random.Generator) -> Floats:
        """Return so many delays that netem should add."""
        share = random.random(count)
        about_us = self.jitter_us * DISTRIBUTIONS[self.distribution](share)
        drawn: Floats = np.maximum(self.delay_us + about_us, 0)
        return drawn


@dataclass(frozen=True)
class JitterFound:
    """A jitter beside the asked one.

    Attributes:
        percentiles: p10, p50, p90 of the delay that was added, in us, each with its 95 % interval by ranks.
        distance: Largest distance of both distributions, a share (Kolmogorov and Smirnov, two samples).
        p_value: How often chance alone would make it as large, were delays independent.
        width: p90 less p10, in us.
        correlation: Of the ranks of delays that follow each other, in percent, with its 99 % interval; None:
            none was asked for.
    """

    percentiles: tuple[Condition, ...]
    distance: float
    p_value: float
    width: Condition
    correlation: Condition | None

    @property
    def is_lower(self) -> bool:
        """Tell whether delays scatter less than asked."""
        return self.width.high < self.width.asked

    def __str__(self) -> str:
        """Return sentences."""
        said = [str(each) for each in self.percentiles]
        if self.correlation is not None:
            said.append(str(self.correlation))
        said.append(f"both distributions are {self.distance:.3g} apart, p {self.p_value:.2g}")
        if self.is_lower:
            share = self.width.achieved / self.width.asked
            said.append(
                f"the jitter is lower than asked: p10 and p90 are {self.width.achieved:.6g} us apart,"
                f" {100 * share:.0f} % of {self.width.asked:.6g} us"
            )
        return "; ".join(said)


def judge_jitter(asked: Jitter, inside_ns: Integers, without_ns: Integers, seed: int = 0) -> JitterFound:
    """Return the jitter beside the asked one.

    The second sample is drawn: what was asked for, each added to a time inside that was seen without it, as
    the path has a jitter of its own.

    Args:
        asked: What was asked for.
        inside_ns: Times inside, of each datagram's first copy, in the order in which they went in.
        without_ns: Those without delay and jitter.
        seed: Of what is drawn.

    Raises:
        ReportError: Fewer than 100 datagrams.
    """
    if min(len(inside_ns), len(without_ns)) < DATAGRAMS_MIN:
        found = min(len(inside_ns), len(without_ns))
        raise ReportError(f"jitter: {found} datagrams tell no distribution: {DATAGRAMS_MIN} at least")
    random = np.random.default_rng(seed)
    own_us = without_ns / NS_PER_US
    own_us = own_us - np.median(own_us)
    seen_us = np.sort(inside_ns / NS_PER_US - np.median(without_ns) / NS_PER_US)
    count = DRAWN * len(seen_us)
    drawn_us = np.sort(asked.drawn_us(count, random) + random.choice(own_us, count))
    percentiles = tuple(_percentile(each, drawn_us, seen_us) for each in PERCENTILES)
    distance = ks_distance(seen_us, drawn_us)
    weight = (len(seen_us) * count / (len(seen_us) + count)) ** 0.5
    low, _, high = percentiles
    width = Condition(
        "p90 - p10",
        "us",
        high.asked - low.asked,
        high.achieved - low.achieved,
        high.low - low.high,
        high.high - low.low,
    )
    p_value = float(_special.kolmogorov(weight * distance))
    correlation = _correlation(asked.correlation_percent, inside_ns) if asked.correlation_percent else None
    return JitterFound(percentiles, distance, p_value, width, correlation)


def ks_distance(one: Floats, other: Floats) -> float:
    """Return the largest distance of two distributions, a share.

    Args:
        one: In ascending order.
        other: Likewise.
    """
    every = np.concatenate((one, other))
    shares = (np.searchsorted(each, every, side="right") / len(each) for each in (one, other))
    return float(np.abs(np.subtract(*shares)).max())


def _percentile(percent: int, drawn_us: Floats, seen_us: Floats) -> Condition:
    ranks = quantile_ranks(percent / 100, len(seen_us))
    assert ranks.lower is not None  # of DATAGRAMS_MIN
    assert ranks.upper is not None
    low, middle, high = (float(seen_us[rank - 1]) for rank in (ranks.lower, ranks.rank, ranks.upper))
    asked_us = float(np.quantile(drawn_us, percent / 100))
    return Condition(f"p{percent}", "us", asked_us, middle, low, high)


def _correlation(asked_percent: float, inside_ns: Integers) -> Condition:
    """Return that of ranks, which is netem's own: it correlates the uniform numbers that it draws with."""
    ranks = np.argsort(np.argsort(inside_ns, kind="stable"), kind="stable").astype(np.float64)
    about = ranks - ranks.mean()
    found = float(about[1:] @ about[:-1] / (about @ about))
    # Fisher's transformation.
    middle, side = math.atanh(found), NORMAL_99 / math.sqrt(len(inside_ns) - 3)
    low, high = (100 * math.tanh(middle + sign * side) for sign in (-1, 1))
    return Condition("jitter correlation", "%", asked_percent, 100 * found, low, high)
