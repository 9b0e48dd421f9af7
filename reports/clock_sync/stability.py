# SPDX-License-Identifier: Apache-2.0
"""MTIE, TDEV and ADEV of a series of clock offsets, all octaves in one go.

Definitions: MTIE and TDEV ITU-T G.810, clause 4.5 and appendix II; TDEV and overlapping ADEV
NIST SP 1065, equations (15) and (11). Every window lies inside one stretch: TDEV and ADEV take the mean over
the squares of all stretches, MTIE the largest of all. Sums are exact (integers), only squares are floats.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from reports.clock_sync.series import ClockSeries, Offsets
from reports.errors import ReportError

Statistic: TypeAlias = Literal["mtie", "tdev", "adev"]
Fixed: TypeAlias = NDArray[np.int64]

TERMS_MIN = 2
"""A value that rests on fewer windows is left out."""

_BLOCK = 8192
"""Samples worked on at a time, so that intermediate results stay in the processor's cache."""

_HEADROOM_BITS = 62
_FRACTION_BITS_MAX = 40


@dataclass(frozen=True, eq=False, slots=True)
class Curve:
    """A statistic over averaging times.

    Attributes:
        statistic: mtie and tdev are in ns, adev is a ratio.
        tau_ns: Averaging times, ascending.
        value: Value of each.
        n: Windows that each value rests on, over all stretches.
    """

    statistic: Statistic
    tau_ns: NDArray[np.int64]
    value: NDArray[np.float64]
    n: NDArray[np.int64]


def mtie(series: ClockSeries, factors: Sequence[int] | None = None) -> Curve | None:
    """Return MTIE in ns: the largest peak to peak in any window of tau, so of tau / tau0 + 1 samples.

    Args:
        series: The offsets.
        factors: tau as multiples of tau0; None: every octave (1, 2, 4, ...) that the series allows.

    Returns:
        The curve; None when no tau has two windows. A window across a gap does not count, so a jump of the
        clock during a gap shows in max|TE|, not here.
    """
    return _curve("mtie", series, factors, lambda n, m: n - m, _mtie_of_stretch, _largest)


def tdev(series: ClockSeries, factors: Sequence[int] | None = None) -> Curve | None:
    """Return TDEV in ns; arguments and result as for `mtie`."""
    return _curve("tdev", series, factors, lambda n, m: n - 3 * m + 1, _tdev_of_stretch, _root_mean)


def adev(series: ClockSeries, factors: Sequence[int] | None = None) -> Curve | None:
    """Return the overlapping Allan deviation (a ratio); arguments and result as for `mtie`."""
    found = _curve("adev", series, factors, lambda n, m: n - 2 * m, _adev_of_stretch, _root_mean)
    if found is None:
        return None
    return Curve("adev", found.tau_ns, found.value / found.tau_ns, found.n)


def octaves(longest: int) -> list[int]:
    """Return 1, 2, 4, ... up to `longest`, which is at least 0."""
    return [1 << k for k in range(longest.bit_length())]


def _curve(
    statistic: Statistic,
    series: ClockSeries,
    factors: Sequence[int] | None,
    windows: Callable[[int, int], int],
    of_stretch: Callable[[Fixed, Sequence[int]], list[float]],
    combine: Callable[[NDArray[np.float64], NDArray[np.int64]], float],
) -> Curve | None:
    """Compute a statistic of each stretch and combine them.

    Args:
        statistic: Its name.
        series: The offsets.
        factors: tau as multiples of tau0, or None for all octaves.
        windows: Number of windows that n samples give at a factor; may be negative.
        of_stretch: Values of one stretch, in its fixed-point unit, at each factor for which it has a window.
        combine: One value from those of the stretches and their numbers of windows.
    """
    stretches = [stretch.offset_ns for stretch in series.stretches]
    longest = max((len(offsets) for offsets in stretches), default=0)
    wanted = octaves(longest) if factors is None else _checked_factors(factors)
    counts = np.array([[max(0, windows(len(x), m)) for m in wanted] for x in stretches], np.int64)
    counts = counts.reshape(len(stretches), len(wanted))
    values = np.zeros(counts.shape)
    for row, offsets in enumerate(stretches):
        own = int(np.count_nonzero(counts[row]))
        if own:
            fixed, unit_ns = fixed_point(offsets, wanted[own - 1])
            values[row, :own] = np.array(of_stretch(fixed, wanted[:own])) * unit_ns
    totals = counts.sum(axis=0) if len(stretches) else np.zeros(len(wanted), np.int64)
    kept = [column for column in range(len(wanted)) if totals[column] >= TERMS_MIN]
    if not kept:
        return None
    return Curve(
        statistic,
        np.array([wanted[column] * series.tau0_ns for column in kept], np.int64),
        np.array([combine(values[:, column], counts[:, column]) for column in kept]),
        totals[kept],
    )


