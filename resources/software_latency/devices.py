# SPDX-License-Identifier: Apache-2.0
"""Devices of a bench between which round trips are made: the target, and machines of the producers.

Three devices of different kinds tell each one's latency, a fourth lets their sums be held against each other.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from hw.bench import BenchSpec, NodeKind, TargetSpec
from hw.errors import CapabilityError, ConfigError
from reports.software_latency.evidence import InjectedDelay, LabDevice, LabProducer
from reports.software_latency.plan import Device, told_devices
from resources.software_latency.hardware import hardware_between
from resources.software_latency.settings import RoundTripTimes

TARGET = "target"
"""Name of the target among the devices: a requirement holds for whichever it is."""
ORDINARY = "-ordinary"
"""Ends the name of a device whose echo has ordinary scheduling."""
DEVICES_MIN = 3
DELAYED, CONTROL = "-delayed", "-control"
"""End the names of a device's twins: of the one with a known delay, and of the one it is compared with."""


def devices_of(spec: BenchSpec, target: TargetSpec) -> list[LabDevice]:
    """Return the target, a producer's machine of each kind, and the last one's twin with ordinary scheduling.

    Raises:
        CapabilityError: The bench has fewer than three devices.
    """
    devices = [_device(TARGET, spec, target.node, spec.nodes[target.node].priority)]
    kinds: set[str] = set()
    spare: list[str] = []
    for number in sorted(spec.producers):
        node = spec.producers[number].node
        if node == target.node or node in [each.node for each in devices] or node in spare:
            continue
        kind = spec.nodes[node].kind
        if kind in kinds:
            spare.append(node)
            continue
        kinds.add(kind)
        devices.append(_device(node, spec, node, spec.nodes[node].priority))
    if spare:
        devices.append(_device(spare[0] + ORDINARY, spec, spare[0], 0))
    if len(devices) < DEVICES_MIN:
        raise CapabilityError(
            f"bench {spec.name}: round trips between {len(devices)} devices do not tell each one's software"
            f" latency: it takes {DEVICES_MIN}; add a producer of another kind to {spec.path}"
        )
    return devices


def producers_of(spec: BenchSpec, target: TargetSpec, size_bytes: int) -> tuple[LabProducer, ...]:
    """Return every producer with its kind and its way to the target; a target that produces is none of them.

    Args:
        spec: The bench.
        target: Which receives.
        size_bytes: Of the payload, there and back.
    """
    receiver = _device(TARGET, spec, target.node, spec.nodes[target.node].priority)
    found: list[LabProducer] = []
    for number, producer in sorted(spec.producers.items()):
        if producer.node != target.node:
            own = _device(producer.node, spec, producer.node, spec.nodes[producer.node].priority)
            way = hardware_between(spec.topology, own, receiver, size_bytes)
            found.append(LabProducer(number, own.hardware, own.software, *way))
    return tuple(found)


def _device(name: str, spec: BenchSpec, node: str, priority: int) -> LabDevice:
    kind = spec.nodes[node].kind
    hardware = node if kind != "namespace" else f"{kind} of {spec.nodes[node].clock}"
    software = f"bw-traffic, SCHED_FIFO {priority}" if priority else "bw-traffic, SCHED_OTHER"
    return LabDevice(name, node, hardware, software, priority)


def twins_of(delayed: InjectedDelay | None, devices: Sequence[LabDevice]) -> tuple[LabDevice, ...]:
    """Return the twin that has a known delay, and its control; none where no device has a twin.

    Both are second echoes on the device's node that wait alike before they reply. The control's waits lie
    between its stamps, the twin's outside: that is all that their round trips differ by.
    """
    if delayed is None or not delayed.twin_of:
        return ()
    plain = next(each for each in devices if each.name == delayed.twin_of)
    return tuple(
        replace(plain, name=name, software=f"{plain.software}, {what}")
        for name, what in ((delayed.control, "control"), (delayed.device, "delayed"))
        if name is not None
    )


def simulated_machines(spec: BenchSpec) -> frozenset[str]:
    """Return the nodes that are machines of their own which one host simulates; of a real bench none."""
    if spec.virtual is None:
        return frozenset()
    return frozenset(name for name, node in spec.nodes.items() if node.kind is NodeKind.LABGRID)


def directions(
    devices: Sequence[LabDevice], twins: Sequence[LabDevice] = (), simulated: Collection[str] = ()
) -> list[tuple[LabDevice, LabDevice]]:
    """Return who asks whom: every pair of the devices, those of the first three in both roles.

    Twins are asked by all besides the one whose twins they are. Two simulated machines do not ask each other
    where the others tell each device: they wait for each other, as two that are independent do not.

    Args:
        devices: All but the twins.
        twins: See `twins_of`.
        simulated: Nodes of `simulated_machines`.
    """
    pairs = [(one, other) for place, one in enumerate(devices) for other in devices[place + 1 :]]
    swapped = [(other, one) for one, other in pairs if one in devices[:3] and other in devices[:3]]
    asked = [(each, twin) for each in devices for twin in twins if each.node != twin.node]
    every = [*pairs, *swapped, *asked]
    apart = [pair for pair in every if not all(each.node in simulated for each in pair)]
    kinds = [Device(each.name, each.hardware, each.software) for each in (*devices, *twins)]
    told = told_devices(kinds, [(one.name, other.name) for one, other in apart])
    return apart if len(told) == len(kinds) else every


def twins_delay(
    device: str, delay_us: int, devices: Sequence[LabDevice], times: RoundTripTimes
) -> InjectedDelay:
    """Return the delay of a device's twin, half of it before its echo and half behind; it has a control.

    Args:
        device: Name of the device that gets a twin.
        delay_us: In all.
        devices: All of them.
        times: Whose interval has to have room for it.

    Raises:
        ConfigError: There is no such device, or no room for that delay.
    """
    names = [each.name for each in devices]
    if device not in names:
        raise ConfigError(f"delayed_device: {device!r}; the devices are {', '.join(names)}")
    if not 1 <= delay_us <= times.delay_max_us:
        room = f"1 to {times.delay_max_us}, a third of the profile's round_trips.interval_us"
        raise ConfigError(f"delay_us: {delay_us}; allowed: {room}")
    half_us = delay_us // 2
    return InjectedDelay(device + DELAYED, half_us, delay_us - half_us, device, control=device + CONTROL)
