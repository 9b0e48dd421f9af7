# SPDX-License-Identifier: Apache-2.0
"""One test for each clock stack of a kind stands in the place of a row, beside the stack's other tests."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from hw.errors import ConfigError
from resources.clock_sync import stack_tests
from resources.clock_sync.settings import StackSpec, load_stacks
from resources.clock_sync.stack_tests import (
    make_stack_tests,
    simulated_stacks_of_variables,
    stacks_of_variables,
)

ROOT = Path(__file__).resolve().parents[3]
LINUX = tuple(load_stacks(simulated=True).values())
SUITE = """*** Test Cases ***
First
    No Operation
Every Clock Stack Keeps Time
    [Documentation]    Of each.
    [Tags]    steady
    [Template]    Look At
    {row}
Between
    [Tags]    stack:chrony
    No Operation
Last
    [Tags]    stack:chrony    stack:ptp-software
    No Operation
"""
api: Any = import_module("robot.api")


def _made(row: str) -> Any:
    suite = api.TestSuite.from_string(SUITE.format(row=row))
    make_stack_tests(suite, lambda: LINUX)
    return suite


def test_each_stack_with_a_title_has_its_test_before_its_others() -> None:
    suite = _made("every clock stack")
    assert [test.name for test in suite.tests] == [
        "First",
        "An NTP Client With User-Space Stamps Keeps Time",
        "Phc2sys From The Card's Clock Keeps Time",
        "PTP With Hardware Stamps Keeps Time",
        "Chrony With Kernel Stamps Keeps Time",
        "Between",
        "PTP With Software Stamps Keeps Time",
        "Last",
    ]
    chrony = suite.tests[4]
    assert (list(chrony.tags), chrony.doc) == (["stack:chrony", "steady"], "Of each.")
    assert [(step.name, step.args) for step in chrony.body] == [("Look At", ("chrony",))]


def test_edges_have_titles_of_their_own() -> None:
    made = {test.name for test in _made("edges of every clock stack").tests}
    titles = {f"{stack.edges_title} Keeps Time" for stack in LINUX if stack.edges_title}
    assert made == titles | {"First", "Between", "Last"}
    assert len(titles) > 3


def test_a_suite_without_a_row_asks_for_no_stack() -> None:
    suite = api.TestSuite.from_string(SUITE.format(row="chrony"))
    make_stack_tests(suite, lambda: pytest.fail("asked"))
    assert [test.name for test in suite.tests] == ["First", "Every Clock Stack Keeps Time", "Between", "Last"]


def test_a_row_stays_where_a_stack_is_wrong() -> None:
    """It then fails for the same cause; a suite without it would pass."""

    def wrong() -> list[StackSpec]:
        raise ConfigError("stack.toml: wrong")

    suite = api.TestSuite.from_string(SUITE.format(row="every clock stack"))
    with pytest.raises(ConfigError, match="wrong"):
        make_stack_tests(suite, wrong)
    assert [test.name for test in suite.tests] == ["First", "Every Clock Stack Keeps Time", "Between", "Last"]


def test_without_a_modifier_the_kind_is_that_of_the_target(monkeypatch: pytest.MonkeyPatch) -> None:
    values = {"BENCH": str(ROOT / "hw/benches/virtual.yaml"), "TARGET": "windows"}
    monkeypatch.setattr(stack_tests, "robot_variable", values.get)
    assert [stack.name for stack in stacks_of_variables()] == ["as-found", "timeservice", "w32time"]
    assert simulated_stacks_of_variables() == ROOT / "targets/windows/clock"
    values["TARGET"] = "nobody"
    assert list(stacks_of_variables()) == []
    values["BENCH"] = "none.yaml"
    with pytest.raises(ConfigError, match=r"none\.yaml"):
        stacks_of_variables()
    del values["BENCH"]
    assert simulated_stacks_of_variables() is None
