# SPDX-License-Identifier: Apache-2.0
"""One test for each clock stack of a kind of target, in the place of a row that stands for all.

    Every Clock Stack Keeps The Clock Within Its Limit
        [Template]    Clock Should Stay Within Its Limit
        every clock stack

A test bears the tag `stack:NAME`, and in its name the stack's title in the place of `Every Clock Stack`. It
stands before the first test of the same stack, so that a stack is put on once; else where the row was.
resources/every_target.py makes the tests; without it the suite's library does when it starts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import attrgetter
from pathlib import Path
from typing import Any

from hw.bench import load_bench
from hw.provisioning import TARGETS
from reports.run.robot_variable import robot_variable
from resources.clock_sync.settings import STACKS, StackSpec, load_stacks

STACK_TAG = "stack:"
IN_NAME = "Every Clock Stack"
TITLES = {
    "every clock stack": attrgetter("title"),
    "edges of every clock stack": attrgetter("edges_title"),
}
"""Rows, and the title of a stack that its test has; a stack without one has no such test."""


def make_stack_tests(suite: Any, stacks: Callable[[], Iterable[StackSpec]]) -> None:
    """Put one test for each stack in the place of each row, in a suite and those below it.

    Args:
        suite: Of Robot Framework, before it runs.
        stacks: Returns the stacks; asked where there is a row, which stays where that is an error.
    """
    for child in suite.suites:
        make_stack_tests(child, stacks)
    for row in list(suite.tests):
        arguments = [argument for step in row.body for argument in getattr(step, "args", ())]
        title_of = next((TITLES[each] for each in arguments if each in TITLES), None)
        if title_of is None:
            continue
        specs = stacks()
        place = suite.tests.index(row)
        del suite.tests[place]
        for stack in specs:
            if title := title_of(stack):
                beside = [
                    at for at, test in enumerate(suite.tests) if f"{STACK_TAG}{stack.name}" in test.tags
                ]
                _make_test(suite, row, stack.name, title)
                suite.tests.insert(beside[0] if beside else place, suite.tests.pop())
                place += not beside


def stacks_of_variables() -> Iterable[StackSpec]:
    """Return the stacks of the kind of ${TARGET} of the bench file ${BENCH}; raises ConfigError."""
    folder, simulated = _of_variables()
    return () if folder is None else load_stacks(simulated, folder).values()


def simulated_stacks_of_variables() -> Path | None:
    """Return where those stacks are; None: the bench is no simulated one, or named by no variable."""
    folder, simulated = _of_variables() if robot_variable("BENCH") else (None, False)
    return folder if simulated else None


def _of_variables() -> tuple[Path | None, bool]:
    """Return the folder of the stacks of the kind of ${TARGET}, and whether the bench is simulated."""
    spec = load_bench(Path(robot_variable("BENCH")))
    target = spec.targets.get(robot_variable("TARGET"))
    return None if target is None else TARGETS / target.provisioning / STACKS, spec.simulated


def _make_test(suite: Any, row: Any, stack: str, title: str) -> None:
    test = suite.tests.create(
        name=row.name.replace(IN_NAME, title),
        tags=[*row.tags, f"{STACK_TAG}{stack}"],
        doc=row.doc,
        template=row.template,
        lineno=row.lineno,
    )
    test.body.create_keyword(name=row.template, args=[stack])
