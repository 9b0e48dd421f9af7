# SPDX-License-Identifier: Apache-2.0
"""Which requirements of a file a profile measures: a mistake is told, what cannot be costs no other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hw.errors import CapabilityError, ConfigError
from reports.record.measurement import Measurement
from reports.requirements import Requirement
from resources.control_loops import camera_keywords, keywords
from resources.control_loops.asked import asked_requirements
from resources.control_loops.settings import CAMERA_TIMES, TIMES, camera_times, ring_times
from resources.keywords import judged

HEAD = '[requirements]\nschema = "benchwright.requirements/2"\nname = "a-test"\n'
ONE = """
[[requirement]]
id = "X{number}"
stretch = "{stretch}"
quantity = "{quantity}"
statistic = "median"
upper_us = 1000
samples = 100
lost = 0
source = "a test"
"""


def written(folder: Path, *stretches: str, quantity: str = "loop_delay") -> Path:
    ones = [
        ONE.format(number=number, stretch=each, quantity=quantity) for number, each in enumerate(stretches)
    ]
    file = folder / "own.toml"
    file.write_text(HEAD + "".join(ones))
    return file


def of_ring(file: Path, profile: str = "ci") -> tuple[list[Requirement], list[str]]:
    return asked_requirements(file, keywords.STRETCHES, profile, TIMES, lambda table: ring_times(table).cases)


def of_camera(file: Path, profile: str = "ci") -> tuple[list[Requirement], list[str]]:
    return asked_requirements(
        file, camera_keywords.STRETCHES, profile, CAMERA_TIMES, lambda table: camera_times(table).cases
    )


def ids(found: list[Requirement]) -> list[str]:
    return [each.id for each in found]


def test_what_the_profile_does_not_measure_is_named_and_left_out(tmp_path: Path) -> None:
    file = written(tmp_path, "whole", "hop 4 under network load", "node 1 with chrony")
    asked, others = of_ring(file)
    assert (ids(asked), others) == (["X0", "X1"], ["X2"])
    asked, others = of_ring(file, "nightly")
    assert (ids(asked), others) == (["X0", "X1", "X2"], [])
    file = written(tmp_path, "whole at 50 ms", "tracker to camera at 300 ms under compile-like load")
    assert of_camera(file)[1] == ["X1"]
    assert of_camera(file, "nightly")[1] == []


@pytest.mark.parametrize(
    ("stretch", "said"),
    [
        ("hop 5", "X0.stretch: 'hop 5'; loop_delay has whole, hop 1, hop 2, hop 3, hop 4, node 1"),
        ("hole", "X0.stretch: 'hole'; loop_delay has whole"),
        ("whole at 50 ms", "X0.stretch: 'whole at 50 ms'; behind 'whole' may stand: nothing, under "),
        ("whole under disk load", "may stand: nothing, under "),
    ],
)
def test_mistyped_stretch_of_a_ring_is_told(tmp_path: Path, stretch: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        of_ring(written(tmp_path, stretch))


@pytest.mark.parametrize(
    ("stretch", "said"),
    [
        ("whole", "X0.stretch: 'whole'; behind 'whole' may stand: at 0 ms, at 50 ms, at 100 ms, at 20 ms"),
        ("whole at 75 ms", "X0.stretch: 'whole at 75 ms'; behind"),
        ("hole at 0 ms", "X0.stretch: 'hole at 0 ms'; loop_delay has whole, camera to tracker, tracker, "),
    ],
)
def test_mistyped_stretch_of_a_camera_is_told(tmp_path: Path, stretch: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        of_camera(written(tmp_path, stretch))


def test_nodes_are_not_on_the_wire_and_a_camera_has_none(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="'node 1'; loop_wire_delay has whole, hop 1"):
        of_ring(written(tmp_path, "node 1", quantity="loop_wire_delay"))
    with pytest.raises(ConfigError, match="loop_wire_delay"):
        of_camera(written(tmp_path, "whole at 0 ms", quantity="loop_wire_delay"))


class Kept:
    """A run that notes what is written."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.records: list[Any] = []

    def append(self, record: Any) -> None:
        """Note it."""
        self.records.append(record)


def record_of(outcome: str) -> Measurement:
    found = object.__new__(Measurement)
    for name, value in (("requirement", f"CL-{outcome}"), ("outcome", outcome), ("reason", "over")):
        object.__setattr__(found, name, value)
    return found


def test_what_cannot_be_measured_hides_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Kept()
    monkeypatch.setattr(judged, "current_run", lambda: kept)
    both = [record_of("pass"), "CL-50: no router", record_of("fail")]
    with pytest.raises(AssertionError, match=r"^FAIL: CL-fail: over; UNSET: CL-50: no router$"):
        judged.keep_judged(both, "ci")
    assert [each.requirement for each in kept.records] == ["CL-pass", "CL-fail"]
    with pytest.raises(AssertionError, match=r"^UNSET: CL-50: no router$"):
        judged.keep_judged([record_of("pass"), "CL-50: no router"], "ci")
    judged.keep_judged([record_of("pass")], "ci")
    with pytest.raises(CapabilityError, match="profile ci measures nothing"):
        judged.keep_judged([], "ci")
