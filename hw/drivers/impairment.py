# SPDX-License-Identifier: Apache-2.0
"""Delay and loss by kernel netem on a node between chosen producers and the target."""

from __future__ import annotations

from collections.abc import Sequence

from hw.bench import SWITCH, ImpairmentSpec
from hw.errors import CapabilityError, ConfigError
from hw.open_bench import PoweredNodes
from hw.virtual import network
from hw.virtual.bench_network import namespace_of

# Packets that netem may hold: an explicit limit, for the default of 1000 loses packets of the larger bursts.
QUEUE_PACKETS = 100_000
DELAY_MAX_US = 10_000_000


class NetemImpairment:
    """The impairment node of a bench; on a virtual bench producers are plugged over to it."""

    def __init__(self, bench: PoweredNodes, spec: ImpairmentSpec) -> None:
        """Describe the impairment; nothing is changed."""
        self._bench = bench
        self._spec = spec

    def apply(self, producers: Sequence[int], delay_us: int, loss_percent: float) -> None:
        """Delay and lose packets of these producers on their way to the target.

        Args:
            producers: Their numbers; the others are not touched.
            delay_us: Added delay, microseconds, 0..10_000_000.
            loss_percent: Share of packets that is lost, 0..100, independent of each other.
        """
        allowed = self._spec.producers
        wrong = [
            number
            for number in producers
            if number not in self._bench.spec.producers or (allowed and number not in allowed)
        ]
        if wrong:
            raise CapabilityError(
                f"bench {self._bench.spec.name}: no impairment node on the link of producer {wrong[0]}"
            )
        self._netem(delay_us, 0, loss_percent)
        for number, producer in self._bench.spec.producers.items():
            self._plug(producer.node, "br-impair" if number in producers else "br-test")

    def apply_to_time_server(self, delay_us: int, jitter_us: int = 0, loss_percent: float = 0.0) -> None:
        """Delay and lose what the time server sends to the target, and nothing that comes back.

        Args:
            delay_us: Added delay, microseconds, 0..10_000_000: the asymmetry of the path.
            jitter_us: Spread of that delay (netem's uniform jitter), 0..delay_us.
            loss_percent: Share of packets that is lost, 0..100, independent of each other.

        Raises:
            CapabilityError: The bench has no time server, or its link leads not through this node.
        """
        server = self._bench.spec.time_server
        if server is None or not (self._bench.spec.virtual is not None or self._spec.time_server):
            raise CapabilityError(
                f"bench {self._bench.spec.name}: no impairment node on the link of the time server"
            )
        self._netem(delay_us, jitter_us, loss_percent)
        self._plug(server.node, "br-impair")

    def _netem(self, delay_us: int, jitter_us: int, loss_percent: float) -> None:
        for name, value, high in (("delay_us", delay_us, DELAY_MAX_US), ("jitter_us", jitter_us, delay_us)):
            if not 0 <= value <= high:
                raise ConfigError(f"{name}: must be in 0..{high}, found {value}")
        if not 0.0 <= loss_percent <= 100.0:
            raise ConfigError(f"loss_percent: must be in 0..100, found {loss_percent}")
        self._bench.power_on([self._spec.node])
        jitter = [f"{jitter_us}us"] if jitter_us else []
        loss = ["loss", f"{loss_percent:g}%"] if loss_percent else []
        self._bench.node(self._spec.node).run(
            [
                *("tc", "qdisc", "replace", "dev", self._spec.interface, "root", "netem"),
                *("limit", str(QUEUE_PACKETS), "delay", f"{delay_us}us", *jitter, *loss),
            ]
        )

    def clear(self) -> None:
        """Take the disturbance out of the way; on a virtual bench power its node off, elsewhere on."""
        server = self._bench.spec.time_server
        nodes = [producer.node for producer in self._bench.spec.producers.values()]
        for node in [*nodes, *([server.node] if server is not None else [])]:
            self._plug(node, "br-test")
        if self._bench.spec.virtual is not None:
            self._bench.power_off(self._spec.node)
        else:
            self._bench.power_on([self._spec.node])
            self._bench.node(self._spec.node).run(
                ["tc", "qdisc", "delete", "dev", self._spec.interface, "root"], check=False
            )

    def _plug(self, node: str, bridge: str) -> None:
        if self._bench.spec.virtual is None:
            return
        switch = namespace_of(self._bench.spec.name, SWITCH)
        for other in {"br-test", "br-impair"} - {bridge}:
            for port in {node, f"t-{node}"}.intersection(network.ports(switch, other)):
                network.move_port(switch, port, bridge)
