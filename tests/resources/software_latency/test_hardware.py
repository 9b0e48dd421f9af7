# SPDX-License-Identifier: Apache-2.0
"""What is taken off the round trips of a bench's devices follows from its topology."""

from __future__ import annotations

from pathlib import Path

from hw.bench import load_bench
from resources.software_latency.devices import devices_of, directions
from resources.software_latency.hardware import hardware_between

BENCHES = Path(__file__).resolve().parents[3] / "hw" / "benches"


def test_each_direction_of_real_machines_has_the_latency_of_its_way() -> None:
    """64 bytes are 944 ns on a link of 1 Gbit/s."""
    spec = load_bench(BENCHES / "example-hardware.yaml")
    found = {
        (one.name, other.name): hardware_between(spec.topology, one, other, 64)
        for one, other in directions(devices_of(spec, spec.targets["linux-rt"]))
    }
    taken_ns, bounds = found["target", "producers-b-ordinary"]
    assert taken_ns == 2 * (944 + 15 + 480 + 2300 + 944 + 98)
    assert bounds is not None
    assert {each.name: each.ns for each in bounds} == {"link target": 125, "switch lab": 800, "link b": 404}
    assert found["target", "producers-a"][0] == found["producers-a", "target"][0] > 50_000, "through impair"


def test_a_virtual_bench_takes_nothing_off() -> None:
    spec = load_bench(BENCHES / "virtual.yaml")
    for one, other in directions(devices_of(spec, spec.targets["linux-rt"])):
        taken_ns, bounds = hardware_between(spec.topology, one, other, 1400)
        assert taken_ns == 0
        assert bounds is not None
        assert not any(each.ns for each in bounds)


def test_without_a_topology_it_is_not_known() -> None:
    spec = load_bench(BENCHES / "example-board.yaml")
    one, other = directions(devices_of(spec, spec.targets["embedded"]))[0]
    assert hardware_between(spec.topology, one, other, 64) == (0, None)