def _checked_factors(factors: Sequence[int]) -> list[int]:
    wanted = sorted(set(factors))
    if not wanted or wanted[0] < 1:
        raise ReportError(f"factors: {list(factors)[:8]}; need whole multiples of tau0, at least 1")
    return wanted


def _largest(values: NDArray[np.float64], _counts: NDArray[np.int64]) -> float:
    return float(values.max())


def _root_mean(values: NDArray[np.float64], counts: NDArray[np.int64]) -> float:
    """Return the root of the mean square over all windows; each value is the root over its own."""
    return float(np.sqrt(np.dot(values**2, counts) / counts.sum()))


def fixed_point(offsets: Offsets, factor: int) -> tuple[Fixed, float]:
    """Return offsets from the first one as whole multiples of a unit, and that unit in ns.

    The unit is 1 ns for whole offsets. For others it is the finest power of two with which a sum over
    `factor` second differences cannot overflow; sums of such numbers are exact, whatever their order.

    Raises:
        ReportError: The offsets lie so far apart that a sum could overflow.
    """
    apart = offsets - offsets[0]
    widest = float(max(apart.max(), -apart.min()))
    spare_bits = _HEADROOM_BITS - int(np.ceil(np.log2(8.0 * factor * widest + 1.0)))
    if spare_bits < 0:
        raise ReportError(f"offsets lie {widest:.3g} ns apart: too far for statistics over {factor} samples")
    if apart.dtype == np.int64:
        return apart.astype(np.int64, copy=False), 1.0
    bits = min(spare_bits, _FRACTION_BITS_MAX)
    return np.rint(np.ldexp(apart, bits)).astype(np.int64), float(np.ldexp(1.0, -bits))


def _mtie_of_stretch(x: Fixed, factors: Sequence[int]) -> list[float]:
    """Double the width of sliding extremes from octave to octave (Bregni's binary decomposition)."""
    high, low = x.copy(), x.copy()
    next_high, next_low = np.empty_like(x), np.empty_like(x)
    width = 1
    found: list[float] = []
    for factor in factors:
        while 2 * width <= factor + 1:
            left = len(x) - 2 * width + 1
            np.maximum(high[:left], high[width : width + left], out=next_high[:left])
            np.minimum(low[:left], low[width : width + left], out=next_low[:left])
            high, next_high, low, next_low = next_high, high, next_low, low
            width *= 2
        found.append(_widest_window(high, low, len(x) - factor, factor + 1 - width))
    return found


def _widest_window(high: Fixed, low: Fixed, windows: int, shift: int) -> float:
    """Return the largest peak to peak of windows that two overlapping narrower ones, `shift` apart, cover."""
    top, bottom = np.empty(_BLOCK, np.int64), np.empty(_BLOCK, np.int64)
    widest = 0
    for start in range(0, windows, _BLOCK):
        end = min(start + _BLOCK, windows)
        t, b = top[: end - start], bottom[: end - start]
        np.maximum(high[start:end], high[start + shift : end + shift], out=t)
        np.minimum(low[start:end], low[start + shift : end + shift], out=b)
        np.subtract(t, b, out=t)
        widest = max(widest, int(t.max()))
    return float(widest)


def _tdev_of_stretch(x: Fixed, factors: Sequence[int]) -> list[float]:
    """Take third differences of the running sum: sums over m second differences. They may wrap on the way."""
    total = np.empty(len(x) + 1, np.int64)
    total[0] = 0
    np.cumsum(x, out=total[1:])
    return [_tdev_at(total, m) for m in factors]


def _tdev_at(total: Fixed, m: int) -> float:
    windows = len(total) - 3 * m
    outer, inner, floats = np.empty(_BLOCK, np.int64), np.empty(_BLOCK, np.int64), np.empty(_BLOCK)
    squares = 0.0
    for start in range(0, windows, _BLOCK):
        end = min(start + _BLOCK, windows)
        o, i, f = outer[: end - start], inner[: end - start], floats[: end - start]
        np.subtract(total[start + 3 * m : end + 3 * m], total[start:end], out=o)
        np.subtract(total[start + 2 * m : end + 2 * m], total[start + m : end + m], out=i)
        np.subtract(o, i, out=o)
        np.add(i, i, out=i)
        np.subtract(o, i, out=f, casting="unsafe", dtype=np.int64)
        squares += float(np.dot(f, f))
    return float(np.sqrt(squares / (6.0 * windows))) / m


def _adev_of_stretch(x: Fixed, factors: Sequence[int]) -> list[float]:
    """Return the root mean square of second differences over sqrt(2); tau is divided by at the end."""
    found: list[float] = []
    for m in factors:
        second = (x[2 * m :] - 2 * x[m:-m] + x[: -2 * m]).astype(np.float64)
        found.append(float(np.sqrt(np.mean(second * second) / 2.0)))
    return found
