# SPDX-License-Identifier: Apache-2.0
"""Steps of a grid: values lie on lines of one distance, which stay, or drift all alike.

A poll every w sees a message late by what is left of its interval. A source by the poll's clock makes steps
of w; by one that is off at a rate r, all lines fall or rise at r, and each line becomes a ramp of height w
that comes again each w / r. The width is looked for in differences of values that follow each other: by the
mean of exp(2 pi i d / w), which a smooth distribution has only where it has more at twice the width.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reports.dependence import Floats, mean_variance
from reports.patterns.comb import PERIOD_MIN_SLOTS
from reports.patterns.filters import running_maximum
from reports.patterns.finding import CHANCE, Finding, Parameter
from reports.patterns.noise import fit_noise, scale_of
from reports.patterns.regression import distances_of, regress
from reports.patterns.series import PERIODS_MIN, SEARCHED, Series
from reports.patterns.surrogate import EULER, SURROGATES

BINS = 4096
REACH_QUANTILE = 0.98
LINES_MIN = 0.8
"""Widths that the differences reach, nearly one: else there is one line, and no grid."""
FINER = 4
ROUNDS = 4


class Lines(NamedTuple):
    """Lines of one distance.

    Attributes:
        width: Of the grid.
        false_alarms: As of a finding.
        together: Length of the mean of exp(2 pi i d / width), 0 .. 1.
    """

    width: float
    false_alarms: float
    together: float


class Drift(NamedTuple):
    """How all lines move.

    Attributes:
        slope: In values by s; positive: they rise.
        together: Length of the mean of exp(2 pi i (value - slope t) / width), 0 .. 1.
    """

    slope: float
    together: float


def find_lines(values: Floats) -> Lines | None:
    """Return the grid of values, shape (n,), if there is one."""
    differences = np.diff(values[: 8 * SEARCHED])
    reach = float(np.quantile(np.abs(differences), REACH_QUANTILE))
    if reach <= 0:
        return None
    differences = differences[np.abs(differences) <= 1.5 * reach]
    best, rate, together = _excess(differences, reach)
    rng = np.random.default_rng(4)
    width = 1 / rate
    logs: list[float] = []
    for _ in range(SURROGATES):
        drawn = rng.choice(differences, len(differences))
        smooth = drawn + width * rng.uniform(-0.5, 0.5, len(drawn))
        logs.append(math.log(max(_excess(smooth, reach)[0], 1e-12)))
        if len(logs) == 5 and best <= math.exp(max(logs)):
            return None
    wide = max(float(np.std(logs)), 1e-3) * math.sqrt(6) / math.pi
    at = (math.log(max(best, 1e-12)) - float(np.mean(logs)) + EULER * wide) / wide
    chance = float(-np.expm1(-np.exp(-at)))
    least = 4 / math.sqrt(len(differences))
    return Lines(width, chance, together) if chance <= CHANCE and best > least else None


def _excess(differences: Floats, reach: float) -> tuple[float, float, float]:
    """Return by how much some rate has more than what lies about half of it, that rate, and what it has."""
    size = BINS * FINER
    span = 3.2 * reach
    counts = np.bincount(
        ((differences / span + 0.5) * BINS).astype(np.int64).clip(0, BINS - 1), minlength=BINS
    )
    length = np.abs(np.fft.rfft(counts, size)) / len(differences)
    rates = np.arange(len(length)) / (span * FINER)
    first = int(np.searchsorted(rates, LINES_MIN / reach))
    at = np.arange(first, BINS * FINER // 16)
    # All that lies between four and six tenths of a rate.
    below = np.max([length[np.rint(at * part).astype(int)] for part in (0.4, 0.45, 0.5, 0.55, 0.6)], axis=0)
    smooth = running_maximum(length, 3)[at]
    excess = smooth - below
    # The widest grid that is nearly as good: its parts are grids, too.
    best = int(np.argmax(excess))
    if excess[best] <= 0:
        return 0.0, float(rates[at[best]]), 0.0
    near = np.flatnonzero(excess > 0.8 * excess[best])
    lowest = int(near[0])
    window = near[(near >= lowest) & (near <= lowest * 1.1 + first * 0.1 + 2 * FINER)]
    chosen = int(window[np.argmax(length[at[window]])])
    around = slice(max(at[chosen] - FINER, 1), at[chosen] + FINER + 1)
    peak = int(np.argmax(length[around])) + around.start
    return float(excess[best]), float(rates[peak]), float(length[peak])


def find_drift(series: Series, width: float) -> Drift:
    """Return how all lines move: at no rate or the one at which they are sharpest."""
    slot_s = max(series.step_s, series.length_s / SEARCHED)
    which = np.rint(series.times_s / slot_s).astype(np.int64)
    angle = 2 * np.pi * (series.values - np.median(series.values)) / width
    size = 1 << (int(which[-1]) * FINER).bit_length()
    slotted = np.bincount(which, np.cos(angle), size) + 1j * np.bincount(which, np.sin(angle), size)
    length = np.abs(np.fft.fft(slotted)) / len(angle)
    best = int(np.argmax(length))
    cycles = (best if best <= size // 2 else best - size) / size / slot_s
    return Drift(width * cycles, float(length[best]))


def drifts(series: Series, lines: Lines, drift: Drift) -> bool:
    """Tell whether lines move by enough widths to say so, and by so little a value that it can be seen."""
    moved = abs(drift.slope) / lines.width
    return moved * series.length_s >= PERIODS_MIN and moved * series.step_s * PERIOD_MIN_SLOTS <= 1


def fitted(
    series: Series, width: float, slope: float, known: NDArray[np.int64] | None = None
) -> tuple[Floats, Floats, Floats] | None:
    """Return width, slope and offset by least squares of values on their lines, deviations, and the lines.

    Offset and lines are about the middle of the series.

    Args:
        series: All else taken out.
        width: About.
        slope: About; 0: lines stay.
        known: The lines, shape (n,); else they are those next to the values.
    """
    times_s = series.times_s - series.times_s.mean()
    centre = float(np.median(series.values))
    values = series.values - centre
    turn = np.exp(2j * np.pi * (values - slope * times_s) / width)
    offset = float(np.angle(turn.mean())) / (2 * np.pi) * width
    moves = slope != 0
    solved = np.array([width, slope, offset])
    lines = np.zeros(len(values))
    for round_ in range(ROUNDS):
        if known is None:
            lines = np.rint((values - solved[1] * times_s - solved[2]) / solved[0])
        else:
            lines = known.astype(np.float64)
        columns = np.stack([lines, times_s, np.ones(len(values))] if moves else [lines, np.ones(len(values))])
        left = values - solved[0] * lines - solved[1] * times_s - solved[2]
        if round_ < ROUNDS - 1:
            near = np.abs(left - np.median(left)) < max(3 * scale_of(left), 1e-9 * width)
            answer = np.linalg.lstsq(columns[:, near].T, values[near], rcond=None)[0]
        else:
            start = solved if moves else np.array([solved[0], solved[2]])
            answer, deviations = regress(
                fit_noise(left), columns, values, np.asarray(start, np.float64), distances_of(times_s)
            )
            if not moves:
                answer, deviations = np.insert(answer, 1, 0.0), np.insert(deviations, 1, 0.0)
            answer[2] += centre
            return np.asarray(answer, np.float64), np.asarray(deviations, np.float64), lines
        solved = answer if moves else np.insert(answer, 1, 0.0)
        if solved[0] <= 0:
            return None
    return None


def grid_finding(series: Series, lines: Lines, known: NDArray[np.int64] | None = None) -> Finding | None:
    """Return width and offset of a grid that stays; series: all else taken out; known: its lines."""
    solved = fitted(series, lines.width, 0.0, known)
    if solved is None:
        return None
    (width, _, _), (width_off, _, _), lines_of = solved
    off_lines = series.values - width * lines_of
    offset = float(off_lines.mean())
    whole = offset // width
    offset_off = math.hypot(
        math.sqrt(mean_variance(off_lines, len(off_lines), float(off_lines.std()))),
        float(width_off) * float(lines_of.mean() + whole),
    )
    return Finding(
        "grid",
        {
            "width": Parameter.about(float(width), float(width_off), "value"),
            "offset": Parameter.about(float(offset % width), float(offset_off), "value"),
        },
        lines.false_alarms,
    )


def sharpness(values: Floats, width: float) -> float:
    """Return the length of the mean of exp(2 pi i value / width), 0 .. 1."""
    return float(np.abs(np.exp(2j * np.pi * values / width).mean()))
