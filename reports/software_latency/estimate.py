# SPDX-License-Identifier: Apache-2.0
"""Every device's own software latency S = send + receive, from round trips of pairs.

With the reflector's residence and the hardware's latency taken off, RTT_AB = S_A + S_B. Where both are
independent their cumulants add, so that least squares over the pairs give those of each device (of three:
κ(S_A) = (κ_AB + κ_AC - κ_BC) / 2). Maxima and minima do not add: they are intervals.
Model and assumption on one way: Puttnies et al., "Algorithmic Approach to Estimate Variant Software
Latencies", equations (1) to (8).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from reports.errors import ReportError
from reports.software_latency.bounds import Bound, partner_bounds, residual_bounds, wander_bounds
from reports.software_latency.plan import Device, Kind, check_identifiable, design_matrix, kinds_of
from reports.software_latency.spread import Spread, hardware_of, independent, student
from reports.software_latency.trips import Drift, Floats, PairResult, PairTrips, measure
from reports.software_latency.turns import measure_turns

Order: TypeAlias = Literal[1, 2, 3]

CHANCE = 0.001
"""How often a check may speak where nothing is wrong."""

DEVICE_DEPENDENCE, BLOCK_VARIATION, HARDWARE = "device_dependence", "block_variation", "hardware"
"""Names of the parts of U besides the scatter: two come of a check which has spoken."""

_NAMES = {1: "mean", 2: "variance"}
_BINS_MAX = 400
_BIN_TRIPS = 5
_BINS_MIN = 30


@dataclass(frozen=True, slots=True)
class Interval:
    """Where a value lies, in ns, both ends included."""

    low_ns: float
    high_ns: float


@dataclass(frozen=True, slots=True)
class OneWayAlike:
    """One way of a device where send and receive are taken to be alike, as the paper does.

    Attributes:
        mean_ns: S / 2.
        mean_expanded_ns: U of it, by the round trips alone.
        mean_error_max_ns: Equation (7), (t + r) / 2: what the assumption itself can be off.
        variance_low_ns2: κ₂ / 4: send and receive go together fully.
        variance_high_ns2: κ₂ / 2: they are independent.
        worst_max_ns: Equation (8), t + r: no one way of the trips that were measured took longer.
    """

    mean_ns: float
    mean_expanded_ns: float
    mean_error_max_ns: float
    variance_low_ns2: float
    variance_high_ns2: float
    worst_max_ns: float


@dataclass(frozen=True, slots=True)
class SoftwareLatency:
    """Software latency S of one kind of device: send and receive of one trip together.

    Every U is expanded, to 95.45 % (k = 2 where many blocks tell it, more where few do).

    Attributes:
        kind: Hardware and software.
        devices: Their names.
        mean_ns: Of S.
        mean_expanded_ns: Its U where the model holds.
        bounds: What comes to U besides: where the model does not hold, and of the hardware's latency.
        variance_ns2: Of S; below zero by chance where S hardly varies.
        variance_expanded_ns2: Its U.
        third_ns3: Third cumulant of S.
        third_expanded_ns3: Its U.
        minimum: Where the smallest S of the trips measured lies. Only its upper end says something.
        maximum: Where the largest S of the trips measured lies. It bounds no later trip.
        one_way_alike: One way, on the assumption that send and receive are alike.
        one_way_mean: Mean of one way without any assumption: [0, S].
    """

    kind: Kind
    devices: tuple[str, ...]
    mean_ns: float
    mean_expanded_ns: float
    bounds: tuple[Bound, ...]
    variance_ns2: float
    variance_expanded_ns2: float
    third_ns3: float
    third_expanded_ns3: float
    minimum: Interval
    maximum: Interval
    one_way_alike: OneWayAlike
    one_way_mean: Interval

    @property
    def mean_u_ns(self) -> float:
        """U of the mean, with what the model leaves open."""
        return self.mean_expanded_ns + sum(each.ns for each in self.bounds)

    @property
    def deviation(self) -> tuple[float, float] | None:
        """Return the standard deviation of S and its U, in ns; None where the variance is not above zero."""
        if self.variance_ns2 <= 0:
            return None
        deviation_ns = math.sqrt(self.variance_ns2)
        return deviation_ns, deviation_ns - math.sqrt(max(self.variance_ns2 - self.variance_expanded_ns2, 0))

    @property
    def skewness(self) -> tuple[float, float] | None:
        """Return the skewness of S, third cumulant over deviation³, with U; None: the variance is not told.

        U is the sum of what both cumulants can be off, so that it holds whatever they have in common.
        """
        if self.variance_ns2 <= self.variance_expanded_ns2:
            return None
        skewness = self.third_ns3 / self.variance_ns2**1.5
        narrow = (self.variance_ns2 - self.variance_expanded_ns2) ** 1.5
        third = abs(self.third_ns3) + self.third_expanded_ns3
        return skewness, third / narrow - abs(skewness)


@dataclass(frozen=True, eq=False, slots=True)
class Fit:
    """Least squares over the pairs, for the cumulants of one order.

    Attributes:
        order: 1 mean (ns), 2 variance (ns²), 3 third cumulant (ns³).
        residuals: Measured less fitted of each pair, shape (pairs,).
        chi_squared: Of the sums over pairs that have to be zero; Hotelling's T² where pairs vary together.
        freedom: Pairs less kinds; 0: nothing is left over that could contradict the model.
        chance: How often chi-squared is so large by chance; 1 where freedom is 0.
    """

    order: Order
    residuals: Floats
    chi_squared: float
    freedom: int
    chance: float


@dataclass(frozen=True, slots=True)
class Correlation:
    """Whether two pairs without a common device, measured at the same time, were slow together.

    Attributes:
        pair: Name of one.
        other: Name of the other.
        coefficient: Spearman's, over means in bins of the time that both share.
        bins: How many.
        score: Coefficient over its standard deviation, were both independent (Bartlett).
    """

    pair: str
    other: str
    coefficient: float
    bins: int
    score: float

    @property
    def is_independent(self) -> bool:
        """Return whether independent pairs have such a score."""
        return abs(self.score) <= -float(student(np.array(self.bins - 2), CHANCE / 2))


@dataclass(frozen=True, eq=False, slots=True)
class Estimate:
    """Software latency of every kind of device, and what speaks against the model.

    Attributes:
        latencies: One a kind.
        measured: One a pair, in the order of the trips that were given.
        spread: How they vary, each and together.
        fits: One an order.
        correlations: Of pairs that were measured at the same time.
        doubts: What is not as the model says, in words; empty where nothing was found.
        untested: What these trips cannot test, in words.
    """

    latencies: tuple[SoftwareLatency, ...]
    measured: tuple[PairResult, ...]
    spread: Spread
    fits: tuple[Fit, ...]
    correlations: tuple[Correlation, ...]
    doubts: tuple[str, ...]
    untested: tuple[str, ...]

    @property
    def wanders(self) -> bool:
        """Return whether trips of a pair wandered, or depend on each other for too long to tell."""
        return _wander(self.measured)


def estimate(
    devices: Sequence[Device], trips: Sequence[PairTrips], *, resamples: int = 1000, seed: int = 0
) -> Estimate:
    """Return the software latency of every kind of device.

    Args:
        devices: All devices.
        trips: Of each pair; one pair may come in both roles, and several times.
        resamples: Of the bootstrap.
        seed: Of its random numbers.

    Raises:
        PlanError: The pairs do not tell every kind; it names what is missing.
        ReportError: A pair has too few trips that count, or turns are given for some pairs alone.
    """
    pairs = [(each.asker, each.reflector) for each in trips]
    check_identifiable(devices, pairs)
    measured, spread = _measure(trips, resamples, seed)
    design = design_matrix(devices, pairs)
    solved = [_solve(design, measured, spread, order) for order in (1, 2, 3)]
    fits = tuple(fit for _, _, fit in solved)
    values = np.array([value for value, _, _ in solved])
    expanded = np.array([u for _, u, _ in solved])
    bounds = _bounds(design, trips, measured, spread, fits[0], values[0])
    latencies = tuple(
        _latency(
            kind,
            tuple(device.name for device in devices if device.kind == kind),
            values[:, column],
            expanded[:, column],
            bounds[column],
            [each for each, row in zip(measured, design, strict=True) if row[column]],
        )
        for column, kind in enumerate(kinds_of(devices))
    )
    correlations = tuple(_correlations(trips))
    doubts = (
        *_unsteady(measured),
        *_misfits(fits),
        *_impossible(latencies),
        *_dependent(correlations),
    )
    untested = tuple(_untested(fits, correlations))
    return Estimate(latencies, measured, spread, fits, correlations, doubts, untested)


def _measure(trips: Sequence[PairTrips], resamples: int, seed: int) -> tuple[tuple[PairResult, ...], Spread]:
    """Measure pairs together where all have their turns by turns, each by itself where none has."""
    without = [each.name for each in trips if each.turn is None]
    if 0 < len(without) < len(trips):
        raise ReportError(f"some pairs have turns, but not {', '.join(without)}: give all of them, or none")
    if not without:
        return measure_turns(trips, resamples=resamples, seed=seed)
    measured = tuple(
        measure(each, resamples=resamples, seed=seed + place) for place, each in enumerate(trips)
    )
    return measured, independent(measured, hardware_of(trips))


def solver(design: Floats, standard: Floats) -> Floats:
    """Return the weights by which pairs make kinds, shape (kinds, pairs): least squares with 1 / u².

    Args:
        design: How often each kind is in each pair, shape (pairs, kinds).
        standard: Standard uncertainty of each pair, shape (pairs,).
    """
    weights = 1 / np.maximum(standard, 1e-9 * max(float(standard.max()), 1.0))
    return np.asarray(np.linalg.pinv(design * weights[:, None]) * weights)


def weighing(measured: Sequence[PairResult]) -> Floats:
    """Return what the mean of each pair is weighed by, in ns, shape (pairs,)."""
    return np.array([each.weighing_ns for each in measured])


def _solve(
    design: Floats, measured: Sequence[PairResult], spread: Spread, order: Order
) -> tuple[Floats, Floats, Fit]:
    """Return each kind's cumulant, its U, and the fit: least squares."""
    values = np.array([each.cumulants[order - 1] for each in measured])
    standard = np.array([each.standard[order - 1] for each in measured])
    weights = solver(design, weighing(measured) if order == 1 else standard)
    found = weights @ values
    contrasts = np.linalg.svd(design)[0][:, design.shape[1] :].T  # sums over pairs in which no device is left
    squared, chance = spread.chance(contrasts, values, order)
    fit = Fit(order, values - design @ found, squared, len(contrasts), chance)
    return found, spread.expanded(weights, order), fit


