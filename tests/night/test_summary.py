# SPDX-License-Identifier: Apache-2.0
"""What a night says beside the one before: what got slower, and what benchmarks have measured."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.night.machine import stolen_s
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
    (row,) = summarise(STATE, ["bench-x"], [now], [BEFORE, now]).rows
    assert row.is_slower == slower
    failed = replace(now, verdict=Verdict.FAILED)
    assert summarise(STATE, ["bench-x"], [failed], [BEFORE]).slower() == []


def test_both_durations_and_both_nights_figures_are_told() -> None:
    summary = summarise(STATE, ["bench-x"], [NOW], [BEFORE, NOW])
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


def test_a_result_in_a_line() -> None:
    line = result_line("x", replace(NOW, verdict=Verdict.FAILED, reason="exit code 1: y"))
    assert " ".join(line.split()) == "x 3 min 20 s, 50.00 + 20.00 s stolen, failed: exit code 1: y"


def test_what_is_stolen_is_read_for_each_cpu() -> None:
    text = "cpu  1 1 1 1 1 1 1 300 1 1\ncpu0 1 1 1 1 1 1 1 100 1 1\ncpu1 1 1 1 1 1 1 1 200 1 1\nintr 7\n"
    first, second = stolen_s(text)
    assert second == 2 * first > 0
