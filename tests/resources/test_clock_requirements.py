# SPDX-License-Identifier: Apache-2.0
"""Requirements on clocks: the project's own file is sound, and a wrong one is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from hw.errors import ConfigError
from resources.clock_requirements import load_clock_requirements
from resources.clock_settings import STACKS

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "robot" / "requirements" / "clock_sync_virtual.toml"
GOOD = """
[requirements]
schema = "benchwright.clock_requirements/1"
name = "site"

[[requirement]]
id = "CLK-1"
clock = "chrony"
quantity = "sync_offset"
statistic = "max_abs"
limit_ns = 40000
lock_within_s = 60
source = "paper on control loops, 4.5.1"
"""


def test_the_projects_file_names_stacks_and_sources() -> None:
    requirements = load_clock_requirements(FILE)
    assert set(requirements.by_clock) <= set(STACKS)
    assert all(len(one.source) > 40 for one in requirements.by_clock.values())


def test_reads_a_sites_own(tmp_path: Path) -> None:
    path = tmp_path / "clocks.toml"
    path.write_text(GOOD)
    requirement = load_clock_requirements(path).of("chrony")
    assert (requirement.id, requirement.limit_ns, requirement.lock_within_s) == ("CLK-1", 40_000, 60)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("limit_ns = 40000", "limit_ns = 0", "requirement[1].limit_ns: must be an integer in 1..1000000000"),
        ("limit_ns = 40000", "", "requirement[1].limit_ns: missing"),
        ('"max_abs"', '"mean"', "requirement[1].statistic: must be one of max_abs"),
        ("source =", "sauce =", "requirement[1].s"),
        ("[[requirement]]", "[[requirment]]", "requirment: unknown table"),
        ("requirements/1", "requirements/2", "requirements.schema: must be one of"),
        ("[requirements]", "[requirements", "line"),
    ],
)
def test_a_wrong_one_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "clocks.toml"
    path.write_text(GOOD.replace(old, new, 1))
    with pytest.raises(ConfigError) as refused:
        load_clock_requirements(path)
    assert str(refused.value).startswith(f"{path}: ")
    assert message in str(refused.value)


def test_twice_the_same_clock_or_id(tmp_path: Path) -> None:
    path = tmp_path / "clocks.toml"
    second = GOOD[GOOD.index("[[requirement]]") :]
    path.write_text(GOOD + second)
    with pytest.raises(ConfigError, match=r"requirement\[2\]\.clock: 'chrony' stands twice"):
        load_clock_requirements(path)
    path.write_text(GOOD + second.replace("chrony", "ntp-user"))
    with pytest.raises(ConfigError, match=r"requirement\[2\]\.id: 'CLK-1' stands twice"):
        load_clock_requirements(path)


def test_a_clock_without_requirement(tmp_path: Path) -> None:
    path = tmp_path / "clocks.toml"
    path.write_text(GOOD)
    with pytest.raises(ConfigError, match="no requirement on clock 'ptp-software'; there are: chrony"):
        load_clock_requirements(path).of("ptp-software")
