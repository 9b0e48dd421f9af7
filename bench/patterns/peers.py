# SPDX-License-Identifier: Apache-2.0
"""What others say of a series: the peak of a periodogram, and the breaks of ruptures.

Neither names a kind. Both get the benefit of the doubt: a periodogram has found a pattern if its peak is at
the true period or a whole part of it, and one without a period if there is a peak at all; ruptures if a
break is where the pattern begins or ends, or, of one with a period, if the breaks' usual distance is that
period. The threshold of each is that at which 2 % of series of the same noise alone have a finding.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.patterns.drawn_series import Drawn

ruptures: Any = import_module("ruptures")  # has no types

Floats = NDArray[np.float64]
THINNED = 800
"""Means that ruptures gets: of each value its time would be minutes."""
NEAR_S = 5.0
OFF = 0.02


def periodogram_peak(made: Drawn) -> tuple[float, float]:
    """Return the highest power by the median one, and its period in s, up to a quarter of the length."""
    step_s = float(np.median(np.diff(made.times_s)))
    even_s = np.arange(made.times_s[0], made.times_s[-1], step_s)
    values = np.interp(even_s, made.times_s, made.values_ms)
    size = 8 << len(values).bit_length()
    power = np.abs(np.fft.rfft(values - values.mean(), size)) ** 2
    first = 4 * size // len(values)
    best = int(np.argmax(power[first:])) + first
    return float(power[best] / np.median(power[first:])), size * step_s / best


def breaks(made: Drawn, penalty: float | None = None) -> tuple[float, Floats]:
    """Return by how much the best break lowers the squares, by the noise, and breaks in s at a penalty."""
    block = -(-len(made.values_ms) // THINNED)
    whole = len(made.values_ms) // block * block
    times_s, values = (
        each[:whole].reshape(-1, block).mean(axis=1) for each in (made.times_s, made.values_ms)
    )
    scatter = float(np.median(np.abs(np.diff(values)))) / 0.6745 / np.sqrt(2) or 1.0
    values = (values - values.mean()) / scatter
    count = np.arange(3, len(values) - 3)
    sums = np.cumsum(values)[count - 1]
    gain = float(np.max(sums**2 * len(values) / (count * (len(values) - count))))
    if penalty is None or gain <= penalty:
        return gain, np.empty(0)
    found = ruptures.KernelCPD(kernel="linear", min_size=3).fit(values[:, None]).predict(pen=penalty)
    return gain, times_s[np.array(found[:-1], int)]


def periodogram_found(made: Drawn, threshold: float) -> dict[str, bool]:
    """Say of each kind of a series whether the peak has found it."""
    height, period_s = periodogram_peak(made)
    return {kind: height > threshold and _is_period(truth, period_s) for kind, truth in made.truth.items()}


def _is_period(truth: Mapping[str, float], period_s: float) -> bool:
    if "period_s" not in truth:
        return True
    ratio = truth["period_s"] / period_s
    return round(ratio) >= 1 and abs(ratio / round(ratio) - 1) <= OFF


def ruptures_found(made: Drawn, penalty: float) -> dict[str, bool]:
    """Say of each kind of a series whether the breaks have found it."""
    _, at_s = breaks(made, penalty)
    found: dict[str, bool] = {}
    for kind, truth in made.truth.items():
        if "period_s" in truth:
            distance = float(np.median(np.diff(at_s))) if len(at_s) > 3 else 0.0
            found[kind] = abs(distance / truth["period_s"] - 1) <= OFF
        else:
            ends = [truth[key] for key in ("start_s", "end_s") if key in truth]
            if len(ends) == 2:
                ends = list(np.linspace(ends[0], ends[1], 9))
            found[kind] = any(np.abs(at_s - end_s).min() <= NEAR_S for end_s in ends) if len(at_s) else False
    return found
