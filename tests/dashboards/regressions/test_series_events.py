# SPDX-License-Identifier: Apache-2.0
"""Events of a series: what they say, which way is worse, and what of them is stored."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest

from dashboards.points import LATENCY
from dashboards.regressions.changes import find_changes
from dashboards.regressions.event import Event, Level, RunValue
from dashboards.regressions.series_events import event_of, series_title, stored_event
from reports.capability import Worse

NS_PER_DAY = 86_400 * 10**9
MS = 1e6


def one(name: str, unit: str, values: list[float], worse: Worse = "higher") -> Event:
    """Return the event of a series with a run a day."""
    (change,) = find_changes(values)
    runs = [RunValue(f"r{day:03}", day * NS_PER_DAY, value) for day, value in enumerate(values)]
    return event_of(name, unit, runs, np.array(values), change, worse)


def around(level: float, runs: int, seed: int = 0) -> list[float]:
    """Return values with 1 % of noise."""
    return list(level * (1 + 0.01 * np.random.default_rng([32, seed]).standard_normal(runs)))


def test_an_event_says_when_from_what_to_what() -> None:
    values = around(5 * MS, 40) + around(6 * MS, 8, seed=1)
    event = one("stream 31, max", "ns", values)
    assert event.kind == "regression"
    assert (event.last_before.run_id, event.first_after.run_id) == ("r039", "r040")
    assert event.range_before.time_ns <= event.last_before.time_ns
    assert event.range_after.time_ns >= event.first_after.time_ns
    assert event.before == Level.of(np.array(values[:40]))
    assert event.after == Level.of(np.array(values[40 : int(event.seen.run_id[1:]) + 1]))
    assert event.ratio == pytest.approx(1.2, abs=0.02)


def test_the_words_of_an_event() -> None:
    values = [5 * MS] * 40 + [6 * MS] * 4
    event = one("stream 31, max", "ns", values)
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
    event = one("x", "ns", [5 * MS] * 40 + [6 * MS] * 4)
    figures = event.figures
    assert figures["before_ns"] == 5 * MS
    assert figures["after_ns"] == figures["after_upper_quartile_ns"] == 6 * MS
    assert (figures["before_runs"], figures["after_runs"], figures["ratio"]) == (40, 4, 1.2)
    assert all(re.fullmatch(r"[A-Za-z]\w*", name) for name in figures)
    per_second = one("x", "KB/s", [5.0] * 40 + [6.0] * 4)
    assert per_second.figures["before_KB_s"] == 5
    without = one("x", "", [5.0] * 40 + [6.0] * 4)
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
    event = one("x", "ns", around(before, 40) + around(after, 8), worse)
    assert event.kind == kind


def test_a_level_at_or_below_zero_has_no_ratio() -> None:
    event = one("x", "ns", [-5.0] * 40 + [6.0] * 4)
    assert event.ratio is None
    assert "ratio" not in event.figures
    assert event.title == "regression: \u22125 ns → 6 ns"


def test_an_event_with_all_its_commits_is_whole_in_the_store() -> None:
    event = one("x", "ns", [5 * MS] * 40 + [6 * MS] * 4)
    commits = tuple(f"{number:040x}" for number in range(24))
    point = stored_event(event.with_commits(commits, "only the newest 24 of 99"), LATENCY, {"stream": "1"})
    assert (point.tags["kind"], point.tags["measurement"], point.tags["stream"]) == (
        "regression",
        LATENCY,
        "1",
    )
    assert (point.time_ns, point.fields["run_id"]) == (40 * NS_PER_DAY, "r040")
    assert str(point.fields["commits"]).split() == list(commits)
    assert str(point.fields["text"]).endswith("only the newest 24 of 99.")
    assert point.line().startswith("hil_event,")


def test_a_series_is_named_by_what_it_is_about() -> None:
    tags = {
        "bench": "b",
        "target": "linux-rt",
        "stack": "kernel",
        "stream": "31",
        "quantity": "q",
        "branch": "main",
    }
    assert series_title(tags) == "linux-rt kernel stream 31 q"
