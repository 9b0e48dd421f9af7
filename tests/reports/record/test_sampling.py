# SPDX-License-Identifier: Apache-2.0
"""Sample counts and binomial bounds against published tables and exact rational arithmetic."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reports.errors import ReportError
from reports.record.sampling import binomial_cdf, miss_probability_upper_95, quantile_ranks, required_samples


def exact_cdf(k: int, n: int, p: Fraction) -> Fraction:
    """Return P(B <= k) by summing the binomial in whole numbers, over the common denominator."""
    hit, miss = p.numerator, p.denominator - p.numerator
    hits, misses = [1], [1]
    for _ in range(n):
        hits.append(hits[-1] * hit)
        misses.append(misses[-1] * miss)
    total = sum(math.comb(n, i) * hits[i] * misses[n - i] for i in range(k + 1))
    return Fraction(total, p.denominator**n)


@pytest.mark.parametrize(("probability", "samples"), [(0.03, 99), (0.001, 2995), (0.05, 59), (0.01, 299)])
def test_samples_that_the_design_and_wilks_name(probability: float, samples: int):
    assert required_samples(probability) == samples


@pytest.mark.parametrize("probability", [0.0, 1.0, -0.1, math.nan])
def test_a_probability_outside_0_to_1_is_refused(probability: float):
    with pytest.raises(ReportError):
        required_samples(probability)


@given(st.floats(1e-5, 0.5))
def test_one_sample_fewer_would_not_do(probability: float):
    n = required_samples(probability)
    assert miss_probability_upper_95(0, n) <= probability * (1 + 1e-9)
    assert n == 1 or miss_probability_upper_95(0, n - 1) > probability * (1 - 1e-9)


# Wilks, first to sixth order, 95 %/95 %: so many samples exclude 5 % with 0..5 misses, one fewer do not.
@pytest.mark.parametrize(("misses", "n"), [(0, 59), (1, 93), (2, 124), (3, 153), (4, 181), (5, 208)])
def test_the_bound_agrees_with_the_table_of_wilks(misses: int, n: int):
    assert miss_probability_upper_95(misses, n) <= 0.05
    assert miss_probability_upper_95(misses, n - 1) > 0.05


@given(st.integers(1, 120), st.data())
def test_at_the_bound_the_exact_binomial_gives_5_percent(n: int, data: st.DataObject):
    misses = data.draw(st.integers(0, n - 1))
    bound = Fraction(miss_probability_upper_95(misses, n))
    assert float(exact_cdf(misses, n, bound)) == pytest.approx(0.05, rel=1e-9)


def test_the_bound_agrees_with_scipy_for_long_runs():
    beta = pytest.importorskip("scipy.stats", reason="the second library is in the lock for development").beta
    for misses, n in ((0, 36_000), (7, 36_000), (350, 36_000), (18_000, 36_000), (35_999, 36_000)):
        assert miss_probability_upper_95(misses, n) == pytest.approx(
            float(beta.ppf(0.95, misses + 1, n - misses)), rel=1e-8
        )


def test_without_samples_nothing_is_excluded():
    assert miss_probability_upper_95(0, 0) == 1.0
    assert miss_probability_upper_95(5, 5) == 1.0
    for misses, n in ((-1, 5), (6, 5), (0, -1)):
        with pytest.raises(ReportError):
            miss_probability_upper_95(misses, n)


@given(st.integers(1, 80), st.integers(-1, 80), st.fractions(0, 1, max_denominator=997))
def test_the_cdf_agrees_with_rational_arithmetic(n: int, k: int, p: Fraction):
    expected = float(exact_cdf(min(k, n), n, p)) if k >= 0 else 0.0
    assert binomial_cdf(k, n, float(p)) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@given(st.integers(1, 300), st.sampled_from([0.5, 0.9, 0.99, 0.999]))
def test_the_interval_of_a_quantile_has_its_confidence_and_is_the_shortest(n: int, quantile: float):
    ranks = quantile_ranks(quantile, n)
    q = Fraction(quantile)
    if ranks.lower is not None:
        assert exact_cdf(ranks.lower - 1, n, q) <= Fraction(25, 1000)
    if (ranks.lower or 0) < n:
        assert exact_cdf(ranks.lower or 0, n, q) > Fraction(25, 1000)
    if ranks.upper is not None:
        assert exact_cdf(ranks.upper - 1, n, q) >= Fraction(975, 1000)
    else:
        assert exact_cdf(n - 1, n, q) < Fraction(975, 1000)


def test_the_interval_covers_the_true_quantile_as_often_as_it_says():
    rng = random.Random(20)
    covered = 0
    for _ in range(1000):
        samples = sorted(rng.random() for _ in range(400))
        ranks = quantile_ranks(0.9, 400)
        assert ranks.lower is not None
        assert ranks.upper is not None
        covered += samples[ranks.lower - 1] <= 0.9 <= samples[ranks.upper - 1]
    assert 930 <= covered <= 990


def test_few_samples_do_not_bound_a_high_quantile_from_above():
    assert quantile_ranks(0.999, 600).upper is None
    assert quantile_ranks(0.999, 6000).upper is not None


def test_the_cdf_far_from_the_mean_is_nothing_or_all_and_takes_no_long_sum():
    """A sum over half a million terms that no float holds takes seconds; a page asks for hundreds of them."""
    n = 500_000_000
    assert binomial_cdf(n // 4, n, 0.5) == 0.0
    assert binomial_cdf(n - n // 4, n, 0.5) == 1.0
