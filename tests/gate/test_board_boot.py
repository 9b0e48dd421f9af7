# SPDX-License-Identifier: Apache-2.0
"""A board boots, is cut off from its power, and says so; more in tests/targets/test_board.py."""

from __future__ import annotations

import pytest

from hw.errors import BenchError
from hw.session import open_bench
from tests.targets.test_board import BENCH, BOARD

pytestmark = pytest.mark.simulated


def test_board_boots_and_tells_that_it_has_lost_its_power() -> None:
    with open_bench(BENCH) as bench:
        bench.power_on([BOARD])
        node = bench.node(BOARD)
        assert node.run(["uname", "-m"]).stdout == "armv7l\n"
        assert bench.console(BOARD).count("benchwright: ready\n") == 1
        bench.power_off(BOARD)
        with pytest.raises(BenchError, match="has lost its power"):
            node.run(["true"])
