# SPDX-License-Identifier: Apache-2.0
"""The suite by itself: what it says before a turn is made."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from hw.errors import ConfigError
from resources.stacks import keywords
from resources.stacks.keywords import StacksLibrary

ROOT = Path(__file__).resolve().parents[3]
SUITE = ROOT / "robot" / "stacks" / "by_turns.robot"
REQUIREMENTS = ROOT / "robot" / "stacks" / "requirements" / "stacks_native.toml"

_api: Any = import_module("robot.api")


def selected(
    profile: str, named: set[str], monkeypatch: pytest.MonkeyPatch, path: Path = REQUIREMENTS
) -> list[str]:
    def said(_name: str) -> str:
        return profile

    monkeypatch.setattr(keywords, "robot_variable", said)
    [(_, ids)] = StacksLibrary(path, ROOT / "traffic-gen/patterns/daq12.toml").selected(named)
    return list(ids)


def test_a_profile_selects_what_it_has_turns_for(monkeypatch: pytest.MonkeyPatch) -> None:
    tests = {test.body[0].args[0] for test in _api.TestSuite.from_file_system(str(SUITE)).tests}
    assert tests == {*keywords.CONDITIONS}
    assert set(selected("ci", tests, monkeypatch)) == {"STACKS-IDLE-MEDIAN", "STACKS-IDLE-OVER-BUDGET"}
    assert len(selected("nightly", tests, monkeypatch)) == 6
    assert selected("nightly", {"lossy_1000_ppm"}, monkeypatch) == ["STACKS-LOSSY-1000-OVER-BUDGET"]
    assert selected("nightly", {"loaded"}, monkeypatch) == [
        "STACKS-LOADED-MEDIAN",
        "STACKS-LOADED-OVER-BUDGET",
    ]


def test_a_requirement_under_what_is_no_condition_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own.toml").write_text(REQUIREMENTS.read_text().replace('"idle"', '"windy"'))
    with pytest.raises(ConfigError, match=r"own\.toml: STACKS-IDLE-MEDIAN\.under: 'windy'; allowed: idle"):
        selected("ci", {"idle"}, monkeypatch, tmp_path / "own.toml")
