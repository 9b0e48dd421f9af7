# SPDX-License-Identifier: Apache-2.0
"""Time error: figures of known series, the filter against its transfer function, gaps, distributions."""

from __future__ import annotations

import math
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from reports.clock_sync.series import ClockSeries
from reports.clock_sync.time_error import distribution, low_passed, mean_ns, separable, time_error
from reports.errors import ReportError
from reports.units import NS_PER_MS, NS_PER_S

ntpstats_time_error: Any = import_module("ntpstats.timeerror")  # its types are incomplete

TEN_HZ_NS = 100 * NS_PER_MS


def test_figures_of_a_constant_error() -> None:
    found = time_error(ClockSeries.regular(NS_PER_S, np.full(2000, -250)))
    assert found is not None
    assert (found.min_ns, found.max_ns, found.max_abs_ns, found.cte_ns) == (-250, -250, 250, -250)
    assert (found.max_abs_cte_window_ns, found.stddev_ns) == (250, 0)
    assert (found.max_abs_tel_ns, found.dte_l_pp_ns, found.dte_h_pp_ns) == (250, 0, 0)


def test_the_sign_is_kept() -> None:
    """The DAQ paper's -5.23 / 3.80 us is, with our sign, -3.80 / 5.23."""
    found = time_error(ClockSeries.regular(NS_PER_S, [-3800, 0, 5230]))
    assert found is not None
    assert (found.min_ns, found.max_ns, found.max_abs_ns) == (-3800, 5230, 5230)


@pytest.mark.parametrize("frequency_hz", [0.02, 0.1, 1.0])
def test_the_filter_passes_what_a_first_order_low_pass_of_0_1_hz_passes(frequency_hz: float) -> None:
    times = np.arange(20_000) * TEN_HZ_NS
    offsets = 1000 * np.sin(2 * math.pi * frequency_hz * times / NS_PER_S)
    found = time_error(ClockSeries.regular(TEN_HZ_NS, offsets))
    assert found is not None
    assert found.dte_l_pp_ns == pytest.approx(2000 / math.hypot(1, frequency_hz / 0.1), rel=0.04)


def test_the_filter_is_that_of_ntpstats() -> None:
    offsets_ns = np.cumsum(np.random.default_rng(3).normal(0, 30, 500))
    apart = offsets_ns - offsets_ns[0]
    theirs = ntpstats_time_error.lowpass(apart, 1.0, 0.1, settle=ntpstats_time_error.SETTLE)
    (ours,) = low_passed(ClockSeries.regular(NS_PER_S, offsets_ns)).stretches
    assert ours.offset_ns == pytest.approx(theirs[np.isfinite(theirs)] + offsets_ns[0], rel=1e-12)


def test_what_the_filter_leaves_adds_up() -> None:
    """A fast sine over a constant: the constant stays in TE_L, the sine goes to dTE_H."""
    times = np.arange(5000) * TEN_HZ_NS
    offsets = 700 + 100 * np.sin(2 * math.pi * 4.0 * times / NS_PER_S)
    found = time_error(ClockSeries.regular(TEN_HZ_NS, offsets))
    assert found is not None
    assert found.max_abs_tel_ns == pytest.approx(700, abs=5)
    assert found.dte_h_pp_ns == pytest.approx(200, rel=0.1)


def test_the_filter_starts_anew_after_a_gap() -> None:
    """A jump during a gap is no dTE_H: the filter does not smear one side over the other."""
    times = np.concatenate([np.arange(300), 400 + np.arange(300)]) * TEN_HZ_NS
    offsets = np.concatenate([np.zeros(300), np.full(300, 10_000)])
    series = ClockSeries.from_samples(times, offsets)
    found = time_error(series)
    assert found is not None
    assert (found.gaps, found.dte_h_pp_ns, found.dte_l_pp_ns) == (1, 0, 10_000)
    filtered = low_passed(series)
    assert [len(stretch) for stretch in filtered.stretches] == [220, 220]  # 8 s of 10 Hz were left out
    assert filtered.stretches[1].time_ns[-1] == times[-1]


