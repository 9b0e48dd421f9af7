# SPDX-License-Identifier: Apache-2.0
"""A curve beside its mask: which taus are judged, and where least is left."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pytest

from reports.clock_sync.mask import load_mask
from reports.clock_sync.mask_curve import MaskPoint, curve_of, limited_series, mask_points, worst_point
from reports.clock_sync.series import ClockSeries
from reports.clock_sync.stability import Curve
from reports.units import NS_PER_MS, NS_PER_S

PRTC_A = load_mask("g8272-prtc-a")


def _points(values: Mapping[int, float] | Mapping[float, float], n: int = 6000) -> tuple[MaskPoint, ...]:
    """Return the points of MTIE with these values, by tau in s, of a series of so many seconds."""
    taus = np.array([round(tau * NS_PER_S) for tau in values], np.int64)
    curve = Curve("mtie", taus, np.array(list(values.values())), np.full(len(taus), 100))
    return mask_points(ClockSeries.regular(NS_PER_S, [0] * n), curve, PRTC_A, "mtie")


def test_the_worst_tau_is_that_at_which_least_is_left() -> None:
    """In ns, as the verdict judges: 27 of 27.75 are a larger share than 99.5 of 100, but leave more."""
    points = _points({10: 27, 100: 30, 300: 99.5})
    assert worst_point(points) == MaskPoint(300 * NS_PER_S, 99.5, 100, 100)
    over = worst_point(_points({1: 10, 4: 27, 1000: 20}))
    assert over is not None
    assert over.tau_ns == 4 * NS_PER_S
    assert over.left_ns < 0


def test_the_limit_itself_is_kept_and_what_is_no_number_is_the_worst() -> None:
    for value_ns, left_ns in ((100.0, 0.0), (100.5, -0.5)):
        point = worst_point(_points({300: value_ns}))
        assert point is not None
        assert point.left_ns == left_ns
    for values in ({1: 10, 4: math.nan}, {1: math.nan, 4: 900}):
        worst = worst_point(_points(values))
        assert worst is not None
        assert math.isnan(worst.value_ns)
        assert worst.left_ns == -math.inf


def test_only_what_the_mask_limits_is_judged() -> None:
    assert [point.tau_ns for point in _points({0.05: 1, 0.1: 1, 0.2: 1})] == [200 * NS_PER_MS]
    assert worst_point(_points({0.05: 1})) is None


@pytest.mark.parametrize(("n", "longest_s"), [(95, 4), (96, 8), (191, 8)])
def test_tdev_is_judged_up_to_a_twelfth_of_the_series(n: int, longest_s: int) -> None:
    series = ClockSeries.regular(NS_PER_S, np.tile([0, 5], 100)[:n])
    curve = curve_of(series, "tdev")
    assert curve is not None
    assert curve.tau_ns[-1] > longest_s * NS_PER_S
    assert mask_points(series, curve, PRTC_A, "tdev")[-1].tau_ns == longest_s * NS_PER_S


def test_of_the_low_passed_error_fast_noise_is_not_judged() -> None:
    """And of a series that is too slow for the low-pass nothing is."""
    noise = np.tile([0, 1000], 3000)
    series = ClockSeries.regular(NS_PER_S // 20, noise)
    limited = limited_series(series, "dte_l_mtie")
    assert limited is not None
    curves = [curve_of(each, "dte_l_mtie") for each in (series, limited)]
    raw, filtered = (float(curve.value.max()) for curve in curves if curve is not None)
    assert (raw, filtered < 50) == (1000, True)
    assert limited_series(series, "mtie") is series
    assert limited_series(ClockSeries.regular(6 * NS_PER_S, noise), "dte_l_tdev") is None
