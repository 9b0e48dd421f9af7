# SPDX-License-Identifier: Apache-2.0
"""Statistics of delays against numpy's of the same delays."""

from __future__ import annotations

import numpy as np
import pytest

from scope.jitter import BINS_MAX, BLOCKS_MAX, DelayTally, kurtosis_of


@pytest.mark.parametrize("sizes", [[5000], [1] * 5000, [700, 1, 3, 324, 2, 3970], [1024, 1, 3975], [4999, 1]])
def test_blocks_hold_delays_in_their_order_and_are_bounded(sizes: list[int]) -> None:
    delays = np.random.default_rng(3).normal(1e-9, 1e-10, sum(sizes))
    tally = DelayTally()
    for part in np.split(delays, np.cumsum(sizes)[:-1]):
        tally.add(part)
    found = tally.summary()
    assert found is not None
    assert found.block_size == 8
    assert found.block_means_s == pytest.approx(delays[:5000].reshape(-1, 8).mean(axis=1), rel=1e-12)


@pytest.mark.parametrize(("count", "size"), [(1, 1), (1024, 1), (1025, 2), (2049, 2), (2050, 4)])
def test_blocks_double_when_they_would_be_too_many(count: int, size: int) -> None:
    tally = DelayTally()
    tally.add(np.linspace(0.0, 1e-9, count))
    found = tally.summary()
    assert found is not None
    assert (found.block_size, len(found.block_means_s)) == (size, count // size)
    assert len(found.block_means_s) <= BLOCKS_MAX


@pytest.mark.parametrize("sizes", [[1], [3, 0, 5], [1, 1, 998, 4000, 7], [20000]])
@pytest.mark.parametrize("offset_s", [0.0, 1e-3])
def test_parts_come_to_what_all_delays_together_do(sizes: list[int], offset_s: float) -> None:
    rng = np.random.default_rng(3)
    delays = offset_s + rng.normal(2e-8, 5e-9, sum(sizes))
    tally = DelayTally()
    begin = 0
    for size in sizes:
        tally.add(delays[begin : begin + size])
        begin += size
    found = tally.summary()
    assert found is not None
    assert found.count == len(delays)
    assert found.mean_s == pytest.approx(delays.mean(), rel=1e-12)
    expected = float(delays.std(ddof=1)) if len(delays) > 1 else 0.0
    assert found.deviation_s == pytest.approx(expected, rel=1e-6)
    assert (found.minimum_s, found.maximum_s) == (delays.min(), delays.max())
    assert found.peak_to_peak_s[len(delays)] == np.ptp(delays)


@pytest.mark.parametrize("offset_s", [0.0, 1e-3])
def test_kurtosis_of_the_histogram_is_that_of_the_delays(offset_s: float) -> None:
    rng = np.random.default_rng(3)
    delays = offset_s + np.concatenate([rng.normal(0, 5e-9, 5000), rng.uniform(0, 2e-6, 50)])
    tally = DelayTally()
    tally.add(delays)
    found = tally.summary()
    assert found is not None
    expected = float((np.square(delays - delays.mean()) ** 2).mean()) / float(delays.var()) ** 2
    assert found.kurtosis == pytest.approx(expected, rel=0.01)
    assert kurtosis_of([(low * 1e9, width * 1e9, n) for low, width, n in found.buckets]) == pytest.approx(
        found.kurtosis, rel=1e-9
    )


def test_delays_of_a_single_bucket_have_the_least_kurtosis() -> None:
    assert kurtosis_of([(3, 1, 200)]) == 1.0
    assert kurtosis_of([(3, 1, 100), (4, 1, 100)]) == 1.0


def test_peak_to_peak_is_kept_at_equal_numbers() -> None:
    rng = np.random.default_rng(3)
    delays = rng.normal(0, 1e-9, 12345)
    tally = DelayTally()
    for part in np.array_split(delays, 7):
        tally.add(part)
    found = tally.summary()
    assert found is not None
    assert found.peak_to_peak_s == {n: np.ptp(delays[:n]) for n in (100, 1000, 10000, 12345)}


@pytest.mark.parametrize("spread_s", [1e-11, 1e-9, 1e-5])
def test_histogram_holds_every_delay_in_bounded_memory(spread_s: float) -> None:
    rng = np.random.default_rng(3)
    delays = rng.normal(-1e-8, spread_s, 30000)
    tally = DelayTally()
    for part in np.array_split(delays, 11):
        tally.add(part)
    found = tally.summary()
    assert found is not None
    assert sum(count for _, _, count in found.buckets) == len(delays)
    assert len(found.buckets) <= BINS_MAX
    width_s = found.buckets[0][1]
    assert width_s <= 4 * np.ptp(delays) / BINS_MAX + 1e-13
    for low_s, width_s, count in found.buckets[::50]:
        inside = np.count_nonzero((delays >= low_s) & (delays < low_s + width_s))
        assert abs(int(inside) - count) <= 2  # a delay at an edge may be rounded either way


def test_far_outliers_widen_the_buckets_and_lose_nothing() -> None:
    tally = DelayTally()
    tally.add(np.full(1000, 1e-12))
    tally.add(np.array([-1e-3, 1.0]))
    found = tally.summary()
    assert found is not None
    assert [count for _, _, count in found.buckets] == [1, 1000, 1]


def test_no_delay_has_no_statistics() -> None:
    tally = DelayTally()
    tally.add(np.empty(0))
    assert tally.summary() is None


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_delay_that_is_no_number_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        DelayTally().add(np.array([1.0, value]))
