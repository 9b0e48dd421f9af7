# SPDX-License-Identifier: Apache-2.0
"""The comparison by second readers of its statistics, and its verdicts in words."""

from __future__ import annotations

import dataclasses
from importlib import import_module
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from reports.errors import ReportError
from reports.stacks.compare import LEVEL, ROUNDS_MIN, Compared, Comparison, compare
from reports.stacks.holm import shown
from reports.stacks.interval import mean_difference, share_standard
from reports.stacks.turn_values import MEDIAN, OVER, P99
from reports.stacks.turns import Turn, TypeMessages, turn_order

stats: Any = import_module("scipy.stats")  # its types are incomplete
RNG_SEED = 11


def closed_test(p_values: list[float], level: float) -> list[bool]:
    """Reject what every intersection that holds it rejects by Bonferroni: Marcus, Peritz and Gabriel 1976."""
    places = range(len(p_values))
    subsets = [some for size in range(1, len(p_values) + 1) for some in combinations(places, size)]
    kept = [some for some in subsets if min(p_values[place] for place in some) > level / len(some)]
    return [all(place not in some for some in kept) for place in places]


def test_holm_is_the_closure_of_bonferroni() -> None:
    rng = np.random.default_rng(RNG_SEED)
    fell = 0
    for _ in range(300):
        p_values = (rng.random(int(rng.integers(1, 9))) ** 4).tolist()
        found = shown(p_values, 0.05)
        assert found == closed_test(p_values, 0.05)
        fell += sum(found)
    assert fell > 100, "hypotheses fall, and not by the first step alone"
    assert shown([0.012, 0.02, 0.3, 0.04], 0.05) == [True, False, False, False]
    assert shown([float("nan")], 0.05) == [False]


def test_interval_and_p_value_are_those_of_scipys_test() -> None:
    rng = np.random.default_rng(RNG_SEED)
    for rounds in (8, 13, 30):
        first, second = rng.lognormal(3, 1, rounds), rng.lognormal(3.3, 1, rounds)
        found, theirs = mean_difference(first, second), stats.ttest_rel(second, first)
        low, high = theirs.confidence_interval(1 - LEVEL / 6)
        assert found.p_value == pytest.approx(theirs.pvalue, rel=1e-9)
        assert found.value - found.half_width(LEVEL, 6) == pytest.approx(low, rel=1e-9)
        assert found.value + found.half_width(LEVEL, 6) == pytest.approx(high, rel=1e-9)


def test_a_difference_of_the_detection_limit_is_seen_with_its_power() -> None:
    found = mean_difference(np.zeros(24), np.random.default_rng(RNG_SEED).normal(size=24))
    wanted = found.half_width(LEVEL, 1)
    power = 1 - stats.nct.cdf(
        wanted / found.standard, found.freedom, found.smallest_seen(LEVEL, 1) / found.standard
    )
    assert power == pytest.approx(0.95, abs=0.01)


def test_shares_without_a_message_beyond_leave_room() -> None:
    """Of 1000 messages none beyond: a true share of 0.3 % is missed so in one run of twenty."""
    assert 2 * share_standard((0, 0), (1000, 1000)) == pytest.approx(0.0028, abs=0.0001)
    assert share_standard((500, 500), (1000, 1000)) == pytest.approx(0.0223, abs=0.0001)


def made(
    second: float = 0.0, rounds: int = 12, stacks: tuple[str, ...] = ("kernel", "user"), **other: Any
) -> list[Turn]:
    """Return turns; the second stack takes so many µs longer; `other` are `lost` and `taken` of it."""
    rng = np.random.default_rng(RNG_SEED)
    turns: list[Turn] = []
    for order, (number, condition, stack) in enumerate(turn_order(stacks, ("idle",), rounds, seed=1)):
        later = 1000 * second if stack == stacks[1] else 0
        latency = np.rint(100_000 + 3000 * order + later + 20_000 * rng.exponential(size=200)).astype(
            np.int64
        )
        taken = np.zeros(200, np.int64)
        taken[: other.get("taken", 0) if stack == stacks[1] else 0] = 5
        lost = other.get("lost", 0) if stack == stacks[1] else 0
        turns.append(Turn(order, number, condition, stack, {"type 0": TypeMessages(latency, taken, lost)}))
    return turns


def found(turns: list[Turn], budget_ns: int = 200_000) -> dict[str, Compared]:
    stacks = ("kernel", "user")
    return {each.statistic: each for each in compare(stacks, turns, {"type 0": budget_ns}).compared}


