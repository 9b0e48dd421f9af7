# SPDX-License-Identifier: Apache-2.0
"""Which devices of a bench make round trips, and who asks whom."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from hw.bench import load_bench
from hw.errors import CapabilityError, ConfigError
from reports.software_latency.evidence import InjectedDelay
from reports.software_latency.plan import Device, check_identifiable
from resources.software_latency.devices import (
    devices_of,
    directions,
    producers_of,
    simulated_machines,
    twins_delay,
    twins_of,
)
from resources.software_latency.settings import RoundTripTimes

SPEC = load_bench(Path(__file__).resolve().parents[3] / "hw" / "benches" / "virtual.yaml")
TIMES = RoundTripTimes(100, 10, 4000, (64,))


@pytest.mark.parametrize("target", ["linux-rt", "embedded", "windows"])
def test_three_kinds_and_a_fourth_device(target: str) -> None:
    devices = devices_of(SPEC, SPEC.targets[target])
    assert [each.name for each in devices] == ["target", "p01", "producer-12", "p02-ordinary"]
    assert len({(each.hardware, each.software) for each in devices}) == 4
    assert devices[-1].priority == 0


def test_the_directions_tell_every_device() -> None:
    devices = devices_of(SPEC, SPEC.targets["linux-rt"])
    pairs = [(one.name, other.name) for one, other in directions(devices)]
    assert len(pairs) == len(set(pairs)) == 9
    assert {("target", "p01"), ("p01", "target")} <= set(pairs)
    check_identifiable([Device(each.name, each.hardware, each.software) for each in devices], pairs)


def delay_of(device: str, target: str = "linux-rt") -> InjectedDelay:
    return twins_delay(device, 500, devices_of(SPEC, SPEC.targets[target]), TIMES)


def test_a_twin_and_its_control_differ_by_name_and_kind_alone() -> None:
    devices = devices_of(SPEC, SPEC.targets["embedded"])
    control, twin = twins_of(delay_of("target"), devices)
    assert (control.name, twin.name) == ("target-control", "target-delayed")
    assert {each.software.removeprefix(devices[0].software) for each in (control, twin)} == {
        ", control",
        ", delayed",
    }
    assert dataclasses.replace(twin, name="", software="") == dataclasses.replace(
        control, name="", software=""
    )
    assert twins_of(None, devices) == twins_of(InjectedDelay("p01", 25, 25), devices) == ()


@pytest.mark.parametrize("delayed", ["target", "p01", "p02-ordinary"])
@pytest.mark.parametrize("simulated", [frozenset[str](), simulated_machines(SPEC)])
def test_who_asks_the_twin_asks_its_control(delayed: str, simulated: frozenset[str]) -> None:
    """Else S of the two would be told by different partners, or in another role."""
    devices = devices_of(SPEC, SPEC.targets["embedded"])
    control, twin = twins_of(delay_of(delayed), devices)
    pairs = [(one.name, other.name) for one, other in directions(devices, (control, twin), simulated)]
    assert len(pairs) == len(set(pairs))
    askers = {asker for asker, asked in pairs if asked == twin.name}
    assert askers == {asker for asker, asked in pairs if asked == control.name}
    assert len(askers) >= 2


def test_machines_that_one_host_simulates_do_not_ask_each_other() -> None:
    devices = devices_of(SPEC, SPEC.targets["linux-rt"])
    twins = twins_of(delay_of("target"), devices)
    every = {(one.name, other.name) for one, other in directions(devices, twins)}
    apart = {(one.name, other.name) for one, other in directions(devices, twins, simulated_machines(SPEC))}
    assert every - apart == {
        ("target", "producer-12"),
        ("producer-12", "target"),
        ("producer-12", "target-control"),
        ("producer-12", "target-delayed"),
    }
    names = [Device(each.name, each.hardware, each.software) for each in (*devices, *twins)]
    check_identifiable(names, sorted(apart))


def test_they_do_where_a_device_would_not_be_told_else() -> None:
    few = [each for each in devices_of(SPEC, SPEC.targets["linux-rt"]) if each.name != "p02-ordinary"]
    assert len(directions(few, (), simulated_machines(SPEC))) == len(directions(few)) == 6


def test_machines_of_a_real_bench_all_ask_each_other() -> None:
    spec = load_bench(Path(SPEC.path).parent / "example-hardware.yaml")
    assert simulated_machines(spec) == frozenset()


def test_a_bench_with_too_few_devices_says_what_it_lacks() -> None:
    few = dataclasses.replace(SPEC, producers={1: SPEC.producers[1]})
    with pytest.raises(CapabilityError, match=r"between 2 devices .* it takes 3; add a producer"):
        devices_of(few, few.targets["linux-rt"])


def test_a_producer_is_of_the_kind_of_a_device_whose_machine_is_like_its_own() -> None:
    target = SPEC.targets["linux-rt"]
    kinds = {(each.hardware, each.software): each.name for each in devices_of(SPEC, target)}
    found = {
        each.number: kinds.get((each.hardware, each.software)) for each in producers_of(SPEC, target, 64)
    }
    assert found == dict.fromkeys(range(1, 12), "p01") | {12: "producer-12"}


def test_a_producer_that_may_compute_less_is_of_no_devices_kind() -> None:
    slow = dataclasses.replace(SPEC.nodes["p05"], priority=0)
    target, spec = SPEC.targets["linux-rt"], dataclasses.replace(SPEC, nodes={**SPEC.nodes, "p05": slow})
    of_five = next(each for each in producers_of(spec, target, 64) if each.number == 5)
    assert (of_five.hardware, of_five.software) == ("namespace of host", "bw-traffic, SCHED_OTHER")


def test_the_way_of_a_producer_is_that_of_its_own_cable() -> None:
    """64 bytes are 944 ns on a link of 1 Gbit/s; producers 7 to 12 have the link `b`."""
    spec = load_bench(Path(SPEC.path).parent / "example-hardware.yaml")
    found = producers_of(spec, spec.targets["linux-rt"], 64)
    last = found[-1]
    assert last.hardware_ns == 2 * (944 + 15 + 480 + 2300 + 944 + 98)
    assert last.hardware_bounds is not None
    assert {each.name: each.ns for each in last.hardware_bounds} == {
        "link target": 125,
        "switch lab": 800,
        "link b": 404,
    }
    board = load_bench(Path(SPEC.path).parent / "example-board.yaml")
    assert {each.hardware_bounds for each in producers_of(board, board.targets["embedded"], 64)} == {None}


def test_a_twins_delay_leaves_room_for_its_trip() -> None:
    devices = devices_of(SPEC, SPEC.targets["linux-rt"])
    times = RoundTripTimes(100, 10, 3001, (64,))
    delay = twins_delay("p01", 999, devices, times)
    assert (delay.device, delay.twin_of, delay.receive_us, delay.send_us) == ("p01-delayed", "p01", 499, 500)
    assert delay.control == "p01-control"
    with pytest.raises(ConfigError, match=r"delay_us: 1001; allowed: 1 to 1000, a third of .*interval_us"):
        twins_delay("p01", 1001, devices, times)
    with pytest.raises(ConfigError, match=r"delayed_device: 'p9'; the devices are target, p01, "):
        twins_delay("p9", 500, devices, times)
