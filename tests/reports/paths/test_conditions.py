# SPDX-License-Identifier: Apache-2.0
"""What is achieved beside what was asked: paths whose truth is known, and how often intervals hold it."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from reports.errors import ReportError
from reports.paths.bursts import Chain, burst_conditions, burst_length
from reports.paths.condition import Condition
from reports.paths.delay import added_ns, delay_condition, median_ns
from reports.paths.shares import (
    copies_condition,
    dependent_share_interval,
    loss_condition,
    reordering_condition,
    share_interval,
)
from reports.paths.transits import LOST, Flags, Transits

stats: Any = import_module("scipy.stats")  # has no types

N = 10_000


def found(count: Sequence[int], place: Sequence[int] | None = None) -> Transits:
    """Return datagrams, each of which came out so often."""
    counts = np.array(count)
    places = np.where(counts > 0, np.cumsum(counts > 0) - 1, LOST) if place is None else np.array(place)
    return Transits(np.arange(len(counts)), np.where(counts > 0, 5, LOST), counts, places, 0, 0)


def lost_in(chain: Chain, n: int, repeats: int, seed: int = 65) -> Flags:
    """Return which of n datagrams are lost, in so many repeats, shape (repeats, n)."""
    random = np.random.default_rng(seed)
    bad: NDArray[np.bool_] = random.random(repeats) < chain.to_bad / (chain.to_bad + chain.to_good)
    lost = np.empty((repeats, n), dtype=bool)
    for number in range(n):
        chance, move = random.random((2, repeats))
        lost[:, number] = bad & (chance < chain.bad_loss) | ~bad & (chance < chain.good_loss)
        bad = bad & (move >= chain.to_good) | ~bad & (move < chain.to_bad)
    return lost


def test_a_mark_is_what_lies_outside() -> None:
    inside, outside = (Condition("delay", "us", asked, 5010, 5004, 5016) for asked in (5004, 5003.9))
    assert not inside.is_off
    assert outside.is_off
    assert outside.is_beyond(0.05)
    assert not outside.is_beyond(0.2)
    assert str(inside) == "delay: asked 5004 us, achieved 5010 (5004 to 5016)"
    assert str(outside) == "delay: asked 5003.9 us, achieved 5010 (5004 to 5016): not as asked"


def test_median_and_its_interval() -> None:
    """Of 10 values the 2nd and the 9th enclose the median in 97.9 % (David and Nagaraja, 7.1)."""
    middle, side = median_ns(np.array([9, 1, 2, 3, 4, 5, 6, 7, 8, 30]))
    assert (middle, side) == (5.5, 3.5)
    with pytest.raises(ReportError, match="a median of 5 datagrams has no 95 % interval"):
        median_ns(np.arange(5))
    with pytest.raises(ReportError, match="a median of 0 datagrams"):
        median_ns(np.arange(0))


def test_delay_is_what_is_added() -> None:
    """Without it 100 and 104 us, by a drift; U is the drift and the sides of both intervals."""
    steady = np.zeros(20, dtype=np.int64)
    without = [steady + 100_000, steady + 104_000]
    assert added_ns(steady + 5_102_500, without) == (5_000_500, 2_000)
    condition = delay_condition(5_000, steady + 5_102_500, without)
    assert (condition.achieved, condition.low, condition.high) == (5000.5, 4998.5, 5002.5)
    assert not condition.is_off
    assert delay_condition(4_990, steady + 5_102_500, without).is_off


def test_the_scatter_without_a_delay_is_part_of_its_u() -> None:
    """Of 10 values the 2nd and the 9th: 3.5 ns from the median, of the wider one of two sections."""
    steady, scattered = np.full(10, 5), np.arange(10)
    assert added_ns(steady + 100, [steady, steady]) == (100, 0)
    assert added_ns(steady + 100, [scattered, steady]) == (100.25, 3.5 + 0.25)


@pytest.mark.parametrize(("count", "n"), [(0, 40), (1, 40), (100, 10_000), (40, 40)])
def test_intervals_of_shares_are_those_of_scipy(count: int, n: int) -> None:
    exact = stats.binomtest(count, n).proportion_ci(0.99, method="exact")
    assert share_interval(count, n) == pytest.approx((exact.low, exact.high), abs=1e-9)


def test_loss_copies_and_reordering() -> None:
    count = [1] * N
    for number in range(0, N, 100):
        count[number] = 0
        count[number + 50 : number + 52] = [2, 3]
    assert loss_condition(1, found(count)).achieved == 1
    assert not loss_condition(1, found(count)).is_off
    assert loss_condition(1.5, found(count)).is_off
    copies = copies_condition(200 / 99, found(count))
    assert copies.achieved == pytest.approx(200 / 99)
    assert not copies.is_off
    place = list(range(N))
    for number in range(100, N, 100):  # each overtakes five
        place[number - 5 : number] = [each + 1 for each in place[number - 5 : number]]
        place[number] = number - 5
    reordering = reordering_condition(1, found([1] * N, place))
    assert reordering.achieved == pytest.approx(100 * 99 / (N - 1))
    with pytest.raises(ReportError, match="copies: no datagrams"):
        copies_condition(1, found([0] * 5))


@pytest.mark.parametrize(
    ("chain", "loss", "length"),
    [
        (Chain(0.01, 0.1), 1 / 11, 10),
        (Chain(0.5, 0.5, 0.5, 0.5), 0.5, 2),  # both states alike: independent
        (Chain(0.1, 0.9, 0.7), 0.07, 1 / (1 - 0.1 * 0.7)),
        (Chain(0, 0), 0, 0),
        (Chain(1, 0), 1, float("inf")),
    ],
)
def test_what_a_chain_means(chain: Chain, loss: float, length: float) -> None:
    assert chain.loss == pytest.approx(loss)
    assert chain.burst_length == pytest.approx(length)


@pytest.mark.parametrize(
    "chain", [Chain(0.001, 0.1), Chain(0.01, 0.1), Chain(0.01, 0.3, 0.7, 0.001), Chain(0.01, 0.1, 0.7)]
)
def test_intervals_hold_the_truth_of_bursts(chain: Chain) -> None:
    """Of 200 paths that are as asked, at most eight are marked: 99 % is asked, 97.5 % allows for chance."""
    lost = lost_in(chain, N, 200)
    truth = float(np.mean(lost))
    assert truth == pytest.approx(chain.loss, rel=0.1)
    marked = 0
    lengths = 0
    for each in lost:
        found = burst_conditions(chain, each)
        lengths += len(found) == 2  # else fewer than ten bursts
        marked += sum(condition.is_off for condition in found)
    assert lengths >= 90
    assert marked <= 2 * 8


def test_a_plain_binomial_would_be_too_narrow() -> None:
    """Why dependence is allowed for: bursts of ten, and the interval of independent losses misses often."""
    chain = Chain(0.001, 0.1)
    missed = {True: 0, False: 0}
    for each in lost_in(chain, N, 100):
        for dependent in missed:
            low, high = dependent_share_interval(each) if dependent else share_interval(int(each.sum()), N)
            missed[dependent] += not low <= chain.loss <= high
    assert missed[False] > 30
    assert missed[True] <= 5


def test_bursts_that_blocks_hide_widen_the_interval() -> None:
    """Ten of each 250 are lost, together: all blocks are alike, and yet those ten are not independent."""
    lost = np.arange(N) % 250 < 10
    low, high = dependent_share_interval(lost)
    alone = share_interval(400, N)
    assert high - low > 3 * (alone[1] - alone[0])


def test_lengths_of_bursts_that_depend_on_each_other_are_less_certain() -> None:
    """A time of single losses, then one of bursts of nine."""
    singles, bursts = np.arange(4000) % 10 == 0, np.arange(4000) % 10 != 0
    lost = np.concatenate((singles, bursts))
    mean, low, high = burst_length(lost)
    assert mean == pytest.approx(5, rel=0.01)
    assert burst_length(lost, is_chain=False)[1] < low
    assert burst_length(lost, is_chain=False)[2] > 2 * high


def test_other_bursts_than_asked_are_marked() -> None:
    lost = lost_in(Chain(0.02, 0.2), N, 1)[0]
    loss, length = burst_conditions(Chain(0.01, 0.1), lost)
    assert not loss.is_off
    assert length.is_off
    assert burst_length(lost)[0] == pytest.approx(5, rel=0.2)


def test_few_tell_nothing() -> None:
    with pytest.raises(ReportError, match="99 datagrams do not tell how they depend"):
        dependent_share_interval(np.zeros(99, dtype=bool))
    with pytest.raises(ReportError, match="1 bursts tell no mean length"):
        burst_length(np.arange(1000) == 7)
    assert dependent_share_interval(np.zeros(1000, dtype=bool)) == share_interval(0, 1000)
