# SPDX-License-Identifier: Apache-2.0
"""Requirements on clocks: the project's own file is sound, and a wrong one is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from hw.errors import ConfigError
from resources.clock_sync.requirements import STACKS_OWN, load_clock_requirements, lock_requirement
from resources.clock_sync.settings import stack_names

ROOT = Path(__file__).resolve().parents[3]
FILE = ROOT / "robot" / "clock_sync" / "requirements" / "clock_sync_virtual.toml"
GOOD = """
[requirements]
schema = "benchwright.requirements/2"
name = "site"

[[requirement]]
id = "CLK-1"
clock = "chrony"
quantity = "sync_offset"
statistic = "max_abs"
upper_ns = 40000
lock_within_s = 60
source = "paper on control loops, 4.5.1"
"""

MASK = """\
# name: own
# source: a site
quantity,tau_above_s,tau_to_s,limit_ns,slope_ns_per_s
max_abs_te,,,9,0
"""


def test_the_projects_file_names_stacks_and_sources() -> None:
    requirements = load_clock_requirements(FILE)
    assert set(requirements.by_clock) <= set(stack_names())
    assert all(len(one.limit.source) > 40 for one in requirements.by_clock.values())
    masks = {name: each.range.mask for name, each in requirements.masks.items()}
    assert set(masks) == {"CLK-PTP-SOFTWARE", "CLK-PHC2SYS"}
    assert all(len(mask.source) > 40 for mask in masks.values())


def test_reads_a_sites_own(tmp_path: Path) -> None:
    path = tmp_path / "clocks.toml"
    path.write_text(GOOD)
    requirement = load_clock_requirements(path).of("chrony")
    assert (requirement.id, requirement.upper_ns, requirement.lock_within_s) == ("CLK-1", 40_000, 60)


def test_names_a_mask_of_the_project_or_a_file_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "clocks.toml"
    path.write_text(GOOD)
    assert load_clock_requirements(path).masks == {}
    path.write_text(GOOD + 'mask = "g8272-prtc-a"\nmask_from_tau_s = 1\nmask_to_tau_s = 100\n')
    mask = load_clock_requirements(path).masks["CLK-1"]
    assert mask.range.mask.name == "ITU-T G.8272 PRTC-A"
    assert (mask.range.from_tau_s, mask.range.to_tau_s) == (1, 100)
    own = tmp_path / "masks" / "own.csv"
    own.parent.mkdir()
    own.write_text(MASK)
    path.write_text(GOOD + 'mask = "masks/own.csv"\n')
    mask = load_clock_requirements(path).masks["CLK-1"]
    assert (mask.path, mask.range.mask.quantities) == (own, ("max_abs_te",))


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ('mask = "paper-41us"', "requirement[1].mask: "),
        ('mask = "paper-41us"', "known masks: g8272-prtc-a"),
        ('mask = "masks/none.csv"', "masks/none.csv: cannot be read"),
        ('mask = "paper-40us"\nmask_to_tau_s = 4', "limits nothing over tau"),
    ],
)
def test_a_wrong_mask_is_refused(tmp_path: Path, lines: str, message: str) -> None:
    path = tmp_path / "clocks.toml"
    path.write_text(f"{GOOD}{lines}\n")
    with pytest.raises(ConfigError) as refused:
        load_clock_requirements(path)
    assert str(refused.value).startswith(f"{path}: ")
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("upper_ns = 40000", "", "requirement[1].upper_us or upper_ns: missing"),
        ("lock_within_s = 60", "samples = 500", "requirement[1].lock_within_s: missing"),
        ('"sync_offset"', '"beauty"', "requirement[1].quantity: must be one of sync_offset, found 'beauty'"),
    ],
)
def test_a_wrong_one_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "clocks.toml"
    path.write_text(GOOD.replace(old, new, 1))
    with pytest.raises(ConfigError) as refused:
        load_clock_requirements(path)
    assert str(refused.value).startswith(f"{path}: {message}")


def test_a_clock_without_requirement(tmp_path: Path) -> None:
    path = tmp_path / "clocks.toml"
    path.write_text(GOOD)
    with pytest.raises(ConfigError, match="no requirement on clock 'ptp-software'; there are: chrony"):
        load_clock_requirements(path).of("ptp-software")


def test_a_lock_is_asked_for_by_the_first_file_that_has_the_clock(tmp_path: Path) -> None:
    site = tmp_path / "site.toml"
    site.write_text(GOOD)
    told = ROOT / "robot" / "clock_sync" / "requirements" / "clock_time_service_virtual.toml"
    assert lock_requirement([site, FILE, told], "chrony").id == "CLK-1"
    found = lock_requirement([site, told], "timeservice")
    assert (found.quantity, found.lock_within_s) == ("sync_offset", 180)
    with pytest.raises(ConfigError, match=r"site\.toml: no requirement on sync_offset of clock 'sundial'"):
        lock_requirement([site], "sundial")


def _stacks(folder: Path, text: str, stack: str = "sundial") -> Path:
    (folder / "clock" / stack).mkdir(parents=True)
    (folder / "clock" / stack / STACKS_OWN).write_text(text)
    (folder / "clocks.toml").write_text(GOOD)
    return folder / "clock"


OWN = GOOD.replace("CLK-1", "CLK-SUNDIAL").replace('"chrony"', '"sundial"')


def test_a_stack_may_bring_its_own(tmp_path: Path) -> None:
    stacks = _stacks(tmp_path, OWN + 'mask = "g8272-prtc-a"\n')
    path, own = tmp_path / "clocks.toml", stacks / "sundial" / STACKS_OWN
    found = load_clock_requirements(path, stacks)
    assert {clock: each.id for clock, each in found.by_clock.items()} == {
        "chrony": "CLK-1",
        "sundial": "CLK-SUNDIAL",
    }
    assert found.of_file == {path: ("CLK-1",), own: ("CLK-SUNDIAL",)}
    assert found.masks.keys() == {"CLK-SUNDIAL"}
    assert load_clock_requirements(path).by_clock.keys() == {"chrony"}
    assert lock_requirement([path, own], "sundial").id == "CLK-SUNDIAL"


def test_what_the_suites_file_says_of_a_stack_counts_alone(tmp_path: Path) -> None:
    stacks = _stacks(tmp_path, GOOD.replace("40000", "9"), "chrony")
    found = load_clock_requirements(tmp_path / "clocks.toml", stacks)
    assert (found.of("chrony").upper_ns, len(found.of_file)) == (40_000, 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GOOD.replace("CLK-1", "CLK-2"), r"requirement\[1\]\.clock: must be sundial, as the folder"),
        (OWN.replace("CLK-SUNDIAL", "CLK-1"), r"requirement\[1\]\.id: CLK-1 is the id of another one"),
    ],
)
def test_a_stacks_own_that_is_of_another_is_refused(tmp_path: Path, text: str, message: str) -> None:
    stacks = _stacks(tmp_path, text)
    with pytest.raises(ConfigError, match=rf"sundial/{STACKS_OWN}: {message}"):
        load_clock_requirements(tmp_path / "clocks.toml", stacks)
