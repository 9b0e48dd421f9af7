# SPDX-License-Identifier: Apache-2.0
"""Tests of Robot Framework that failed: what each says of its target where it left no record."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import get_args

from reports.record import Measurement, Outcome
from reports.tally import effective, gravest, overall

UNSET_MARKS = ("MEASUREMENT ERROR:", "Execution terminated by signal", "Test execution stopped")
ERROR_MARKS = ("CONFIG ERROR:", "BENCH ERROR:", "setup failed")
MESSAGE_MAX = 400


@dataclass(frozen=True, slots=True)
class FailedTest:
    """A test that failed, the target that its suite was for (empty: it names none), and its message."""

    target: str
    name: str
    message: str

    @property
    def outcome(self) -> Outcome:
        """Return what it says of the target: by the first word of its message, or by a mark in it."""
        word = self.message.partition(":")[0].lower()
        for outcome in get_args(Outcome):
            if outcome == word and outcome != "pass":
                return outcome
        if any(mark in self.message for mark in ERROR_MARKS):
            return "error"
        return "unset" if any(mark in self.message for mark in UNSET_MARKS) else "fail"


def without_record(
    failed: Iterable[FailedTest], records: Iterable[Measurement], target: str = ""
) -> tuple[FailedTest, ...]:
    """Return those that left no record, which so would be missed by who only reads the records.

    Args:
        failed: Tests that failed.
        records: All records of the run.
        target: Only those of this target, or of none; empty: all.
    """
    recorded = {(record.subject.target, record.test) for record in records}
    recorded |= {("", test) for _target, test in recorded}
    found = (each for each in failed if not target or each.target in ("", target))
    return tuple(each for each in found if (each.target, each.name) not in recorded)


def outcome_of(records: Sequence[Measurement], failed: Iterable[FailedTest]) -> Outcome:
    """Return how a run came out, or a target of it: no pass where a test failed without leaving a record."""
    left = without_record(failed, records)
    return gravest({overall(effective(records)), *(each.outcome for each in left)})


def in_words(failed: Sequence[FailedTest]) -> list[str]:
    """Return a line for each message: the tests of a suite whose setup failed all have the same."""
    by_message: dict[tuple[str, str], list[str]] = {}
    for each in failed:
        by_message.setdefault((each.target, each.message), []).append(each.name)
    return [
        f"{f'{target}: ' if target else ''}{names[0]}"
        f"{f' and {len(names) - 1} further tests' if len(names) > 1 else ''} failed: {message}"
        for (target, message), names in by_message.items()
    ]
