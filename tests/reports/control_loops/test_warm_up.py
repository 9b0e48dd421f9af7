# SPDX-License-Identifier: Apache-2.0
"""Series of delays at 25 pictures/s, with and without a warm-up as in the paper's Figs 4.4.1 to 4.4.4."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import signal as _signal

from reports.control_loops.warm_up import WarmUp, warm_up
from reports.errors import ReportError

signal: Any = _signal  # its types are incomplete
Noise = Callable[[np.random.Generator], np.ndarray]
SERIES = 200
N, RATE_HZ = 60 * 25, 25
TIMES_S = np.arange(N) / RATE_HZ


def remembering(memory: float) -> Noise:
    """Return normal noise of deviation 1, whose values depend on those before."""

    def noise(rng: np.random.Generator) -> np.ndarray:
        steps = rng.standard_normal(N + 500)
        return signal.lfilter([np.sqrt(1 - memory**2)], [1, -memory], steps)[500:]

    return noise


def outliers(rng: np.random.Generator) -> np.ndarray:
    """Return noise with spikes of a hundred deviations now and then."""
    return rng.standard_normal(N) + (rng.random(N) < 0.02) * rng.exponential(20, N)


def student(rng: np.random.Generator) -> np.ndarray:
    """Return noise with tails that have no fourth moment."""
    return rng.standard_t(3, N) / np.sqrt(3)


def bands(rng: np.random.Generator) -> np.ndarray:
    """Return noise with a worse time every ten seconds (4.4.1.2)."""
    phase = (np.arange(N) + rng.integers(250)) % 250
    return rng.standard_normal(N) + (phase < 20) * rng.exponential(6, N)


def skewed(rng: np.random.Generator) -> np.ndarray:
    """Return lognormal noise that remembers."""
    return np.exp(remembering(0.7)(rng))


def frames(rng: np.random.Generator, first: np.ndarray) -> np.ndarray:
    """Camera to tracker (4.4.3): many take much longer."""
    return 3 + 3 * first


def datagrams(rng: np.random.Generator, first: np.ndarray) -> np.ndarray:
    """Clumps with longer delays between them, and a greater variance (4.4.2)."""
    return 1 + 2 * first + (rng.random(len(first)) < 0.2) * rng.exponential(10, len(first))


def spread(rng: np.random.Generator, first: np.ndarray) -> np.ndarray:
    """Greater variance about the same level (4.4.1)."""
    return 4 * first


def display(rng: np.random.Generator, first: np.ndarray) -> np.ndarray:
    """Tracker to display (4.4.4): lower than the median of the steady state."""
    return -2 + 1.5 * first


WITH: tuple[Noise, ...] = (student, outliers, remembering(0.5), remembering(0.3))
KINDS = (frames, spread, display, datagrams)
WITHOUT: tuple[Noise, ...] = (
    *(remembering(memory) for memory in (0.0, 0.3, 0.5, 0.8, 0.95, 0.98)),
    *(student, outliers, bands, skewed),
)


def found_and_truth(seed: int, number: int) -> tuple[WarmUp, float]:
    """Return what is found in a series with a warm-up of 1 to 20 s, and its length in s."""
    rng = np.random.default_rng([seed, number])
    length_s = rng.uniform(1, 20)
    count = round(length_s * RATE_HZ)
    values = WITH[number % len(WITH)](rng)
    values[:count] = KINDS[number // len(WITH) % len(KINDS)](rng, values[:count])
    return warm_up(TIMES_S, 60 + 5 * values), length_s


def share_within(seed: int) -> float:
    """Return how many ends are right to 1 s or 5 %."""
    pairs = [found_and_truth(seed, number) for number in range(SERIES)]
    return float(np.mean([abs(found.length_s - truth) <= max(1, truth / 20) for found, truth in pairs]))


def share_cut(seed: int) -> float:
    """Return how many series without a warm-up are cut."""
    every = (
        WITHOUT[number % len(WITHOUT)](np.random.default_rng([seed, number])) for number in range(SERIES)
    )
    return float(np.mean([warm_up(TIMES_S, 60 + 5 * values).count > 0 for values in every]))


def test_the_end_is_found() -> None:
    assert share_within(66) >= 0.99


def test_nothing_is_cut_where_there_is_none() -> None:
    assert share_cut(66) <= 0.02


def test_the_answer_in_full() -> None:
    rng = np.random.default_rng(5)
    values = rng.standard_normal(N)
    values[:250] *= 8
    found = warm_up(100 + TIMES_S, values)
    assert found.count == pytest.approx(250, abs=5)
    assert found.end_s == 100 + found.count / RATE_HZ
    assert found.length_s == pytest.approx(found.count / RATE_HZ)
    assert found.settles


def test_chaos_that_dies_out_in_steps_is_cut_to_its_end() -> None:
    rng = np.random.default_rng(5)
    values = rng.standard_normal(N)
    values[:100] *= 30
    values[100:350] *= 4
    assert warm_up(TIMES_S, values).count == pytest.approx(350, abs=15)


@pytest.mark.parametrize("seed", range(20))
def test_a_disturbance_in_the_second_half_hides_no_warm_up(seed: int) -> None:
    """As a retransmission timer of a connection at 300 ms each way: 1.2 s more, which go in 30 pictures."""
    delays_ms = 606 + 0.5 * remembering(0.5)(np.random.default_rng(seed))[:600]
    delays_ms[:125] += np.linspace(2700, 0, 125)
    delays_ms[510:541] += np.linspace(1200, 160, 31)
    assert warm_up(np.arange(600) / RATE_HZ, delays_ms).count == pytest.approx(120, abs=10)


def test_what_changes_beyond_its_middle_does_not_settle() -> None:
    rng = np.random.default_rng(5)
    values = rng.standard_normal(N)
    values[:1000] += 5
    found = warm_up(TIMES_S, values)
    assert (found.count, found.settles) == (N // 2, False)


@pytest.mark.parametrize("value", [0.0, 100.0])
def test_values_that_are_all_equal_have_no_warm_up(value: float) -> None:
    assert warm_up(TIMES_S, np.full(N, value)) == WarmUp(0, 0.0, 0.0, settles=True)


def test_an_outlier_at_the_beginning_is_no_warm_up() -> None:
    values = np.random.default_rng(5).standard_normal(N)
    values[3] = 1e9
    assert warm_up(TIMES_S, values).count == 0


def test_what_tells_nothing_is_refused() -> None:
    with pytest.raises(ReportError, match="99 values do not tell where a warm-up ends: 100 at least"):
        warm_up(TIMES_S[:99], np.zeros(99))
    with pytest.raises(ReportError, match="a time for each value, in their order"):
        warm_up(TIMES_S[::-1], np.zeros(N))
    with pytest.raises(ReportError, match="values that are numbers"):
        warm_up(TIMES_S, np.full(N, np.nan))


def disturbed(rng: np.random.Generator) -> np.ndarray:
    """Return delays at 300 ms each way that a timer of 1.2 s disturbs once, for 31 pictures."""
    delays_ms = 606 + 0.5 * remembering(0.5)(rng)[:600]
    at = rng.integers(300, 500)
    delays_ms[at : at + 31] += np.linspace(1200, 160, 31)
    return delays_ms


def share_unsettled(of: Noise, seed: int, count: int = SERIES) -> float:
    """Return how many series do not settle."""
    every = (of(np.random.default_rng([seed, number])) for number in range(count))
    return float(np.mean([not warm_up(TIMES_S[: len(each)], each).settles for each in every]))


@pytest.mark.parametrize("of", [*WITHOUT, disturbed])
def test_what_neither_rises_nor_falls_settles(of: Noise) -> None:
    """One in a hundred at most may seem not to; of 60 two are hardly more than that."""
    assert share_unsettled(of, 66, 60) <= 0.035


DRIFTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "linear, 5": lambda share: 5 * share,
    "linear, 1000": lambda share: 1000 * share,
    "falling, 20": lambda share: -20 * share,
    "quadratic": lambda share: 5 * share**2,
    "root": lambda share: 10 * np.sqrt(share),
    "exponential": lambda share: 10 * np.exp(-share),
    "second half alone": lambda share: 16 * np.clip(share - 0.5, 0, None),
}


@pytest.mark.parametrize("drift", DRIFTS)
@pytest.mark.parametrize("count", [600, N])
def test_what_drifts_does_not_settle(drift: str, count: int) -> None:
    """In deviations over the series, beside white noise."""
    share = np.arange(count) / count

    def drifting(rng: np.random.Generator) -> np.ndarray:
        return DRIFTS[drift](share) + rng.standard_normal(count)

    assert share_unsettled(drifting, 66, 20) == 1


def test_a_ramp_without_noise_has_no_warm_up_and_does_not_settle() -> None:
    assert warm_up(np.arange(3000.0) / 25, np.arange(3000.0)) == WarmUp(0, 0.0, 0.0, settles=False)


def test_a_drift_leaves_the_end_of_the_warm_up_where_it_is() -> None:
    values = np.random.default_rng(5).standard_normal(N)
    values[:250] += 30
    steady = warm_up(TIMES_S, values)
    values[N // 2 :] += np.linspace(0, 3, N // 2)
    found = warm_up(TIMES_S, values)
    assert (steady.settles, found.settles) == (True, False)
    assert found.count == pytest.approx(steady.count, abs=2)


def test_beginning_far_beyond_all_that_follows_is_cut_whatever_that_does() -> None:
    """What follows swings slowly by half a millisecond: of few blocks nobody knows what chance may do."""
    random = np.random.default_rng(68)
    after = 205 + 0.5 * np.sin(2 * np.pi * np.arange(110) / 160) + random.normal(0, 0.02, 110)
    values = np.concatenate((np.linspace(830, 230, 40), after))
    found = warm_up(np.arange(150) / 25, values)
    assert 40 <= found.count <= 44
    # Half a swing is all of its second half.
    assert not found.settles
