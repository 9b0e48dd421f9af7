# SPDX-License-Identifier: Apache-2.0
"""The moment within a sample interval at which an edge crosses its threshold.

A cubic is laid through the samples around the crossing: through four of them exactly, or, where an edge is
sampled so finely that noise outweighs its shape, as a least-squares fit to more. A longer fit averages noise
away, but bends where an edge is not symmetric. `python -m tests.scope.methods` compares this with a straight
line and with longer fits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from scope.levels import Levels
from scope.waveform import Codes

DEGREE = 3
FIT_MIN, FIT_MAX = 4, 64
CENTRINGS = 3
NEWTON_STEPS = 4
STEP_MAX = 0.5  # of an interval, in one step of Newton's method
RISE_TO_HALF_FIT = 0.315
"""Share of the 10-90 % rise time that lies between the kink and the middle of a single pole's step response:
a fit that reaches beyond the kink is bent by it, up to there it only averages noise."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Crossings:
    """Where edges cross a threshold.

    Attributes:
        position: In samples from the start of the block, between two of them.
        slope: Codes per sample there.
        curvature: Second derivative there, in codes per sample squared.
        inside: Whether the samples of the fit lie within the edge's own frame.
    """

    position: Floats
    slope: Floats
    curvature: Floats
    inside: NDArray[np.bool_]


def fit_samples(rise_samples: float) -> int:
    """Return how many samples to fit for an edge that takes so many from 10 to 90 %; an even number."""
    half = round(RISE_TO_HALF_FIT * rise_samples)
    return max(FIT_MIN, min(FIT_MAX, 2 * half))


@cache
def fit_matrix(samples: int) -> Floats:
    """Return what samples are multiplied by to get a cubic's coefficients, shape (4, samples).

    The cubic's variable counts samples from the middle of the fit, in the middle of an interval.
    """
    places = np.arange(samples) - (samples - 1) / 2
    return np.asarray(np.linalg.pinv(np.vander(places, DEGREE + 1, increasing=True)), np.float64)


def find_crossings(
    codes: Codes,
    frame_samples: int,
    before: NDArray[np.int64],
    after: NDArray[np.int64],
    threshold: float,
    fit: int,
) -> Crossings:
    """Find where edges cross a threshold.

    Args:
        codes: Frames one behind the other, shape (frames * frame_samples,).
        frame_samples: Length of a frame.
        before: Last sample at the old level of each edge.
        after: First sample at the new level.
        threshold: In codes.
        fit: Number of samples to fit, even, from `fit_samples`.
    """
    first = before - before % frame_samples
    low_end, high_end = first, first + (frame_samples - fit)
    half = fit // 2
    # A first guess: the straight line between both ends of the transit, then the interval that it falls into.
    start, end = codes[before].astype(np.float64), codes[after].astype(np.float64)
    guess = before + (threshold - start) / (end - start) * (after - before)
    origin = np.floor(guess).astype(np.int64) - (half - 1)
    inside = np.ones(len(before), bool)
    offset, slope, curvature = np.zeros((3, len(before)))
    todo = np.arange(len(before))
    for turn in range(CENTRINGS):
        place = origin[todo]
        fits = (place >= low_end[todo]) & (place <= high_end[todo])
        inside[todo[~fits]] = False
        todo, place = todo[fits], place[fits]
        if not len(todo):
            break
        window = codes[place[:, None] + np.arange(fit)].astype(np.float64) - threshold
        offset[todo], slope[todo], curvature[todo] = _root(np.einsum("es,ks->ke", window, fit_matrix(fit)))
        off_centre = np.abs(offset[todo]) > STEP_MAX + 1e-9
        if turn == CENTRINGS - 1 or not off_centre.any():
            break
        todo = todo[off_centre]
        origin[todo] += np.where(offset[todo] > 0, 1, -1)
    position = origin + (half - 0.5) + offset
    # Noise can bend a cubic so that it has no crossing here: then the straight line of the transit has to do.
    line = (end - start) / (after - before)
    bent = inside & ((np.abs(offset) > 1.0) | (slope * line <= 0))
    return Crossings(
        np.where(bent, guess, position), np.where(bent, line, slope), np.where(bent, 0.0, curvature), inside
    )


def _root(coefficients: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the zero nearest to the middle of cubics, shape (4, edges), and both derivatives there."""
    c0, c1, c2, c3 = coefficients
    line = np.where(c1 == 0, 1.0, c1)
    x = np.clip(-c0 / line, -1.5, 1.5)
    for _ in range(NEWTON_STEPS):
        value = c0 + x * (c1 + x * (c2 + x * c3))
        slope = c1 + x * (2 * c2 + x * (3 * c3))
        x = np.clip(x - np.clip(value / np.where(slope == 0, line, slope), -STEP_MAX, STEP_MAX), -1.5, 1.5)
    return x, c1 + x * (2 * c2 + x * (3 * c3)), 2 * c2 + 6 * c3 * x


def crossing_noise_v(levels: Levels, fit: int) -> float:
    """Return the noise in V that is left at a crossing by a fit to so many samples.

    The weights of the samples are those of the fit, averaged over an interval; noise of neighbouring samples
    that is alike is not averaged away.
    """
    covariance = levels.covariance_v2(fit)
    places = np.linspace(-0.5, 0.5, 5)
    weights = np.asarray(np.vander(places, DEGREE + 1, increasing=True), np.float64) @ fit_matrix(fit)
    return math.sqrt(float(np.sum((weights @ covariance) * weights)) / len(places))
