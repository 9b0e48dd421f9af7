# SPDX-License-Identifier: Apache-2.0
"""One test for each requirement of a file: a pre-run modifier of Robot Framework.

    robot --prerunmodifier resources.requirement_tests.RequirementTests:bench=FILE:target=NAME \
          --test "DAQ-010 *" robot/daq_replay

A suite whose tests come from a requirements file has one templated test with the single row `every
requirement`. With the modifier the tests are there before Robot Framework selects: `--test`, `--rerunfailed`,
pabot and IDEs know them by name. Without it the suite makes them when it starts (`DaqReplayLibrary`).

Robot Framework gives a modifier no `--variable`. Its arguments are variables, `NAME=VALUE`, each optional,
and are set in the suites: `requirements=FILE` and `bench=FILE`, `target=NAME`, or another that stands in the
place of a requirements file, as `PRODUCER_REQUIREMENTS=FILE`. With a target the suites are those of its kind
(resources/every_target.py). An argument with a colon in it: separate by semicolons.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from hw.bench import load_bench
from hw.errors import BenchwrightError, ConfigError
from reports.requirements import Requirement
from resources.daq_replay.requirements import StreamRequirements, load_requirements
from resources.every_target import EveryTarget, no_tests_where_wrong, set_variables
from resources.moved import present

TEMPLATE_ROW = "every requirement"
REQUIREMENT = "Requirement"
"""Metadata of a test that was made for one."""
LIBRARY = "DaqReplayLibrary"
"""Its first argument is the requirements file of a suite that imports it."""

_api: Any = import_module("robot.api")  # no types of its own
_running: Any = import_module("robot.running")
_variables: Any = import_module("robot.variables")
_errors: Any = import_module("robot.errors")


class RequirementTests(_api.SuiteVisitor):  # type: ignore[misc]
    """Put one test for each requirement in the place of each template row."""

    def __init__(self, *arguments: str) -> None:
        """Remember the arguments.

        Args:
            arguments: `NAME=VALUE`, a variable of the suites each.
        """
        self._arguments = arguments

    def visit_suite(self, suite: Any) -> None:
        """Change the outermost suite; it is the only one that is visited.

        A requirements file that is wrong is named on stderr; its row stays, and fails with the same words.

        Raises:
            ConfigError: An argument is no variable, the bench has no such target, or a file of its kind is
                wrong. The suite is then without tests.
        """
        with no_tests_where_wrong(suite):
            values = dict(map(_variable, self._arguments))
            target, bench = values.get("TARGET"), values.get("BENCH")
            if target:
                EveryTarget(_with_kind(target, bench)).visit_suite(suite)
        set_variables(suite, values)
        for each in _with_rows(suite):
            try:
                path = requirements_file(each)
                if path is not None:
                    make_tests(each, load_requirements(path))
            except BenchwrightError as error:
                print(f"[ ERROR ] {error}", file=sys.__stderr__, flush=True)


def test_name(stream: int, requirement: Requirement) -> str:
    """Return the name of the test of a stream's requirement."""
    return f"{requirement.id} Stream {stream} Arrives Within {requirement.upper_ns / 1e6:g} ms"


def make_tests(suite: Any, requirements: StreamRequirements) -> None:
    """Put one test for each requirement, in the order of the streams, in the place of the template rows."""
    for row in template_rows(suite):
        place = suite.tests.index(row)
        del suite.tests[place]
        for number, (stream, requirement) in enumerate(sorted(requirements.by_stream.items())):
            test = suite.tests.create(
                name=test_name(stream, requirement),
                tags=row.tags,
                doc=requirement.limit.source,
                template=row.template,
                lineno=row.lineno,
            )
            test.metadata[REQUIREMENT] = requirement.id
            test.body.create_keyword(name=row.template, args=[str(stream)])
            suite.tests.insert(place + number, suite.tests.pop())  # tests after the row stay after it


def template_rows(suite: Any) -> list[Any]:
    """Return the tests of a suite, not of those below it, that stand for all requirements."""
    return [
        test for test in suite.tests if any(TEMPLATE_ROW in getattr(step, "args", ()) for step in test.body)
    ]


def tests_of_other_files(suite: Any, requirements: StreamRequirements) -> list[Any]:
    """Return the tests of a suite that were made from another file than these requirements."""
    names = {test_name(*each) for each in requirements.by_stream.items()}
    return [test for test in suite.tests if REQUIREMENT in test.metadata and test.name not in names]


def requirements_file(suite: Any) -> Path | None:
    """Return the requirements file of a suite, by the import of its library.

    Args:
        suite: It, or a resource that it imports, imports `DaqReplayLibrary`.

    Returns:
        None where it imports none, or a variable is known only when the suite starts.
    """
    known = _variables.Variables()
    files = list(_with_resources(suite.resource, set()))
    for file in files:
        known.set_from_variable_section(file.variables)
    known.resolve_delayed()
    imports = (each for file in files for each in file.imports if each.type == each.LIBRARY)
    argument = next((each.args[0] for each in imports if each.name.endswith(LIBRARY) and each.args), None)
    try:
        return None if argument is None else present(Path(known.replace_string(argument)))
    except _errors.DataError:
        return None


def _variable(argument: str) -> tuple[str, str]:
    name, equals, value = argument.partition("=")
    if not (name and equals and value):
        raise ConfigError(
            f"RequirementTests: {argument!r}: must be NAME=VALUE, such as requirements=FILE,"
            " bench=FILE, target=NAME"
        )
    return name.upper(), value


def _with_kind(target: str, bench: str | None) -> str:
    """Return a target as `EveryTarget` takes it."""
    if bench is None:
        return target
    spec = load_bench(Path(bench))
    if target not in spec.targets:
        there = ", ".join(spec.targets)
        raise ConfigError(f"{bench}: benchwright.targets: no target {target!r}; there are: {there}")
    return f"{target}@{spec.targets[target].provisioning}"


def _with_rows(suite: Any) -> Iterator[Any]:
    if template_rows(suite):
        yield suite
    for child in suite.suites:
        yield from _with_rows(child)


def _with_resources(resource: Any, seen: set[Path]) -> Iterator[Any]:
    """Yield a file's own part and the resources that it imports, nearest first."""
    yield resource
    for each in resource.imports:
        if each.type != each.RESOURCE or each.directory is None:
            continue
        path = (Path(each.directory) / each.name).resolve()
        if path.is_file() and path not in seen:
            seen.add(path)
            yield from _with_resources(_running.ResourceFile.from_file_system(path), seen)
