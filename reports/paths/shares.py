# SPDX-License-Identifier: Apache-2.0
"""Shares of datagrams (lost, copied, out of order) with their 99 % interval."""

from __future__ import annotations

import math
from importlib import import_module
from typing import Any

import numpy as np

from reports.dependence import BLOCKS_MIN, blocks_of
from reports.errors import ReportError
from reports.paths.condition import Condition
from reports.paths.transits import Flags, Transits

CONFIDENCE = 0.99
SERIES_MIN = 100
"""Fewer datagrams do not tell how they depend on each other."""

_special: Any = import_module("scipy.special")  # has no types


def share_interval(count: float, n: float) -> tuple[float, float]:
    """Return the two-sided 99 % interval of a share by Clopper and Pearson (1934).

    Args:
        count: How many; need not be whole.
        n: Of how many, at least 1.
    """
    beyond = (1 - CONFIDENCE) / 2
    low = float(_special.betaincinv(count, n - count + 1, beyond)) if count > 0 else 0.0
    high = float(_special.betaincinv(count + 1, n - count, 1 - beyond)) if count < n else 1.0
    return low, high


def dependent_share_interval(flags: Flags) -> tuple[float, float]:
    """Return the interval of a share whose datagrams depend on those before them.

    That of Korn and Graubard (1998): as many independent ones are put in the place of n as have the variance
    that blocks show, and fewer as those blocks are few. Never narrower than of n independent ones, or of a
    chain of two states with their correlation: where few are flagged, blocks show too little.

    Args:
        flags: In the order of time, SERIES_MIN at least.

    Raises:
        ReportError: Fewer.
    """
    n = len(flags)
    if n < SERIES_MIN:
        raise ReportError(f"{n} datagrams do not tell how they depend on each other: {SERIES_MIN} at least")
    share = float(flags.mean())
    if share in (0.0, 1.0):
        return share_interval(share * n, n)
    values = flags.astype(np.float64)
    blocks = blocks_of([values])
    length, count = (blocks.length, blocks.count) if blocks.fits else (n // BLOCKS_MIN, BLOCKS_MIN)
    means = values[: count * length].reshape(count, length).mean(axis=1)
    enlarged = float(means.var(ddof=1)) / count / (share * (1 - share) / n)
    wider = _student(count - 1) / _student(n - 1)
    alike = float((values[1:] - share) @ (values[:-1] - share)) / (n * share * (1 - share))
    chain = (1 + alike) / max(1 - alike, 1 / n)
    independent = n / max(1.0, enlarged * wider**2, chain)
    return share_interval(share * independent, independent)


def loss_condition(asked_percent: float, found: Transits, *, is_dependent: bool = False) -> Condition:
    """Return the share that was lost, in percent; `is_dependent`: with a correlation, or in bursts."""
    return _condition("loss", asked_percent, found.is_lost, is_dependent)


def copies_condition(asked_percent: float, found: Transits, *, is_dependent: bool = False) -> Condition:
    """Return the share of what came out that came out more than once, in percent."""
    return _condition("copies", asked_percent, found.is_copied[~found.is_lost], is_dependent)


def reordering_condition(asked_percent: float, found: Transits, *, is_dependent: bool = False) -> Condition:
    """Return the share of what came out that came out before one that had gone in earlier, in percent.

    The first one cannot; one that is sent at once does where one before it still waits.
    """
    return _condition("reordering", asked_percent, found.overtakes[1:], is_dependent)


def _condition(name: str, asked_percent: float, flags: Flags, is_dependent: bool) -> Condition:
    n, count = len(flags), int(flags.sum())
    if n == 0:
        raise ReportError(f"{name}: no datagrams")
    low, high = dependent_share_interval(flags) if is_dependent else share_interval(count, n)
    return Condition(name, "%", asked_percent, 100 * count / n, 100 * low, 100 * high)


def _student(degrees: int) -> float:
    """Return the two-sided quantile of Student's t."""
    return abs(float(_special.stdtrit(min(degrees, 10**6), (1 - CONFIDENCE) / 2))) or math.inf
