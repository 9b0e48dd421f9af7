# SPDX-License-Identifier: Apache-2.0
"""Which devices of a bench make round trips, and who asks whom."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from hw.bench import load_bench
from hw.errors import CapabilityError
from reports.software_latency.plan import Device, check_identifiable
from resources.software_latency.devices import devices_of, directions

SPEC = load_bench(Path(__file__).resolve().parents[3] / "hw" / "benches" / "virtual.yaml")


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


def test_a_bench_with_too_few_devices_says_what_it_lacks() -> None:
    few = dataclasses.replace(SPEC, producers={1: SPEC.producers[1]})
    with pytest.raises(CapabilityError, match=r"between 2 devices .* it takes 3; add a producer"):
        devices_of(few, few.targets["linux-rt"])
