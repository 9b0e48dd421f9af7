# SPDX-License-Identifier: Apache-2.0
"""Programs with phases of their own, by the library for C and by that for Python: both answer alike."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.traffic_gen.phase.lines import Component

PYTHON = Path("traffic-gen/phase/python")
PHASES = {"c": ["count", "fail"], "python": ["count", "fail", "none"]}
PROGRAM = """
import os, sys
from bwphase import Phases

phases = Phases()

@phases.phase("count")
def count(parameters):
    print("not an answer")
    os.system("printf 'half a line'")
    return {"twice": 2 * parameters["number"]}

@phases.phase("fail")
def fail(parameters):
    raise OSError("the \\"disk\\" is\\tfull")

@phases.phase("none")
def none(parameters):
    return {"x": float("nan")}

sys.exit(phases.run())
"""


@pytest.fixture(params=["c", "python"])
def program(request: pytest.FixtureRequest, phase_probe: Path, tmp_path: Path, repository: Path) -> Component:
    """Give a program that has the phases count and fail."""
    if request.param == "c":
        return Component(phase_probe)
    file = tmp_path / "program.py"
    file.write_text(f"import sys; sys.path.insert(0, {str(repository / PYTHON)!r})\n{PROGRAM}")
    return Component(sys.executable, file)


def test_a_program_answers_each_phase(program: Component, request: pytest.FixtureRequest) -> None:
    kind = request.node.callspec.params["program"]
    with program:
        assert program.hear() == {
            "type": "ready",
            "schema": "benchwright.phase/1",
            "phases": PHASES[kind],
        }
        answer = program.asked("count", {"number": 21})
        assert answer == {"type": "done", "phase": "count", "values": {"twice": 42}}
        failed = program.asked("fail")
        assert (failed["type"], failed["phase"]) == ("failed", "fail")
        assert 'the "disk" is\tfull' in failed["reason"]
        assert program.asked("other")["reason"] == "the program has no such phase"
        if kind == "python":
            assert program.asked("none")["reason"] == "ValueError: x: must be a number, found nan"
        assert program.asked("count", {"number": -3})["values"] == {"twice": -6}
        assert program.end() == 0


def test_what_is_no_phase_ends_a_program(program: Component) -> None:
    with program:
        program.hear()
        program.write("nonsense")
        assert program.process.wait() == 2
