# SPDX-License-Identifier: Apache-2.0
"""A board boots, is cut off from its power, and says so; more in tests/targets/test_board.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from hw.errors import BenchError
from hw.session import open_bench
from tests.patience import HANG_S
from tests.targets.test_board import BENCH, BOARD

pytestmark = pytest.mark.simulated


def test_board_boots_and_tells_that_it_has_lost_its_power(tmp_path: Path) -> None:
    """On a bench of its own name, that waits for it as long as for what is sure to come."""
    text, times = BENCH.read_text(), "first_output_s: 10.0, silence_s: 15.0"
    assert times in text
    patient = f"first_output_s: {HANG_S}, silence_s: {HANG_S}"
    file = tmp_path / "bench.yaml"
    file.write_text(text.replace(times, patient).replace("name: one-board", "name: gate-board"))
    with open_bench(file) as bench:
        bench.power_on([BOARD])
        node = bench.node(BOARD)
        assert node.run(["uname", "-m"]).stdout == "armv7l\n"
        assert bench.console(BOARD).count("benchwright: ready\n") == 1
        bench.power_off(BOARD)
        with pytest.raises(BenchError, match="has lost its power"):
            node.run(["true"])