def _bounds(
    design: Floats,
    trips: Sequence[PairTrips],
    measured: Sequence[PairResult],
    spread: Spread,
    fit: Fit,
    means: Floats,
) -> list[tuple[Bound, ...]]:
    """Return what adds to the U of each kind's mean: of the hardware, and where a check has spoken."""
    bounds: list[list[Bound]] = [[] for _ in means]
    weights = solver(design, weighing(measured))
    for own, ns in zip(bounds, spread.hardware(weights), strict=True):
        if ns > 0:
            own.append(Bound(HARDWARE, float(ns), "latency of cables and switches that was taken off"))
    if fit.chance < CHANCE:
        values = np.array([each.cumulants[0] for each in measured])
        moved = np.maximum(partner_bounds(design, values, means), residual_bounds(design, weights, values))
        for own, ns in zip(bounds, moved, strict=True):
            own.append(Bound(DEVICE_DEPENDENCE, float(ns), "the pairs contradict each other"))
    if _wander(measured):
        moved = wander_bounds(weights, trips, means)
        for own, ns in zip(bounds, moved if moved is not None else (), strict=False):
            own.append(Bound(BLOCK_VARIATION, float(ns), "round trips wandered"))
    return [tuple(own) for own in bounds]


def _wander(measured: Iterable[PairResult]) -> bool:
    return any(not each.is_long_enough or not each.drifts[0].is_stationary for each in measured)


