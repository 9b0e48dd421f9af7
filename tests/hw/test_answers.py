# SPDX-License-Identifier: Apache-2.0
"""What a target's scripts and tools say is never taken for more than it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from hw.answers import answers_of, json_line
from hw.drivers.local import says_ready
from hw.errors import BenchError, MeasurementError
from resources.clock_sync.refused_answers import rejected_answers
from resources.tools.experiment import last_result

ITEM = '{"type":"item","item":"governor","status":"ok","changed":true}'
NO_OBJECTS = ["", "{", "[]", "7", "null", '"x"', "[" * 100_000, "1" * 5000, "\udcff", '{"a":1}{"b":2}']
FIELDS = ("item", "status", "changed")


@pytest.mark.parametrize("line", NO_OBJECTS)
def test_a_line_that_is_no_object(line: str, tmp_path: Path) -> None:
    assert json_line(line) is None
    file = tmp_path / "answers.ndjson"
    file.write_text(f"{line}\n", errors="surrogateescape")
    assert not says_ready(file)
    with pytest.raises(MeasurementError, match="no result"):
        last_result(file)
    assert rejected_answers(f'{line}"rejected"\n') == ""


@pytest.mark.parametrize("line", [line for line in NO_OBJECTS if line])
def test_a_script_that_says_something_else_is_named(line: str) -> None:
    with pytest.raises(BenchError, match=r"rt1: provisioning: says .*: invalid JSON"):
        answers_of(f"{ITEM}\n{line}\n", "item", FIELDS, "rt1: provisioning")


def test_answers_of_one_type() -> None:
    assert [one["item"] for one in answers_of(f'{ITEM}\n\n{{"type":"end"}}\n', "item", FIELDS, "rt1")] == [
        "governor"
    ]
    with pytest.raises(BenchError, match="rt1: changed: missing"):
        answers_of('{"type":"item","item":"x","status":"ok"}', "item", FIELDS, "rt1")
