# SPDX-License-Identifier: Apache-2.0
"""Quantiles from buckets against the samples themselves, and summaries that contradict themselves."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reports.errors import RecordError
from reports.record.histogram import Summary, merge
from reports.record.sampling import quantile_ranks
from tests.reports.sample_run import summary

samples = st.lists(st.integers(-(10**7), 10**10), min_size=1, max_size=300)


@given(samples, st.sampled_from([0.5, 0.9, 0.99, 0.999]))
def test_a_quantile_lies_within_a_bucket_of_the_sample_and_its_interval_encloses_the_ranks(
    values: list[int], quantile: float
):
    found = Summary.from_json(summary(values)).quantile(quantile)
    assert found is not None
    ordered = sorted(values)
    ranks = quantile_ranks(quantile, len(values))
    sample = ordered[ranks.rank - 1]
    assert abs(found.value_ns - sample) <= max(1, abs(sample) / 1000)
    if ranks.lower is None:
        assert found.lower_ns is None
    else:
        assert found.lower_ns is not None
        assert found.lower_ns <= ordered[ranks.lower - 1]
    if ranks.upper is None:
        assert found.upper_ns is None
    else:
        assert found.upper_ns is not None
        assert found.upper_ns >= min(ordered[ranks.upper - 1], max(values))


@given(samples, samples)
def test_merging_is_the_summary_of_all_samples(one: list[int], two: list[int]):
    merged = merge([Summary.from_json(summary(one)), Summary.from_json(summary(two))])
    together = Summary.from_json(summary(one + two))
    assert (merged.n, merged.min_ns, merged.max_ns) == (together.n, together.min_ns, together.max_ns)
    assert merged.buckets == together.buckets
    assert merged.mean_ns == pytest.approx(together.mean_ns, rel=1e-9, abs=1e-3)


@given(samples)
def test_the_exceedance_falls_from_1_to_0(values: list[int]):
    shares = [share for _, share in Summary.from_json(summary(values)).exceedance()]
    assert shares == sorted(shares, reverse=True)
    assert shares[-1] == 0


def test_no_samples_give_no_quantile():
    assert Summary.from_json(summary([])).quantile(0.5) is None
    assert merge([]).max_ns is None


@pytest.mark.parametrize(
    "change",
    [{"n": 4}, {"overflow": 1}, {"max_ns": None}, {"max_ns": 0}, {"buckets": [[1, 2]]}, {"buckets": None}],
)
def test_a_summary_that_contradicts_itself_is_refused(change: dict[str, Any]):
    with pytest.raises(RecordError):
        Summary.from_json({**summary([1000, 2000, 3000]), **change})
