# SPDX-License-Identifier: Apache-2.0
"""One pair's trips: cumulants against scipy, uncertainty against repeats, and what is not stationary."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from reports.errors import ReportError
from reports.software_latency.spread import expand
from reports.software_latency.trips import PairTrips, kpss, measure

stats: Any = import_module("scipy.stats")  # has no types
signal: Any = import_module("scipy.signal")


def remembering(memory: float, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return an autoregressive series of order one."""
    return signal.lfilter([1.0], [1.0, -memory], rng.standard_normal(n + 200))[200:]


def trips(values: NDArray[np.float64], excluded: NDArray[np.bool_] | None = None) -> PairTrips:
    return PairTrips("a", "b", np.rint(values).astype(np.int64), excluded)


def test_cumulants_are_k_statistics_far_from_zero_too():
    rtt = np.rint(10**12 + 5e4 * np.random.default_rng(1).standard_gamma(2.0, 5000)).astype(np.int64)
    found = measure(PairTrips("a", "b", rtt)).cumulants
    near = (rtt - 10**12).astype(float)
    assert found[0] == pytest.approx(10**12 + near.mean())
    assert found[1:] == pytest.approx([stats.kstat(near, 2), stats.kstat(near, 3)], rel=1e-9)


@pytest.mark.parametrize("memory", [0.0, 0.5, 0.8])
def test_uncertainty_of_the_mean_is_the_spread_over_repeats(memory: float):
    rng = np.random.default_rng(7)
    found = [measure(trips(1e5 + 1e4 * remembering(memory, 2000, rng)), resamples=100) for _ in range(300)]
    spread = np.std([each.cumulants[0] for each in found])
    told = np.sqrt(np.mean([each.standard[0] ** 2 for each in found]))
    assert told == pytest.approx(spread, rel=0.12)  # 300 repeats tell a spread to 4 %


def test_uncertainty_of_variance_and_third_cumulant_is_the_spread_over_repeats():
    rng = np.random.default_rng(8)
    found = [measure(trips(1e4 * rng.standard_gamma(4.0, 4000)), resamples=100) for _ in range(300)]
    spread = np.std([each.cumulants for each in found], axis=0)
    told = np.sqrt(np.mean([each.standard**2 for each in found], axis=0))
    assert told[1:] == pytest.approx(spread[1:], rel=0.15)


def test_blocks_are_longer_where_trips_depend_for_longer():
    rng = np.random.default_rng(2)
    found = [measure(trips(1e6 + 1e4 * remembering(memory, 8000, rng))) for memory in (0.0, 0.5, 0.9)]
    lengths = [each.block_trips for each in found]
    assert lengths == sorted(lengths)
    assert lengths[0] == 40  # 2 n^(1/3)
    assert lengths[2] > 2 * lengths[0]
    assert all(each.is_long_enough for each in found)


def test_trips_that_depend_for_too_long_are_told():
    assert not measure(trips(1e6 + 1e4 * remembering(0.98, 1000, np.random.default_rng(2)))).is_long_enough


def test_excluded_trips_do_not_count():
    rng = np.random.default_rng(3)
    values = rng.normal(1e5, 1e3, 1000)
    excluded = rng.random(1000) < 0.1
    values[excluded] += 1e7
    found = measure(trips(values, excluded))
    assert (found.n, found.n_excluded) == (1000 - excluded.sum(), excluded.sum())
    assert found.cumulants[0] == pytest.approx(1e5, abs=200)
    assert found.maximum_ns < 110_000


def test_stationary_series_pass_and_one_in_a_thousand_does_not():
    rng = np.random.default_rng(4)
    found = [kpss(remembering(0.5, 1000, rng), 33) for _ in range(1000)]
    assert np.mean(np.array(found) > 1.168) <= 0.005
    assert np.quantile(found, 0.95) == pytest.approx(0.46, abs=0.08)


@pytest.mark.parametrize(("memory", "n"), [(0.0, 500), (0.5, 1000), (0.8, 1000), (0.9, 5000)])
def test_the_mean_is_within_u_as_often_as_said(memory: float, n: int):
    rng = np.random.default_rng(6)
    found = [measure(trips(1e6 + 1e4 * remembering(memory, n, rng)), resamples=100) for _ in range(300)]
    off = np.array([abs(each.cumulants[0] - 1e6) for each in found])
    u = np.array([expand(each.standard[None, :1], np.array([each.freedom]))[0] for each in found])
    assert np.mean(off <= u) >= 0.93  # of 95.45 % in 300, two standard deviations less
    assert np.mean(off <= u / 2) <= 0.78


@pytest.mark.parametrize("memory", [0.0, 0.7])
@pytest.mark.parametrize("change", ["step", "ramp", "spread"])
def test_what_is_not_stationary_is_told(change: str, memory: float):
    rng = np.random.default_rng(5)
    noise = remembering(memory, 3000, rng) * np.sqrt(1 - memory**2)
    at = np.arange(3000) / 3000
    moved = {"step": noise + (at > 0.4), "ramp": noise + 1.5 * at, "spread": noise * (1 + (at > 0.5))}[change]
    found = {drift.moment: drift.is_stationary for drift in measure(trips(1e5 + 1e4 * moved)).drifts}
    assert not found["variance" if change == "spread" else "mean"]


def test_constant_trips_have_no_uncertainty():
    found = measure(trips(np.full(200, 5000.0)))
    assert found.cumulants == pytest.approx([5000, 0, 0])
    assert found.standard == pytest.approx([0, 0, 0])
    assert all(drift.is_stationary for drift in found.drifts)


def test_what_cannot_be_measured_is_refused():
    rtt = np.arange(99, dtype=np.int64)
    with pytest.raises(ReportError, match="99 trips count, need 100"):
        measure(PairTrips("a", "b", rtt))
    with pytest.raises(ReportError, match="need 2"):
        measure(PairTrips("a", "b", np.tile(rtt, 2)), resamples=1)
    with pytest.raises(ReportError, match="99 values each"):
        PairTrips("a", "b", rtt, np.zeros(3, np.bool_))
    with pytest.raises(ReportError, match="int64"):
        PairTrips("a", "b", rtt.astype(np.float64))  # pyright: ignore[reportArgumentType]
