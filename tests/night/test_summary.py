# SPDX-License-Identifier: Apache-2.0
"""What a night says beside the one before: what got slower, and what benchmarks have measured."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.night.page import render
from tests.night.result import Result, Verdict
from tests.night.shift import result_line
from tests.night.state import State
from tests.night.summary import earlier_of, summarise

STATE = State("c" * 40, "")
NOW = Result(
    part="bench-x",
    commit=STATE.commit,
    diff="",
    commands=("x",),
    machine={"name": "m"},
    began_utc="2026-01-03T00:00:00+00:00",
    ended_utc="2026-01-03T00:10:00+00:00",
    exit_code=0,
    verdict=Verdict.PASSED,
    reason="",
    seconds=200.0,
    stolen_s=(50.0, 20.0),
    load_max=2.5,
    log="bench-x.log",
    figures={"ratio": 0.125, "none": None},
    bars={"ratio": 0.5},
)
BEFORE = replace(
    NOW, commit="b" * 40, began_utc="2026-01-02T00:00:00+00:00", seconds=95.0, stolen_s=(0.0, 5.0),
    figures={"ratio": 0.25},
)  # fmt: skip
TABLE = {"bench-x": ("x",), "bench-y": ("y",), "lint": ("l",)}


def test_what_was_stolen_is_taken_off_by_the_cpu_that_lost_most() -> None:
    assert (NOW.unstolen_s, BEFORE.unstolen_s) == (150.0, 90.0)
    assert replace(NOW, stolen_s=()).unstolen_s == 200.0


def test_the_last_earlier_night_of_this_machine_that_passed() -> None:
    older = replace(BEFORE, began_utc="2026-01-01T00:00:00+00:00")
    others = [
        older,
        BEFORE,
        NOW,
        replace(BEFORE, began_utc="2026-01-02T01:00:00+00:00", verdict=Verdict.FAILED),
        replace(BEFORE, began_utc="2026-01-02T01:00:00+00:00", machine={"name": "n"}),
        replace(BEFORE, began_utc="2026-01-02T01:00:00+00:00", commands=("y",)),
        replace(BEFORE, began_utc="2026-01-02T01:00:00+00:00", part="bench-y"),
        replace(BEFORE, began_utc="2026-01-04T00:00:00+00:00"),
    ]
    assert earlier_of(NOW, others) == BEFORE
    assert earlier_of(older, others) is None


@pytest.mark.parametrize(
    ("seconds", "stolen", "slower"),
    [
        (185.0, (50.0, 0.0), False),
        (185.1, (50.0, 0.0), True),
        (185.1, (50.0, 50.2), False),
        (90.0, (), False),
    ],
)
def test_slower_is_more_than_one_and_a_half_times_as_long(
    seconds: float, stolen: tuple[float, ...], slower: bool
) -> None:
    now = replace(NOW, seconds=seconds, stolen_s=stolen)
    (row,) = summarise(STATE, TABLE, ["bench-x"], [BEFORE, now]).rows
    assert row.is_slower == slower
    failed = replace(now, verdict=Verdict.FAILED)
    assert summarise(STATE, TABLE, ["bench-x"], [BEFORE, failed]).slower() == []


def test_both_durations_and_both_nights_figures_are_told() -> None:
    summary = summarise(STATE, TABLE, ["bench-x"], [BEFORE, NOW])
    (part,) = summary.to_json()["parts"]
    assert (part["slower"], part["seconds"], part["unstolen_s"], part["ratio"]) == (True, 200.0, 150.0, 1.667)
    assert (part["earlier"]["seconds"], part["earlier"]["unstolen_s"]) == (95.0, 90.0)
    assert (part["figures"]["ratio"], part["earlier"]["figures"]["ratio"]) == (0.125, 0.25)
    (row,) = summary.slower()
    assert row.slower_text() == (
        "bench-x: 150.0 s, before 90.0 s without what was stolen; 200.0 s and 95.0 s with it"
    )
    page = render(summary)
    for text in ("3 min 20 s", "50.00 + 20.00 s", "1 min 30 s", "1.667, slower", "0.125", "0.25", "0.5"):
        assert text in page


def test_the_last_result_of_what_this_state_has_none_of_stands_beside_and_does_not_count() -> None:
    """Whatever it was, by the commands of today; what has none at all is named."""
    y = replace(BEFORE, part="bench-y", commands=("y",), log="bench-y.log")
    failed = replace(
        y,
        verdict=Verdict.FAILED,
        reason="exit code 1: y",
        began_utc="2026-01-02T02:00:00+00:00",
        diff="d" * 12,
    )
    others = [BEFORE, failed, y, replace(y, commands=("z",), began_utc="2026-01-02T03:00:00+00:00")]
    summary = summarise(STATE, TABLE, ["bench-x"], [*others, NOW])
    assert (summary.exit_code, summary.never) == (0, ("lint",))
    assert [row.result for row in summary.rows] == [NOW]
    assert [(row.result, row.earlier) for row in summary.elsewhere] == [(failed, y)]
    said = summary.to_json()
    assert [each["commit"] for each in said["elsewhere"]] == ["b" * 40]
    page = render(summary)
    assert f'<a href="../{"b" * 12}-{"d" * 12}/bench-y.log">' in page
    assert "No result of any state: lint." in page
    assert "bench-y: exit code 1: y" in page
    assert '<p class="word partial">Nothing failed in 1 of 3 parts</p>' in page


def test_only_a_whole_night_is_said_to_have_passed_as_one() -> None:
    whole = [replace(NOW, part=name, commands=commands) for name, commands in TABLE.items()]
    assert '<p class="word pass">Nothing failed</p>' in render(summarise(STATE, TABLE, [*TABLE], whole))


def test_of_a_result_that_was_replaced_the_later_counts() -> None:
    later = replace(NOW, began_utc="2026-01-03T01:00:00+00:00", seconds=300.0)
    for results in ([NOW, later], [later, NOW]):
        assert [row.result for row in summarise(STATE, TABLE, ["bench-x"], results).rows] == [later]


def test_a_result_in_a_line() -> None:
    line = result_line("x", replace(NOW, verdict=Verdict.FAILED, reason="exit code 1: y"))
    assert " ".join(line.split()) == "x 3 min 20 s, 50.00 + 20.00 s stolen, failed: exit code 1: y"
    assert result_line("x", replace(NOW, met=False)).endswith(" stolen, passed, bars not met")
