# SPDX-License-Identifier: Apache-2.0
"""The requirements that a run selects for each target, and what became of them: one definition for all.

A suite selects a requirement of its target, or *asks* it, as pages and `run.json` have it, where one of its
tests would judge it. It says so in the manifest as soon as it starts, before anything can break off. Of a
requirement on a target there is then

- an outcome: values of it count; the worst of theirs;
- `skipped`: asked, without a value, and a test that would have judged it was skipped, with its reason;
- `untested`: asked, and without a value for any other cause;
- `not asked`: no suite of this target asks it.

A run that compares network stacks asks a suite that uses one once with each: each of these stands for itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from reports.record.codec import omit_none
from reports.record.measurement import Measurement, Outcome
from reports.run.tally import worst_outcome

KEPT = Path("evidence", "requirements")
"""Where a run keeps the requirements files that its suites select by."""
SUITES = Path(__file__).resolve().parents[2] / "robot"

State = Outcome | Literal["skipped", "untested", "not asked"]
SKIPPED: State = "skipped"
UNTESTED: State = "untested"
NOT_SELECTED: State = "not asked"
STATES: tuple[State, ...] = (
    "pass",
    "fail",
    "inconclusive",
    "unset",
    "error",
    SKIPPED,
    UNTESTED,
    NOT_SELECTED,
)
"""In the order in which they are counted."""


@dataclass(frozen=True, slots=True)
class SkippedTest:
    """A test that was skipped, why, and the requirements that it would have judged."""

    test: str
    reason: str
    requirements: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SelectedFile:
    """A requirements file by which a suite selects: name of the copy that the run keeps, and ids."""

    file: str
    requirements: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SelectedSuite:
    """A suite that a target takes part in.

    Attributes:
        target: Its name; empty: whatever target the run has.
        suite: As `suite_name` names it.
        asks: What it asks; None: it has not started, or asks nothing.
        skipped: Its tests that were skipped.
        stack: The network stack that it is run with; None: the run chooses none for it.
    """

    target: str
    suite: str
    asks: tuple[SelectedFile, ...] | None = omit_none()
    skipped: tuple[SkippedTest, ...] = ()
    stack: str | None = omit_none()

    @property
    def requirements(self) -> tuple[str, ...]:
        """Return the ids of what it asks."""
        return tuple(dict.fromkeys(name for each in self.asks or () for name in each.requirements))


@dataclass(frozen=True, slots=True)
class SelectedRequirement:
    """A requirement that is selected: by which file, and why it was skipped; empty: it was not."""

    file: str
    skipped: str = ""


@dataclass(frozen=True, slots=True)
class Standing:
    """What became of a requirement on a target.

    Attributes:
        records: Its values that count.
        file: By which it is selected; empty: by none, a suite has it of itself.
        reason: Why it was skipped; empty: it was not.
        requirement: Its id.
    """

    state: State
    records: tuple[Measurement, ...] = ()
    file: str = ""
    reason: str = ""
    requirement: str = ""


def unmeasured(states: Mapping[State, int]) -> str:
    """Return how much less was measured than asked, in words; empty: nothing.

    Args:
        states: How many requirements have each state.
    """
    less, selected = states.get(SKIPPED, 0) + states.get(UNTESTED, 0), sum(states.values())
    return f"{less} of {selected} asked not measured" if less else ""


def suite_name(source: Path) -> str:
    """Return the name of a suite by its file below `robot/`, elsewhere by its folder: `folder/one.robot`."""
    path = source.resolve()
    home = SUITES if SUITES in path.parents else path.parent.parent
    return path.relative_to(home).as_posix()


def selected_suite(
    selected: Iterable[SelectedSuite], target: str, suite: str, stack: str | None
) -> SelectedSuite | None:
    """Return what is noted of a suite of a target, with a network stack or with none; None: nothing."""
    wanted = (target, suite, stack)
    return next((each for each in selected if (each.target, each.suite, each.stack) == wanted), None)


def chosen_stack(selected: Iterable[SelectedSuite], target: str, suite: str, stack: str) -> str | None:
    """Return the stack that a suite runs with, where the run has chosen it for that; None: it has not."""
    return stack if selected_suite(selected, target, suite, stack) is not None else None


def stacks_of(selected: Iterable[SelectedSuite], target: str) -> tuple[str, ...]:
    """Return the network stacks that a run has chosen for a target, in its order.

    Args:
        selected: What the run has noted.
        target: Its name; empty: the run has no more than one.
    """
    own = (each.stack for each in selected if not target or each.target in ("", target))
    return tuple(dict.fromkeys(stack for stack in own if stack is not None))


def with_selected(
    selected: Sequence[SelectedSuite],
    target: str,
    suite: str,
    more: SelectedFile | None = None,
    stack: str | None = None,
) -> tuple[SelectedSuite, ...]:
    """Return what is selected, with a suite that a target takes part in, or with a file by which it selects.

    Args:
        selected: What was selected so far.
        target: Name of the target.
        suite: Name of the suite.
        more: What the suite selects; None: it will say.
        stack: The network stack that the run has chosen for it; None: none.
    """
    before = selected_suite(selected, target, suite, stack)
    entry = before or SelectedSuite(target, suite, stack=stack)
    if more is not None:
        others = [each for each in entry.asks or () if each.file != more.file]
        entry = replace(entry, asks=(*others, more), skipped=())
    return tuple(entry if each is before else each for each in selected) + (() if before else (entry,))


def with_nothing_selected(
    selected: Sequence[SelectedSuite], target: str, suite: str, stack: str | None = None
) -> tuple[SelectedSuite, ...]:
    """Return what is selected, with a suite that says that it selects nothing, unless it did before."""
    found = with_selected(selected, target, suite, stack=stack)
    own = selected_suite(found, target, suite, stack)
    return tuple(replace(each, asks=each.asks or ()) if each is own else each for each in found)


def with_skipped(
    selected: Sequence[SelectedSuite], target: str, suite: str, test: SkippedTest, stack: str | None = None
) -> tuple[SelectedSuite, ...]:
    """Return what is selected, with a test that was skipped."""
    found = with_selected(selected, target, suite, stack=stack)
    own = selected_suite(found, target, suite, stack)
    return tuple(replace(each, skipped=(*each.skipped, test)) if each is own else each for each in found)


def selected_of(selected: Sequence[SelectedSuite], target: str) -> dict[str, SelectedRequirement]:
    """Return what is selected of a target, by its id; of several files the one that was named first.

    A suite that never came to say what it selects of a target selects what it does of others.

    Args:
        selected: What the run has noted.
        target: Its name; empty: the run has no more than one.
    """
    found: dict[str, SelectedRequirement] = {}
    for (name, _stack), each in selected_by_stack(selected, target).items():
        before = found.setdefault(name, each)
        found[name] = before if before.skipped else replace(before, skipped=each.skipped)
    return found


def selected_by_stack(
    selected: Sequence[SelectedSuite], target: str
) -> dict[tuple[str, str | None], SelectedRequirement]:
    """Return what is selected of a target, as `selected_of`, by its id and network stack.

    The stack is None where the run has chosen none for the suite, or one alone for all of the target.
    """
    own = [each for each in selected if not target or each.target in ("", target)]
    several = len(stacks_of(own, "")) > 1
    skipped = {
        (requirement, each.stack if several else None): test.reason
        for each in own
        for test in each.skipped
        for requirement in test.requirements
    }
    found: dict[tuple[str, str | None], SelectedRequirement] = {}
    for each in own:
        alike = (
            [each] if each.asks is not None else [other for other in selected if other.suite == each.suite]
        )
        for file in (file for other in alike for file in other.asks or ()):
            for name in file.requirements:
                key = (name, each.stack if several else None)
                found.setdefault(key, SelectedRequirement(file.file, skipped.get(key, "")))
    return found


def standings(
    selected: Sequence[SelectedSuite],
    target: str,
    records: Iterable[Measurement],
    checks: Iterable[Measurement] = (),
) -> dict[str, Standing]:
    """Return what became of each requirement that is selected of a target or was measured there, by its id.

    Of a target that the run asks with several network stacks the stack stands behind the id: each has to
    have its values.

    Args:
        selected: What the run has noted.
        target: As `selected_of` takes it.
        records: Values of the target that count, without the bench's checks of itself.
        checks: These: one that a file asks for is no requirement on the target, and not untested either.
    """
    checked = {check.requirement for check in checks}
    wanted = selected_by_stack(selected, target)
    measured: dict[tuple[str, str | None], list[Measurement]] = {}
    for record in records:
        key = (record.requirement, record.subject.stack)
        measured.setdefault(key if key in wanted else (record.requirement, None), []).append(record)
    found: dict[str, Standing] = {}
    for key in dict.fromkeys([*wanted, *measured]):
        values, ask = tuple(measured.get(key, ())), wanted.get(key, SelectedRequirement(""))
        if not values and key[0] in checked:
            continue
        if values:
            state: State = worst_outcome({record.outcome for record in values})
        else:
            state = SKIPPED if ask.skipped else UNTESTED
        words = " \u00b7 ".join(part for part in key if part)
        found[words] = Standing(state, values, ask.file, "" if values else ask.skipped, key[0])
    return found


def count_states(found: Iterable[Mapping[str, Standing]]) -> dict[State, int]:
    """Return how many requirements of one or more targets have each state, without states of none."""
    counts = Counter(standing.state for each in found for standing in each.values())
    return {state: counts[state] for state in STATES if counts[state]}


def skipped_tests(selected: Iterable[SelectedSuite], target: str) -> tuple[SkippedTest, ...]:
    """Return the tests of a target that were skipped; `target` as `selected_of` takes it."""
    return tuple(
        test for each in selected if not target or each.target in ("", target) for test in each.skipped
    )
