# SPDX-License-Identifier: Apache-2.0
"""A machine that loses its power or its network: the bench says so soon, and takes it back."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Generator
from pathlib import Path

import pytest

from hw.errors import BenchError, CapabilityError
from hw.session import open_bench
from tests.hw.ssh_lab import SshLab, open_lab
from tests.hw.test_hardware_bench import bench_text
from tests.patience import HANG_S

pytestmark = [pytest.mark.simulated, pytest.mark.slow]

LONG_S = 600
"""Longer than any test may take: what ends within it was ended."""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Generator[SshLab]:
    """Return the machines, powered off."""
    with open_lab(tmp_path_factory.mktemp("lab")) as lab:
        (lab.folder / "bench.yaml").write_text(bench_text(lab))
        yield lab


def test_a_power_cut_ends_what_waits_for_the_machine_and_power_on_takes_it_back(
    lab: SshLab, tmp_path: Path
) -> None:
    def work() -> None:
        with open_bench(lab.folder / "bench.yaml") as bench:
            bench.power_on(["target"])
            first = bench.node("target")
            job = first.start([bench.tool("target"), "witness"], tmp_path / "witness")
            job.wait_ready(HANG_S)
            cut = threading.Timer(0.5, bench.cut_power, ["target"])
            cut.start()
            with pytest.raises(BenchError, match="target: has lost its power"):
                first.run(["sleep", str(LONG_S)], timeout_s=LONG_S)
            cut.join()
            with pytest.raises(BenchError, match="target: has lost its power"):
                job.wait(HANG_S)
            bench.power_on(["target"])
            again = bench.node("target")
            assert again is not first
            assert again.run(["echo", "back"]).stdout == "back\n"
            assert bench.tool("target"), "tools are copied anew"
            with pytest.raises(CapabilityError, match="host: its power cannot be switched"):
                bench.cut_power("host")

    lab.inside("host", work)


@pytest.mark.timed
def test_a_machine_that_is_not_reached_any_more_is_told_from_a_slow_one(lab: SshLab) -> None:
    def work() -> None:
        with open_bench(lab.folder / "bench.yaml") as bench:
            bench.power_on(["target"])
            node = bench.node("target")
            with pytest.raises(BenchError, match=r"target: sleep 600: timed out after 1 s\Z"):
                node.run(["sleep", str(LONG_S)], timeout_s=1.0)  # it sleeps for longer
            subprocess.run(["ip", "link", "set", "target", "down"], check=True)
            try:
                with pytest.raises(
                    BenchError, match="timed out after 1 s: its SSH server does not answer any more"
                ):
                    node.run(["echo", "here"], timeout_s=1.0)  # its link is down
            finally:
                subprocess.run(["ip", "link", "set", "target", "up"], check=True)

    lab.inside("host", work)
