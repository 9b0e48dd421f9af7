# SPDX-License-Identifier: Apache-2.0
"""How an acceptance stands by its journal: no second chance, and what cannot be is refused."""

from __future__ import annotations

from typing import Any

import pytest

from resources.accept.state import Standing, exit_code, next_part, part_states

Json = dict[str, Any]


def begin(part: int = 1) -> Json:
    return {"event": "begin", "part": part, "attempt": 1}


def end(outcome: str, part: int = 1) -> Json:
    return {"event": "end", "part": part, "attempt": 1, "outcome": outcome, "run": f"runs/{part}"}


def broken(part: int = 1, *, failing: bool = False) -> Json:
    return {"event": "broken", "part": part, "attempt": 1, "cause": "SIGINT", "failing": failing, "run": ""}


WAIVE = {"event": "waive", "part": 1, "reason": "a fuse blew", "approver": "A. Smith"}


@pytest.mark.parametrize(
    ("events", "standing", "settled", "code"),
    [
        ([], "waiting", False, 4),
        ([begin()], "open", False, 4),
        ([begin(), end("pass")], "done", True, 0),
        ([begin(), end("fail")], "done", True, 1),
        ([begin(), end("inconclusive")], "done", True, 4),
        ([begin(), broken()], "broken off", False, 4),
        ([begin(), broken(), begin(), end("pass")], "done", True, 0),
        ([begin(), broken(failing=True)], "failed, broken off", True, 1),
        ([begin(), broken(failing=True), WAIVE], "broken off", False, 4),
        ([begin(), broken(), begin(), broken()], "broken off", False, 4),
        ([begin(), broken()] * 3, "no verdict, broken off too often", True, 4),
        (
            [begin(), broken()] * 2 + [begin(), broken(failing=True), WAIVE],
            "no verdict, broken off too often",
            True,
            4,
        ),
    ],
)
def test_a_part_stands_as_its_events_say(events: list[Json], standing: str, settled: bool, code: int) -> None:
    [state] = part_states(1, events)
    assert (str(state.standing), state.is_settled, state.exit_code) == (standing, settled, code)
    assert (next_part([state]) is None) == settled


@pytest.mark.parametrize(
    ("events", "said"),
    [
        ([end("pass")], "line 1: part 1: end, and is waiting"),
        ([begin(), begin()], "line 2: part 1: begins again, and is open"),
        ([begin(), end("pass"), begin()], "line 3: part 1: begins again, and is pass"),
        ([begin(), broken(failing=True), begin()], "begins again, and is failed, broken off"),
        ([begin(), broken(), WAIVE], "a waiver of a part that is broken off"),
        ([begin(2)], "line 1: part 2; there are 1..1"),
        ([begin(), {"event": "lunch", "part": 1}], "unknown event 'lunch'"),
    ],
)
def test_what_cannot_be_is_refused(events: list[Json], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        part_states(1, events)


def test_the_whole_is_as_good_as_its_worst_part() -> None:
    def code(*events: Json) -> int:
        return exit_code(part_states(2, events))

    assert code(begin(), end("pass"), begin(2), end("pass", 2)) == 0
    assert code(begin(), end("pass")) == 4
    assert code(begin(), end("pass"), begin(2), end("unset", 2)) == 4
    assert code(begin(), end("fail")) == 1
    assert code(begin(), broken(failing=True), begin(2), end("pass", 2)) == 1
    assert {each.standing for each in part_states(2, [])} == {Standing.WAITING}
