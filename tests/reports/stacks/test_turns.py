# SPDX-License-Identifier: Apache-2.0
"""The order of turns, and turns that are refused."""

from __future__ import annotations

import dataclasses
from collections import Counter

import numpy as np
import pytest

from reports.errors import ReportError
from reports.stacks.turn_values import MEDIAN, OVER, P99, value_of
from reports.stacks.turns import Turn, TypeMessages, check_turns, turn_order

STACKS = ("kernel", "user", "rtdip")


def messages(latency_ns: list[int], taken_ns: list[int] | None = None, lost: int = 0) -> TypeMessages:
    taken = taken_ns or [0] * len(latency_ns)
    return TypeMessages(np.array(latency_ns, np.int64), np.array(taken, np.int64), lost)


def turns(rounds: int = 2) -> list[Turn]:
    return [
        Turn(order, number, condition, stack, {"type 0": messages([1, 2])})
        for order, (number, condition, stack) in enumerate(
            turn_order(STACKS, ("idle", "lossy"), rounds, seed=3)
        )
    ]


def test_each_stack_has_a_turn_a_round_and_the_next_round_is_the_reverse() -> None:
    order = list(turn_order(STACKS, ("idle", "lossy"), 6, seed=3))
    assert set(Counter(order).values()) == {1}
    assert len(order) == 6 * 2 * 3
    rounds = [[each[1:] for each in order if each[0] == number] for number in range(6)]
    for even, odd in zip(rounds[::2], rounds[1::2], strict=True):
        assert even == odd[::-1]
    assert order == list(turn_order(STACKS, ("idle", "lossy"), 6, seed=3))
    assert order != list(turn_order(STACKS, ("idle", "lossy"), 6, seed=4))


def test_a_steady_drift_gives_no_stack_an_advantage() -> None:
    order = [stack for _round, _condition, stack in turn_order(STACKS, ("idle",), 8, seed=1)]
    means = [np.mean([place for place, each in enumerate(order) if each == stack]) for stack in STACKS]
    assert len(set(means)) == 1


def test_turns_in_order_are_taken() -> None:
    check_turns(STACKS, turns())


@pytest.mark.parametrize(
    ("stacks", "said"),
    [
        (("kernel", "kernel"), "stacks: 'kernel' stands twice; each name may stand once"),
        (("kernel",), "stacks: kernel; a comparison needs at least 2"),
        ((), "stacks: none; a comparison needs at least 2"),
    ],
)
def test_stacks_that_cannot_be_compared_are_refused(stacks: tuple[str, ...], said: str) -> None:
    with pytest.raises(ReportError) as caught:
        check_turns(stacks, [])
    assert str(caught.value) == said
    with pytest.raises(ReportError):
        list(turn_order(stacks, ("idle",), 2, seed=1))


@pytest.mark.parametrize(
    ("place", "change", "said"),
    [
        (0, {"stack": "bbr"}, "turn 0: stack 'bbr' is none of those compared: kernel, user, rtdip"),
        (1, {"order": 0}, "turn 0: its order stands twice"),
        (1, {"order": 99}, "its turns do not follow each other"),
    ],
)
def test_a_turn_out_of_its_round_is_refused(place: int, change: dict[str, object], said: str) -> None:
    made = turns()
    made[place] = dataclasses.replace(made[place], **change)
    with pytest.raises(ReportError, match=said):
        check_turns(STACKS, made)


def test_two_turns_of_a_stack_in_a_round_are_refused() -> None:
    made = turns()
    made[1] = dataclasses.replace(made[1], stack=made[0].stack)
    with pytest.raises(ReportError, match="a stack has two turns; one is allowed"):
        check_turns(STACKS, made)


def test_messages_of_two_lengths_or_below_zero_are_refused() -> None:
    with pytest.raises(ReportError, match=r"shapes \(2,\), \(1,\); need \(n,\) of the same n"):
        messages([1, 2], [0])
    for taken, lost in ([-1, 0], 0), ([0, 0], -1):
        with pytest.raises(ReportError, match="below 0"):
            messages([1, 2], taken, lost)


def test_quantiles_are_hazens() -> None:
    drawn = np.random.default_rng(5).integers(0, 10**6, 137).tolist()
    for statistic, share in ((MEDIAN, 0.5), (P99, 0.99)):
        wanted = np.quantile(drawn, share, method="hazen")
        assert value_of(messages(drawn), statistic, 1).value == pytest.approx(wanted, rel=1e-12)


def test_a_lost_message_is_the_latest_and_beyond_every_budget() -> None:
    came = list(range(1, 100))
    whole = messages([*came, 10**12])
    lossy = messages(came, lost=1)
    assert value_of(lossy, MEDIAN, 50).value == value_of(whole, MEDIAN, 50).value
    assert value_of(lossy, OVER, 50).value == value_of(whole, OVER, 50).value == 0.5
    assert value_of(messages([1] * 90, lost=10), P99, 50).value == np.inf


def test_what_the_machine_took_something_of_is_left_out() -> None:
    taken = [0] * 95 + [1] * 5
    found = value_of(messages([10] * 95 + [10**9] * 5, taken), OVER, 100)
    assert found.value == 0
    assert value_of(messages([10] * 100, [0] * 89 + [1] * 11), MEDIAN, 1).reason.endswith("took too much")


@pytest.mark.parametrize(("statistic", "n"), [(MEDIAN, 0), (P99, 49), (OVER, 0)])
def test_too_few_messages_say_nothing(statistic: str, n: int) -> None:
    assert value_of(messages([5] * n), statistic, 1).reason == "too few messages"
    assert value_of(messages([5] * (n + 1)), statistic, 1).value is not None
