# SPDX-License-Identifier: Apache-2.0
"""Lines between clocks: exact to the nanosecond, both ways, decades after 1970."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hw.errors import MeasurementError
from resources.clock_sync.lines import ClockLine
from resources.tools.experiment import last_result

NOW_TAI_NS = 1_790_000_000_000_000_000
WEEK_NS = 7 * 86_400 * 1_000_000_000
CENTURY_NS = 100 * 365 * 86_400 * 1_000_000_000

LINES = st.builds(
    ClockLine,
    name=st.just("peer"),
    at_reference_tai_ns=st.integers(NOW_TAI_NS - WEEK_NS, NOW_TAI_NS + WEEK_NS),
    offset_ns=st.integers(-CENTURY_NS // 100, CENTURY_NS // 100),
    rate_ppb=st.integers(-1_000_000, 1_000_000),
    bound_ns=st.just(0),
)
AWAY_NS = st.integers(-WEEK_NS, WEEK_NS)


@given(LINES, AWAY_NS)
def test_there_and_back_is_where_one_was_within_a_nanosecond(line: ClockLine, away_ns: int) -> None:
    reference_ns = line.at_reference_tai_ns + away_ns
    assert abs(line.reference_ns(line.local_ns(reference_ns)) - reference_ns) <= 1
    local_ns = line.local_ns(line.at_reference_tai_ns) + away_ns
    assert abs(line.local_ns(line.reference_ns(local_ns)) - local_ns) <= 1


@given(LINES, AWAY_NS)
def test_follows_offset_and_rate_exactly(line: ClockLine, away_ns: int) -> None:
    ahead_ns = line.offset_ns + Fraction(away_ns * line.rate_ppb, 10**9)
    reference_ns = line.at_reference_tai_ns + away_ns
    assert abs(line.local_ns(reference_ns) - reference_ns - ahead_ns) <= Fraction(1, 2)


def test_a_clock_that_is_ahead_and_fast_shows_more() -> None:
    line = ClockLine("fast", NOW_TAI_NS, 5_000, 100_000, 0)
    assert line.local_ns(NOW_TAI_NS) == NOW_TAI_NS + 5_000
    assert line.local_ns(NOW_TAI_NS + 10**9) == NOW_TAI_NS + 10**9 + 105_000


@given(st.integers(0, 2**62))
def test_the_reference_is_its_own_line(time_ns: int) -> None:
    reference = ClockLine("host", 0, 0, 0, 0)
    assert reference.local_ns(time_ns) == time_ns
    assert reference.reference_ns(time_ns) == time_ns


def test_the_last_result_counts_and_a_torn_line_does_not(tmp_path: Path) -> None:
    answers = tmp_path / "recv.ndjson"
    answers.write_text('{"type":"ready"}\n{"type":"result","n":1}\n{"type":"result","n":2}\n{"type":"resu')
    assert last_result(answers)["n"] == 2
    answers.write_text('{"type":"ready"}\n{"type":"progress"}\n{"type":"resu')
    with pytest.raises(MeasurementError, match=r"^recv\.ndjson: no result"):
        last_result(answers)
