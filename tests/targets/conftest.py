# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests of targets."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from hw.bench import TargetSpec
from hw.drivers.labgrid_api import register_all
from hw.session import Bench, open_bench
from tests.targets.clock_lab import TARGET_ERROR, ClockLab, clock_lab, daemons, kernel
from tests.turns import in_turn

register_all()


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Generator[ClockLab]:
    """Boot target and time server once: every test leaves them as it found them, which is tested, too."""
    with clock_lab(tmp_path_factory.mktemp("clocks")) as made:
        yield made


@pytest.fixture
def target(lab: ClockLab) -> TargetSpec:
    """Return the target, and require that the last test has put its clock back."""
    target = lab.spec.targets["linux-rt"]
    assert kernel(lab, target.node)["frequency_ppb"] == TARGET_ERROR.frequency_ppb
    assert daemons(lab, target.node) == ""
    return target


@pytest.fixture(scope="module")
def bench() -> Generator[Bench]:
    """Open the bench of the native machine with that on; modules on other machines have their own."""
    with in_turn("one-linux"), open_bench(Path(__file__).parent / "one_linux.yaml") as opened:
        opened.power_on(["linux"])
        yield opened
