# SPDX-License-Identifier: Apache-2.0
"""The night in one object: what ran, what failed, and what got slower than in the night before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.night.result import Result, Verdict
from tests.night.state import State

SCHEMA = "benchwright.night/1"
SLOWER = 1.5
"""A part that takes more than so many times as long, what was stolen taken off, is named."""
PASSED, FAILED, NO_VERDICT = 0, 1, 4


@dataclass(frozen=True)
class Row:
    """A part's result and the last earlier one that passed: same machine, same commands."""

    result: Result
    earlier: Result | None

    @property
    def ratio(self) -> float | None:
        """How many times as long it took, what was stolen taken off; None: nothing to compare."""
        passed = self.result.verdict is Verdict.PASSED
        if self.earlier is None or not passed or self.earlier.unstolen_s <= 0.0:
            return None
        return self.result.unstolen_s / self.earlier.unstolen_s

    @property
    def is_slower(self) -> bool:
        """Say whether it has got slower."""
        return self.ratio is not None and self.ratio > SLOWER

    def slower_text(self) -> str:
        """Return by how much it got slower, in words; of one that has an earlier result."""
        assert self.earlier is not None
        now, before = self.result, self.earlier
        return (
            f"{now.part}: {now.unstolen_s:.1f} s, before {before.unstolen_s:.1f} s without what was stolen;"
            f" {now.seconds:.1f} s and {before.seconds:.1f} s with it"
        )

    def to_json(self) -> dict[str, Any]:
        """Return it for the summary's file."""
        return {
            **_said(self.result),
            "earlier": None if self.earlier is None else _said(self.earlier),
            "ratio": None if self.ratio is None else round(self.ratio, 3),
            "slower": self.is_slower,
        }


def _said(result: Result) -> dict[str, Any]:
    kept = {key: value for key, value in vars(result).items() if key not in ("commands", "machine")}
    return {**kept, "unstolen_s": round(result.unstolen_s, 2)}


@dataclass(frozen=True)
class Summary:
    """What there is to say of a state of the tree.

    Attributes:
        state: The state.
        rows: Every part with a result, also of an earlier call.
        elsewhere: Of parts that have none, the last result of another state.
        never: Parts that have no result of any state.
        not_run: Parts that were asked for and have no result of this state, but those of `later`.
        later: Parts that are left to the next night.
        interrupted: The part that an interrupt has ended; empty: none.
        exit_code: Of the parts that were asked for.
    """

    state: State
    rows: tuple[Row, ...]
    elsewhere: tuple[Row, ...]
    never: tuple[str, ...]
    not_run: tuple[str, ...]
    later: tuple[str, ...]
    interrupted: str
    exit_code: int

    def of(self, verdict: Verdict) -> list[Row]:
        """Return the rows of a verdict."""
        return [row for row in self.rows if row.result.verdict == verdict]

    @property
    def parts(self) -> int:
        """Return how many parts a whole night has."""
        return len(self.rows) + len(self.elsewhere) + len(self.never)

    def slower(self) -> list[Row]:
        """Return what got slower."""
        return [row for row in self.rows if row.is_slower]

    def to_json(self) -> dict[str, Any]:
        """Return it for its file."""
        return {
            "schema": SCHEMA,
            "commit": self.state.commit,
            "diff": self.state.diff,
            "exit_code": self.exit_code,
            "interrupted": self.interrupted,
            "not_run": list(self.not_run),
            "later": list(self.later),
            "parts": [row.to_json() for row in self.rows],
            "elsewhere": [row.to_json() for row in self.elsewhere],
            "never": list(self.never),
        }


def earlier_of(result: Result, others: Iterable[Result]) -> Result | None:
    """Return the last result before this one that passed, of the same part, commands and machine."""
    same = [
        other
        for other in others
        if other.verdict is Verdict.PASSED
        and (other.part, other.commands, other.machine) == (result.part, result.commands, result.machine)
        and other.began_utc < result.began_utc
    ]
    return max(same, key=lambda other: other.began_utc, default=None)


def summarise(
    state: State,
    table: Mapping[str, tuple[str, ...]],
    asked: Sequence[str],
    results: Sequence[Result],
    *,
    interrupted: str = "",
    later: Sequence[str] = (),
) -> Summary:
    """Put the results of a state together.

    Args:
        state: The state.
        table: The commands of every part, by its name: a result of other commands is none of it.
        asked: The parts that were asked for, by name.
        results: Those of all nights, this state's among them.
        interrupted: The part that an interrupt has ended.
        later: The parts for which there was no time. A night that had time for none has no verdict.
    """
    of_parts = sorted(
        (result for result in results if table.get(result.part) == result.commands),
        key=lambda result: result.began_utc,
    )
    own = {each.part: each for each in of_parts if each.is_of(state, table[each.part])}
    last = {each.part: each for each in of_parts} | own
    rows = {name: Row(result, earlier_of(result, results)) for name, result in last.items()}
    there = {name: result.verdict for name, result in own.items()}
    later = tuple(name for name in asked if name in later and name not in there)
    not_run = tuple(name for name in asked if name not in there and name not in later)
    verdicts = {there[name] for name in asked if name in there}
    if Verdict.FAILED in verdicts:
        code = FAILED
    else:
        unknown = not_run or interrupted or not verdicts or Verdict.INCONCLUSIVE in verdicts
        code = NO_VERDICT if unknown else PASSED
    return Summary(
        state,
        rows=tuple(rows[name] for name in table if name in there),
        elsewhere=tuple(rows[name] for name in table if name in last and name not in there),
        never=tuple(name for name in table if name not in last),
        not_run=not_run,
        later=later,
        interrupted=interrupted,
        exit_code=code,
    )
