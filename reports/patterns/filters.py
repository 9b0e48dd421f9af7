# SPDX-License-Identifier: Apache-2.0
"""Filters and a minimiser of scipy, imported when they are needed: that takes a tenth of a second."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from reports.dependence import Floats


def running_median(values: Floats, size: int, ahead: bool = False) -> Floats:
    """Return the median of `size` values about each, or from each on (`ahead`), shape (n,)."""
    ndimage: Any = import_module("scipy.ndimage")
    return np.asarray(ndimage.median_filter(values, size, origin=-(size // 2) if ahead else 0), np.float64)


def running_maximum(values: Floats, size: int) -> Floats:
    """Return the largest of `size` values about each, shape (n,)."""
    ndimage: Any = import_module("scipy.ndimage")
    return np.asarray(ndimage.maximum_filter1d(values, size), np.float64)


def arma(ahead: Sequence[float], back: Sequence[float], values: Floats, past: Floats | None = None) -> Floats:
    """Return y with sum(back y) = sum(ahead x) over the last axis; past: the state, 0 where it is None."""
    signal: Any = import_module("scipy.signal")
    if past is None:
        return np.asarray(signal.lfilter(ahead, back, values, axis=-1), np.float64)
    return np.asarray(signal.lfilter(ahead, back, values, axis=-1, zi=past)[0], np.float64)


def minimum(
    loss: Callable[[Any], float], simplex: Sequence[Sequence[float]], calls: int
) -> tuple[Floats, float]:
    """Return where a function is least, from a simplex by Nelder and Mead, and its value there."""
    optimize: Any = import_module("scipy.optimize")
    options = {"maxfev": calls, "xatol": 1e-3, "fatol": 1e-7, "initial_simplex": simplex}
    found = optimize.minimize(loss, simplex[0], method="Nelder-Mead", options=options)
    return np.asarray(found.x, np.float64), float(found.fun)
