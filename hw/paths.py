# SPDX-License-Identifier: Apache-2.0
"""Paths of a bench that its router can treat, found by who sends to whom."""

from __future__ import annotations

from hw.bench import BenchSpec
from hw.errors import CapabilityError
from hw.router import PathDirection, RouterSpec


def router_of(spec: BenchSpec) -> RouterSpec:
    """Return the router of a bench.

    Raises:
        CapabilityError: It has none; says what to add.
    """
    if spec.router is None:
        raise CapabilityError(
            f"bench {spec.name}: no impairment node; add benchwright.topology.router to {spec.path}"
        )
    return spec.router


def producer_path(spec: BenchSpec, number: int, end: str) -> PathDirection:
    """Return the path of a producer's packets to a node.

    Raises:
        CapabilityError: The bench has no router, no such producer, or the router is not on its way.
    """
    router, producer = router_of(spec), spec.producers.get(number)
    path = producer and router.path(producer.node, end, spec.topology)
    if path is None:
        raise CapabilityError(f"bench {spec.name}: no impairment node on the link of producer {number}")
    return path


def producer_paths(spec: BenchSpec, end: str) -> dict[int, PathDirection]:
    """Return the paths of packets to a node, by producer, of all those that the router is on the way of."""
    router = router_of(spec)
    found = {
        number: router.path(producer.node, end, spec.topology) for number, producer in spec.producers.items()
    }
    return {number: path for number, path in found.items() if path is not None}


def time_server_path(spec: BenchSpec, end: str) -> PathDirection:
    """Return the path of the time server's packets to a node.

    Raises:
        CapabilityError: The bench has no router, no time server, or the router is not on its way.
    """
    router, server = router_of(spec), spec.time_server
    path = server and router.path(server.node, end, spec.topology)
    if path is None:
        raise CapabilityError(f"bench {spec.name}: no impairment node on the link of the time server")
    return path