def _latency(
    kind: Kind,
    names: tuple[str, ...],
    values: Floats,
    expanded: Floats,
    bounds: tuple[Bound, ...],
    own: Sequence[PairResult],
) -> SoftwareLatency:
    """Put together one kind's result; `own` are the pairs that it is in.

    No S is below zero, so none is above its round trip. The largest is at least the mean, and with
    (max - mean)(mean - min) ≥ variance (Bhatia and Davis 2000) and min ≥ 0 at least mean + variance / mean.
    """
    mean, variance, third = values.tolist()
    mean_u, variance_u, third_u = expanded.tolist()
    whole_u = mean_u + sum(each.ns for each in bounds if each.name == HARDWARE)
    high = max(mean + whole_u, 0.0)
    largest = float(max(each.maximum_ns for each in own))
    at_least = max(mean - whole_u, 0.0) + (max(variance - variance_u, 0.0) / high if high else 0.0)
    smallest = min(float(min(each.minimum_ns for each in own)), high)
    return SoftwareLatency(
        kind,
        names,
        mean,
        mean_u,
        bounds,
        variance,
        variance_u,
        third,
        third_u,
        Interval(0.0, max(smallest, 0.0)),
        Interval(min(at_least, largest), largest),
        OneWayAlike(mean / 2, mean_u / 2, mean / 2, max(variance, 0.0) / 4, max(variance, 0.0) / 2, largest),
        Interval(0.0, high),
    )


def _correlations(trips: Sequence[PairTrips]) -> Iterator[Correlation]:
    for one, other in itertools.combinations(trips, 2):
        if not {one.asker, one.reflector} & {other.asker, other.reflector}:
            found = correlation(one, other)
            if found is not None:
                yield found


