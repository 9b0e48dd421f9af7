# SPDX-License-Identifier: Apache-2.0
"""Latency of cables and switches on the way of one UDP datagram, from the topology of the test network.

From the first bit that the sender's port puts on its cable to the last bit at the receiver's port:
serialisation, propagation, transceivers and switches. What happens inside the two devices is not in it.
A frame takes 8 bits of each of its bytes, and of the 8 of preamble and start delimiter before it, over the
rate of the link; of a frame by itself the gap between packets costs nothing. A datagram over the MTU is so
many frames, one behind the other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from hw.topology import Forwarding, LinkSpec, TopologySpec

MTU_BYTES = 1500
IPV4_HEADER_BYTES = 20
UDP_HEADER_BYTES = 8
ETHERNET_BYTES = 14 + 4
"""Header and check sequence."""
FRAME_MIN_BYTES = 64
PREAMBLE_BYTES = 8
"""With the start delimiter."""
GAP_BYTES = 12
"""Between two frames on one link."""
FRAGMENT_BYTES = (MTU_BYTES - IPV4_HEADER_BYTES) // 8 * 8


@dataclass(frozen=True)
class HardwareLatency:
    """What cables and switches add to one round trip, both ways together.

    Attributes:
        ns: Their latency.
        bounds_ns: By how much each of them may be off, by its name; a cable or switch is off by the same
            amount in every round trip that leads over it.
    """

    ns: int
    bounds_ns: dict[str, int]


def frames_of(payload_bytes: int) -> tuple[int, ...]:
    """Return the bytes that each frame of a UDP datagram takes on a link, with its preamble."""
    left = UDP_HEADER_BYTES + payload_bytes
    frames: list[int] = []
    while left > 0 or not frames:
        part = min(left, FRAGMENT_BYTES)
        frames.append(PREAMBLE_BYTES + max(FRAME_MIN_BYTES, ETHERNET_BYTES + IPV4_HEADER_BYTES + part))
        left -= part
    return tuple(frames)


def one_way_ns(topology: TopologySpec, start: str, end: str, payload_bytes: int) -> float:
    """Return the latency from one node to another, in ns.

    A switch that stores sends a frame on its latency after the last bit has come; one that cuts through, its
    latency after the first one, unless the next link is faster than the one before: then it has to store.

    Args:
        topology: In which both nodes are.
        start: Who sends.
        end: Who receives.
        payload_bytes: Of the datagram.
    """
    frames = frames_of(payload_bytes)
    ready: Sequence[float] = [0.0] * len(frames)
    last_in = list(ready)
    at, before = start, None
    for link in topology.way(start, end):
        if before is not None:
            switch = topology.switches[at]
            stores = switch.forwarding is Forwarding.STORE_AND_FORWARD or _bit_ns(link) < _bit_ns(before)
            ready = [when + switch.latency_ns for when in (last_in if stores else ready)]
        free = 0.0
        through = link.length_m * link.ns_per_m + link.phy_latency_ns
        first_in: list[float] = []
        for place, size_bytes in enumerate(frames):
            begin = max(ready[place], free)
            finish = begin + size_bytes * 8 * _bit_ns(link)
            free = finish + GAP_BYTES * 8 * _bit_ns(link)
            first_in.append(begin + through)
            last_in[place] = finish + through
        ready, at, before = first_in, link.other(at), link
    return last_in[-1]


def round_trip(topology: TopologySpec, asker: str, reflector: str, payload_bytes: int) -> HardwareLatency:
    """Return the hardware's latency of a round trip of one datagram of the same size there and back.

    Args:
        topology: In which both nodes are.
        asker: Node that sends first.
        reflector: Node that sends back.
        payload_bytes: Of the datagram, each way.
    """
    ways = ((asker, reflector), (reflector, asker))
    total_ns = sum(one_way_ns(topology, start, end, payload_bytes) for start, end in ways)
    bounds_ns: dict[str, int] = {}
    at = asker
    for link in topology.way(asker, reflector):
        bounds_ns[f"link {link.name}"] = math.ceil(2 * link.uncertainty_ns)
        at = link.other(at)
        if at != reflector:
            bounds_ns[f"switch {at}"] = 2 * topology.switches[at].uncertainty_ns
    return HardwareLatency(round(total_ns), bounds_ns)


def _bit_ns(link: LinkSpec) -> float:
    return 0.0 if link.rate_mbps is None else 1000 / link.rate_mbps
