# SPDX-License-Identifier: Apache-2.0
"""Every pair of stacks compared, and all comparisons of a run held together.

A claim, *A is faster*, comes by Holm's step-down over all comparisons of the run: the chance of any wrong
claim is at most LEVEL. The intervals, d ± U, hold together by Bonferroni's bound: the chance that any of them
misses its truth is at most LEVEL. Holm claims all that whose interval leaves 0 out, and may claim more: then
the difference is told with the upper end alone (Strassburger and Bretz, Compatible simultaneous lower
confidence bounds for the Holm procedure, Statistics in Medicine 27, 2008, 4914-4927).

What nobody claims is *no difference shown* with the detection limit: a true difference as large would have
been claimed in 95 of 100 runs like this one. Without rounds enough it is inconclusive; it counts
among the comparisons all the same, so that what is left out does not make the others easier.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from reports.dependence import BLOCKS_MIN
from reports.stacks.holm import shown
from reports.stacks.interval import Difference, mean_difference, share_standard
from reports.stacks.turn_values import OVER, STATISTICS, beyond, value_of
from reports.stacks.turns import Turn, TypeMessages, check_turns
from reports.units import format_value

LEVEL = 0.05
"""How often, of runs, any claim may be wrong, and any interval miss its truth."""
ROUNDS_MIN = BLOCKS_MIN


@dataclass(frozen=True, slots=True)
class Compared:
    """One comparison: a pair of stacks, a condition, a type of streams, a statistic.

    Attributes:
        first: The stack that is named first.
        second: The other one.
        statistic: Of STATISTICS; what follows is in ns, of OVER in percent.
        rounds: That count.
        left_out: Rounds that do not, by the reason.
        messages: Of both stacks in rounds that count, those left out not among them; lost ones are.
        taken: Messages left out, of which the bench's machine took something, in all rounds.
        lost: Of `messages`.
        difference: Second less first, positive: the first is faster; None: inconclusive.
        expanded: U, half of the interval; holds together with all others of the run.
        smallest_seen: The detection limit.
        is_claimed: By Holm's step-down.
        doubt: Why it is inconclusive; empty: it is not.
    """

    first: str
    second: str
    condition: str
    stream_type: str
    statistic: str
    rounds: int
    left_out: Mapping[str, int]
    messages: int
    taken: int
    lost: int
    difference: float | None = None
    expanded: float = 0.0
    smallest_seen: float = 0.0
    is_claimed: bool = False
    doubt: str = ""

    @property
    def unit(self) -> str:
        """Return the unit of difference, U and detection limit."""
        return "%" if self.statistic == OVER else "ns"

    @property
    def pair(self) -> str:
        """Return both stacks as records and pages name the pair: what is subtracted from what."""
        return pair_name(self.first, self.second)

    @property
    def better(self) -> str:
        """Return the stack that is claimed to be faster; empty: none is."""
        if not self.is_claimed or self.difference is None:
            return ""
        return self.first if self.difference > 0 else self.second

    @property
    def words(self) -> str:
        """Return the verdict in words."""
        if self.difference is None:
            return f"inconclusive: {self.doubt}"
        size, u = abs(self.difference), self.expanded
        if not self.is_claimed:
            seen = format_value(self.smallest_seen, self.unit, 3)
            return f"no difference shown, none above {seen} would have been missed"
        how = "is within budget more often" if self.statistic == OVER else "is faster"
        by = format_value(size, self.unit, 3)
        if u >= size:
            return f"{self.better} {how}, by {by}, at most {format_value(size + u, self.unit, 3)}"
        return f"{self.better} {how} by {by} ± {format_value(u, self.unit, 3)}"


@dataclass(frozen=True, slots=True)
class NotCompared:
    """A type of streams that one stack of a pair alone carried."""

    first: str
    second: str
    condition: str
    stream_type: str
    carried_by: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """All comparisons of one run, held together, and what could not be compared."""

    compared: tuple[Compared, ...]
    not_compared: tuple[NotCompared, ...]


def pair_name(first: str, second: str) -> str:
    """Return the name of a pair: its difference is the second's value less the first's."""
    return f"{second} less {first}"


def compare(stacks: Sequence[str], turns: Sequence[Turn], budgets_ns: Mapping[str, int]) -> Comparison:
    """Compare every pair of stacks.

    Args:
        stacks: Their names; of two the first named is the first of the pair.
        turns: Of all stacks, in any order.
        budgets_ns: Of each type of streams; those alone are compared.

    Raises:
        ReportError: The turns are not of rounds, or the stacks cannot be compared; see `check_turns`.
    """
    check_turns(stacks, turns)
    found: list[tuple[Compared, Difference | None]] = []
    apart: list[NotCompared] = []
    for condition in sorted({turn.condition for turn in turns}):
        of_stack = {
            stack: {turn.round: turn for turn in turns if (turn.stack, turn.condition) == (stack, condition)}
            for stack in stacks
        }
        carried = {
            stack: {name for turn in own.values() for name in turn.messages}
            for stack, own in of_stack.items()
        }
        for first, second in combinations(stacks, 2):
            for name, budget_ns in budgets_ns.items():
                by = [stack for stack in (first, second) if name in carried[stack]]
                if len(by) == 1:
                    apart.append(NotCompared(first, second, condition, name, by[0]))
                elif by:
                    pair = _Pair(first, second, condition, name, budget_ns)
                    rounds = [{no: t.messages.get(name) for no, t in of_stack[s].items()} for s in by]
                    found += [pair.on(statistic, rounds) for statistic in STATISTICS]
    return Comparison(tuple(_held_together(found)), tuple(apart))


def _held_together(found: Sequence[tuple[Compared, Difference | None]]) -> Iterator[Compared]:
    falls = shown([1.0 if each is None else each.p_value for _, each in found], LEVEL)
    for (compared, difference), is_claimed in zip(found, falls, strict=True):
        if difference is None:
            yield compared
            continue
        scale = 100 if compared.statistic == OVER else 1
        yield replace(
            compared,
            difference=scale * difference.value,
            expanded=scale * difference.half_width(LEVEL, len(found)),
            smallest_seen=scale * difference.smallest_seen(LEVEL, len(found)),
            is_claimed=is_claimed,
        )


@dataclass(frozen=True, slots=True)
class _Pair:
    """What is compared, but for the statistic."""

    first: str
    second: str
    condition: str
    stream_type: str
    budget_ns: int

    def on(
        self, statistic: str, rounds: Sequence[Mapping[int, TypeMessages | None]]
    ) -> tuple[Compared, Difference | None]:
        """Return a comparison without what all of a run tell together, and its difference; None: no verdict.

        Args:
            statistic: Of STATISTICS.
            rounds: Messages by round, of the first stack and of the second.
        """
        left_out: Counter[str] = Counter()
        values: list[tuple[float, float]] = []
        kept: tuple[list[TypeMessages], list[TypeMessages]] = [], []
        for number in sorted(rounds[0].keys() | rounds[1].keys()):
            both = [side.get(number) for side in rounds]
            told = [value_of(each, statistic, self.budget_ns) for each in both if each is not None]
            good = [each.value for each in told if each.value is not None]
            if len(good) < 2:
                reason = next((each.reason for each in told if each.reason), "a turn is missing")
                left_out[reason] += 1
                continue
            values.append((good[0], good[1]))
            for side, each in zip(kept, both, strict=True):
                side += [each] if each is not None else []
        counts = [sum(len(each.kept_ns) + each.lost for each in side) for side in kept]
        compared = Compared(
            *(self.first, self.second, self.condition, self.stream_type, statistic),
            rounds=len(values),
            left_out=dict(left_out),
            messages=sum(counts),
            taken=sum(len(m.taken_ns) - len(m.kept_ns) for side in rounds for m in side.values() if m),
            lost=sum(each.lost for side in kept for each in side),
        )
        if doubt := _doubt(values, left_out):
            return replace(compared, doubt=doubt), None
        least = 0.0
        if statistic == OVER:
            over = [sum(beyond(each, self.budget_ns) for each in side) for side in kept]
            least = share_standard((over[0], over[1]), (counts[0], counts[1]))
        first, second = np.array(values, np.float64).T
        difference = mean_difference(first, second, least)
        if not difference.standard:
            return replace(compared, doubt="every round says the same to the nanosecond: no scatter"), None
        return compared, difference


def _doubt(values: Sequence[tuple[float, float]], left_out: Mapping[str, int]) -> str:
    if len(values) < ROUNDS_MIN:
        why = "".join(f"; of {count} more {reason}" for reason, count in left_out.items())
        return f"too few rounds: {len(values)} count, {ROUNDS_MIN} are needed{why}"
    lost = sum(math.isinf(each) for pair in values for each in pair)
    return f"in {lost} of {2 * len(values)} turns it is a lost message" if lost else ""
