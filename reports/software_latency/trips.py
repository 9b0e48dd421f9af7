# SPDX-License-Identifier: Apache-2.0
"""Round trips of one pair of devices: cumulants with their uncertainty, and whether they stayed the same.

Cumulants are k-statistics (unbiased). Their standard uncertainty is that of a moving-block bootstrap (Künsch
1989): trips that follow each other are drawn together, so that what they have in common is not taken for
independent. The length of a block (`reports/dependence.py`) is for the trips and for their squares, the
longer of both. How well so few blocks tell a variance goes into the degrees of freedom (Student's t). There
are at least fifteen, as a third cumulant wants more than a mean; where trips depend for longer, by more than
chance, they are too few, and that is told.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from reports.dependence import Floats, autocovariance, automatic_length, block_length, depends
from reports.errors import ReportError

Integers: TypeAlias = NDArray[np.int64]
Moment: TypeAlias = Literal["mean", "variance"]

ORDERS = 3
"""Cumulants that are worked out: mean, variance, third."""

TRIPS_MIN = 100
"""Fewer tell no variance of their mean."""

KPSS_LIMIT = 1.168
"""What one stationary series in a thousand exceeds: the Cramér-von Mises distribution."""

BLOCKS_MIN = 15
LAGS_MAX = 1 / 30
DEPENDS_CHANCE = 0.001
"""How often independent trips of one pair are said to depend on each other, and their squares."""


@dataclass(frozen=True, eq=False, slots=True)
class PairTrips:
    """Round trips that one device made to another, in the order in which they were sent.

    Attributes:
        asker: Device that sent them.
        reflector: Device that sent them back.
        rtt_ns: Without the reflector's residence and the known latency of the hardware, int64, shape (n,).
        excluded: Trips that do not count, as those in stolen windows; bool, shape (n,). None: all count.
        sent_mono_ns: When each was sent, by one clock for all pairs, int64, shape (n,). None: not known.
        turn: Which turn each is of, int64, shape (n,); pairs have their turns of one number at nearly the
            same time. None: one pair was measured after the other.
        hardware_bounds_ns: By how much the latency of each cable and switch, by its name, may be off in what
            was taken off; the same in every trip of every pair.
        known_delay_ns: By how much a delay that was put in on purpose has held each up, int64, shape (n,); it
            is part of the round trip. None: the reflector does not say.
    """

    asker: str
    reflector: str
    rtt_ns: Integers
    excluded: NDArray[np.bool_] | None = None
    sent_mono_ns: Integers | None = None
    turn: Integers | None = None
    hardware_bounds_ns: Mapping[str, float] = field(default_factory=dict[str, float])
    known_delay_ns: Integers | None = None

    def __post_init__(self) -> None:
        """Check the shapes.

        Raises:
            ReportError: They differ, or round trips are no whole nanoseconds.
        """
        if self.rtt_ns.ndim != 1 or self.rtt_ns.dtype != np.int64:
            raise ReportError(f"{self.name}: rtt_ns has to be int64 of one dimension")
        beside = (self.excluded, self.sent_mono_ns, self.turn, self.known_delay_ns)
        if any(each is not None and each.shape != self.rtt_ns.shape for each in beside):
            n = len(self.rtt_ns)
            raise ReportError(
                f"{self.name}: excluded, sent_mono_ns, turn and known_delay_ns need {n} values each"
            )

    @property
    def name(self) -> str:
        """The pair, as it is named in results."""
        return f"{self.asker}/{self.reflector}"

    @property
    def counted(self) -> NDArray[np.bool_]:
        """Which trips count, shape (n,)."""
        return np.ones(len(self.rtt_ns), np.bool_) if self.excluded is None else ~self.excluded


@dataclass(frozen=True, slots=True)
class Drift:
    """How far a moment wandered over the trips: Kwiatkowski, Phillips, Schmidt and Shin (1992).

    The statistic is the sum over the squared partial sums of deviations, over n² and the long-run variance.

    Attributes:
        moment: Of what: of the trips, or of their squared deviations.
        statistic: Of that series.
    """

    moment: Moment
    statistic: float

    @property
    def is_stationary(self) -> bool:
        """Return whether the statistic is one that a stationary series has."""
        return self.statistic <= KPSS_LIMIT


@dataclass(frozen=True, eq=False, slots=True)
class PairResult:
    """What the trips of one pair told.

    Attributes:
        asker: Device that sent them.
        reflector: Device that sent them back.
        n: Trips that count.
        n_excluded: Trips that do not.
        cumulants: Mean in ns, variance in ns², third cumulant in ns³; shape (3,).
        standard: Standard uncertainty of each, in its unit; shape (3,).
        freedom: Degrees of freedom of the standard uncertainties, of blocks and resamples together.
        block_trips: Trips of a block of the bootstrap.
        is_long_enough: Trips do not depend on each other by more than chance, or the automatic block is at
            most a thirtieth of all; else U is too small.
        minimum_ns: Shortest round trip.
        maximum_ns: Longest round trip.
        drifts: Of mean and variance.
    """

    asker: str
    reflector: str
    n: int
    n_excluded: int
    cumulants: Floats
    standard: Floats
    freedom: float
    block_trips: int
    is_long_enough: bool
    minimum_ns: int
    maximum_ns: int
    drifts: tuple[Drift, ...]

    @property
    def name(self) -> str:
        """The pair, as it is named in results."""
        return f"{self.asker}/{self.reflector}"

    @property
    def weighing_ns(self) -> float:
        """What its mean is weighed by: its standard uncertainty, were trips independent.

        It needs no random numbers, so that anybody who works S out again comes to the same value.
        """
        return math.sqrt(max(float(self.cumulants[1]), 0.0) / self.n)


def measure(trips: PairTrips, *, resamples: int = 1000, seed: int = 0) -> PairResult:
    """Return the cumulants of a pair's trips that count, with their standard uncertainty.

    Excluded trips are cut out: those before and after them follow each other.

    Args:
        trips: Of one pair.
        resamples: Of the bootstrap, at least 2; its own noise goes into the degrees of freedom.
        seed: Of its random numbers.

    Raises:
        ReportError: Fewer than TRIPS_MIN trips count, or fewer resamples than two.
    """
    require_enough(trips, resamples)
    kept = trips.rtt_ns[trips.counted]
    middle_ns = int(np.median(kept))
    apart = (kept - middle_ns).astype(np.float64)
    squares = (apart - apart.mean()) ** 2
    automatic = max(automatic_length(apart), automatic_length(squares))
    block = block_length(automatic, len(kept), least=2 * len(kept) ** (1 / 3), blocks_min=BLOCKS_MIN)
    lags = min(block, math.ceil(LAGS_MAX * len(kept)))
    cumulants = k_statistics(_powers(apart).sum(axis=1), len(kept))
    cumulants[0] += middle_ns
    return PairResult(
        trips.asker,
        trips.reflector,
        len(kept),
        len(trips.rtt_ns) - len(kept),
        cumulants,
        _bootstrap(apart, block, resamples, np.random.default_rng(seed)),
        1 / (1 / (len(kept) // block - 1) + 1 / (resamples - 1)),
        block,
        are_enough([apart], [squares], DEPENDS_CHANCE)[0],
        int(kept.min()),
        int(kept.max()),
        (Drift("mean", kpss(apart, lags)), Drift("variance", kpss(squares, lags))),
    )


def are_enough(means: Sequence[Floats], squares: Sequence[Floats], chance: float) -> list[bool]:
    """Return of each pair whether its series is long enough for its dependence.

    Args:
        means: Of each pair its trips, or the means of its turns, shape (n,) each, at the same times.
        squares: Likewise, squared deviations.
        chance: How often independent ones may be said to depend on each other.
    """
    enough = [True] * len(means)
    for series in (means, squares):
        for place, is_dependent in enumerate(depends(series, chance)):
            if is_dependent and automatic_length(series[place], least_lag=1) > LAGS_MAX * len(series[place]):
                enough[place] = False
    return enough


def require_enough(trips: PairTrips, resamples: int) -> None:
    """Raise ReportError where fewer than TRIPS_MIN trips count, or there are fewer than two resamples."""
    if resamples < 2:
        raise ReportError(f"{resamples} resamples, need 2")
    if (n := int(np.count_nonzero(trips.counted))) < TRIPS_MIN:
        raise ReportError(f"{trips.name}: {n} trips count, need {TRIPS_MIN}")


def k_statistics(sums: Floats, n: int | Floats) -> Floats:
    """Return unbiased estimates of the first three cumulants, shape (3, ...).

    Args:
        sums: Of values, of their squares and of their cubes, shape (3, ...).
        n: Values in each sum, at least 3; one number, or of the shape of the sums without their first axis.
    """
    mean, square, cube = sums / n
    m2 = square - mean**2
    m3 = cube - 3 * mean * square + 2 * mean**3
    return np.array([mean, m2 * n / (n - 1), m3 * n * n / ((n - 1) * (n - 2))])


def kpss(values: Floats, lags: int) -> float:
    """Return the KPSS statistic of a series of shape (n,) about its mean.

    The long-run variance is by Bartlett's window over so many lags; what wanders within them shows as noise.
    """
    n = len(values)
    covariance = autocovariance(values, lags)
    weight = 2 * (1 - np.arange(lags + 1) / (lags + 1))
    weight[0] = 1
    long_run = float(weight @ covariance)
    partial = np.cumsum(values - values.mean())
    return float(partial @ partial) / (n * n * long_run) if long_run > 0 else 0.0


def _powers(values: Floats) -> Floats:
    return np.array([values**power for power in range(1, ORDERS + 1)])


def _bootstrap(apart: Floats, block: int, resamples: int, rng: np.random.Generator) -> Floats:
    """Return the standard deviation of each cumulant over resamples of blocks, shape (3,).

    Sums over blocks are differences of running sums. The spread of few blocks about their own mean is too
    small by K / (K - 1).
    """
    n = len(apart)
    running = np.zeros((ORDERS, n + 1))
    np.cumsum(_powers(apart), axis=1, out=running[:, 1:])
    sums = running[:, block:] - running[:, : n + 1 - block]
    count = n // block
    starts = rng.integers(0, n + 1 - block, (resamples, count))
    drawn = np.array([each[starts].sum(axis=1) for each in sums])
    spread = k_statistics(drawn, count * block).std(axis=1, ddof=1)
    return spread * math.sqrt(count * block / n * count / (count - 1))
