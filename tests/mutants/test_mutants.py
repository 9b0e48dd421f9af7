# SPDX-License-Identifier: Apache-2.0
"""The list of faults holds for the code as it is, and a run keeps what it did not ask anew."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.mutants import machine
from tests.mutants.__main__ import AREAS, Detector, by_area, chosen, load, merged

LIST = Path(__file__).with_name("mutants.toml")
LEAST = 3
ROW = """
[[mutant]]
name = "sign"
area = "{area}"
says = "a sign"
file = "code.py"
text = "a - b"
wrong = "a + b"
tests = []
"""


def _detector(name: str, by: str, area: str = "undo") -> Detector:
    return Detector(name, area, by, "", "0" * 40)


def test_every_fault_can_be_put_in_and_every_area_has_some(repository: Path) -> None:
    mutants = load(LIST)
    count = {area: sum(mutant.area == area for mutant in mutants) for area in AREAS}
    assert min(count.values()) >= LEAST, count
    for mutant in mutants:
        assert mutant.text != mutant.wrong, mutant.name
        for test in mutant.tests:
            assert (repository / test.partition("::")[0]).exists(), f"{mutant.name}: {test}"


@pytest.mark.parametrize(
    ("area", "code", "times", "says"),
    [
        ("undo", "a - b\na - b\n", 1, "stands 2 times"),
        ("undo", "a * b\n", 1, "stands 0 times"),
        ("weather", "a - b\n", 1, "must be one of verdict, "),
        ("undo", "a - b\n", 2, "sign: the name stands twice"),
    ],
)
def test_a_list_that_does_not_fit_the_code_is_refused(
    tmp_path: Path, area: str, code: str, times: int, says: str
) -> None:
    (tmp_path / "code.py").write_text(code)
    file = tmp_path / "mutants.toml"
    file.write_text(times * ROW.format(area=area))
    with pytest.raises(ValueError, match=says):
        load(file, tmp_path)


def test_names_and_areas_choose() -> None:
    mutants = load(LIST)
    assert chosen(mutants, [], []) == mutants
    assert [each.name for each in chosen(mutants, ["offset-sign"], [])] == ["offset-sign"]
    undo = chosen(mutants, ["offset-sign"], ["undo"])
    assert {each.area for each in undo} == {"clocks", "undo"}
    with pytest.raises(ValueError, match="no mutant 'ofset'"):
        chosen(mutants, ["ofset"], [])
    with pytest.raises(ValueError, match="no area 'weather'"):
        chosen(mutants, [], ["weather"])


def test_a_run_of_some_keeps_what_is_known_of_the_others() -> None:
    mutants = load(LIST)
    first, second, third = (mutant.name for mutant in mutants[:3])
    earlier = [_detector(second, "old"), _detector(first, "old"), _detector("no-longer-listed", "old")]
    kept = merged(mutants, earlier, [_detector(third, "new"), _detector(second, "")])
    assert [(each.name, each.by) for each in kept] == [(first, "old"), (second, ""), (third, "new")]


def test_areas_are_summed_up() -> None:
    results = [_detector("a", "test"), _detector("b", ""), _detector("c", "test", "C sender")]
    undo, sender = by_area(results)
    assert " ".join(undo.split()) == "undo 1 of 2 found; not b"
    assert " ".join(sender.split()) == "C sender 1 of 1 found"


@pytest.mark.simulated
def test_namespaces_that_a_fault_leaves_are_gone_when_its_tests_have_ended() -> None:
    name = f"bw-mutant-{os.getpid()}"
    file = Path("/run/netns") / name
    script = f"ip netns add {name} && ip netns exec {name} ip -brief link && test -e {file}"
    done = subprocess.run(machine.apart(("sh", "-c", script)), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split()[0] == "lo"
    assert not file.exists()
