# SPDX-License-Identifier: Apache-2.0
"""A series that tells nothing is refused, with the reason; what is left out of one is said."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from reports.errors import ReportError
from reports.patterns.series import SEARCHED, VALUES_MIN, Series, read_csv, series_of

TIMES_S = np.linspace(0, 29.9, 300)
VALUES = np.random.default_rng(1).normal(0, 1, 300)


def test_missing_values_are_left_out_and_said() -> None:
    values = VALUES.copy()
    values[[3, 5]] = np.nan
    series = series_of(TIMES_S + 7, values)
    assert (len(series.values), series.times_s[0], series.times_s[3]) == (298, 0.0, pytest.approx(0.4))
    assert series.remarks == ("2 values are no numbers: left out",)


@pytest.mark.parametrize(
    ("times_s", "values", "why"),
    [
        (TIMES_S[:50], VALUES[:50], f"{VALUES_MIN} at least; at this rate that takes 19.9 s"),
        (TIMES_S, np.full(300, 2.0), "all values are equal"),
        (np.full(300, 2.0), VALUES, "all times are equal"),
        (np.concatenate((TIMES_S[:9], [0.1], TIMES_S[10:])), VALUES, "back at value 10: from 0.8 s to 0.1 s"),
        (np.concatenate(([np.nan], TIMES_S[1:])), VALUES, "time of value 1 is no number"),
        (TIMES_S[:-1], VALUES, "299 times for 300 values"),
        (TIMES_S, np.full(300, np.nan), "0 values are too few"),
        (np.repeat(TIMES_S[::2], 2), VALUES, "most values have the time of the one before"),
        (TIMES_S + 1e6 * (TIMES_S > 10), VALUES, "1e+06 s are too long for values each 0.1 s"),
        (TIMES_S, 1e300 * VALUES, "e+300: 1e+100 at most"),
        (TIMES_S * 1e300, VALUES, "times of 2.99e+301: 1e+100 at most"),
        (TIMES_S, 1e-310 * VALUES, "all values are equal"),
    ],
)  # fmt: skip
def test_what_tells_nothing_is_refused(times_s: np.ndarray, values: np.ndarray, why: str) -> None:
    with pytest.raises(ReportError, match=re.escape(why)):
        series_of(times_s, values)


def test_csv_has_a_heading_or_none(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    for heading in ("", "time_s,latency_ms\n"):
        file.write_text(f"{heading}0,1.5\n0.1,\n\n0.2,nan,more\n")
        times_s, values = read_csv(file)
        assert times_s.tolist() == [0, 0.1, 0.2]
        assert np.isnan(values).tolist() == [False, True, True]


@pytest.mark.parametrize("text", ["0,1\n0.1,x\n", "0,1\n0.1\n", "0;1\n", "\xff", "0,1" + 400_000 * ",11"])
def test_a_line_without_numbers_is_named(tmp_path: Path, text: str) -> None:
    file = tmp_path / "a.csv"
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(ReportError, match=re.escape(str(file))):
        read_csv(file)


def test_long_series_become_means() -> None:
    count = 3 * SEARCHED
    thin = Series(np.arange(count, dtype=np.float64), np.arange(0, 2.0 * count, 2.0)).thinned()
    assert len(thin.values) == SEARCHED
    assert (thin.times_s[0], thin.values[0]) == (1.0, 2.0)
