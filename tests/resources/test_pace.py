# SPDX-License-Identifier: Apache-2.0
"""Suites, and files of tests, that take longer than their budgets are named."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from resources import pace
from resources.every_target import SUITES, TARGETS
from tests.pace import over_budget


@pytest.fixture
def budgets(tmp_path: Path) -> Path:
    file = tmp_path / "capability" / "budgets.toml"
    file.parent.mkdir()
    file.write_text('[ci.arm]\n"capability/suite.robot" = 10\n')
    return tmp_path


def _of_arm(_name: str) -> str:
    return "arm"


def _ran(watch: pace.Pace, seconds: float, tests: int = 1, suite: str = "suite", further: str = "") -> None:
    data = SimpleNamespace(tests=[None] * tests, source=Path(f"robot/capability/{suite}.robot"))
    metadata = {pace.FURTHER_REPLAYS: further} if further else {}
    result = SimpleNamespace(elapsed_time=timedelta(seconds=seconds), metadata=metadata)
    watch.start_suite(data, result)
    watch.end_suite(data, result)


def test_a_suite_over_its_budget_is_named(budgets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    readings = iter([(1.0, 2.0), (2.0, 3.5), *[(3.0, 4.0)] * 2, (4.0, 5.0), (4.0, 6.0)])
    monkeypatch.setattr(pace, "robot_variable", _of_arm)
    monkeypatch.setattr(pace, "stolen_s", lambda: next(readings))
    watch = pace.Pace("ci", budgets)
    _ran(watch, 10.0)
    _ran(watch, 99.0, tests=0)
    _ran(watch, 99.0, suite="without_budget")
    assert list(watch.over_budget()) == []
    _ran(watch, 1.0)
    assert list(watch.over_budget()) == [
        "capability/suite.robot of arm took 11 s, its budget is 10 s; 3.5 s of the machine's CPUs were stolen"
    ]


def test_the_reason_is_said_where_replays_were_made_again(
    budgets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pace, "robot_variable", _of_arm)
    monkeypatch.setattr(pace, "stolen_s", lambda: (0.0,))
    watch = pace.Pace("ci", budgets)
    _ran(watch, 100.0, further="3 further replays took 90 s")
    (line,) = watch.over_budget()
    assert "its budget is 10 s; 3 further replays took 90 s; 0.0 s of" in line


def test_a_profile_without_budgets_has_none_to_break(budgets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "robot_variable", _of_arm)
    watch = pace.Pace("soak", budgets)
    _ran(watch, 1e6)
    assert list(watch.over_budget()) == []


@pytest.mark.parametrize("profile", ["quick", "ci"])
def test_every_suite_with_a_budget_is_there(profile: str) -> None:
    for target, suites in pace.Pace(profile).budgets_s.items():
        assert (TARGETS / target).is_dir()
        for suite in suites:
            assert (SUITES / suite).is_file()


def test_a_file_of_tests_over_its_budget_is_named(tmp_path: Path) -> None:
    budgets = tmp_path / "budgets.toml"
    budgets.write_text('else_s = 20\n[files_s]\n"tests/slow.py" = 60\n')
    taken_s = {"tests/slow.py": 61.0, "tests/other.py": 25.0, "tests/quick.py": 19.0}
    assert over_budget(taken_s, budgets) == [
        "tests/other.py: 25 s, its budget is 20 s",
        "tests/slow.py: 61 s, its budget is 60 s",
    ]
