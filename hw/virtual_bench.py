# SPDX-License-Identifier: Apache-2.0
"""What of an open bench is made by this machine: its guests, where and when they run, and its switch."""

from __future__ import annotations

import time
from collections.abc import Collection, Container, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from hw.bench import BenchSpec, NodeKind, TargetSpec
from hw.drivers import virtual_guest, virtual_windows
from hw.drivers.labgrid_api import power_driver
from hw.drivers.namespace_machine import NamespaceMachine
from hw.errors import CapabilityError
from hw.virtual import accel, cpu_account
from hw.virtual.bench_network import namespace_of, port_of
from hw.virtual.machine_use import MachineUse, machine_use
from hw.virtual.qemu import ThreadPlacement


class LocalVirtualBench:
    """The virtual part of a bench; one of real machines has no guests, and those are left alone."""

    def __init__(self, spec: BenchSpec, environment: Any, folder: Path, nodes_on: Container[str]) -> None:
        """Describe it; nothing is changed.

        Args:
            spec: The bench.
            environment: labgrid's, with guests and real machines; None where the bench has neither.
            folder: Of the open bench; a guest's files are in one of its name.
            nodes_on: Names of the nodes that are on, at any time.
        """
        self._bench = spec
        self._environment = environment
        self._folder = folder
        self._nodes_on = nodes_on
        self._gave_way: dict[str, tuple[list[int], int]] = {}

    def powered_guests(self) -> set[str]:
        """Return the nodes that are on and whose power is this machine's, to be cut at will; none is real."""
        if self._bench.virtual is None:
            return set()
        return {name for name in self._bench.labgrid_targets if name in self._nodes_on}

    def accelerator(self) -> str:
        """Return what runs the guests (`kvm`, `tcg`), or `none` on a bench that has none."""
        targets = (self._environment.get_target(name) for name in self._bench.labgrid_targets)
        return accel.probe() if any(virtual_guest.guest_of(each) for each in targets) else "none"

    def give_way(self, name: str, other: str) -> None:
        """Let a guest run on any CPU of this machine, but not before another one.

        Until `take_back_way`; real machines have processors of their own.
        """
        if not {name, other} <= self._bench.labgrid_targets.keys():
            return
        guest, preferred = (
            virtual_guest.guest_of(self._environment.get_target(each)) for each in (name, other)
        )
        if guest is not None and preferred is not None:
            self._gave_way.setdefault(name, (guest.vcpu_cpus, guest.vcpu_priority))
            self._place(name, [], max(0, preferred.vcpu_priority - 1))

    def take_back_way(self, name: str) -> None:
        """Let a guest run again where its bench file says; harmless where it gave no way."""
        if name in self._gave_way:
            self._place(name, *self._gave_way.pop(name))

    def emulating_threads(self, node_name: str) -> dict[str, int]:
        """Return the ids of this machine's threads that emulate a guest by name; empty: a real machine."""
        power = self._guest_power(node_name)
        return {} if power is None else power.qemu.emulating_threads()

    def target_account(self) -> Path | None:
        """Return the file of what targets that share this machine's CPUs run there; None: there are none.

        Raises:
            CapabilityError: This machine's kernel keeps no such account.
        """
        resources = (self._environment.get_target(name).resources for name in self._bench.labgrid_targets)
        is_shared = any(isinstance(each, NamespaceMachine) for own in resources for each in own)
        return cpu_account.usage_file() if is_shared else None

    def machine_use(self) -> MachineUse | None:
        """Return what has run on this machine so far; None: the target is a real one, or nobody knows."""
        return machine_use() if self._bench.simulated else None

    @contextmanager
    def cpu_accounts(self, parts: Mapping[str, Collection[str]]) -> Generator[dict[str, Path]]:
        """Count what runs now on nodes that share this machine's CPUs with what targets run there, by parts.

        Args:
            parts: Nodes by the name of a part.

        Yields:
            Of each part the file of what it has run so far, in ns; none where no target shares the CPUs, or a
            node is another machine.

        Raises:
            CapabilityError: This machine's kernel keeps no such account.
        """
        namespaces = {part: [self._namespace(name) for name in names] for part, names in parts.items()}
        if self.target_account() is None or any("" in each for each in namespaces.values()):
            yield {}
            return
        with ExitStack() as stack:
            yield {
                part: stack.enter_context(cpu_account.counted(part, each))
                for part, each in namespaces.items()
            }

    def _namespace(self, name: str) -> str:
        """Return the network namespace that a node is; empty: it is none."""
        if self._bench.nodes[name].kind is NodeKind.NAMESPACE:
            return namespace_of(self._bench.name, name)
        if name not in self._bench.labgrid_targets:
            return ""
        resources = self._environment.get_target(name).resources
        machines = [each for each in resources if isinstance(each, NamespaceMachine)]
        return machines[0].own_namespace if machines else ""

    def pause(self, name: str, duration_s: float) -> None:
        """Stop a guest, with all its clocks, for so long; return when it goes on.

        Raises:
            CapabilityError: It is no guest of this machine.
            BenchError: Its emulator refuses.
        """
        power = self._guest_power(name)
        if power is None:
            raise CapabilityError(f"{name}: no guest of this machine, which alone could be paused")
        power.qemu.command("stop")
        try:
            time.sleep(duration_s)
        finally:
            power.qemu.command("cont")

    def timecard_page(self, node_name: str) -> Path | None:
        """Return the file of the page that this machine shares with a guest; None for a real machine."""
        page = self._folder / node_name / virtual_guest.PAGE_FILE
        if node_name in self._bench.labgrid_targets:
            page = virtual_windows.page_of(self._environment.get_target(node_name)) or page
        return page if page.exists() else None

    def switch_ports(self, nodes: Sequence[str]) -> tuple[str, ...]:
        """Return the ports of the switch to which nodes are connected; none where it is a real switch."""
        if self._bench.virtual is None:
            return ()
        return tuple(port_of(self._bench, name) for name in nodes)

    def capture_ends(self, node_name: str, target: TargetSpec) -> tuple[str, ...]:
        """Return where packets from a node to a target are seen before and behind the impairment node.

        Two interfaces of the capture node; none on a bench that has no capture node or does not see both.
        """
        bench = self._bench
        if bench.virtual is None or bench.capture is None:
            return ()
        return (port_of(bench, node_name), bench.capture.interface or port_of(bench, target.node))

    def _guest_power(self, name: str) -> virtual_guest.VirtualGuestDriver | None:
        """Return the power driver of a guest; None: a real machine, or a part of this one."""
        if name not in self._bench.labgrid_targets:
            return None
        target = self._environment.get_target(name)
        # Of a board the power driver is its strategy, which has the guest's below it.
        drivers = [power_driver(target), *getattr(target, "drivers", ())]
        return next((each for each in drivers if isinstance(each, virtual_guest.VirtualGuestDriver)), None)

    def _place(self, name: str, vcpu_cpus: list[int], vcpu_priority: int) -> None:
        guest = virtual_guest.guest_of(self._environment.get_target(name))
        guest.vcpu_cpus, guest.vcpu_priority = vcpu_cpus, vcpu_priority
        power = self._guest_power(name)
        if power is not None and power.powered:
            power.qemu.place_vcpus(ThreadPlacement(vcpu_priority, tuple(vcpu_cpus)))
