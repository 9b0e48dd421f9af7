# SPDX-License-Identifier: Apache-2.0
"""The decision rule: where it must pass, where it must fail, and that it never passes beyond doubt."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reports.record.measurement import Limit, Uncertainty, UncertaintyPart
from reports.record.verdict import Verdict, capable, judge

LIMIT = Limit(1000, None, "test")
U = 100


def u(value: float) -> Uncertainty:
    return Uncertainty.from_parts([UncertaintyPart("p", "bound", value)])


def verdict(value: float | None, limit: Limit = LIMIT, band: float = U, **options: int | str) -> Verdict:
    counts: dict[str, int | str] = {"n": 100, "n_required": 99, **options}
    return judge(value, limit, u(band), **counts)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "outcome"),
    [
        (0, "pass"),
        (900, "pass"),
        (901, "inconclusive"),
        (1000, "inconclusive"),
        (1100, "inconclusive"),
        (1101, "fail"),
    ],
)
def test_the_guard_band_of_an_upper_limit(value: int, outcome: str):
    assert verdict(value).outcome == outcome


@pytest.mark.parametrize(
    ("value", "outcome"),
    [(1101, "pass"), (1100, "pass"), (1099, "inconclusive"), (900, "inconclusive"), (899, "fail")],
)
def test_the_guard_band_of_a_lower_limit_mirrors_it(value: int, outcome: str):
    assert verdict(value, Limit(None, 1000, "test")).outcome == outcome


@pytest.mark.parametrize(
    ("value", "outcome"),
    [
        (-1101, "fail"),
        (-1100, "inconclusive"),
        (-900, "pass"),
        (0, "pass"),
        (900, "pass"),
        (901, "inconclusive"),
        (1101, "fail"),
    ],
)
def test_two_limits(value: int, outcome: str):
    assert verdict(value, Limit(1000, -1000, "test")).outcome == outcome


@pytest.mark.parametrize("value", [None, math.nan])
def test_no_value_is_unset(value: float | None):
    assert verdict(value).outcome == "unset"


def test_no_sample_is_unset_whatever_the_value():
    assert verdict(5, n=0).outcome == "unset"


def test_too_few_samples_never_pass_but_one_over_the_limit_proves_a_fail():
    assert verdict(5, n=98).outcome == "inconclusive"
    assert "98 of 99" in verdict(5, n=98).reason
    assert verdict(2000, n=98).outcome == "fail"
    assert verdict(2000, n=98, statistic="mean").outcome == "inconclusive"


def test_loss_fails_whatever_the_value():
    assert verdict(5, lost=1).outcome == "fail"
    assert verdict(None, lost=1, n=0).outcome == "fail"
    assert verdict(5, lost=2, allowed_lost=2).outcome == "pass"


@pytest.mark.parametrize("band", [1000, 1001, 10**9])
def test_u_as_large_as_the_limit_is_a_bench_that_is_not_capable(band: int):
    for value in (0, 999, 1000 + band):
        judged = verdict(value, band=band)
        assert judged.outcome == "inconclusive"
        assert judged.reason.startswith("bench not capable")


@pytest.mark.parametrize("band", [1000, 1001, 10**9])
def test_a_violation_that_is_proven_fails_on_any_bench(band: int):
    assert verdict(1001 + band, band=band).outcome == "fail"


def test_capability_of_each_kind_of_limit():
    assert capable(Limit(10, None, ""), u(9))
    assert not capable(Limit(10, None, ""), u(10))
    assert capable(Limit(10, -10, ""), u(9))
    assert not capable(Limit(10, -10, ""), u(10))
    assert capable(Limit(None, 940, ""), u(1000))
    assert not capable(Limit(None, -10, ""), u(10))


def test_the_message_begins_with_the_outcome():
    assert verdict(2000).message.startswith("FAIL: ")
    assert verdict(1000).message.startswith("INCONCLUSIVE: ")
    assert verdict(None).message.startswith("UNSET: ")
    assert verdict(1).message == "PASS"


def test_reasons_name_value_limit_and_u():
    limit = Limit(10_000_000, None, "t")
    judged = judge(15_000_000, limit, u(83_000), n=100, n_required=99, unit="ns")
    assert judged.reason == "15 ms is over 10 ms by more than U = 83 µs"


numbers = st.integers(-(10**12), 10**12)


@given(
    numbers,
    numbers,
    st.integers(0, 10**9),
    st.integers(0, 200),
    st.integers(0, 200),
    st.integers(0, 3),
    st.integers(0, 3),
)
def test_outcomes_are_what_the_rule_says(
    value: int, upper: int, band: int, n: int, n_required: int, lost: int, allowed: int
):
    judged = judge(
        value, Limit(upper, None, ""), u(band), n=n, n_required=n_required, lost=lost, allowed_lost=allowed
    )
    if judged.outcome == "pass":
        assert value + band <= upper
        assert n >= n_required
        assert n > 0
        assert lost <= allowed
        assert band < upper or band == upper == 0
    if judged.outcome == "fail":
        assert lost > allowed or value > upper + band
    if judged.outcome not in ("pass", "unset"):
        assert judged.reason


@given(numbers, numbers, st.integers(0, 10**9))
def test_a_lower_limit_is_the_mirror_of_an_upper_one(value: int, upper: int, band: int):
    above = judge(value, Limit(upper, None, ""), u(band), n=100, n_required=99)
    below = judge(-value, Limit(None, -upper, ""), u(band), n=100, n_required=99)
    if upper > 0:
        assert (above.outcome, above.margin) == (below.outcome, below.margin)


@given(numbers, st.integers(1, 10**12), st.integers(0, 10**9), st.integers(1, 10**9))
def test_more_uncertainty_never_decides_what_less_could_not(value: int, upper: int, band: int, more: int):
    with_less = judge(value, Limit(upper, None, ""), u(band), n=100, n_required=99).outcome
    with_more = judge(value, Limit(upper, None, ""), u(band + more), n=100, n_required=99).outcome
    assert with_more in ("inconclusive", with_less)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (10_000_400, "10.0004 ms is over 10 ms by more than U = 100 ns"),
        (9_999_950, "9.99995 ms lies within U = 100 ns of the limit 10 ms"),
        (10_000_000, "10 ms lies within U = 100 ns of the limit 10 ms"),
    ],
)
def test_the_reason_has_as_many_digits_as_tell_value_from_limit(value: int, said: str) -> None:
    band = Uncertainty.from_parts([UncertaintyPart("clock", "bound", 100)])
    assert judge(value, Limit(10_000_000, None, "x"), band, n=9, n_required=9, unit="ns").reason == said
