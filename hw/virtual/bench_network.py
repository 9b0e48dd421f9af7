# SPDX-License-Identifier: Apache-2.0
"""The network of a whole virtual bench: its switch, its namespaces, and the taps of its guests."""

from __future__ import annotations

from typing import Any

from hw.bench import SWITCH, BenchSpec, NodeKind
from hw.journal import Journal
from hw.virtual import network


def namespace_of(bench_name: str, node_name: str) -> str:
    """Return the name of the network namespace of a node; benches never share one."""
    return f"bw-{bench_name}-{node_name}"


def port_of(spec: BenchSpec, node_name: str) -> str:
    """Return the switch's interface towards a node of a virtual bench."""
    return node_name if spec.nodes[node_name].kind is NodeKind.NAMESPACE else f"t-{node_name}"


def build_network(spec: BenchSpec, journal: Journal) -> None:
    """Build switch, namespaces and producers' links; the journal knows how to undo it.

    Args:
        spec: A bench with a virtual section.
        journal: Of the bench.

    Raises:
        BenchError: Something cannot be built.
    """
    assert spec.virtual is not None
    namespaces = [node.name for node in spec.nodes.values() if node.kind is NodeKind.NAMESPACE]
    for node_name in namespaces:
        namespace = namespace_of(spec.name, node_name)
        journal.record("namespace", name=namespace)
        network.create_namespace(namespace)
    switch = namespace_of(spec.name, SWITCH)
    network.create_switch(switch, spec.virtual)
    for producer in spec.producers.values():
        if producer.node in namespaces:
            namespace = namespace_of(spec.name, producer.node)
            network.create_producer_link(switch, namespace, producer.node, producer.address, spec.virtual)
            network.set_sysctls(namespace, network.PRODUCER_SYSCTLS)


def plug_in(spec: BenchSpec, guest: Any) -> None:
    """Give a guest its taps on the switch, where it has none yet.

    Args:
        spec: A bench with a virtual section, whose network is built.
        guest: Resource of the guest.

    Raises:
        BenchError: A tap cannot be made.
    """
    assert spec.virtual is not None
    switch = namespace_of(spec.name, SWITCH)
    there = {port for bridge in network.SWITCH_BRIDGES for port in network.ports(switch, bridge)}
    for tap, bridge in guest.taps():
        if tap not in there:
            mtu_bytes = 1500 if bridge == "br-control" else spec.virtual.mtu_bytes
            network.create_tap(switch, tap, bridge, mtu_bytes)
            if bridge == "br-test" and guest.role != "impair":
                network.limit_rate(switch, tap, spec.virtual)
