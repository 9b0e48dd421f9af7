# SPDX-License-Identifier: Apache-2.0
"""The two levels of a digital signal, its noise, and what of both a threshold is uncertain by."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scope.errors import WaveformError
from scope.waveform import Codes, Frame, Scaling

SAMPLES_MAX = 1 << 16
"""How many samples levels are estimated from; more would not make a threshold better."""
LAGS = 64
SIGMAS_SETTLED = 5.0
AMPLITUDE_SIGMAS_MIN = 6.0  # halves of pure noise are 3 apart
MAD_TO_SIGMA = 1.4826  # of a normal distribution
SETTLED_MIN = 8
PART_OF_EDGE = 0.2
EDGES_APART = 3  # times what an edge takes from 20 to 80 %


@dataclass(frozen=True)
class Levels:
    """Both levels of a signal in V, and its noise.

    Attributes:
        base_v: The lower level.
        top_v: The upper level.
        autocovariance_v2: Of the noise, in V², by lags of samples from 0; beyond its end it is taken as 0.
        step_v: The smallest step that the digitiser makes.
        mid_standard_v: Standard uncertainty of the middle between both levels.
    """

    base_v: float
    top_v: float
    autocovariance_v2: tuple[float, ...]
    step_v: float
    mid_standard_v: float

    @property
    def amplitude_v(self) -> float:
        """Upper less lower level."""
        return self.top_v - self.base_v

    @property
    def noise_v(self) -> float:
        """Standard deviation of the noise, never less than what rounding to a step leaves."""
        return math.sqrt(max(self.autocovariance_v2[0], self.step_v**2 / 12))

    def at(self, fraction: float) -> float:
        """Return the volts at a fraction of the amplitude above the lower level."""
        return self.base_v + fraction * self.amplitude_v

    def covariance_v2(self, samples: int) -> NDArray[np.float64]:
        """Return the covariance of the noise of neighbouring samples, shape (samples, samples), in V²."""
        values = np.zeros(samples)
        known = np.array(self.autocovariance_v2[:samples])
        values[: len(known)] = known
        values[0] = self.noise_v**2
        places = np.arange(samples)
        return values[np.abs(places[:, None] - places[None, :])]


def volts(codes: NDArray[Any], scaling: Scaling) -> NDArray[np.float64]:
    """Return the volts of codes."""
    return (codes.astype(np.float64) - scaling.code_reference) * scaling.volts_per_code + scaling.offset_v


def code_of(level_v: float, scaling: Scaling) -> float:
    """Return the code, between two whole ones as it may be, that lies at a level in V."""
    return (level_v - scaling.offset_v) / scaling.volts_per_code + scaling.code_reference


def estimate_levels(frames: Sequence[Frame]) -> Levels:
    """Find the levels of one channel from some of its frames, which must hold both levels.

    Raises:
        WaveformError: No frames, frames of different channels or scalings, holes or clipped samples in all
            of them, or no two levels apart from noise.
    """
    scaling, rows = _usable(frames)
    where = f"channel {frames[0].channel}"
    codes = np.concatenate([row.astype(np.int32) for row in rows])
    ends = np.cumsum([len(row) for row in rows])
    middle = (int(codes.min()) + int(codes.max())) / 2
    high = codes > middle
    if not high.any() or high.all():
        raise WaveformError(f"{where}: no two levels: all samples have code {int(codes[0])}")
    step = int(np.gcd.reduce(codes - codes[0]))
    sides = (~high, high)
    (low, _, at_low), (top, _, at_top) = (_level(codes, side, step) for side in sides)
    share = (codes - low) / (top - low)
    under_way = (share > PART_OF_EDGE) & (share < 1 - PART_OF_EDGE)
    settled = _far_from_edges(at_low | at_top, high, under_way)
    residual = np.zeros(len(codes))
    levels: list[float] = []
    means_v2: list[float] = []
    for side in sides:
        level, width, kept = _level(codes, side & settled, step)
        if int(kept.sum()) < SETTLED_MIN:
            raise WaveformError(
                f"{where}: {int(kept.sum())} samples at a level, {SETTLED_MIN} needed: record too short"
            )
        residual[kept] = codes[kept] - level
        levels.append(level)
        means_v2.append(width**2 / int(kept.sum()))
    covariance = _autocovariance(residual, settled, ends)
    # Neighbouring samples that are alike count less in a mean.
    alike = max(1.0, 1.0 + 2.0 * float(covariance[1:].sum() / covariance[0])) if covariance[0] > 0 else 1.0
    # Where noise does not reach the next step, a mean does not see below it.
    rounding = step**2 / 12 if covariance[0] < step**2 / 4 else 0.0
    mid_variance = sum(mean * alike + rounding for mean in means_v2) / 4
    low, top = levels
    unit = abs(scaling.volts_per_code)
    sigma = math.sqrt(covariance[0])
    if (top - low) < AMPLITUDE_SIGMAS_MIN * sigma:
        raise WaveformError(
            f"{where}: no two levels: {(top - low) * unit:.3g} V apart with {sigma * unit:.3g} V of noise"
        )
    edge_v = sorted(float(v) for v in volts(np.array(levels), scaling))
    return Levels(
        edge_v[0],
        edge_v[1],
        tuple(float(v) * unit**2 for v in covariance),
        step * unit,
        math.sqrt(mid_variance) * unit,
    )


def _usable(frames: Sequence[Frame]) -> tuple[Scaling, list[Codes]]:
    """Return the common scaling, and rows of codes without holes or clipped samples, not too many."""
    if not frames:
        raise WaveformError("levels: no frames")
    first = frames[0]
    rows: list[Codes] = []
    count = 0
    for frame in frames:
        if frame.channel != first.channel:
            raise WaveformError(f"levels: frames of channels {first.channel} and {frame.channel}")
        same_vertical(first.scaling, frame.scaling, f"channel {frame.channel}, segment {frame.index}")
        row = frame.codes[: SAMPLES_MAX - count]
        if len(row) and not fault_of(row, frame.scaling):
            rows.append(row)
            count += len(row)
        if count >= SAMPLES_MAX:
            break
    if not rows:
        raise WaveformError(f"channel {first.channel}: clipped, with holes or empty in all of its frames")
    return first.scaling, rows


def fault_of(codes: Codes, scaling: Scaling) -> str:
    """Return "hole" or "clipped" where a sample of a frame says so, else nothing."""
    if scaling.code_hole is not None and bool((codes == scaling.code_hole).any()):
        return "hole"
    if scaling.code_low is not None and int(codes.min()) <= scaling.code_low:
        return "clipped"
    if scaling.code_high is not None and int(codes.max()) >= scaling.code_high:
        return "clipped"
    return ""


def same_vertical(one: Scaling, other: Scaling, where: str) -> None:
    """Refuse two scalings that give different volts to a code.

    Raises:
        WaveformError: They differ, or volts_per_code is 0 or not a number.
    """
    if not math.isfinite(one.volts_per_code) or one.volts_per_code == 0:
        raise WaveformError(f"{where}: volts_per_code {one.volts_per_code}, must not be 0")
    if not math.isfinite(one.sample_interval_s) or one.sample_interval_s <= 0:
        raise WaveformError(f"{where}: sample_interval_s {one.sample_interval_s}, must be above 0")
    for field in ("volts_per_code", "code_reference", "offset_v", "sample_interval_s"):
        if getattr(one, field) != getattr(other, field):
            raise WaveformError(
                f"{where}: {field} {getattr(other, field)}, others have {getattr(one, field)}"
            )


def _level(
    codes: NDArray[np.int32], side: NDArray[np.bool_], step: int
) -> tuple[float, float, NDArray[np.bool_]]:
    """Return level and deviation in codes of one side, and which of its samples have settled there."""
    own = codes[side]
    if not len(own):
        return 0.0, 0.0, side
    centre = float(np.median(own))
    width = max(MAD_TO_SIGMA * float(np.median(np.abs(own - centre))), step / 2)
    kept = side
    for _ in range(3):
        kept = side & (np.abs(codes - centre) <= SIGMAS_SETTLED * width)
        centre = float(codes[kept].mean())
        width = max(float(codes[kept].std()), step / 2)
    return centre, float(codes[kept].std()), kept


def _far_from_edges(
    settled: NDArray[np.bool_], high: NDArray[np.bool_], under_way: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Leave out of what has settled the neighbourhood of edges, as wide as they are, for the sake of tails.

    Where that leaves too little of a level, all that has settled is taken.
    """
    flips = np.zeros(len(high), bool)
    flips[1:] = high[1:] != high[:-1]
    away = ~settled
    wide = max(int(away.sum()), EDGES_APART * int(under_way.sum()))
    guard = int(np.ceil(wide / max(int(flips.sum()), 1))) + 1
    near = np.cumsum(np.concatenate([np.zeros(guard + 1), away | flips, np.zeros(guard)]))
    far = settled & (near[2 * guard + 1 :] == near[: len(high)])
    enough = min(int((far & high).sum()), int((far & ~high).sum())) >= SETTLED_MIN
    return far if enough else settled


def _autocovariance(
    residual: NDArray[np.float64], settled: NDArray[np.bool_], ends: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the autocovariance of what has settled, in codes², cut off where it first is not positive."""
    values = [float(np.mean(residual[settled] ** 2))]
    for lag in range(1, min(LAGS, len(residual))):
        both = settled[lag:] & settled[:-lag]
        for end in ends[:-1]:
            both[max(0, end - lag) : end] = False
        n = int(both.sum())
        if n < SETTLED_MIN:
            break
        value = float(np.dot(residual[lag:], np.where(both, residual[:-lag], 0.0))) / n
        if value <= 2 * values[0] / math.sqrt(n):
            break
        values.append(value)
    return np.array(values)
