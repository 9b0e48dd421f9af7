# SPDX-License-Identifier: Apache-2.0
"""The plan of an acceptance: its parts in their order, and each wrong key by its name."""

from __future__ import annotations

from pathlib import Path

import pytest

from hw.errors import ConfigError
from resources.accept.__main__ import main
from resources.accept.plan_file import read_plan

PLAN = """\
schema = "benchwright.acceptance/1"
name = "hall-7"
profile = "ci"

[[parts]]
bench = "hw/benches/native.yaml"
targets = ["linux"]
suites = ["robot/daq_replay", "robot/rt_baseline"]
stacks = ["kernel", "user"]
longest_min = 20
variables = {REQUIREMENTS = "robot/daq_replay/requirements/daq12.toml"}

[[parts]]
bench = "hw/benches/virtual.yaml"
targets = ["linux-rt", "windows"]
suites = ["robot/clock_sync"]
longest_min = 90
"""


@pytest.fixture
def plan(tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(repository)
    file = tmp_path / "plan.toml"
    file.write_text(PLAN)
    return file


def test_a_table_is_a_part_for_each_target_suite_and_stack(plan: Path) -> None:
    found = read_plan(plan)
    assert [(each.number, each.target, each.suite.name, each.stack) for each in found.parts] == [
        (1, "linux", "daq_replay", "kernel"),
        (2, "linux", "daq_replay", "user"),
        (3, "linux", "rt_baseline", "kernel"),
        (4, "linux", "rt_baseline", "user"),
        (5, "linux-rt", "clock_sync", ""),
        (6, "windows", "clock_sync", ""),
    ]
    assert found.longest_min == 4 * 20 + 2 * 90
    arguments = found.parts[0].arguments(found.profile)
    assert arguments[:4] == ["--bench", "hw/benches/native.yaml", "--profile", "ci"]
    assert arguments[-3:] == ["--", "--variable", "REQUIREMENTS:robot/daq_replay/requirements/daq12.toml"]
    assert "--stacks" not in found.parts[4].arguments("ci")
    assert [each.name for each in found.files()] == ["native.yaml", "virtual.yaml", "daq12.toml"]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("acceptance/1", "acceptance/2", "schema: must be one of benchwright.acceptance/1"),
        ('"hall-7"', '"Hall 7"', "name: must be 1..32 of a-z"),
        ('profile = "ci"', 'profile = "fast"', "profile"),
        ("native.yaml", "none.yaml", r"parts\[1\]\.bench: .*none\.yaml"),
        (
            'targets = ["linux"]',
            'targets = ["linus"]',
            r"parts\[1\]\.targets: no target 'linus' .*there are: linux",
        ),
        ("robot/rt_baseline", "robot/none", r"parts\[1\]\.suites: .*robot/none"),
        ('"kernel", "user"', '"kernel", "users"', r"parts\[1\]\.stacks: .*no network stack 'users'"),
        ('"kernel", "user"', '"kernel", "kernel"', r"parts\[1\]\.stacks: .*each once"),
        ("longest_min = 20", "longest_min = 0", r"parts\[1\]\.longest_min: must be an integer in 1\.\.43200"),
        ("longest_min = 20", "", r"parts\[1\]\.longest_min"),
        ("longest_min = 20", "longest_min = 20\ncolour = 1", r"parts\[1\]\.colour: unknown key"),
        ('targets = ["linux"]', "targets = []", r"parts\[1\]\.targets: .*one at least"),
        ("[[parts]]", "[[part]]", "parts"),
    ],
)
def test_a_wrong_plan_is_refused_with_its_key(plan: Path, old: str, new: str, said: str) -> None:
    assert old in PLAN
    plan.write_text(PLAN.replace(old, new))
    with pytest.raises(ConfigError, match=rf"plan\.toml: {said}"):
        read_plan(plan)
    assert main(["check", str(plan)]) == 2


def test_it_is_listed_before_anything_begins(plan: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", str(plan)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert (
        lines[1].strip() == "2  robot/daq_replay with linux of hw/benches/native.yaml by user, at most 20 min"
    )
    assert lines[-1] == "hall-7: 6 parts, profile ci, at most 260 min"
