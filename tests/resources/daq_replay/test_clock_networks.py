# SPDX-License-Identifier: Apache-2.0
"""Over which network a clock's packets go, and what cannot be chosen."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hw.bench import BenchSpec, load_bench
from hw.errors import CapabilityError
from resources.clock_sync.lab import ClockLab
from resources.clock_sync.times import NETWORKS as WORDS
from resources.daq_replay.clock_networks import NETWORKS, server_address
from resources.profiles import load_profile

SPEC = load_bench(Path(__file__).resolve().parents[3] / "hw" / "benches" / "virtual.yaml")


def _lab(spec: BenchSpec = SPEC) -> ClockLab:
    bench: Any = SimpleNamespace(spec=spec)
    folder = Path()
    return ClockLab(bench, spec.targets["linux-rt"], load_profile("ci"), folder, lambda _line: None)


def test_every_word_of_a_profile_is_a_network() -> None:
    assert set(WORDS) == set(NETWORKS)


def test_the_separate_network_is_the_control_network() -> None:
    assert server_address(_lab(), "chrony", "same") == ""
    assert server_address(_lab(), "chrony", "separate") == "10.78.0.50"


@pytest.mark.parametrize("clock", ["ptp-software", "ptp-hardware", "phc2sys"])
def test_ptp_has_the_test_interface_only(clock: str) -> None:
    assert server_address(_lab(), clock, "same") == ""
    with pytest.raises(CapabilityError, match=f"clock {clock}: .* test interface"):
        server_address(_lab(), clock, "separate")


def test_a_server_without_an_address_there_is_named() -> None:
    clocks = {name: clock for name, clock in SPEC.clocks.items() if name != "grandmaster"}
    with pytest.raises(CapabilityError, match=r"'grandmaster' has no address .* benchwright\.clocks"):
        server_address(_lab(replace(SPEC, clocks=clocks)), "chrony", "separate")
