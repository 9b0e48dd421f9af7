# SPDX-License-Identifier: Apache-2.0
"""The nodes of a bench: which are on, what they refuse, and what they have said on their consoles."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hw.bench import load_bench
from hw.errors import BenchError, CapabilityError, ConfigError
from hw.journal import Journal
from hw.labgrid_file import CONSOLE_LOG
from hw.nodes import BenchNodes
from hw.tools import local_tool
from hw.virtual.console_log import put_aside

SPEC = load_bench(Path(__file__).resolve().parents[2] / "hw" / "benches" / "virtual.yaml")
TARGET = "linux-rt"


class _Power:
    """The power of a real machine."""

    no_restart = "it has one life"

    def __init__(self) -> None:
        self.done: list[str] = []

    def off(self) -> None:
        self.done.append("off")


@pytest.fixture
def power() -> _Power:
    return _Power()


@pytest.fixture
def nodes(tmp_path: Path, power: _Power) -> BenchNodes:
    """The nodes of the virtual bench, all its guests off, and of one power for labgrid."""

    def get_driver(name: str, **_options: object) -> Any:
        return power if name == "PowerProtocol" else None

    target = SimpleNamespace(name=TARGET, resources=[], get_driver=get_driver, deactivate=id)
    environment = SimpleNamespace(get_target=lambda _name="": target)
    return BenchNodes(SPEC, tmp_path, Journal("test", {}, tmp_path), environment)


def test_parts_of_this_machine_are_on_and_the_others_are_named_as_off(nodes: BenchNodes) -> None:
    assert nodes.node("p01").name == "p01"
    assert nodes.tool("p01", "bw-edge") == str(local_tool("bw-edge"))
    assert [nodes.is_off(name) for name in ("switch", TARGET)] == [False, True]
    with pytest.raises(BenchError, match=f"node {TARGET} is off"):
        nodes.node(TARGET)
    with pytest.raises(ConfigError, match="no node 'nobody'; there are: switch"):
        nodes.node("nobody")


def test_a_machine_that_has_lost_its_power_is_off_until_it_is_forgotten(
    nodes: BenchNodes, power: _Power
) -> None:
    reached = cast("Any", SimpleNamespace(name=TARGET, powered=True))
    nodes._nodes[TARGET] = reached  # pyright: ignore[reportPrivateUsage]
    assert not nodes.is_off(TARGET)
    reached.powered = False
    assert nodes.is_off(TARGET)
    assert nodes.node(TARGET) is reached
    nodes.power_off(TARGET)
    assert power.done == ["off"]
    with pytest.raises(BenchError, match="is off"):
        nodes.node(TARGET)


@pytest.mark.parametrize(
    ("ask", "name", "told"),
    [
        (BenchNodes.cut_power, "p01", "p01: its power cannot be switched"),
        (BenchNodes.restart, "p01", "p01: its power cannot be switched"),
        (BenchNodes.restart, TARGET, f"{TARGET} cannot be restarted: it has one life"),
        (BenchNodes.begin_fault, TARGET, "only a virtual machine can be given a fault"),
    ],
)
def test_what_a_node_cannot_do_is_told(
    nodes: BenchNodes, ask: Callable[[BenchNodes, str], None], name: str, told: str
) -> None:
    with pytest.raises(CapabilityError, match=told):
        ask(nodes, name)


def test_a_console_is_that_of_the_last_boot_and_consoles_are_all(nodes: BenchNodes, tmp_path: Path) -> None:
    assert (nodes.console(TARGET), nodes.consoles(TARGET)) == ("", [])
    log = tmp_path / TARGET / CONSOLE_LOG
    log.parent.mkdir()
    log.write_text("ready\n")
    assert (nodes.console(TARGET), nodes.consoles(TARGET)) == ("ready\n", ["ready\n"])
    put_aside(log)
    assert (nodes.console(TARGET), nodes.consoles(TARGET)) == ("", ["ready\n"])
    log.write_text("again\n")
    assert (nodes.console(TARGET), nodes.consoles(TARGET)) == ("again\n", ["ready\n", "again\n"])