def test_no_figures_where_the_filter_cannot_work() -> None:
    slow = ClockSeries.regular(6 * NS_PER_S, np.arange(100))
    assert not separable(slow)
    found = time_error(slow)
    assert found is not None
    assert (found.max_abs_tel_ns, found.dte_l_pp_ns, found.dte_h_pp_ns) == (None, None, None)
    assert "too few samples a second" in found.unfiltered_reason
    with pytest.raises(ReportError, match="too far apart"):
        low_passed(slow)
    short = time_error(ClockSeries.regular(NS_PER_S, np.arange(5)))
    assert short is not None
    assert short.dte_l_pp_ns is None
    assert "settle" in short.unfiltered_reason


def test_the_worst_window_of_1000_s_counts_wherever_it_lies() -> None:
    """+80 in the first 1000 s and -80 in the second: the whole mean of 0 hides both."""
    offsets = np.concatenate([np.full(1000, 80), np.full(1000, -80), np.full(500, 900)])
    found = time_error(ClockSeries.regular(NS_PER_S, offsets[:2000]))
    assert found is not None
    assert (found.cte_ns, found.max_abs_cte_window_ns, found.outside_windows) == (0, 80, 0)
    found = time_error(ClockSeries.regular(NS_PER_S, offsets))
    assert found is not None
    assert found.max_abs_cte_window_ns == (500 * -80 + 500 * 900) / 1000  # the last 1000 s
    assert found.outside_windows == 0


def test_a_clock_that_wanders_off_after_the_first_1000_s_is_seen() -> None:
    """-5 ns + 0.02 ns/s over 1890 s: the last 1000 s are off by 22.8 ns, over class B's 20."""
    found = time_error(ClockSeries.regular(NS_PER_S, -5 + 0.02 * np.arange(1890)))
    assert found is not None
    assert found.max_abs_cte_window_ns == pytest.approx(22.79, abs=0.02)


def test_samples_between_gaps_that_no_window_holds_are_counted() -> None:
    times = np.concatenate([np.arange(1200), 5000 + np.arange(300), 9000 + np.arange(1000)]) * NS_PER_S
    offsets = np.concatenate([np.full(1200, 10), np.full(300, 900), np.full(1000, 20)])
    found = time_error(ClockSeries.from_samples(times, offsets, NS_PER_S))
    assert found is not None
    assert (found.max_abs_cte_window_ns, found.outside_windows) == (20, 300)


def test_nothing_gives_nothing() -> None:
    assert time_error(ClockSeries.from_samples([], [])) is None
    one = time_error(ClockSeries.from_samples([7], [42]))
    assert one is not None
    assert (one.n, one.cte_ns, one.stddev_ns, one.max_abs_cte_window_ns) == (1, 42, None, None)


def test_the_mean_of_large_offsets_is_exact() -> None:
    assert mean_ns(np.array([2**60, 2**60 + 3], np.int64)) == pytest.approx(2**60, abs=300)
    assert mean_ns(np.array([10**12 + 1, 10**12 + 2], np.int64)) == 10**12 + 1.5


@pytest.mark.parametrize("width", [None, 1, 7, 64])
@pytest.mark.parametrize("whole", [True, False])
def test_the_distribution_equals_numpys(width: int | None, whole: bool) -> None:
    rng = np.random.default_rng(1)
    values = rng.normal(-2000, 700, 5000)
    offsets = np.rint(values).astype(np.int64) if whole else values
    found = distribution(offsets, width)
    found.check("distribution")
    used = found.buckets[0][1]
    assert width in (None, used)
    edges = np.arange(found.buckets[0][0], found.buckets[-1][0] + used + 1, used)
    counts, _ = np.histogram(offsets, bins=np.append(edges[:-1], edges[-1] - 0.25))
    filled = {int(edge): int(count) for edge, count in zip(edges[:-1], counts, strict=True) if count}
    assert {low: count for low, _, count in found.buckets} == filled
    assert found.n == 5000
    assert found.mean_ns == pytest.approx(float(np.mean(offsets)))


def test_an_empty_distribution_and_a_bad_width() -> None:
    assert distribution(np.empty(0, np.int64)).n == 0
    assert distribution(np.array([5, 5], np.int64)).buckets == ((5, 1, 2),)
    with pytest.raises(ReportError, match="width_ns"):
        distribution(np.array([5], np.int64), 0)
