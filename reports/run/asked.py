# SPDX-License-Identifier: Apache-2.0
"""What a run asks of each target, and what became of it: one definition for all who count.

A suite *asks* a requirement of its target where one of its tests would judge it. It says so in the manifest
as soon as it starts, before anything can break off. Of a requirement on a target there is then

- an outcome: values of it count; the worst of theirs;
- `skipped`: asked, without a value, and a test that would have judged it was skipped, with its reason;
- `untested`: asked, and without a value for any other cause;
- `not asked`: no suite of this target asks it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from reports.record.codec import omit_none
from reports.record.measurement import Measurement, Outcome
from reports.run.tally import worst_outcome

KEPT = Path("evidence", "requirements")
"""Where a run keeps the requirements files that its suites ask by."""

State = Outcome | Literal["skipped", "untested", "not asked"]
SKIPPED: State = "skipped"
UNTESTED: State = "untested"
NOT_ASKED: State = "not asked"
STATES: tuple[State, ...] = (
    "pass",
    "fail",
    "inconclusive",
    "unset",
    "error",
    SKIPPED,
    UNTESTED,
    NOT_ASKED,
)
"""In the order in which they are counted."""


@dataclass(frozen=True, slots=True)
class SkippedTest:
    """A test that was skipped, why, and the requirements that it would have judged."""

    test: str
    reason: str
    requirements: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AskedFile:
    """A requirements file by which a suite asks: name of the copy that the run keeps, and ids."""

    file: str
    requirements: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AskedSuite:
    """A suite that a target takes part in.

    Attributes:
        target: Its name; empty: whatever target the run has.
        suite: As `suite_name` names it.
        asks: What it asks; None: it has not started, or asks nothing.
        skipped: Its tests that were skipped.
    """

    target: str
    suite: str
    asks: tuple[AskedFile, ...] | None = omit_none()
    skipped: tuple[SkippedTest, ...] = ()

    @property
    def requirements(self) -> tuple[str, ...]:
        """Return the ids of what it asks."""
        return tuple(dict.fromkeys(name for each in self.asks or () for name in each.requirements))


@dataclass(frozen=True, slots=True)
class AskedRequirement:
    """What a target is asked: by which file, and why it was skipped; empty: it was not."""

    file: str
    skipped: str = ""


@dataclass(frozen=True, slots=True)
class Standing:
    """What became of a requirement on a target.

    Attributes:
        records: Its values that count.
        file: By which it is asked; empty: by none, a suite has it of itself.
        reason: Why it was skipped; empty: it was not.
    """

    state: State
    records: tuple[Measurement, ...] = ()
    file: str = ""
    reason: str = ""


def suite_name(source: Path) -> str:
    """Return the name of a suite by its file: `clock_sync/sync_error.robot`."""
    return f"{source.parent.name}/{source.name}"


def with_asked(
    asked: Sequence[AskedSuite], target: str, suite: str, more: AskedFile | None = None
) -> tuple[AskedSuite, ...]:
    """Return what is asked, with a suite that a target takes part in, or with a file by which it asks.

    Args:
        asked: What was asked so far.
        target: Name of the target.
        suite: Name of the suite.
        more: What the suite asks; None: it will say.
    """
    before = next((each for each in asked if (each.target, each.suite) == (target, suite)), None)
    entry = before or AskedSuite(target, suite)
    if more is not None:
        others = [each for each in entry.asks or () if each.file != more.file]
        entry = replace(entry, asks=(*others, more), skipped=())
    return tuple(entry if each is before else each for each in asked) + (() if before else (entry,))


def with_nothing_asked(asked: Sequence[AskedSuite], target: str, suite: str) -> tuple[AskedSuite, ...]:
    """Return what is asked, with a suite that says that it asks nothing, unless it has asked before."""
    return tuple(
        replace(each, asks=each.asks or ()) if (each.target, each.suite) == (target, suite) else each
        for each in with_asked(asked, target, suite)
    )


def with_skipped(
    asked: Sequence[AskedSuite], target: str, suite: str, test: SkippedTest
) -> tuple[AskedSuite, ...]:
    """Return what is asked, with a test that was skipped."""
    return tuple(
        replace(each, skipped=(*each.skipped, test)) if (each.target, each.suite) == (target, suite) else each
        for each in with_asked(asked, target, suite)
    )


def asked_of(asked: Sequence[AskedSuite], target: str) -> dict[str, AskedRequirement]:
    """Return what is asked of a target, by its id; of several files the one that was named first.

    A suite that never came to say what it asks of a target asks what it asks of others.

    Args:
        asked: What the run has noted.
        target: Its name; empty: the run has no more than one.
    """
    own = [each for each in asked if not target or each.target in ("", target)]
    skipped = {
        requirement: test.reason for each in own for test in each.skipped for requirement in test.requirements
    }
    found: dict[str, AskedRequirement] = {}
    for each in own:
        alike = [each] if each.asks is not None else [other for other in asked if other.suite == each.suite]
        for file in (file for other in alike for file in other.asks or ()):
            for name in file.requirements:
                found.setdefault(name, AskedRequirement(file.file, skipped.get(name, "")))
    return found


def standings(
    asked: Sequence[AskedSuite], target: str, records: Iterable[Measurement]
) -> dict[str, Standing]:
    """Return what became of each requirement that is asked of a target or was measured there, by its id.

    Args:
        asked: What the run has noted.
        target: As `asked_of` takes it.
        records: Values of the target that count, without the bench's checks of itself.
    """
    measured: dict[str, list[Measurement]] = {}
    for record in records:
        measured.setdefault(record.requirement, []).append(record)
    wanted = asked_of(asked, target)
    found: dict[str, Standing] = {}
    for name in dict.fromkeys([*wanted, *measured]):
        values, ask = tuple(measured.get(name, ())), wanted.get(name, AskedRequirement(""))
        if values:
            found[name] = Standing(worst_outcome({record.outcome for record in values}), values, ask.file)
        else:
            found[name] = Standing(SKIPPED if ask.skipped else UNTESTED, (), ask.file, ask.skipped)
    return found


def natural(text: str) -> tuple[tuple[int, str], ...]:
    """Return a key that sorts the numbers in a text as numbers."""
    parts = re.split(r"([0-9]+)", text)
    return tuple((int(part), "") if number % 2 else (-1, part) for number, part in enumerate(parts))


def count_states(found: Iterable[Mapping[str, Standing]]) -> dict[State, int]:
    """Return how many requirements of one or more targets have each state, without states of none."""
    counts = Counter(standing.state for each in found for standing in each.values())
    return {state: counts[state] for state in STATES if counts[state]}


def skipped_tests(asked: Iterable[AskedSuite], target: str) -> tuple[SkippedTest, ...]:
    """Return the tests of a target that were skipped; `target` as `asked_of` takes it."""
    return tuple(test for each in asked if not target or each.target in ("", target) for test in each.skipped)
