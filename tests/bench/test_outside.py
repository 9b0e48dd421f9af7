# SPDX-License-Identifier: Apache-2.0
"""The benchmark of inside and outside: what is planned, and how a split is held against what was done."""

from __future__ import annotations

from bench.patterns.bench_outside import Done, Judged, figures_of, judge, planned
from reports.rt_baseline.timerlat import Split
from reports.units import NS_PER_MS


def _split(end_ms: float, late_ms: float, *, thread_ms: float = 0.0, outside_ms: float = 0.0) -> Split:
    late, thread, outside = (round(each * NS_PER_MS) for each in (late_ms, thread_ms, outside_ms))
    return Split(0, late, 0, 0, thread, outside, end_ns=round(end_ms * NS_PER_MS))


def _done(side: str, begin_ms: float, end_ms: float) -> Done:
    kind = "inside" if side == "inside" else "outside"
    return Done(kind, round(begin_ms * NS_PER_MS), round(end_ms * NS_PER_MS))


def test_a_plan_has_both_sides_alike_and_comes_from_its_seed() -> None:
    plan = planned(60, 1)
    assert sum(each.side == "inside" for each in plan) == 60 == sum(each.side == "outside" for each in plan)
    assert all(2 <= each.length_ms <= 50 for each in plan)
    assert plan == planned(60, 1) != planned(60, 2)


def test_the_wake_up_that_was_kept_waiting_longest_decides() -> None:
    splits = [
        _split(95, 9, outside_ms=9),
        _split(120, 19.5, thread_ms=19.2, outside_ms=0.3),
        _split(121, 1.5, outside_ms=1.5),
    ]
    found = judge(_done("inside", 100, 120), splits)
    assert (found.says, found.part_ns, found.is_long_enough) == ("inside", 19_200_000, True)


def test_a_pause_that_a_thread_is_charged_with_is_wrong() -> None:
    found = judge(_done("outside", 100, 120), [_split(120, 19.5, thread_ms=19, outside_ms=0.5)])
    assert (found.says, found.is_long_enough) == ("inside", False)
    assert figures_of([found], 1)["charged_pauses"] == 1


def test_what_no_wake_up_shows_is_not_found() -> None:
    found = judge(_done("outside", 100, 120), [_split(99, 5, outside_ms=5)])
    assert found == Judged("outside", 20 * NS_PER_MS, "", 0, 0)
    figures = figures_of([found, judge(_done("inside", 0, 10), [_split(10, 9.5, thread_ms=9.5)])], 4)
    assert (figures["right_percent"], figures["charged_pauses"], figures["done"]) == (25, 0, 2)


def test_a_length_may_be_off_by_a_millisecond_and_a_tenth() -> None:
    right = judge(_done("outside", 0, 20), [_split(20, 17.1, outside_ms=17.1)])
    wrong = judge(_done("outside", 0, 20), [_split(20, 16.9, outside_ms=16.9)])
    assert (right.is_long_enough, wrong.is_long_enough) == (True, False)
