# SPDX-License-Identifier: Apache-2.0
"""Which build of a native tool goes to which machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from hw import tools
from hw.errors import CapabilityError


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Use builds of a tool that are all there."""
    monkeypatch.setattr(tools, "ROOT", tmp_path)
    monkeypatch.setattr(tools, "BUILD", tmp_path)
    for variant in ("linux", *tools.BUILDS.values()):
        program = tmp_path / variant / tools.TOOL_FOLDERS[0] / "bw-traffic"
        program.parent.mkdir(parents=True)
        program.touch()
    return tmp_path


@pytest.mark.parametrize(("machine", "variant"), [("", "linux"), ("x86_64", "static"), ("armv7l", "armhf")])
def test_machine_gets_its_build(build: Path, machine: str, variant: str) -> None:
    assert tools.local_tool("bw-traffic", machine).relative_to(build).parts[0] == variant


def test_machine_that_nothing_is_built_for(build: Path) -> None:
    with pytest.raises(CapabilityError, match="bw-traffic: not built for riscv64; there are: x86_64, armv7l"):
        tools.local_tool("bw-traffic", "riscv64")


def test_tool_that_has_not_been_built(build: Path) -> None:
    with pytest.raises(CapabilityError, match="bw-unknown is missing in armhf"):
        tools.local_tool("bw-unknown", "armv7l")
