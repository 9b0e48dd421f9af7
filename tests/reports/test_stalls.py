# SPDX-License-Identifier: Apache-2.0
"""A stall lasts until its backlog is worked off; work without a stall excuses nothing."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reports.answers import WitnessResult
from reports.stalls import GAP_NS, until_caught_up

MS = 1_000_000


def witness(*windows_ms: tuple[int, int]) -> WitnessResult:
    return WitnessResult((), 0.002, tuple((start * MS, end * MS, 0) for start, end in windows_ms), 0)


def extended_ms(stalls: WitnessResult, backlog: WitnessResult) -> list[tuple[float, float]]:
    return [(start / MS, end / MS) for start, end, _ in until_caught_up(stalls, backlog).windows]


def test_a_stall_is_extended_to_the_end_of_its_backlog() -> None:
    assert extended_ms(witness((100, 105)), witness((104, 120))) == [(100, 120)]


def test_the_parts_of_one_backlog_belong_together() -> None:
    assert extended_ms(witness((100, 105)), witness((106, 110), (111, 119), (125, 130))) == [(100, 119)]


def test_a_backlog_without_a_stall_excuses_nothing() -> None:
    assert extended_ms(witness(), witness((10, 90))) == []
    assert extended_ms(witness((100, 105)), witness((10, 90), (110, 120))) == [(100, 105)]


def test_stalled_time_is_that_of_the_stalls() -> None:
    assert until_caught_up(witness((100, 105)), witness((100, 200))).stalled_fraction == 0.002


@given(
    st.lists(st.tuples(st.integers(0, 500), st.integers(0, 50)), max_size=6),
    st.lists(st.tuples(st.integers(0, 500), st.integers(0, 50)), max_size=12),
)
def test_windows_only_grow_and_only_over_backlog(
    stalls: list[tuple[int, int]], work: list[tuple[int, int]]
) -> None:
    before = witness(*((start, start + length) for start, length in stalls))
    backlog = witness(*((start, start + length) for start, length in work))
    after = until_caught_up(before, backlog)
    for (start, end, _), (new_start, new_end, _) in zip(before.windows, after.windows, strict=True):
        assert new_start == start
        assert new_end >= end
        if new_end > end:
            point = end + GAP_NS
            while point < new_end:  # every instant of the extension is within a gap's reach of work
                assert any(since - GAP_NS <= point <= until + GAP_NS for since, until, _ in backlog.windows)
                point += MS
