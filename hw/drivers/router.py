# SPDX-License-Identifier: Apache-2.0
"""The router of a bench: delay, loss and more by kernel netem on paths of the test network, read back."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Sequence

from hw.bench import SWITCH
from hw.errors import BenchError, CapabilityError, ConfigError
from hw.netem import PRIO_HANDLE, differences, flow_commands, flows_are, queue_command, settings_in
from hw.open_bench import PoweredNodes
from hw.path_settings import Flow, PathSettings, RealisedPath
from hw.router import PathDirection, RouterSpec
from hw.virtual import network
from hw.virtual.bench_network import namespace_of, port_of

SHOW_QUEUES = "tc -j qdisc show"
OFFLOADS = {
    "tso": "tcp-segmentation-offload",
    "gso": "generic-segmentation-offload",
    "gro": "generic-receive-offload",
    "lro": "large-receive-offload",
    "rx-gro-hw": "rx-gro-hw",
}
"""What joins frames or sends joined ones, as `ethtool -K` sets it and `ethtool -k` shows it."""


class NetemRouter:
    """The router, each direction with settings of its own; a virtual bench plugs links over to it."""

    def __init__(self, bench: PoweredNodes, spec: RouterSpec) -> None:
        """Describe the router; nothing is changed."""
        self._bench = bench
        self._spec = spec
        self._joins_frames = True

    def configure(
        self, paths: Collection[PathDirection], settings: PathSettings, flows: Sequence[Flow] = ()
    ) -> RealisedPath:
        """Treat packets of these paths so, and no longer as before; the other direction stays as it is.

        Args:
            paths: Links, all in one direction.
            settings: What happens to the packets.
            flows: Those that alone are treated; none: all.

        Returns:
            What was really set.

        Raises:
            ConfigError: The bench has no such path, or other links are treated in the other direction.
            CapabilityError: The router's kernel or tools lack what is asked for.
            BenchError: What was set is not what was asked for, beyond what netem resolves.
        """
        interfaces = {self._spec.interface(path) for path in paths}
        if len(interfaces) != 1:
            raise ConfigError(f"paths: must be at least one, all in one direction, found {list(paths)}")
        interface = interfaces.pop()
        self._bench.power_on([self._spec.node])
        ports = {self._port(path) for path in paths} if self._bench.spec.virtual is not None else set[str]()
        if self._joins_frames:
            self._turn_offloads_off()
        plugged = self._plugged()
        if plugged - ports:
            self._refuse_other_links(interface, plugged)
        answer = self._set(interface, settings, flows)
        realised = self._read_back(answer, interface, settings, flows)
        self._plug(plugged, ports)
        return RealisedPath(self._spec.node, interface, realised, tuple(flows))

    def clear(self) -> None:
        """Treat no packets; on a virtual bench power the router off, elsewhere on."""
        self._plug(self._plugged(), set())
        if self._bench.spec.virtual is not None:
            self._joins_frames = True
            self._bench.power_off(self._spec.node)
            return
        self._bench.power_on([self._spec.node])
        for interface in filter(None, self._spec.interfaces):
            delete = ["tc", "qdisc", "delete", "dev", interface, "root"]
            self._bench.node(self._spec.node).run(delete, check=False)

    def _turn_offloads_off(self) -> None:
        """Let each frame pass by itself: netem would delay, lose and count joined ones as one packet."""
        node, interfaces = self._bench.node(self._spec.node), [name for name in self._spec.interfaces if name]
        off = [f"ethtool -K {shlex.quote(name)} {key} off" for name in interfaces for key in OFFLOADS]
        show = " && ".join(f"ethtool -k {shlex.quote(name)}" for name in interfaces)
        # One that a card does not have, or that is fixed, is refused: what counts is what is then shown.
        done = node.run(["sh", "-c", f"{{ {'; '.join(off)}; }} >/dev/null 2>&1; {show}"], check=False)
        if done.exit_code != 0:
            why = (done.stderr or done.stdout).strip()[:300]
            raise CapabilityError(f"router {self._spec.node}: its offloads are not known: {why}")
        lines = [line.strip() for line in done.stdout.splitlines()]
        on = tuple(f"{name}: on" for name in OFFLOADS.values())
        joining = sorted({line for line in lines if line.startswith(on)})
        if joining:
            raise CapabilityError(f"router {self._spec.node}: it joins frames: {', '.join(joining)}")
        self._joins_frames = False

    def _set(self, interface: str, settings: PathSettings, flows: Sequence[Flow]) -> str:
        """Set a queue, keeping what it holds where only its settings change; return what is said of it."""
        if not flows:
            commands = [queue_command(interface, settings)]
        elif self._has(interface, flows):
            commands = [queue_command(interface, settings, of_flows=True)]
        else:
            commands = flow_commands(interface, flows, settings)
        script = " && ".join([*map(shlex.join, commands), SHOW_QUEUES])
        done = self._bench.node(self._spec.node).run(["sh", "-c", script], check=False)
        if done.exit_code != 0:
            raise self._refused(settings, (done.stderr or done.stdout).strip()[:300])
        return done.stdout

    def _refused(self, settings: PathSettings, why: str) -> CapabilityError | BenchError:
        lacking = {
            '"seed"': "seed: needs Linux 6.6 and iproute2 6.6 or newer",
            "distribution data": f"jitter_distribution: no table {settings.jitter_distribution}",
            "kind is unknown": "its kernel has no netem, prio or u32",
        }
        for word, what in lacking.items():
            if word in why:
                return CapabilityError(f"router {self._spec.node}: {what}: {why}")
        return BenchError(f"router {self._spec.node}: {why}")

    def _read_back(
        self, answer: str, interface: str, settings: PathSettings, flows: Sequence[Flow]
    ) -> PathSettings:
        found = settings_in(answer, interface)
        if found is None:
            raise BenchError(f"router {self._spec.node}: no netem on {interface} after it was set")
        wrong = differences(settings, found)
        if settings.seed is not None and found.seed is None:
            raise CapabilityError(f"router {self._spec.node}: seed: its tools do not read it back")
        if flows and not self._has(interface, flows):
            wrong.append(f"flows: asked for {list(flows)}, found other filters")
        if wrong:
            raise BenchError(f"router {self._spec.node}, interface {interface}: {'; '.join(wrong)}")
        return found

    def _has(self, interface: str, flows: Sequence[Flow]) -> bool:
        """Tell whether these flows alone are treated already."""
        show = ["tc", "filter", "show", "dev", interface, "parent", PRIO_HANDLE]
        done = self._bench.node(self._spec.node).run(show, check=False)
        return done.exit_code == 0 and flows_are(done.stdout, flows)

    def _refuse_other_links(self, interface: str, plugged: set[str]) -> None:
        """Refuse other links for one direction while the first ones are treated in the other one."""
        answer = self._bench.node(self._spec.node).run(shlex.split(SHOW_QUEUES)).stdout
        for other in self._spec.interfaces:
            if other and other != interface and settings_in(answer, other) is not None:
                found = f"must be those that are treated in the other direction: {sorted(plugged)}"
                raise ConfigError(f"paths: {found}; clear the router first")

    def _port(self, path: PathDirection) -> str:
        """Return the switch's port of a link of a virtual bench."""
        (node,) = (end for end in self._spec.links[path.link] if end != SWITCH)
        return port_of(self._bench.spec, node)

    def _plugged(self) -> set[str]:
        """Return the switch's ports whose way leads through the router of a virtual bench."""
        if self._bench.spec.virtual is None:
            return set()
        switch = namespace_of(self._bench.spec.name, SWITCH)
        return {port for port in network.ports(switch, "br-impair") if port != f"i-{self._spec.node}"}

    def _plug(self, plugged: set[str], ports: set[str]) -> None:
        """Let the way of these ports of a virtual bench, and of no others, lead through the router."""
        switch = namespace_of(self._bench.spec.name, SWITCH)
        for port in plugged - ports:
            network.move_port(switch, port, "br-test")
        for port in ports - plugged:
            network.move_port(switch, port, "br-impair")
