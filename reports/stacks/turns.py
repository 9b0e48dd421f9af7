# SPDX-License-Identifier: Apache-2.0
"""Turns of network stacks: what each one's messages took, and in which order the stacks have their turns.

A round has one turn of each stack under each condition. The turns of a round under one condition follow each
other without a turn between them: what drifts meanwhile meets neighbours nearly alike.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from reports.errors import ReportError

Integers: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, eq=False, slots=True)
class TypeMessages:
    """Messages of one type of streams in one turn.

    Attributes:
        latency_ns: Of each message that came, shape (n,).
        taken_ns: What the bench's machine took of each, shape (n,); at least 0.
        lost: Sent, and never come.
    """

    latency_ns: Integers
    taken_ns: Integers
    lost: int

    def __post_init__(self) -> None:
        """Refuse arrays of two lengths, and what is below zero."""
        if self.latency_ns.ndim != 1 or self.latency_ns.shape != self.taken_ns.shape:
            raise ReportError(
                f"latency_ns, taken_ns: shapes {self.latency_ns.shape}, {self.taken_ns.shape};"
                " need (n,) of the same n"
            )
        if self.lost < 0 or (self.taken_ns < 0).any():
            raise ReportError("lost, taken_ns: below 0; a count and times of at least 0 are allowed")

    @property
    def kept_ns(self) -> Integers:
        """Return the latencies of messages of which the bench's machine took nothing."""
        return self.latency_ns[self.taken_ns == 0]


@dataclass(frozen=True, eq=False, slots=True)
class Turn:
    """One stack's turn: a short replay of the whole pattern.

    Attributes:
        order: Place among all turns of the run, from 0.
        round: Counted from 0; a stack has one turn in it under each condition.
        condition: `idle`, `loaded`, `lossy`, …
        messages: By type of streams, of those types that the stack carried.
        target_cpu_ns: CPU time of the target's end; None: not measured.
        others_cpu_ns: Of the other ends together, likewise.
    """

    order: int
    round: int
    condition: str
    stack: str
    messages: Mapping[str, TypeMessages]
    target_cpu_ns: int | None = None
    others_cpu_ns: int | None = None

    @property
    def sent(self) -> int:
        """Return how many messages were sent."""
        return sum(len(each.latency_ns) + each.lost for each in self.messages.values())


def check_stacks(stacks: Sequence[str]) -> None:
    """Refuse stacks that cannot be compared.

    Raises:
        ReportError: Two are of one name, or there is one alone.
    """
    if double := [name for name, count in Counter(stacks).items() if count > 1]:
        raise ReportError(f"stacks: {double[0]!r} stands twice; each name may stand once")
    if len(stacks) < 2:
        raise ReportError(f"stacks: {', '.join(stacks) or 'none'}; a comparison needs at least 2")


def check_turns(stacks: Sequence[str], turns: Sequence[Turn]) -> None:
    """Refuse turns that are not of rounds.

    Raises:
        ReportError: A turn is of no stack that is compared, a stack has two turns in one round under one
            condition, two turns have one place, or another turn stands between those of a round.
    """
    check_stacks(stacks)
    together: dict[tuple[int, str], list[Turn]] = defaultdict(list)
    for turn in turns:
        if turn.stack not in stacks:
            allowed = ", ".join(stacks)
            raise ReportError(f"turn {turn.order}: stack {turn.stack!r} is none of those compared: {allowed}")
        together[turn.round, turn.condition].append(turn)
    if double := [order for order, count in Counter(turn.order for turn in turns).items() if count > 1]:
        raise ReportError(f"turn {double[0]}: its order stands twice")
    for (round_, condition), some in together.items():
        where = f"round {round_}, {condition}"
        if len({turn.stack for turn in some}) < len(some):
            raise ReportError(f"{where}: a stack has two turns; one is allowed")
        orders = [turn.order for turn in some]
        if max(orders) - min(orders) >= len(some):
            raise ReportError(f"{where}: its turns do not follow each other: orders {sorted(orders)}")


def turn_order(
    stacks: Sequence[str], conditions: Sequence[str], rounds: int, seed: int
) -> Iterator[tuple[int, str, str]]:
    """Yield round, condition and stack of each turn, in the order in which the turns are to be made.

    Conditions and stacks of each even round are drawn; the round behind it has the same in reverse, so that a
    steady drift adds to the difference of two stacks in one round what it takes off in the other (Box, Hunter
    and Hunter, Statistics for Experimenters, 2nd edition, 3.3: comparisons in pairs, the order drawn).

    Args:
        stacks: At least two, each once.
        conditions: Each once.
        rounds: Best an even number.
        seed: Of the drawing: the same seed gives the same order.

    Raises:
        ReportError: Stacks cannot be compared.
    """
    check_stacks(stacks)
    drawn = random.Random(seed)  # noqa: S311 - an order, no secret
    before: list[tuple[str, str]] = []
    for round_ in range(rounds):
        if round_ % 2:
            before.reverse()
        else:
            before = [
                (condition, stack)
                for condition in drawn.sample(list(conditions), len(conditions))
                for stack in drawn.sample(list(stacks), len(stacks))
            ]
        yield from ((round_, condition, stack) for condition, stack in before)
