# SPDX-License-Identifier: Apache-2.0
"""Tests of Robot Framework that failed: what each says of its target beside its records."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import get_args

from reports.record.codec import omit_none
from reports.record.measurement import Measurement, Outcome
from reports.run.tally import WORST_FIRST, worst_outcome

SIGNAL_MARK = "Execution terminated by signal"
STOPPED_MARKS = (SIGNAL_MARK, "Test execution stopped")
"""So Robot Framework speaks of the test that a signal ends, and of each one behind it."""
UNSET_MARKS = (
    "MEASUREMENT ERROR:",
    *STOPPED_MARKS,
    "Test timeout",
    "Keyword timeout",
)
BAD_INPUT_MARK = "CONFIG ERROR:"
ERROR_MARKS = (BAD_INPUT_MARK, "BENCH ERROR:")
UNEXPECTED_MARKS = ("setup failed", "no keyword with name")
EXCEPTION = re.compile(r"(?!AssertionError)[A-Za-z_]\w*(Error|Exception|Warning|Exit|Interrupt): ")
"""So begins the message of an exception that nobody expected: this software is wrong, not the target."""
CONVERSION = re.compile(r"ValueError: Argument '.*' got value .* that cannot be converted to ")
"""So Robot Framework speaks of an argument that a keyword does not take."""
MESSAGE_MAX = 400


@dataclass(frozen=True, slots=True)
class FailedTest:
    """A test that failed, the target that its suite was for (empty: it names none), and its message.

    Attributes:
        stack: The network stack that the run has chosen for its suite; None: none.
    """

    target: str
    name: str
    message: str
    stack: str | None = omit_none()

    @property
    def is_bad_input(self) -> bool:
        """Say whether a file or a variable was wrong that somebody gave."""
        return BAD_INPUT_MARK in self.message or CONVERSION.search(self.message) is not None

    @property
    def is_stopped(self) -> bool:
        """Say whether it was ended, or never begun, because the execution was stopped."""
        return any(mark in self.message for mark in STOPPED_MARKS)

    @property
    def outcome(self) -> Outcome:
        """Return what it says of the target: by the first word of its message, or by a mark in it."""
        word = self.message.partition(":")[0].lower()
        for outcome in get_args(Outcome):
            if outcome == word and outcome != "pass":
                return outcome
        if any(mark in self.message for mark in ERROR_MARKS):
            return "error"
        if any(mark in self.message for mark in UNSET_MARKS):
            return "unset"
        is_ours = EXCEPTION.match(self.message) or any(
            mark in self.message.lower() for mark in UNEXPECTED_MARKS
        )
        return "error" if is_ours else "fail"


def beyond_records(failed: Iterable[FailedTest], counting: Iterable[Measurement]) -> tuple[FailedTest, ...]:
    """Return those that say more than their records do: who only reads the records would miss them.

    A test that left a record which does not pass, and then broke off for a worse reason, is one of them.

    Args:
        failed: Tests that failed.
        counting: The records that count.
    """
    recorded: dict[tuple[str, str | None, str], set[Outcome]] = {}
    for record in counting:
        for target in (record.subject.target, ""):
            for stack in {record.subject.stack, None}:
                recorded.setdefault((target, stack, record.test), set()).add(record.outcome)
    return tuple(
        each
        for each in failed
        if WORST_FIRST.index(each.outcome)
        < WORST_FIRST.index(worst_outcome(recorded.get((each.target, each.stack, each.name), {"pass"})))
    )


def in_words(failed: Sequence[FailedTest]) -> list[str]:
    """Return a line for each message: the tests of a suite whose setup failed all have the same."""
    by_message: dict[tuple[str, str], list[str]] = {}
    for each in failed:
        stack = f"stack {each.stack}" if each.stack else ""
        place = ", ".join(filter(None, (each.target, stack)))
        by_message.setdefault((place, each.message), []).append(each.name)
    return [
        f"{f'{place}: ' if place else ''}{names[0]}"
        f"{f' and {len(names) - 1} further tests' if len(names) > 1 else ''} failed: {message}"
        for (place, message), names in by_message.items()
    ]
