# SPDX-License-Identifier: Apache-2.0
"""Round trips of pairs whose turns alternate: their cumulants, and how they vary together.

Turns of one number are of nearly the same time in all pairs. They are drawn together, so that the covariance
of the pairs' cumulants holds what they have in common, in blocks of turns that follow each other, as for
trips (`trips.py`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from reports.dependence import Floats, automatic_length, block_length
from reports.errors import ReportError
from reports.software_latency.spread import Spread, hardware_of
from reports.software_latency.trips import (
    BLOCKS_MIN,
    LAGS_MAX,
    ORDERS,
    Drift,
    Integers,
    PairResult,
    PairTrips,
    are_enough,
    k_statistics,
    kpss,
    require_enough,
)

TURNS_MIN = 30
"""Fewer tell no covariance."""
DEPENDS_CHANCE = 0.003
"""How often independent turns are said to depend on each other: all pairs' means, and their squares."""


def measure_turns(
    trips: Sequence[PairTrips], *, resamples: int = 1000, seed: int = 0
) -> tuple[tuple[PairResult, ...], Spread]:
    """Return the cumulants of each pair's trips that count, and their covariance over the turns.

    Args:
        trips: Of each pair; all have turns.
        resamples: Of the bootstrap, at least 2.
        seed: Of its random numbers.

    Raises:
        ReportError: A pair has fewer than TRIPS_MIN trips, or all fewer than TURNS_MIN turns, or fewer
            resamples than two.
    """
    for each in trips:
        require_enough(each, resamples)
    turns = turns_of(trips)
    if len(turns) < TURNS_MIN:
        raise ReportError(f"{len(turns)} turns, need {TURNS_MIN}")
    middles = [int(np.median(each.rtt_ns[each.counted])) for each in trips]
    sums = np.array([sums_of_turns(each, middle, turns) for each, middle in zip(trips, middles, strict=True)])
    series = [(_means(each[1], each[0]), _squares(each)) for each in sums]
    automatic = max(automatic_length(values) for both in series for values in both)
    count = len(turns)
    block = block_length(automatic, count, least=count ** (1 / 3), blocks_min=BLOCKS_MIN)
    drawn = _drawn(count, block, resamples, np.random.default_rng(seed))
    totals = np.einsum("rt,pkt->kpr", drawn, sums)
    spread = _covariance(totals, count, block)
    freedom = 1 / (1 / (count // block - 1) + 1 / (resamples - 1))
    lags = min(block, math.ceil(LAGS_MAX * count))
    means, squares = (
        [_filled(both[order], each[0]) for both, each in zip(series, sums, strict=True)] for order in (0, 1)
    )
    enough = are_enough(means, squares, DEPENDS_CHANCE)
    measured = tuple(
        _measured(each, middle, own, spread[:, place, place], freedom, block, is_enough, both, lags)
        for place, (each, middle, own, is_enough, both) in enumerate(
            zip(trips, middles, sums, enough, series, strict=True)
        )
    )
    return measured, Spread(spread, np.full(len(trips), freedom), True, hardware_of(trips))


def turns_of(trips: Sequence[PairTrips]) -> Integers:
    """Return the turns of which any trip counts, each once, shape (turns,); all pairs have turns."""
    return np.unique(np.concatenate([each.turn[each.counted] for each in trips if each.turn is not None]))


def sums_of_turns(trips: PairTrips, middle_ns: int, turns: Integers) -> Floats:
    """Return of each turn how many trips count, and the sums of their powers about the middle: (4, turns)."""
    assert trips.turn is not None
    place = np.searchsorted(turns, trips.turn[trips.counted])
    apart = (trips.rtt_ns[trips.counted] - middle_ns).astype(np.float64)
    powers = [np.bincount(place, apart**power, minlength=len(turns)) for power in range(ORDERS + 1)]
    return np.array(powers, np.float64)


def _means(total: Floats, n: Floats) -> Floats:
    """Return the means of turns that have any; the others have nothing to say."""
    some = n > 0
    return np.asarray(total[some] / n[some])


def _filled(values: Floats, n: Floats) -> Floats:
    """Return values of turns that have any trips, and their mean at the others: pairs side by side."""
    filled = np.full(len(n), values.mean())
    filled[n > 0] = values
    return filled


def _squares(sums: Floats) -> Floats:
    """Return the mean squared deviation of each turn from the mean of all."""
    n, first, second, _ = sums
    mean = first.sum() / n.sum()
    return _means(second - 2 * mean * first + mean**2 * n, n)


def _drawn(count: int, block: int, resamples: int, rng: np.random.Generator) -> Floats:
    """Return how often each turn is in each resample, shape (resamples, turns)."""
    starts = rng.integers(0, count + 1 - block, (resamples, count // block))
    drawn = np.zeros((resamples, count + 1))
    rows = np.repeat(np.arange(resamples), starts.shape[1])
    np.add.at(drawn, (rows, starts.ravel()), 1)
    np.add.at(drawn, (rows, starts.ravel() + block), -1)
    return np.cumsum(drawn, axis=1)[:, :count]


def _covariance(totals: Floats, count: int, block: int) -> Floats:
    """Return the covariance of the cumulants over resamples, shape (3, pairs, pairs).

    The spread of few blocks about their own mean is too small by K / (K - 1), as in `trips.py`.
    """
    n = np.maximum(totals[0], 3)  # a pair whose every turn in a resample is left out tells nothing
    found = k_statistics(totals[1:], n)
    blocks = count // block
    larger = blocks * block / count * (blocks / (blocks - 1)) ** 2
    return np.array([np.atleast_2d(np.cov(each)) * larger for each in found])


def _measured(
    trips: PairTrips,
    middle_ns: int,
    sums: Floats,
    variance: Floats,
    freedom: float,
    block: int,
    is_enough: bool,
    series: tuple[Floats, Floats],
    lags: int,
) -> PairResult:
    kept = trips.rtt_ns[trips.counted]
    total = sums.sum(axis=1)
    cumulants = k_statistics(total[1:], total[0])
    cumulants[0] += middle_ns
    means, squares = series
    return PairResult(
        trips.asker,
        trips.reflector,
        len(kept),
        len(trips.rtt_ns) - len(kept),
        cumulants,
        np.sqrt(variance),
        freedom,
        round(block * len(kept) / len(means)),
        is_enough,
        int(kept.min()),
        int(kept.max()),
        (Drift("mean", kpss(means, lags)), Drift("variance", kpss(squares, lags))),
    )
