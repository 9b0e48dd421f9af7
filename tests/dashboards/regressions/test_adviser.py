# SPDX-License-Identifier: Apache-2.0
"""Events of a series: what they say, which way is worse, and baselines by bench key."""

from __future__ import annotations

import dataclasses
import math
import re

import numpy as np
import pytest

from dashboards.regressions.adviser import advise, baselines
from dashboards.regressions.event import Event, Level, RunValue
from reports.quantities import Worse

NS_PER_DAY = 86_400 * 10**9
MS = 1e6


def runs_of(values: list[float], keys: str = "", first: int = 0) -> list[RunValue]:
    """Return a run a day; the bench key of each is one letter of `keys`, `a` where there are none."""
    return [
        RunValue(f"r{day:03}", day * NS_PER_DAY, value, keys[day - first] if keys else "a", f"{day:07x}")
        for day, value in enumerate(values, start=first)
    ]


def around(level: float, runs: int, seed: int = 0) -> list[float]:
    """Return values with 1 % of noise."""
    return list(level * (1 + 0.01 * np.random.default_rng([32, seed]).standard_normal(runs)))


def one(events: tuple[Event, ...]) -> Event:
    (event,) = events
    return event


def test_an_event_says_when_from_what_to_what() -> None:
    values = around(5 * MS, 40) + around(6 * MS, 8, seed=1)
    event = one(advise("stream 31, max", "ns", runs_of(values)))
    assert event.kind == "regression"
    assert (event.last_before.run_id, event.first_after.run_id) == ("r039", "r040")
    assert event.range_before.time_ns <= event.last_before.time_ns
    assert event.range_after.time_ns >= event.first_after.time_ns
    assert event.before == Level.of(np.array(values[:40]))
    assert event.after == Level.of(np.array(values[40 : int(event.seen.run_id[1:]) + 1]))
    assert event.ratio == pytest.approx(1.2, abs=0.02)


def test_the_words_of_an_event() -> None:
    values = [5 * MS] * 40 + [6 * MS] * 4
    event = one(advise("stream 31, max", "ns", runs_of(values)))
    assert event.title == "regression: 5 ms → 6 ms (+20 %)"
    assert event.text == (
        "stream 31, max: the median of 4 runs from r040 is 6 ms (half of them 6 ms .. 6 ms); of the 40 "
        "runs to r039 it was 5 ms (half of them 5 ms .. 5 ms). The change lies between r039 and r040 (95 %). "
        f"Seen with r043, z = {event.z:+.2f}."
    )
    told = event.with_commits(("a" * 40, "b" * 40), "only the newest 2 of 9")
    assert told.text.endswith(f" Commits between: {'a' * 12} {'b' * 12}. Commits: only the newest 2 of 9.")
    assert dataclasses.replace(told, commits=(), commits_note="") == event


def test_figures_carry_the_unit_in_their_names() -> None:
    event = one(advise("x", "ns", runs_of([5 * MS] * 40 + [6 * MS] * 4)))
    figures = event.figures
    assert figures["before_ns"] == 5 * MS
    assert figures["after_ns"] == figures["after_upper_quartile_ns"] == 6 * MS
    assert (figures["before_runs"], figures["after_runs"], figures["ratio"]) == (40, 4, 1.2)
    assert all(re.fullmatch(r"[A-Za-z]\w*", name) for name in figures)
    per_second = one(advise("x", "KB/s", runs_of([5.0] * 40 + [6.0] * 4)))
    assert per_second.figures["before_KB_s"] == 5
    without = one(advise("x", "", runs_of([5.0] * 40 + [6.0] * 4)))
    assert without.figures["after"] == 6


@pytest.mark.parametrize(
    ("before", "after", "worse", "kind"),
    [
        (5, 6, "higher", "regression"),
        (6, 5, "higher", "improvement"),
        (5, 6, "lower", "improvement"),
        (6, 5, "lower", "regression"),
        (-5, -6, "farther from zero", "regression"),
        (-6, 5, "farther from zero", "improvement"),
        (5, 6, "farther from zero", "regression"),
    ],
)
def test_which_way_is_worse(before: float, after: float, worse: Worse, kind: str) -> None:
    event = one(advise("x", "ns", runs_of(around(before, 40) + around(after, 8)), worse=worse))
    assert event.kind == kind


def test_a_level_at_or_below_zero_has_no_ratio() -> None:
    event = one(advise("x", "ns", runs_of([-5.0] * 40 + [6.0] * 4)))
    assert event.ratio is None
    assert "ratio" not in event.figures
    assert event.title == "regression: \u22125 ns → 6 ns"


def test_another_bench_starts_a_baseline_instead_of_an_alarm() -> None:
    values = around(5, 40) + around(9, 40, seed=1)
    assert advise("x", "ns", runs_of(values))
    assert advise("x", "ns", runs_of(values, keys="a" * 40 + "b" * 40)) == ()


def test_a_change_within_the_new_baseline_is_found() -> None:
    values = around(5, 40) + around(9, 20, seed=1) + around(12, 8, seed=2)
    event = one(advise("x", "ns", runs_of(values, keys="a" * 40 + "b" * 28)))
    assert (event.last_before.run_id, event.first_after.run_id) == ("r059", "r060")
    assert event.before.runs == 20


def test_a_bench_that_comes_back_continues_its_baseline() -> None:
    """Two kernels by turns: neither makes the other's baseline forgotten, and a change is found in both."""
    levels = {"a": 5.0, "b": 9.0}
    keys = "ab" * 30
    noise = around(1, 60)
    steady = [levels[key] * share for key, share in zip(keys, noise, strict=True)]
    assert advise("x", "ns", runs_of(steady, keys)) == ()
    slower = [value * (1.3 if day >= 40 else 1) for day, value in enumerate(steady)]
    events = sorted(advise("x", "ns", runs_of(slower, keys)), key=lambda event: event.first_after.run_id)
    assert [(e.last_before.run_id, e.first_after.run_id) for e in events] == [
        ("r038", "r040"),
        ("r039", "r041"),
    ]


def test_runs_may_come_in_any_order() -> None:
    runs = runs_of(around(5, 40) + around(6, 8, seed=1))
    assert advise("x", "ns", reversed(runs)) == advise("x", "ns", runs)
    assert [run.run_id for run in baselines(reversed(runs))[0]] == [run.run_id for run in runs]


def test_events_do_not_change_with_later_runs() -> None:
    runs = runs_of(around(5, 30) + around(6, 30, seed=1) + around(4, 30, seed=2))
    whole = advise("x", "ns", runs)
    assert len(whole) == 2
    for count in range(len(runs)):
        seen = {run.run_id for run in runs[:count]}
        assert advise("x", "ns", runs[:count]) == tuple(e for e in whole if e.seen.run_id in seen)


def test_refuses_what_it_cannot_compare() -> None:
    with pytest.raises(ValueError, match=r"run r001: value nan"):
        advise("x", "ns", runs_of([1.0, math.nan]))
    with pytest.raises(ValueError, match=r"run r001 is there twice"):
        advise("x", "ns", [*runs_of([1.0, 2.0]), *runs_of([3.0], first=1)])
    assert advise("x", "ns", []) == ()
