# SPDX-License-Identifier: Apache-2.0
"""Times in suites are exact to the nanosecond, and what is no time is refused."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.keywords.converters import Nanoseconds

NS_PER = {"ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": 10**9}


@given(
    st.integers(-(10**12), 10**12),
    st.integers(0, 9),
    st.sampled_from(sorted(NS_PER)),
    st.sampled_from(["", " ", "  "]),
)
def test_is_exact_or_refused(digits: int, places: int, unit: str, space: str) -> None:
    number = Decimal(digits).scaleb(-places)
    exact_ns = number * NS_PER[unit]
    text = f"{number:f}{space}{unit}"
    if exact_ns == exact_ns.to_integral_value():
        assert Nanoseconds.convert(text).value_ns == int(exact_ns)
    else:
        with pytest.raises(ValueError, match="not a whole number of nanoseconds"):
            Nanoseconds.convert(text)


@pytest.mark.parametrize(
    ("text", "value_ns"),
    [("10 ms", 10**7), ("250 us", 250_000), ("1.5s", 15 * 10**8), ("-0.5 ms", -500_000), (" 7 ns ", 7)],
)
def test_reads_what_suites_write(text: str, value_ns: int) -> None:
    assert Nanoseconds.convert(text).value_ns == value_ns


@pytest.mark.parametrize(
    "text", ["", "10", "ms", "10 min", "1e3 ns", "1,5 ms", "10 ms 3", "0x10 ns", ".5 s", "1. s", "٣ ms"]
)
def test_refuses_what_is_no_time(text: str) -> None:
    with pytest.raises(ValueError, match="must be a number and a unit"):
        Nanoseconds.convert(text)
