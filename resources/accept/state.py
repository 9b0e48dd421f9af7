# SPDX-License-Identifier: Apache-2.0
"""Where an acceptance stands, from its journal alone; pure functions.

Events, in the order in which they were written:

    {"event": "begin", "part": 1, "attempt": 1}
    {"event": "end", "part": 1, "attempt": 1, "outcome": "pass", "run": "runs/…"}
    {"event": "broken", "part": 1, "attempt": 1, "cause": "…", "failing": false, "run": "runs/…"}
    {"event": "waive", "part": 1, "reason": "…", "approver": "…"}

A part with a result never runs again. One that was broken off runs again, unless values of it were failing
already: then it has failed, until a named person waives that; or it broke more than twice: then it has no
verdict.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from reports.run.outcome import FAIL, NO_VERDICT, PASS

BREAKS_MAX = 2
"""A part that breaks once more has no verdict."""
Event = Mapping[str, Any]


class Standing(StrEnum):
    """How a part stands."""

    WAITING = "waiting"
    OPEN = "open"  # it has begun, and nobody has written how it ended
    BROKEN = "broken off"  # it is to run again
    FAILING = "failed, broken off"  # its values were failing when it broke
    UNSTEADY = "no verdict, broken off too often"
    DONE = "done"


@dataclass(frozen=True)
class PartState:
    """A part as the journal has it.

    Attributes:
        attempts: That have begun.
        breaks: In words, one for each attempt that was broken off.
        outcome: Of a part that is done, as the run came out.
        run: Folder of its run, in the acceptance's; empty: none.
        runs: Folders of all its runs, of broken ones, too.
    """

    standing: Standing = Standing.WAITING
    attempts: int = 0
    breaks: tuple[str, ...] = ()
    outcome: str = ""
    run: str = ""
    runs: tuple[str, ...] = ()

    @property
    def is_settled(self) -> bool:
        """Say whether it never runs again."""
        return self.standing in (Standing.FAILING, Standing.UNSTEADY, Standing.DONE)

    @property
    def exit_code(self) -> int:
        """Return what it brings to the whole (docs/exit-codes.md)."""
        if self.standing is Standing.DONE:
            return {"pass": PASS, "fail": FAIL}.get(self.outcome, NO_VERDICT)
        return FAIL if self.standing is Standing.FAILING else NO_VERDICT

    @property
    def words(self) -> str:
        """Return how it stands, in words."""
        return self.outcome if self.standing is Standing.DONE else str(self.standing)


def part_states(count: int, events: Sequence[Event]) -> list[PartState]:
    """Return the state of each part.

    Args:
        count: Of the plan's parts.
        events: Of the journal.

    Raises:
        ValueError: An event contradicts those before it; says which.
    """
    states: list[PartState] = [PartState() for _ in range(count)]
    for place, event in enumerate(events, 1):
        number = int(event["part"])
        if not 1 <= number <= count:
            raise ValueError(f"line {place}: part {number}; there are 1..{count}")
        try:
            states[number - 1] = _after(states[number - 1], event)
        except ValueError as error:
            raise ValueError(f"line {place}: part {number}: {error}") from error
    return states


def _after(state: PartState, event: Event) -> PartState:
    """Return a part's state after an event of it."""
    kind = event["event"]
    run = (event["run"],) if event.get("run") else ()
    if kind == "begin":
        if state.standing not in (Standing.WAITING, Standing.BROKEN):
            raise ValueError(f"begins again, and is {state.words}")
        return replace(state, standing=Standing.OPEN, attempts=state.attempts + 1)
    if kind == "waive":
        if state.standing is not Standing.FAILING:
            raise ValueError(f"a waiver of a part that is {state.words}")
        return replace(state, standing=_broken(len(state.breaks), failing=False))
    if state.standing is not Standing.OPEN:
        raise ValueError(f"{kind}, and is {state.words}")
    if kind == "end":
        runs = state.runs + run
        return replace(state, standing=Standing.DONE, outcome=event["outcome"], run=event["run"], runs=runs)
    if kind == "broken":
        breaks = (*state.breaks, event["cause"])
        standing = _broken(len(breaks), failing=event["failing"])
        return replace(state, standing=standing, breaks=breaks, runs=state.runs + run)
    raise ValueError(f"unknown event {kind!r}")


def _broken(breaks: int, *, failing: bool) -> Standing:
    if failing:
        return Standing.FAILING
    return Standing.UNSTEADY if breaks > BREAKS_MAX else Standing.BROKEN


def next_part(states: Sequence[PartState]) -> int | None:
    """Return the number of the part that is to run next; None: all are settled."""
    return next((number for number, each in enumerate(states, 1) if not each.is_settled), None)


def exit_code(states: Sequence[PartState]) -> int:
    """Return that of the whole: a fail counts most, and all have to pass."""
    codes = {each.exit_code for each in states}
    return FAIL if FAIL in codes else max(codes, default=NO_VERDICT)
