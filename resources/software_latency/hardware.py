# SPDX-License-Identifier: Apache-2.0
"""What cables and switches add to round trips between two devices, by the topology of the bench."""

from __future__ import annotations

from hw.hardware_latency import round_trip
from hw.topology import TopologySpec
from reports.software_latency.evidence import HardwareBound, LabDevice


def hardware_between(
    topology: TopologySpec | None, one: LabDevice, other: LabDevice, size_bytes: int
) -> tuple[int, tuple[HardwareBound, ...] | None]:
    """Return the latency of both ways together, in ns, and by how much each cable and switch may be off.

    Args:
        topology: Of the bench; None: nothing is known, so that nothing is taken off.
        one: Device that asks.
        other: Device that sends back.
        size_bytes: Of the payload, each way.
    """
    if topology is None:
        return 0, None
    found = round_trip(topology, one.node, other.node, size_bytes)
    return found.ns, tuple(HardwareBound(name, ns) for name, ns in found.bounds_ns.items())
