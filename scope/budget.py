# SPDX-License-Identifier: Apache-2.0
"""Uncertainty of delays, in named parts: noise over slew rate, sample interval, time base, skew, trigger.

Each part is a hard `bound` or a `standard` deviation, in s; U = sum of bounds + 2 * root of the sum of
squares of standard deviations. The frame is Tektronix' delta-time formula: noise over slew rate of both
edges, a share of the rise times, the clock's jitter twice, as root of squares; plus time-base error times
interval.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from reports.dependence import mean_variance
from scope.crossing import crossing_noise_v
from scope.interpolation import bend, interpolation
from scope.jitter import DelaySummary
from scope.levels import Levels

PartKind = Literal["bound", "standard"]
PAIRS_MIN = 4  # below, n - 3 degrees leave a mean's uncertainty without a value (`mean_variance`)


@dataclass(frozen=True)
class Part:
    """One part of an uncertainty, in s; a bound, or a standard deviation."""

    name: str
    kind: PartKind
    value_s: float


@dataclass(frozen=True)
class Budget:
    """All parts of one value's uncertainty."""

    parts: tuple[Part, ...]

    @property
    def bound_s(self) -> float:
        """Sum of the bounds."""
        return math.fsum(part.value_s for part in self.parts if part.kind == "bound")

    @property
    def standard_s(self) -> float:
        """Root of the sum of squares of the standard deviations."""
        return math.hypot(*(part.value_s for part in self.parts if part.kind == "standard"))

    @property
    def expanded_s(self) -> float:
        """U: bounds and twice the standard deviations."""
        return self.bound_s + 2.0 * self.standard_s


@dataclass(frozen=True)
class InstrumentLimits:
    """What the data sheet says of an oscilloscope.

    Attributes:
        time_base_error: Largest relative error of its time base, such as 2e-6.
        clock_jitter_s: Jitter of its sample clock, standard deviation.
        trigger_jitter_s: Jitter of its trigger, standard deviation.
        skew_s: Largest delay between two channels; counts where no calibration says better.
    """

    time_base_error: float
    clock_jitter_s: float = 0.0
    trigger_jitter_s: float = 0.0
    skew_s: float = 0.0


@dataclass(frozen=True)
class EdgeQuality:
    """What one edge of a channel is uncertain by, standard deviations in s.

    Attributes:
        noise_s: Noise that is left at the crossing, over the slew rate.
        interpolation_s: What the samples do not tell of the signal between them; see scope/interpolation.py.
        lean_s: Mean of the same: edges that are not symmetric are found late. Alike channels share it.
        threshold_s: Uncertainty of the threshold over the slew rate; the same for all edges of a channel.
    """

    noise_s: float
    interpolation_s: float
    lean_s: float
    threshold_s: float


def edge_quality(
    levels: Levels, fit: int, rise: float, slope_v_s: float, curvature_v_s2: float, interval_s: float
) -> EdgeQuality:
    """Tell what edges of a channel are uncertain by.

    Args:
        levels: Of the channel.
        fit: Samples of the fit.
        rise: From 10 to 90 %, in samples, from `rise_samples`.
        slope_v_s: Mean magnitude of the slew rate at the crossing, in V/s.
        curvature_v_s2: Mean second derivative there, its sign turned where an edge falls.
        interval_s: Sample interval.
    """
    scatter, lean = interpolation(rise, bend(slope_v_s, curvature_v_s2, levels.amplitude_v))
    return EdgeQuality(
        crossing_noise_v(levels, fit) / slope_v_s,
        scatter * interval_s,
        lean * interval_s,
        levels.mid_standard_v / slope_v_s,
    )


def mean_budget(
    delays: DelaySummary,
    edges: tuple[EdgeQuality, EdgeQuality],
    limits: InstrumentLimits,
    *,
    phase_lock: tuple[float, float] = (0.0, 0.0),
    calibration: Sequence[Part] = (),
) -> Budget | None:
    """Return the uncertainty of a mean delay as an estimate of what many more would have; None: too few.

    What scatters from delay to delay is seen in their deviation: noise, interpolation and clock jitter have
    their known shares of it, the rest is the jitter of the signals. That may last from delay to delay: it is
    as large as blocks of delays show (`mean_variance`).

    Args:
        delays: At least 4.
        edges: Of the reference and of the other channel.
        limits: Of the instrument.
        phase_lock: By channel, how much all edges fall on the same place between two samples, 0 to 1: to that
            degree errors of interpolation do not average out.
        calibration: Parts of what the delay was corrected by.
    """
    n = delays.count
    if n < PAIRS_MIN:
        return None
    noise, _, clock = _per_delay(edges, limits)
    both = list(zip((one.interpolation_s for one in edges), phase_lock, strict=True))
    free = math.hypot(*(value * math.sqrt(1 - lock) for value, lock in both))
    fixed = math.hypot(*(value * math.sqrt(lock) for value, lock in both), _lean_s(edges))
    seen = n * mean_variance(delays.block_means_s, n, delays.deviation_s)
    jitter = math.sqrt(max(0.0, seen - noise**2 - clock**2 - free**2))
    return Budget(
        (
            Part("noise", "standard", noise / math.sqrt(n)),
            Part("sample_interval", "standard", math.hypot(free / math.sqrt(n), fixed)),
            Part("clock_jitter", "standard", clock / math.sqrt(n)),
            Part("jitter", "standard", jitter / math.sqrt(n)),
            Part("trigger", "standard", 0.0),
            *_common(delays.mean_s, edges, limits, calibration),
        )
    )