def test_what_one_stack_takes_longer_is_found_beside_a_drift() -> None:
    one = found(made(50))
    median = one[MEDIAN]
    assert median.difference == pytest.approx(50_000, abs=median.expanded)
    assert median.better == "kernel"
    assert median.words.startswith("kernel is faster by ")
    assert " ± " in median.words
    assert one[OVER].unit == "%"
    assert one[OVER].words.startswith("kernel is within budget more often by ")
    assert found(made(-50))[MEDIAN].better == "user"


def test_equal_stacks_show_no_difference_and_what_would_have_been_seen() -> None:
    for each in found(made()).values():
        assert each.difference is not None
        assert not each.better
        assert each.words.startswith("no difference shown, none above ")
        assert each.words.endswith(" would have been missed")
        assert each.smallest_seen > each.expanded > abs(each.difference)


def test_a_claim_by_a_later_step_has_an_upper_end_alone() -> None:
    claimed = found(made(50))[MEDIAN]
    wide = dataclasses.replace(claimed, difference=10_000.0, expanded=12_000.0)
    assert wide.words == "kernel is faster, by 10 µs, at most 22 µs"


def test_too_few_rounds_are_inconclusive() -> None:
    few = found(made(50, rounds=ROUNDS_MIN - 1))
    assert {each.words for each in few.values()} == {"inconclusive: too few rounds: 7 count, 8 are needed"}
    assert found(made(50, rounds=ROUNDS_MIN))[MEDIAN].is_claimed


def test_rounds_of_which_too_much_was_taken_do_not_count() -> None:
    counted = found(made(50, taken=20))[MEDIAN]
    assert (counted.rounds, counted.taken, counted.messages) == (12, 240, 12 * 380)
    left = found(made(50, taken=21))[MEDIAN]
    assert (left.rounds, left.left_out) == (0, {"the bench's machine took too much": 12})
    assert left.words == (
        "inconclusive: too few rounds: 0 count, 8 are needed; of 12 more the bench's machine took too much"
    )


def test_a_quantile_that_is_a_lost_message_is_no_number() -> None:
    lossy = found(made(0, lost=3), budget_ns=10**9)
    assert lossy[P99].words == "inconclusive: in 12 of 24 turns it is a lost message"
    assert lossy[MEDIAN].difference is not None
    assert lossy[OVER].better == "kernel"
    assert lossy[OVER].lost == 36


def test_rounds_that_all_say_the_same_tell_no_interval() -> None:
    frozen = [
        dataclasses.replace(
            turn, messages={"type 0": TypeMessages(np.full(99, 7), np.zeros(99, np.int64), 0)}
        )
        for turn in made()
    ]
    assert (
        found(frozen)[MEDIAN].words == "inconclusive: every round says the same to the nanosecond: no scatter"
    )


def test_no_message_beyond_its_budget_is_no_share_known_exactly() -> None:
    """Of 2400 a stack, one in 400 may well be beyond it: exp(-6) of such runs show none."""
    none = found(made(), budget_ns=10**9)[OVER]
    assert none.difference == 0
    assert 0.15 < none.expanded < 0.25
    assert not none.better


def test_what_one_stack_alone_carried_is_not_compared() -> None:
    turns = [
        dataclasses.replace(turn, messages={**turn.messages, "type 1": turn.messages["type 0"]})
        if turn.stack == "user"
        else turn
        for turn in made()
    ]
    both: Comparison = compare(("kernel", "user"), turns, {"type 0": 200_000, "type 1": 200_000})
    assert {each.stream_type for each in both.compared} == {"type 0"}
    [left] = both.not_compared
    assert (left.stream_type, left.carried_by) == ("type 1", "user")


def test_more_comparisons_of_a_run_make_each_harder() -> None:
    two = found(made(50))[MEDIAN]
    stacks = ("kernel", "user", "rtdip")
    three = compare(stacks, made(50, stacks=stacks), {"type 0": 200_000}).compared
    assert len(three) == 9
    assert [each.pair for each in three[::3]] == ["user less kernel", "rtdip less kernel", "rtdip less user"]
    ratio = two.expanded / (two.smallest_seen - two.expanded)
    assert three[0].expanded / (three[0].smallest_seen - three[0].expanded) > 1.1 * ratio


def test_one_stack_under_two_names_has_to_have_two_names() -> None:
    with pytest.raises(ReportError, match="stands twice"):
        compare(("kernel", "kernel"), made(), {"type 0": 1})
