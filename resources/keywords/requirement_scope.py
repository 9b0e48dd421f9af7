# SPDX-License-Identifier: Apache-2.0
"""What keyword libraries that judge by requirements share: their suites say at once what they select."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from robot.api import logger

from hw.errors import BenchwrightError
from reports.errors import ReportError
from resources.requirement_scope import select, select_nothing

MUST_FAIL = "must-fail"
"""Tag of tests that check the bench by what has to fail: they judge no requirement of the target."""


class RequirementScope:
    """A library whose suites select requirements of their target.

    As soon as a suite starts that imports it, before anything can break off, the run notes what the suite
    selects. Register it with `listener="SELF"`.
    """

    ROBOT_LISTENER_API_VERSION = 3

    def selected(self, named: Collection[str]) -> Iterable[tuple[Path, Collection[str]]]:
        """Return requirements files, each with the ids of what a suite selects of it.

        Args:
            named: What its tests name: their tags, a tag's value, keywords and their arguments.
        """
        raise NotImplementedError

    def make_tests(self, suite: Any) -> None:
        """Put tests in the place of rows that stand for several, where no pre-run modifier has done it."""
        del suite

    def start_suite(self, data: Any, _result: Any) -> None:
        """Listener: select what the tests of a suite would judge.

        A requirements file that is wrong is an error of the keyword that needs it.
        """
        if not data.tests or data.source is None:
            return
        try:
            self.make_tests(data)
            if not _judging(data):
                select_nothing(Path(data.source))
                return
            for file, requirements in self.selected(names_in(data)):
                if requirements:
                    select(Path(data.source), file, requirements)
        except (BenchwrightError, ReportError, OSError) as error:
            logger.error(str(error))


def names_in(suite: Any) -> frozenset[str]:
    """Return what the tests of a suite name: tags, what stands behind a tag's colon, keywords, arguments.

    Tests that must fail judge nothing, and are left out.
    """
    found: set[str] = set()
    for test in _judging(suite):
        for tag in map(str, test.tags):
            found |= {tag, tag.rpartition(":")[2]}
        for step in test.body:
            found |= {str(getattr(step, "name", "")), *map(str, getattr(step, "args", ()))}
    return frozenset(found)


def _judging(suite: Any) -> list[Any]:
    return [test for test in suite.tests if MUST_FAIL not in map(str, test.tags)]


def of_subjects(subjects: Mapping[str, str], named: Collection[str]) -> list[str]:
    """Return the ids of requirements whose subjects are named; where none is, as by variables: all.

    Args:
        subjects: The subject of each requirement by its id, such as `chrony`.
        named: As `names_in` returns it.
    """
    return [requirement for requirement, of in subjects.items() if of in named] or list(subjects)
