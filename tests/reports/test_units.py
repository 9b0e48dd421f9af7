# SPDX-License-Identifier: Apache-2.0
"""A value in the unit that suits it, with as many digits as are known."""

from __future__ import annotations

import pytest

from reports.units import digits_to_tell, format_measured, format_value


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (999, "ns", "999 ns"),
        (-1000, "ns", "\u22121 µs"),
        (1_234_567, "ns", "1.235 ms"),
        (10_000_000, "ns", "10 ms"),
        (61e9, "ns", "61 s"),
        (999, "bytes/s", "999 bytes/s"),
        (100_000, "bytes/s", "100 KB/s"),
        (-2_000_000, "bytes/s", "\u22122 MB/s"),
        (124_437_217, "bytes/s", "124.4 MB/s"),
        (1.25e9, "bytes/s", "1.25 GB/s"),
        (0, "bytes/s", "0 bytes/s"),
        (96_032.1, "%", "96032 %"),
        (None, "ns", "\u2013"),
        (float("nan"), "ns", "\u2013"),
    ],
)
def test_unit_suits_the_value(value: float | None, unit: str, shown: str) -> None:
    assert format_value(value, unit) == shown


def test_measured_value_keeps_the_zeros_that_are_known() -> None:
    assert format_measured(10_000_000.0, "ns") == "10.00 ms"
    assert format_measured(2_000_000, "bytes/s") == "2.000 MB/s"
    assert format_measured(50, "ns") == "50 ns"


@pytest.mark.parametrize(
    ("value", "edge", "digits"),
    [
        (10_000_400, 10_000_000, 6),
        (9_999_950, 10_000_000, 6),
        (9_000_000, 10_000_000, 4),
        (10_000_000, 10_000_000, 4),
        (0.1 + 0.2, 0.3, 17),
        (None, 10_000_000, 4),
        (5, None, 4),
    ],
)
def test_a_value_does_not_look_like_a_limit_that_it_is_not(
    value: float | None, edge: float | None, digits: int
) -> None:
    assert digits_to_tell(value, [edge], "ns") == digits
    if value not in (None, edge) and edge is not None:
        assert format_value(value, "ns", digits) != format_value(edge, "ns", digits)
