# SPDX-License-Identifier: Apache-2.0
"""Which build of a native tool goes to which machine."""

from __future__ import annotations

import json
import platform
from pathlib import Path

import pytest

from hw import tools
from hw.errors import CapabilityError, ConfigError

STATIC = "[project options]\nstatic = true\n"
RISCV = "[properties]\nbenchwright_machine = 'riscv64'\n"


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Use builds of a tool that are all there."""
    monkeypatch.setattr(tools, "ROOT", tmp_path)
    monkeypatch.setattr(tools, "BUILD", tmp_path)
    for variant in {*tools.BUILDS.values(), *tools.DYNAMIC_BUILDS.values()}:
        program = tmp_path / variant / tools.TOOL_FOLDERS[0] / "bw-traffic"
        program.parent.mkdir(parents=True)
        program.touch()
    return tmp_path


@pytest.mark.parametrize(("machine", "variant"), [("", "linux"), ("x86_64", "static"), ("armv7l", "armhf")])
def test_machine_gets_its_build(build: Path, machine: str, variant: str) -> None:
    assert tools.local_tool("bw-traffic", machine).relative_to(build).parts[0] == variant


def test_machine_that_nothing_is_built_for(build: Path) -> None:
    with pytest.raises(
        CapabilityError, match=r"bw-traffic: not built for riscv64; there are: x86_64, .*armv7l"
    ):
        tools.local_tool("bw-traffic", "riscv64")


def test_programs_that_load_libraries_are_of_another_build(build: Path) -> None:
    """This machine's own for its like; a cross file says whether its programs are linked statically."""
    own = tools.local_tool("bw-traffic", platform.machine(), dynamic=True)
    assert own == tools.local_tool("bw-traffic")
    assert own.relative_to(build).parts[0] == "linux"
    assert tools.local_tool("bw-traffic", "x86_64-windows", dynamic=True).relative_to(build).parts[0] == "win"
    arm = tools.local_tool("bw-traffic", "armv7l", dynamic=True)
    assert arm.relative_to(build).parts[0] == "armhf-dynamic"


def test_a_machine_whose_programs_load_nothing_is_told(build: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = {machine: name for machine, name in tools.DYNAMIC_BUILDS.items() if machine != "armv7l"}
    monkeypatch.setattr(tools, "DYNAMIC_BUILDS", own)
    said = "programs for armv7l are linked statically and load no libraries"
    with pytest.raises(CapabilityError, match=f"bw-traffic: {said}"):
        tools.local_tool("bw-traffic", "armv7l", dynamic=True)
    with pytest.raises(CapabilityError, match=rf"libuser\.so: {said}"):
        tools.local_library("libuser.so", "armv7l")


def test_a_library_is_found_wherever_it_is_built(build: Path) -> None:
    for variant in ("linux", "armhf-dynamic"):
        library = build / variant / "targets" / "some-kind" / "src" / "libuser.so"
        library.parent.mkdir(parents=True)
        library.touch()
    assert tools.local_library("libuser.so").relative_to(build).parts[0] == "linux"
    assert tools.local_library("libuser.so", "armv7l").relative_to(build).parts[0] == "armhf-dynamic"
    with pytest.raises(CapabilityError, match=r"libnone\.so is missing in linux: run `make setup`"):
        tools.local_library("libnone.so")


def test_programs_that_load_libraries_have_every_test_of_the_static_ones(repository: Path) -> None:
    """So `make test-all` runs the C tests of a machine in one of its two builds."""
    static, loading = tools.cross_builds(repository), tools.cross_builds(repository, dynamic=True)
    pairs = [
        (static[machine], loading[machine])
        for machine in static
        if static[machine] != loading.get(machine, static[machine])
    ]
    assert ("armhf", "armhf-dynamic") in pairs
    for pair in pairs:
        of_static, of_loading = (_names_of_tests(repository / ".build" / build) for build in pair)
        assert of_static
        assert of_static <= of_loading


def _names_of_tests(build: Path) -> set[str]:
    tests = json.loads((build / "meson-info" / "intro-tests.json").read_text())
    return {test["name"] for test in tests}


def test_every_cross_file_is_a_build_of_its_machine(repository: Path) -> None:
    found, loading = tools.cross_builds(repository), tools.cross_builds(repository, dynamic=True)
    assert (found["armv7l"], found["x86_64-windows"]) == ("armhf", "win")
    assert (loading["armv7l"], loading["x86_64-windows"]) == ("armhf-dynamic", "win")
    files = repository.glob("targets/*/cross/*.ini")
    assert {*found.values(), *loading.values()} == {file.stem for file in files}


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"a/cross/x.ini": "[properties]\n"}, "x.ini: .* benchwright_machine: missing"),
        ({"a/cross/x.ini": RISCV, "b/cross/y.ini": RISCV}, "y.ini: there is another build"),
        ({"a/cross/x.ini": RISCV + STATIC, "b/cross/y.ini": RISCV + STATIC}, "y.ini: there is another build"),
        (
            {"a/cross/x.ini": RISCV, "b/cross/x.ini": RISCV.replace("64", "32") + STATIC},
            "b/cross/x.ini: there is another",
        ),
    ],
)
def test_a_cross_file_that_cannot_be_told_apart_is_refused(
    tmp_path: Path, files: dict[str, str], said: str
) -> None:
    for name, text in files.items():
        file = tmp_path / "targets" / name
        file.parent.mkdir(parents=True)
        file.write_text(text)
    with pytest.raises(ConfigError, match=said):
        tools.cross_builds(tmp_path)


def test_tool_that_has_not_been_built(build: Path) -> None:
    with pytest.raises(CapabilityError, match="bw-unknown is missing in armhf"):
        tools.local_tool("bw-unknown", "armv7l")


def test_a_program_is_found_in_whatever_folder_of_its_kind_it_is_built() -> None:
    folder = "targets/linux/userstack/accel"
    assert folder in tools.TOOL_FOLDERS
    assert tools.local_tool("bw-accel") == tools.BUILD / "linux" / folder / "bw-accel"
