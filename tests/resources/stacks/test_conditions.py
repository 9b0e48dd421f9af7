# SPDX-License-Identifier: Apache-2.0
"""What a bench has to have for a line that loses frames, and what such a line does to its nodes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hw.errors import CapabilityError
from hw.protocols import CommandResult
from resources.stacks.conditions import CONDITIONS, LOSSES_PPM, condition_on, why_not

NODES = ["linux", "p01"]


class Node:
    """A node with or without ethtool."""

    def __init__(self, name: str, tools: Sequence[str]) -> None:
        self.name, self.tools, self.powered = name, tools, True

    def run(self, argv: Sequence[str], timeout_s: float = 30.0, check: bool = True) -> CommandResult:
        """Run nothing."""
        del timeout_s
        found = argv[0] in self.tools
        assert found or not check
        return CommandResult(tuple(argv), 0 if found else 127, "", "")


def bench(ports: Sequence[str], tools: Sequence[str]) -> Any:
    """Return a bench whose switch has these ports, and whose nodes these tools."""

    def switch_ports(_nodes: Sequence[str]) -> Sequence[str]:
        return ports

    def node(name: str) -> Node:
        return Node(name, tools)

    return SimpleNamespace(virtual=SimpleNamespace(switch_ports=switch_ports), node=node)


def test_each_condition_says_why_a_bench_cannot_have_it() -> None:
    sound, real, bare = bench(NODES, ["ethtool"]), bench([], ["ethtool"]), bench(NODES, [])
    for condition in CONDITIONS:
        is_lossy = condition in LOSSES_PPM
        assert why_not(condition, sound, NODES) == ""
        assert ("by the switch of a bench" in why_not(condition, real, NODES)) == is_lossy
        assert ("linux has no ethtool" in why_not(condition, bare, NODES)) == is_lossy


def test_a_line_that_cannot_be_had_is_refused(tmp_path: Path) -> None:
    with (
        pytest.raises(CapabilityError, match="linux has no ethtool"),
        condition_on("lossy_1000_ppm", bench(NODES, []), NODES, 1, tmp_path, seed=1),
    ):
        pytest.fail("the turn is not to begin")