def deviation_budget(
    delays: DelaySummary, edges: tuple[EdgeQuality, EdgeQuality], limits: InstrumentLimits
) -> Budget | None:
    """Return the uncertainty of a standard deviation of delays, uncorrected for noise; None: too few.

    It scatters by itself as delays of their kurtosis do (`relative_repeatability`).
    The instrument only ever adds to the deviation: what it adds at most is a bound.
    """
    n = delays.count
    if n < PAIRS_MIN:
        return None
    names = ("noise", "sample_interval", "clock_jitter")
    adds = _per_delay(edges, limits)
    known = math.hypot(*adds)
    repeatability = delays.deviation_s * relative_repeatability(n, delays.kurtosis)
    least = max(0.0, delays.deviation_s - 2.0 * repeatability)  # where the instrument's share weighs most
    bound = least - math.sqrt(max(0.0, least**2 - known**2))
    shares = [bound * (value / known) ** 2 if known else 0.0 for value in adds]
    return Budget(
        (
            Part("repeatability", "standard", repeatability),
            *(Part(name, "bound", share) for name, share in zip(names, shares, strict=True)),
            Part("time_base", "bound", delays.deviation_s * limits.time_base_error),
        )
    )


def relative_repeatability(count: int, kurtosis: float) -> float:
    """Return what a standard deviation of independent delays scatters by, over itself.

    With m4 the fourth central moment, sqrt((m4 - s^4) / n) / (2 s) is its standard deviation, whatever the
    distribution. Few delays may show fewer of their tails than they have: never less than of normal delays,
    1 / sqrt(2 (n - 1)) (GUM, E.4.3).

    Args:
        count: Delays, at least 2.
        kurtosis: m4 / s^4, at least 1.
    """
    return max(1.0 / math.sqrt(2 * (count - 1)), math.sqrt((kurtosis - 1.0) / count) / 2.0)


def peak_to_peak_budget(
    delays: DelaySummary, edges: tuple[EdgeQuality, EdgeQuality], limits: InstrumentLimits
) -> Budget | None:
    """Return the uncertainty of the peak-to-peak value of these very delays, uncorrected; None: too few.

    Each extreme may be further out by what the largest of n normal errors comes to, sqrt(2 ln n) deviations.
    It says nothing of the extremes that more delays would have.
    """
    n = delays.count
    if n < PAIRS_MIN:
        return None
    reach = 2.0 * math.sqrt(2.0 * math.log(n))
    names = ("noise", "sample_interval", "clock_jitter")
    adds = _per_delay(edges, limits)
    whole = reach * math.hypot(*adds)
    squares = math.fsum(value**2 for value in adds)
    peak_to_peak_s = delays.maximum_s - delays.minimum_s
    return Budget(
        (
            *(
                Part(name, "bound", whole * value**2 / squares if squares else 0.0)
                for name, value in zip(names, adds, strict=True)
            ),
            Part("time_base", "bound", peak_to_peak_s * limits.time_base_error),
        )
    )


def _per_delay(
    edges: tuple[EdgeQuality, EdgeQuality], limits: InstrumentLimits
) -> tuple[float, float, float]:
    """Return what noise, interpolation and sample clock add to a delay from one to the next."""
    return (
        math.hypot(*(one.noise_s for one in edges)),
        math.hypot(*(one.interpolation_s for one in edges)),
        math.sqrt(2) * limits.clock_jitter_s,
    )


def _lean_s(edges: tuple[EdgeQuality, EdgeQuality]) -> float:
    """Return what is left of the mean error of interpolation where both channels' edges differ."""
    return edges[1].lean_s - edges[0].lean_s


def _common(
    time_s: float,
    edges: tuple[EdgeQuality, EdgeQuality],
    limits: InstrumentLimits,
    calibration: Sequence[Part],
) -> tuple[Part, ...]:
    """Return the parts that no number of delays makes smaller."""
    skew_known = any(part.name.startswith("channel_skew") for part in calibration)
    skew = () if skew_known else (Part("skew", "bound", limits.skew_s),)
    return (
        Part("threshold", "standard", math.hypot(*(one.threshold_s for one in edges))),
        Part("time_base", "bound", abs(time_s) * limits.time_base_error),
        *skew,
        *calibration,
    )
