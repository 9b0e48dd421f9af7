# SPDX-License-Identifier: Apache-2.0
"""MTIE, TDEV and ADEV against allantools, against ntpstats, against cases whose answer is known, and gaps."""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ntpstats.stability import compute

from reports.clock_sync.series import ClockSeries, Stretch
from reports.clock_sync.stability import Curve, adev, fixed_point, mtie, octaves, tdev
from reports.errors import ReportError
from reports.units import NS_PER_MS, NS_PER_S

allantools: Any = import_module("allantools")  # has no types

INFINITE = [math.nan, math.inf, -math.inf]
TOLERANCE = 1e-9
"""Relative, against allantools: it sums floats in another order. Whole numbers agree to 1e-14 in practice."""


def noise(n: int, seed: int = 3, *, whole: bool = True) -> Any:
    """Return white phase noise over a random walk, in ns."""
    rng = np.random.default_rng(seed)
    values = rng.normal(0, 300, n) + np.cumsum(rng.normal(0, 5, n)) + 50_000
    return np.rint(values).astype(np.int64) if whole else values


def checked(curve: Curve | None) -> Curve:
    assert curve is not None
    return curve


def compare(curve: Curve | None, reference: tuple[Any, Any, Any, Any], scale: float = 1.0) -> None:
    """Compare with what allantools returns: all taus, values and numbers of windows."""
    found = checked(curve)
    taus_s, values, _, windows = reference
    np.testing.assert_allclose(found.tau_ns / NS_PER_S, taus_s, rtol=1e-12)
    np.testing.assert_allclose(found.value, values * scale, rtol=TOLERANCE)
    np.testing.assert_array_equal(found.n, windows)


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("n", [3, 4, 5, 7, 8, 9, 16, 17, 1000, 8192 * 2 + 5])
def test_all_octaves_equal_allantools(n: int, whole: bool) -> None:
    offsets = noise(n, whole=whole)
    series = ClockSeries.regular(NS_PER_MS, offsets)
    phase = offsets.astype(float)
    compare(mtie(series), allantools.mtie(phase, rate=1000.0, taus="octave"))
    phase -= phase.mean()  # allantools loses digits of large offsets; TDEV and ADEV do not see a constant
    if n >= 4:
        compare(tdev(series), allantools.tdev(phase, rate=1000.0, taus="octave"))
        compare(adev(series), allantools.oadev(phase, rate=1000.0, taus="octave"), 1 / NS_PER_S)


def test_a_million_samples_equal_allantools_where_it_can_compute_them() -> None:
    offsets = noise(1_000_000)
    series = ClockSeries.regular(NS_PER_MS, offsets)
    phase = offsets - float(offsets.mean())
    compare(tdev(series), allantools.tdev(phase, rate=1000.0, taus="octave"))
    few = [1, 2, 4, 8, 16, 32, 64]
    compare(mtie(series, few), allantools.mtie(phase, rate=1000.0, taus=np.array(few) / 1000))
    # What allantools cannot do in time, by a second library: the whole of MTIE.
    second = compute(phase, 1e-3, "mtie", "octave", ci=None)
    found = checked(mtie(series))
    np.testing.assert_allclose(found.value[: len(second.dev)], second.dev, rtol=TOLERANCE)
    assert found.value[-1] <= np.ptp(offsets)


