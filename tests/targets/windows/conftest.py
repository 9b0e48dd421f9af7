# SPDX-License-Identifier: Apache-2.0
"""A Windows machine as a node of a bench: Wine behind an sshd, by the driver that a real one has, too."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from hw.drivers.windows_ssh import WindowsSshNode
from hw.provisioning import Provisioner
from hw.session import Bench, open_bench
from tests.turns import in_turn

BENCH_FILE = Path(__file__).parent / "one_windows.yaml"
TARGET = "windows"


@pytest.fixture(scope="module")
def bench() -> Generator[Bench]:
    """Open the bench with the machine on."""
    with in_turn("one-windows"), open_bench(BENCH_FILE) as opened:
        opened.power_on([TARGET])
        yield opened


@pytest.fixture
def node(bench: Bench) -> WindowsSshNode:
    """Return the machine, switched on again where a test has cut its power."""
    bench.power_on([TARGET])
    found = bench.node(TARGET)
    assert isinstance(found, WindowsSshNode)
    return found


@pytest.fixture
def provisioner(bench: Bench, node: WindowsSshNode) -> Provisioner:
    """Return what provisions the machine."""
    return Provisioner(node, bench.spec.targets[TARGET])
