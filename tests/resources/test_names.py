# SPDX-License-Identifier: Apache-2.0
"""Names that keywords take are those of the data: Robot Framework refuses others, and hands text on."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from resources import names

ROOT = Path(__file__).resolve().parents[2]
type_info: Any = import_module("robot.running.arguments.typeinfo").TypeInfo
FOUND = {
    "ClockStack": {file.parent.name for file in ROOT.glob("targets/*/clock/*/stack.toml")},
    "NetworkStack": {file.stem for file in ROOT.glob("targets/*/stack/*.toml")},
    "Profile": {"quick", "ci", "nightly", "acceptance", "soak"},
}
FOUND["ReplayClock"] = FOUND["ClockStack"] | {"two-way"}


@pytest.mark.parametrize("kind", FOUND)
def test_each_name_of_the_data_is_taken_as_text(kind: str) -> None:
    taken = type_info.from_type_hint(getattr(names, kind))
    for name in FOUND[kind]:
        value: str = taken.convert(name)
        assert (value, f"{value}", json.dumps([value])) == (name, name, f'["{name}"]')
        assert Path("folder") / value == Path("folder", name)
    assert {each.value for each in getattr(names, kind)} == FOUND[kind]


def test_another_name_is_refused_with_those_that_there_are() -> None:
    taken = type_info.from_type_hint(names.ClockStack)
    with pytest.raises(
        ValueError, match=r"'sundial' that cannot be converted.* Available: 'as-found', 'chrony'"
    ):
        taken.convert("sundial", "clock")
