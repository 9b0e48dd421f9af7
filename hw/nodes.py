# SPDX-License-Identifier: Apache-2.0
"""The nodes of an open bench: on or off, reached, with the native tools that they need."""

from __future__ import annotations

import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from hw.bench import BenchSpec, NodeKind
from hw.drivers import virtual_guest
from hw.drivers.attachable import Attachable
from hw.drivers.labgrid_api import disconnect, last_words, power_driver, switch_on
from hw.drivers.local import LocalNode
from hw.drivers.owned import OwnedNode
from hw.drivers.ssh import SshNode
from hw.errors import BenchError, CapabilityError, ConfigError
from hw.faults import Faulty
from hw.journal import Journal
from hw.labgrid_file import CONSOLE_LOG
from hw.protocols import Node
from hw.tools import local_library, local_tool
from hw.virtual import network
from hw.virtual.bench_network import namespace_of, plug_in
from hw.virtual.console_log import earlier_logs

RESTART_DEADLINE_S = 60.0
DYNAMIC = "dynamic"
"""Folder, beside a node's static programs, of those that load libraries, and of the libraries."""


class BenchNodes:
    """The nodes of a bench by name: parts of this machine, and what labgrid powers and reaches."""

    def __init__(self, spec: BenchSpec, folder: Path, journal: Journal, environment: Any) -> None:
        """Describe them; nothing is powered on.

        Args:
            spec: The bench; where it is virtual, its network is built.
            folder: Of the open bench: the consoles' logs are in it.
            journal: Takes what of this machine is changed.
            environment: labgrid's, with guests and real machines; None where the bench has neither.
        """
        self.spec = spec
        self.folder = folder
        self.journal = journal
        work = folder / "work"
        self.host: Node = OwnedNode("host", spec.reference_clock, 0, work_folder=work)
        """This machine, outside of all network namespaces; its tools end with this process."""
        self._environment = environment
        self._nodes: dict[str, Node] = {}
        self._deployed: dict[tuple[str, str], Path] = {}
        self._cut_off: set[str] = set()
        for node in spec.nodes.values():
            if node.kind is NodeKind.LOCAL:
                self._nodes[node.name] = OwnedNode(node.name, node.clock, node.priority, work_folder=work)
            elif node.kind is NodeKind.NAMESPACE:
                namespace = namespace_of(spec.name, node.name)
                self._nodes[node.name] = LocalNode(node.name, node.clock, node.priority, namespace, work)

    def node(self, name: str) -> Node:
        """Return a node that is on.

        Raises:
            BenchError: It is off, or not in the bench file.
        """
        if name not in self.spec.nodes:
            raise ConfigError(f"{self.spec.path}: no node {name!r}; there are: {', '.join(self.spec.nodes)}")
        if name not in self._nodes:
            raise BenchError(f"node {name} is off")
        return self._nodes[name]

    def power_on(self, names: Iterable[str]) -> None:
        """Power up nodes, all at once; return when each answers over SSH.

        A node that has lost its power meanwhile is powered up again.

        Raises:
            BenchError: One does not answer within 60 s; the text quotes its console.
        """
        wanted = tuple(dict.fromkeys(names))
        for name in wanted:
            if name in self._nodes and self.is_off(name):
                self._forget(name)
        off = [name for name in wanted if name not in self._nodes]
        if not off:
            return
        with ThreadPoolExecutor(len(off)) as pool:
            for name, node in zip(off, pool.map(self._power_on, off), strict=True):
                self._nodes[name] = node

    def is_off(self, name: str) -> bool:
        """Tell whether a node is off, or has lost its power."""
        return name not in self._nodes or not self._nodes[name].powered

    def power_off(self, name: str) -> None:
        """Cut the power of a node; harmless when it is off or has no switchable power."""
        self._forget(name)
        power = power_driver(self._environment.get_target(name))
        if power is not None:
            power.off()

    def cut_power(self, name: str) -> None:
        """Take the power away from a node in the middle of its work; `power_on` gives it back.

        Whoever works with the node is told that it has lost its power.

        Raises:
            CapabilityError: It has no power that can be switched.
        """
        power = self._switchable_power(name)
        self._cut_off.add(name)
        power.off()

    def restart(self, name: str) -> None:
        """Have a node restart by itself in the middle of its work; return when it is not reached any more.

        `power_on` reaches it again. A virtual guest loses its power when it restarts.

        Raises:
            CapabilityError: It cannot restart, or there is no power to be switched if it does not come back.
            BenchError: It is still there after a minute.
        """
        power = self._switchable_power(name)
        if reason := getattr(power, "no_restart", ""):
            raise CapabilityError(f"{name} cannot be restarted: {reason}")
        node = self.node(name)
        if not isinstance(node, SshNode):
            raise CapabilityError(f"{name} cannot be restarted: it is part of this machine")
        node.restart()
        deadline = time.monotonic() + RESTART_DEADLINE_S
        while node.is_reached():
            if time.monotonic() > deadline:
                raise BenchError(f"{name}: has not restarted {RESTART_DEADLINE_S:g} s after it was asked to")
            time.sleep(0.2)
        self._cut_off.add(name)

    def begin_fault(self, name: str) -> None:
        """Let the fault that a node was opened with begin, where it was not there from the start.

        Raises:
            CapabilityError: The node can have no faults.
            BenchError: It cannot be made.
        """
        for resource in self._environment.get_target(name).resources:
            if isinstance(resource, Faulty):
                resource.begin_fault(self.node(name))
                return
        raise CapabilityError(f"{name}: only a virtual machine can be given a fault")

    def tool(self, node_name: str, tool: str = "bw-traffic", *, dynamic: bool = False) -> str:
        """Return the path of a native tool on a node, copying it there first where need be.

        Args:
            node_name: Of a node that is on.
            tool: `bw-clock`, …
            dynamic: One that can load libraries, tried there at once; else one that needs none of the node.

        Raises:
            CapabilityError: None is built for the node, or the node's loader and libraries are not for it.
        """
        node = self.node(node_name)
        if not isinstance(node, SshNode):
            return str(local_tool(tool))
        remote = node.tool_path(f"{DYNAMIC}/{tool}" if dynamic else tool)
        if self._deploy(node, local_tool(tool, node.machine(), dynamic=dynamic), remote) and dynamic:
            tried = node.run([remote, "--version"], check=False)
            if tried.exit_code != 0:
                del self._deployed[node_name, remote]
                said = tried.stderr.strip() or tried.stdout.strip() or f"exit code {tried.exit_code}"
                raise CapabilityError(f"{node_name}: {tool}, the dynamic build, does not run there: {said}")
        return remote

    def library(self, node_name: str, library: str | Path) -> str:
        """Return the path of a shared library on a node, copying it there first where need be.

        Args:
            node_name: Of a node that is on.
            library: Name of one that is built with the native tools, or path of a file of this machine.

        Raises:
            CapabilityError: None is built for the node.
            ConfigError: Another file of that name is on the node already.
        """
        node = self.node(node_name)
        machine = node.machine() if isinstance(node, SshNode) else ""
        file = library if isinstance(library, Path) else local_library(library, machine)
        if not isinstance(node, SshNode):
            return str(file)
        remote = node.library_path(f"{DYNAMIC}/{file.name}")
        self._deploy(node, file, remote)
        return remote

    def console(self, name: str) -> str:
        """Return what a guest or a board has said on its console, or an empty text where nobody listens."""
        log = self.folder / name / CONSOLE_LOG
        return log.read_text(errors="replace") if log.exists() else ""

    def consoles(self, name: str) -> list[str]:
        """Return what a guest or a board has said since the bench was opened.

        A guest's texts are those of its boots; a board's is one, with the instants of power on and off in it.
        """
        log = self.folder / name / CONSOLE_LOG
        before = [each.read_text(errors="replace") for each in earlier_logs(log)]
        return [text for text in (*before, self.console(name)) if text]

    def close(self) -> None:
        """Leave real machines as they are; guests lose their power."""
        self._nodes.clear()
        if self._environment is not None:
            for target in self._environment.targets.values():
                disconnect(target)
            self._environment.cleanup()

    def _deploy(self, node: SshNode, local: Path, remote: str) -> bool:
        """Copy a file to a node; return whether it had to be, raise ConfigError where it is another one's."""
        before = self._deployed.get((node.name, remote))
        if before not in (None, local):
            raise ConfigError(f"{node.name}: {before} and {local}: two files that bear one name there")
        if before is None:
            node.put(local, remote)
            self._deployed[node.name, remote] = local
        return before is None

    def _power_on(self, name: str) -> Node:
        spec = self.spec.nodes[name]
        target = self._environment.get_target(name)
        guest = virtual_guest.guest_of(target)
        if guest is not None:
            plug_in(self.spec, guest)
        for resource in target.resources:
            if isinstance(resource, Attachable) and self.spec.virtual is not None:
                resource.attach(self.journal, self.spec.virtual, namespace_of(self.spec.name, name))
        power = power_driver(target)
        self._cut_off.discard(name)
        if power is not None:
            switch_on(name, power)
        try:
            driver = target.get_driver("CommandProtocol")
        except BenchError as error:
            raise BenchError(f"node {name}: {error}") from error
        except Exception as error:
            console = self.console(name)[-400:].strip()
            raise BenchError(
                f"node {name} does not answer over SSH: {last_words(error)}; console: {console or 'silent'}"
            ) from error

        def is_powered() -> bool:
            return name not in self._cut_off and _has_power(power)

        node: SshNode = driver.make_node(name, spec.clock, spec.priority, is_powered)
        if guest is None:
            node.end_leftovers()
        if guest is not None and spec.clock in self.spec.clocks:
            settings = [f"{key}={value}" for key, value in network.PRODUCER_SYSCTLS.items()]
            node.run(["sysctl", "-q", "-w", *settings])
        return node

    def _forget(self, name: str) -> None:
        """Close the connection to a node and what is known of it."""
        self._nodes.pop(name, None)
        for there in [each for each in self._deployed if each[0] == name]:
            del self._deployed[there]
        disconnect(self._environment.get_target(name))

    def _switchable_power(self, name: str) -> Any:
        """Return the power driver of a node; raises CapabilityError where it has none."""
        labgrid = name in self.spec.labgrid_targets
        power = power_driver(self._environment.get_target(name)) if labgrid else None
        if power is None:
            raise CapabilityError(
                f"{name}: its power cannot be switched: there is no power driver in {self.spec.path}"
            )
        return power


def _has_power(power: Any) -> bool:
    """Tell whether a power driver says so, without asking the node; one that does not know says yes."""
    return bool(getattr(power, "powered", True))