def correlation(one: PairTrips, other: PairTrips) -> Correlation | None:
    """Return how two pairs went together in time; None where they share too little of it, or no times.

    Trips are averaged in bins of the time that both share; ranks, so that a few outliers decide nothing.
    """
    if one.sent_mono_ns is None or other.sent_mono_ns is None:
        return None
    sent = [each.sent_mono_ns[each.counted] for each in (one, other) if each.sent_mono_ns is not None]
    rtt = [each.rtt_ns[each.counted] for each in (one, other)]
    if not all(map(len, sent)):
        return None
    since, until = max(int(each.min()) for each in sent), min(int(each.max()) for each in sent)
    shared = min(int(np.count_nonzero((each >= since) & (each <= until))) for each in sent)
    bins = min(_BINS_MAX, shared // _BIN_TRIPS)
    if bins < _BINS_MIN:
        return None
    edges = np.linspace(since, until, bins + 1)
    counts = [np.histogram(each, edges)[0] for each in sent]
    sums = [np.histogram(each, edges, weights=times)[0] for each, times in zip(sent, rtt, strict=True)]
    both = (counts[0] > 0) & (counts[1] > 0)
    if np.count_nonzero(both) < _BINS_MIN:
        return None
    x, y = (_scores(total[both] / count[both]) for total, count in zip(sums, counts, strict=True))
    n = len(x)
    lags = slice(n, n + n // 4)
    own, others = (np.correlate(each, each, "full")[lags] for each in (x, y))
    together = 1 + 2 * float(own @ others)
    coefficient = float(x @ y)
    return Correlation(one.name, other.name, coefficient, n, coefficient * math.sqrt(n / max(1.0, together)))


def _scores(values: Floats) -> Floats:
    """Return ranks about their mean, of length one; equal values share theirs, and all equal are zeros."""
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(count) - count / 2)[place]
    ranks -= ranks.mean()
    return ranks / (np.linalg.norm(ranks) or 1.0)


def undecided(found: Estimate, latency: SoftwareLatency) -> tuple[str, ...]:
    """Return why the mean of one kind cannot be judged: what speaks against the model and is in no bound."""
    reasons = list(_below_zero(latency))
    if not any(each.name == BLOCK_VARIATION for each in latency.bounds):
        reasons += [reason for each in found.measured for reason in _unsteady_mean(each)]
    return tuple(reasons)


def _unsteady(measured: Iterable[PairResult]) -> Iterator[str]:
    for each in measured:
        yield from _unsteady_mean(each)
        if not each.drifts[1].is_stationary:
            yield _wandered(each, each.drifts[1])


def _unsteady_mean(measured: PairResult) -> Iterator[str]:
    name, n, drift = measured.name, measured.n, measured.drifts[0]
    if not measured.is_long_enough:
        yield f"{name}: {n} trips are too few: they depend on each other, U is too small"
    if not drift.is_stationary:
        yield _wandered(measured, drift)


def _wandered(measured: PairResult, drift: Drift) -> str:
    return f"{measured.name}: not stationary: its {drift.moment} wandered (KPSS {drift.statistic:.2f})"


def _misfits(fits: Iterable[Fit]) -> Iterator[str]:
    """Say which sums do not close. The third cumulant's own uncertainty is too rough to be held to it."""
    for fit in fits:
        if fit.order in _NAMES and fit.chance < CHANCE:
            said = f"chi-squared {fit.chi_squared:.1f} of {fit.freedom}"
            name = _NAMES[fit.order]
            yield f"pairs contradict each other in the {name}: not independent or changed ({said})"


def _impossible(latencies: Iterable[SoftwareLatency]) -> Iterator[str]:
    for each in latencies:
        name = " ".join(each.kind)
        yield from _below_zero(each)
        if each.variance_ns2 + each.variance_expanded_ns2 < 0:
            yield f"{name}: variance is below zero: devices are not independent or changed"


def _below_zero(latency: SoftwareLatency) -> Iterator[str]:
    if latency.mean_ns + latency.mean_u_ns < 0:
        name = " ".join(latency.kind)
        yield f"{name}: latency is below zero: more was taken off the round trips than was there"


def _dependent(correlations: Iterable[Correlation]) -> Iterator[str]:
    for each in correlations:
        if not each.is_independent:
            yield f"{each.pair} and {each.other}: not independent: slow together (r = {each.coefficient:.2f})"


def _untested(fits: Sequence[Fit], correlations: Sequence[Correlation]) -> Iterator[str]:
    if not fits[0].freedom:
        yield "closure: as many pairs as kinds, nothing is left over"
    if not correlations:
        yield "independence in time: no two pairs without a common device were measured at the same time"
