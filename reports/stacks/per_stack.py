# SPDX-License-Identifier: Apache-2.0
"""What each stack did by itself, for the eye: the verdicts are those of the comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from reports.stacks.turn_values import beyond
from reports.stacks.turns import Turn


@dataclass(frozen=True, slots=True)
class OfType:
    """One stack's messages of one type under one condition, all turns together.

    Attributes:
        messages: That count: those of which the bench's machine took nothing, and lost ones.
        taken: Left out for that.
        lost: Of `messages`.
        over: Beyond their budget, lost ones among them.
        median_ns: Of those that came; None: none did.
        p99_ns: Likewise.
    """

    stack: str
    condition: str
    stream_type: str
    budget_ns: int
    messages: int
    taken: int
    lost: int
    over: int
    median_ns: float | None
    p99_ns: float | None

    @property
    def over_share(self) -> float | None:
        """Return the share beyond the budget; None: no message counts."""
        return self.over / self.messages if self.messages else None

    @property
    def lost_share(self) -> float | None:
        """Return the share that was lost; None: no message counts."""
        return self.lost / self.messages if self.messages else None


@dataclass(frozen=True, slots=True)
class CpuOf:
    """CPU time a message of one stack under one condition, in ns; None: not measured."""

    stack: str
    condition: str
    target_ns: float | None
    others_ns: float | None


def of_types(turns: Sequence[Turn], stacks: Sequence[str], budgets_ns: Mapping[str, int]) -> list[OfType]:
    """Return the values of each of the stacks by condition and type."""
    found: list[OfType] = []
    for condition, stack in _groups(turns, stacks):
        own = [turn for turn in turns if (turn.condition, turn.stack) == (condition, stack)]
        for name, budget_ns in budgets_ns.items():
            some = [turn.messages[name] for turn in own if name in turn.messages]
            if not some:
                continue
            kept = np.concatenate([each.kept_ns for each in some])
            quantiles = np.quantile(kept, (0.5, 0.99), method="hazen").tolist() if len(kept) else (None, None)
            lost = sum(each.lost for each in some)
            found.append(
                OfType(
                    *(stack, condition, name, budget_ns),
                    messages=len(kept) + lost,
                    taken=sum(len(each.latency_ns) for each in some) - len(kept),
                    lost=lost,
                    over=sum(beyond(each, budget_ns) for each in some),
                    median_ns=quantiles[0],
                    p99_ns=quantiles[1],
                )
            )
    return found


def cpu_of(turns: Sequence[Turn], stacks: Sequence[str]) -> list[CpuOf]:
    """Return the CPU time a message that was sent, at the target and at the other ends together."""
    found: list[CpuOf] = []
    for condition, stack in _groups(turns, stacks):
        own = [turn for turn in turns if (turn.condition, turn.stack) == (condition, stack)]
        sent = sum(turn.sent for turn in own)
        ends = [[turn.target_cpu_ns for turn in own], [turn.others_cpu_ns for turn in own]]
        target, others = (
            sum(each for each in end if each is not None) / sent if sent and None not in end else None
            for end in ends
        )
        found.append(CpuOf(stack, condition, target, others))
    return found


def _groups(turns: Sequence[Turn], stacks: Sequence[str]) -> list[tuple[str, str]]:
    """Return conditions and stacks that have turns."""
    present = {(turn.condition, turn.stack) for turn in turns}
    conditions = sorted({condition for condition, _ in present})
    return [(each, stack) for each in conditions for stack in stacks if (each, stack) in present]
