# SPDX-License-Identifier: Apache-2.0
"""Pins of a target in a bench file: what they say, what is refused, and which role has which pin."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from hw.bench import BenchSpec, load_bench
from hw.edges import EdgeRole, EdgesSpec, pin_clock
from hw.errors import CapabilityError, ConfigError
from hw.instruments import find_pin

BENCHES = Path(__file__).resolve().parents[2] / "hw" / "benches"
PTP = "ptp:/dev/ptp0,pin=0,channel=0"
REAL: dict[str, str] = {
    "reference": PTP,
    "capture": "ptp:/dev/ptp2,edges=both",
    "timed": "tgpio-pps:/sys/class/pps-gen/pps-gen0",
    "software": "gpio:/dev/gpiochip0,line=17",
}


def _load(tmp_path: Path, edges: object, bench: str = "example-hardware") -> BenchSpec:
    document: dict[str, Any] = yaml.safe_load((BENCHES / f"{bench}.yaml").read_text())
    document["benchwright"]["targets"]["linux-rt"]["edges"] = edges
    path = tmp_path / "bench.yaml"
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    return load_bench(path)


def test_reads_the_pins_of_a_real_target(tmp_path: Path) -> None:
    edges = _load(tmp_path, REAL).targets["linux-rt"].edges
    assert edges == EdgesSpec(**REAL)
    assert edges is not None
    assert edges.pin(EdgeRole.LATCH) is None
    assert edges.pins == REAL


def test_a_target_needs_no_pins(tmp_path: Path) -> None:
    document = yaml.safe_load((BENCHES / "example-hardware.yaml").read_text())
    del document["benchwright"]["targets"]["linux-rt"]["edges"]
    path = tmp_path / "bench.yaml"
    path.write_text(yaml.safe_dump(document))
    bench = load_bench(path)
    assert bench.targets["linux-rt"].edges is None
    with pytest.raises(
        CapabilityError, match=r"no pin timed; add it to benchwright\.targets\.linux-rt\.edges"
    ):
        find_pin(bench, "linux-rt", "timed", is_input=False)


def test_the_virtual_bench_has_every_pin() -> None:
    edges = load_bench(BENCHES / "virtual.yaml").targets["linux-rt"].edges
    assert edges is not None
    assert set(edges.pins) == {role.value for role in EdgeRole}
    assert (edges.reference, edges.latch) == ("bench:sdp-out", "bench:tgpio-in")


@pytest.mark.parametrize(
    ("role", "pin", "wanted"),
    [
        ("reference", None, "missing"),
        ("timed", None, "missing"),
        ("timed", "", "ptp:/dev/ptpN[,pin=N][,channel=N]"),
        ("timed", "/dev/ptp0", "gpio:/dev/gpiochipN,line=N or tgpio-pps:"),
        ("timed", "ptp:ptp0", "ptp:/dev/ptpN[,pin=N][,channel=N]"),
        ("timed", "ptp:/dev/ptp0,pin=256,channel=0", "each pin and channel in 0..255"),
        ("timed", "ptp:/dev/ptp0,pin=0,channel=0 ", "in 0..255"),
        ("timed", "ptp:/dev/ptp0,edges=falling", "edges=rising|both"),
        ("timed", "gpio:/dev/gpiochip0,line=-1", "each line in 0..65535"),
        ("timed", "gpio:/dev/gpiochip0,line=65536", "each line in 0..65535"),
        ("timed", "bench:tgpio-in", "bench:tgpio-out"),
        ("timed", "bench:gpio", "a pin of a virtual bench's guest"),
        ("timed", PTP, "its own pin, found ptp:/dev/ptp0,pin=0,channel=0 as reference"),
        ("timed", 3, "a string"),
        ("latch", "tgpio-pps:/sys/class/pps-gen/pps-gen1", "bench:tgpio-in, bench:sdp-in"),
        ("capture", "bench:sdp-out", "bench:tgpio-in, bench:sdp-in"),
        ("wire", PTP, "unknown key"),
    ],
)
def test_refuses_a_wrong_pin(tmp_path: Path, role: str, pin: object, wanted: str) -> None:
    edges: dict[str, object] = copy.deepcopy(REAL) | {role: pin}
    if pin is None:
        del edges[role]
    with pytest.raises(ConfigError) as refused:
        _load(tmp_path, edges)
    assert f"benchwright.targets.linux-rt.edges.{role}: " in str(refused.value)
    assert wanted in str(refused.value)


def test_a_role_is_of_an_input_or_an_output() -> None:
    bench = load_bench(BENCHES / "virtual.yaml")
    assert find_pin(bench, "linux-rt", EdgeRole.SOFTWARE, is_input=False) == "bench:gpio"
    assert find_pin(bench, "linux-rt", "capture", is_input=True) == "bench:sdp-in"
    with pytest.raises(ConfigError, match="an output: must be one of reference, timecard_reference, timed"):
        find_pin(bench, "linux-rt", "latch", is_input=False)
    with pytest.raises(ConfigError, match="an input: must be one of latch, capture, found 'timed'"):
        find_pin(bench, "linux-rt", "timed", is_input=True)
    with pytest.raises(ConfigError, match="no target 'tower'; there are: linux-rt, embedded, windows"):
        find_pin(bench, "tower", "timed", is_input=False)


@pytest.mark.parametrize(
    ("pin", "clock"),
    [
        ("bench:sdp-out", "phc:/dev/ptp3"),
        ("bench:card-pps", "card"),
        ("bench:tgpio-out", "tai"),
        ("bench:tgpio-in", "counter"),
        (PTP, "phc:/dev/ptp0"),
        ("tgpio:/dev/ptp5,pin=0,channel=0", "tai"),
        ("tgpio-pps:/sys/class/pps-gen/pps-gen0", "tai"),
    ],
)
def test_each_pin_has_a_clock(pin: str, clock: str) -> None:
    assert pin_clock(pin, "/dev/ptp3") == clock


def test_an_input_of_tgpio_notes_ticks(tmp_path: Path) -> None:
    bench = _load(tmp_path, REAL | {"timed": "tgpio:/dev/ptp5,pin=0", "latch": "tgpio:/dev/ptp5,pin=1"})
    latch = find_pin(bench, "linux-rt", "latch", is_input=True)
    assert (latch, pin_clock(latch, is_input=True)) == ("tgpio:/dev/ptp5,pin=1", "counter")
