# SPDX-License-Identifier: Apache-2.0
"""Tests of Robot Framework that failed, and suites whose teardown did: what each says beside its records."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import get_args

from reports.record.codec import omit_none
from reports.record.measurement import Measurement, Outcome
from reports.run.tally import WORST_FIRST, worst_outcome

SIGNAL_MARK = "Execution terminated by signal"
STOPPED_MARKS = (SIGNAL_MARK, "Test execution stopped", "exit-on-failure mode is in use")
"""So Robot Framework speaks of the test that a signal ends, and of those that it does not begin."""
UNSET_MARKS = (
    "MEASUREMENT ERROR:",
    *STOPPED_MARKS,
    "Test timeout",
    "Keyword timeout",
)
BAD_INPUT_MARK = "CONFIG ERROR:"
ERROR_MARKS = (BAD_INPUT_MARK, "BENCH ERROR:")
_BEGIN = r"(?:^|; |\d\) |[Ff]ailed: )"
"""Where a message begins: those of several keywords are numbered, a teardown's stands behind the test's."""
VERDICT = re.compile(rf"{_BEGIN}(FAIL|ERROR|INCONCLUSIVE|UNSET):")
EXCEPTION = re.compile(
    rf"{_BEGIN}(?!AssertionError)(?:\w+\.)*"
    r"\w*(?i:error|exception|warning|exit|interrupt|expired|timeout|eof): "
)
"""So begins the message of an exception that nobody expected: this software is wrong, not the target."""
UNEXPECTED = re.compile(
    r"(?i:setup failed|teardown failed|no keyword with name)|Variable '.+' not found"
    r"|^(?:Resolving|Replacing) variable |^Evaluating expression .* failed|^Keyword '.+' expected "
)
"""So Robot Framework speaks of a suite that is wrong, where nothing else says who is at fault."""
CONVERSION = re.compile(r"ValueError: Argument '.*' got value .* that cannot be converted to ")
"""So Robot Framework speaks of an argument that a keyword does not take."""
MESSAGE_MAX = 400


@dataclass(frozen=True, slots=True)
class FailedTest:
    """A test that failed, the target that its suite was for (empty: it names none), and its message.

    A suite whose teardown failed is one by the suite's name: its tests have ended, and may have passed.

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
        """Return what it says of the target: the worst of its messages' first words, and of its marks."""
        words = VERDICT.findall(self.message)
        found: set[Outcome] = {outcome for outcome in get_args(Outcome) if outcome.upper() in words}
        if any(mark in self.message for mark in ERROR_MARKS) or EXCEPTION.search(self.message):
            found.add("error")
        if any(mark in self.message for mark in UNSET_MARKS):
            found.add("unset")
        if found:
            return worst_outcome(found)
        return "error" if UNEXPECTED.search(self.message) else "fail"


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