@given(
    st.lists(st.integers(-(10**10), 10**10), min_size=4, max_size=60),
    st.lists(st.integers(1, 40), min_size=1, max_size=6),
)
@settings(max_examples=60, deadline=None)
def test_any_factor_equals_the_definition(values: list[int], factors: list[int]) -> None:
    series = ClockSeries.regular(NS_PER_S, values)
    found = mtie(series, factors)
    by_factor = {} if found is None else dict(zip(found.tau_ns // NS_PER_S, found.value, strict=True))
    for m in set(factors):
        windows = [values[i : i + m + 1] for i in range(len(values) - m)]
        if len(windows) >= 2:
            assert by_factor[m] == max(max(w) - min(w) for w in windows)
        else:
            assert m not in by_factor
    found = tdev(series, factors)
    by_factor = {} if found is None else dict(zip(found.tau_ns // NS_PER_S, found.value, strict=True))
    for m in set(factors):
        sums = [
            sum(values[j + i + 2 * m] - 2 * values[j + i + m] + values[j + i] for i in range(m))
            for j in range(len(values) - 3 * m + 1)
        ]
        if len(sums) >= 2:
            exact = math.sqrt(sum(s * s for s in sums) / (6 * m * m * len(sums)))
            assert by_factor[m] == pytest.approx(exact, rel=1e-12)


def test_white_phase_noise_has_the_known_curves() -> None:
    """White PM of deviation s: TDEV = s / sqrt(m), ADEV = s sqrt(3) / tau."""
    deviation = 1000.0
    offsets = np.random.default_rng(5).normal(0, deviation, 200_000)
    series = ClockSeries.regular(NS_PER_S, offsets)
    found = checked(tdev(series, [1, 4, 16, 64]))
    np.testing.assert_allclose(found.value, deviation / np.sqrt([1, 4, 16, 64]), rtol=0.03)
    found = checked(adev(series, [1, 8, 64]))
    np.testing.assert_allclose(
        found.value, deviation * math.sqrt(3) / np.array([1, 8, 64]) / NS_PER_S, rtol=0.03
    )


def test_a_frequency_offset_moves_mtie_only() -> None:
    """100 ppb is 100 ns a second: MTIE = 100 ns x tau, while TDEV and ADEV do not see it."""
    series = ClockSeries.regular(NS_PER_S, 100 * np.arange(5000))
    found = checked(mtie(series))
    np.testing.assert_array_equal(found.value, 100 * found.tau_ns / NS_PER_S)
    assert not checked(tdev(series)).value.any()
    assert not checked(adev(series)).value.any()


def test_a_step_is_seen_at_every_tau() -> None:
    offsets = np.zeros(3000, np.int64)
    offsets[1500:] = 7000
    assert set(checked(mtie(ClockSeries.regular(NS_PER_S, offsets))).value) == {7000.0}


def test_large_offsets_cost_no_digits() -> None:
    offsets = noise(5000)
    near, far = ClockSeries.regular(NS_PER_S, offsets), ClockSeries.regular(NS_PER_S, offsets + 2 * 10**18)
    for statistic in (mtie, tdev, adev):
        np.testing.assert_array_equal(checked(statistic(near)).value, checked(statistic(far)).value)


@pytest.mark.parametrize(
    ("series", "message"),
    [
        (lambda: fixed_point(np.array([0, 2**60], np.int64), 1000), "too far"),
        (lambda: mtie(ClockSeries.regular(NS_PER_S, [1, 2, 3]), [0]), "factors"),
        (lambda: mtie(ClockSeries.regular(NS_PER_S, [1, 2, 3]), []), "factors"),
        (lambda: mtie(ClockSeries.regular(NS_PER_S, [1, 2, 3]), [-4, 8]), "factors"),
        *((lambda bad=bad: ClockSeries.regular(NS_PER_S, [1.0, bad, 2.0]), "not finite") for bad in INFINITE),
        *(
            (lambda bad=bad: ClockSeries.from_samples([0, 1, 2], [1, bad, 2]), "not finite")
            for bad in INFINITE
        ),
        (lambda: ClockSeries.from_samples([0, 1], [1, 2, 3]), "2 times with 3"),
        (lambda: ClockSeries.from_samples([0.0, 1.0], [1, 2]), "whole ns"),
        (lambda: ClockSeries.regular(1, [[1, 2]]), "one dimension"),
        (lambda: ClockSeries.regular(0, [1]), "positive"),
        (lambda: ClockSeries.from_samples(np.arange(50) * 120, np.zeros(50, int), tau0_ns=100), "said to be"),
    ],
)
def test_what_does_not_fit_is_refused(series: Callable[[], object], message: str) -> None:
    with pytest.raises(ReportError, match=message):
        series()


def squares(offsets: Any, m: int, statistic: str) -> list[float]:
    """Return the square of every window of one stretch, from the definitions."""
    x = [int(value) for value in offsets]
    second = [x[i + 2 * m] - 2 * x[i + m] + x[i] for i in range(len(x) - 2 * m)]
    if statistic == "adev":
        return [d * d / (2.0 * (m * NS_PER_S) ** 2) for d in second]
    return [sum(second[j : j + m]) ** 2 / (6.0 * m * m) for j in range(len(second) - m + 1)]


def test_windows_lie_inside_stretches() -> None:
    """Three stretches: squares are pooled over all windows, MTIE is the largest; no window bridges a gap."""
    parts = [noise(400, 1), noise(90, 2) + 10**6, noise(5, 4)]
    times = np.concatenate([np.arange(400), 1000 + np.arange(90), 5000 + np.arange(5)]) * NS_PER_S
    series = ClockSeries.from_samples(times, np.concatenate(parts))
    assert [len(stretch) for stretch in series.stretches] == [400, 90, 5]
    for statistic in (tdev, adev):
        whole = checked(statistic(series))
        for tau, value, n in zip(whole.tau_ns.tolist(), whole.value, whole.n, strict=True):
            pool = [square for part in parts for square in squares(part, tau // NS_PER_S, whole.statistic)]
            assert len(pool) == n
            assert value == pytest.approx(math.sqrt(sum(pool) / n), rel=1e-12)
    whole = checked(mtie(series))
    for tau, value in zip((whole.tau_ns // NS_PER_S).tolist(), whole.value, strict=True):
        windows = [part[i : i + tau + 1] for part in parts for i in range(len(part) - tau)]
        assert value == max(int(np.ptp(window)) for window in windows)
    assert whole.value.max() < 10**6


def test_a_gap_costs_windows_and_invents_none() -> None:
    offsets = noise(1000)
    times = np.arange(1000) * NS_PER_S
    kept = np.ones(1000, bool)
    kept[500:503] = False
    series = ClockSeries.from_samples(times[kept], offsets[kept])
    assert series.gaps == ((499 * NS_PER_S, 503 * NS_PER_S),)
    assert checked(mtie(series, [10])).n[0] == (500 - 10) + (497 - 10)
    assert checked(tdev(series, [10])).n[0] == (500 - 29) + (497 - 29)


@pytest.mark.parametrize("n", [0, 1, 2])
def test_too_few_samples_give_none(n: int) -> None:
    series = ClockSeries.regular(NS_PER_S, np.zeros(n, np.int64))
    assert mtie(series) is None or n > 2
    assert tdev(series) is None
    assert adev(series) is None


def test_octaves() -> None:
    assert octaves(0) == []
    assert octaves(9) == [1, 2, 4, 8]


def test_the_interval_is_the_mean_and_gaps_do_not_shift_it() -> None:
    times = np.concatenate([np.arange(100), 5000 + np.arange(100)]) * 1_000_100
    series = ClockSeries.from_samples(times, np.zeros(200, int))
    assert series.tau0_ns == 1_000_100
    assert (series.n, len(series.gaps)) == (200, 1)


def test_time_that_stands_still_or_runs_back_ends_a_stretch() -> None:
    series = ClockSeries.from_samples([0, 10, 20, 20, 30, 15, 25], [1, 2, 3, 4, 5, 6, 7])
    assert [stretch.offset_ns.tolist() for stretch in series.stretches] == [[1, 2, 3], [4, 5], [6, 7]]


def test_no_stretch_crosses_a_break() -> None:
    series = ClockSeries.from_samples([0, 10, 20, 30], [1, 2, 3, 4], breaks_ns=[20])
    assert [stretch.offset_ns.tolist() for stretch in series.stretches] == [[1, 2], [3, 4]]
    assert ClockSeries.from_samples([], []).n == 0
    assert isinstance(ClockSeries.from_samples([5], [1]).stretches[0], Stretch)
