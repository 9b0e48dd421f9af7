# SPDX-License-Identifier: Apache-2.0
"""labgrid's view of the native Linux machine: a resource that describes it, a driver that powers it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import ClassVar

import attr

from hw.bench import VirtualSpec
from hw.drivers.labgrid_api import register_driver, register_resource, target_name
from hw.drivers.namespace_machine import NamespaceMachine, NamespaceMachineDriver
from hw.errors import BenchError
from hw.faults import Fault
from hw.journal import Journal
from hw.virtual import linux


@register_resource
@attr.s(eq=False)
class VirtualLinux(NamespaceMachine):
    """A namespace of this machine, as a Linux machine; attributes are described in docs/native-target.md."""

    faults: ClassVar[frozenset[Fault]] = frozenset(
        {Fault.NEVER_BOOTS, Fault.LOSES_SSH, Fault.FULL_DISK, Fault.CHANGED_HOST_KEY}
    )
    """Those that it can be given: it has no image, and no console at which somebody could be asked."""

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        self._network: VirtualSpec | None = None

    def attach(self, journal: Journal, network: VirtualSpec, own_namespace: str) -> None:
        """Take in where the machine belongs; power makes its namespace. See `hw.drivers.attachable`."""
        if self.own_namespace:
            return
        journal.record("namespace", name=own_namespace)
        self.own_namespace, self._network = own_namespace, network

    def plug_in(self) -> None:
        """Make the machine's namespace and links, as they are on its first day."""
        if self._network is None:
            raise BenchError(f"{target_name(self)}: is on no bench that makes its network")
        self.cut()
        linux.attach(self.own_namespace, self.namespace, target_name(self), self.addresses, self._network)

    def cut(self) -> None:
        """End the machine with all its settings; harmless when it is gone."""
        linux.detach(self.own_namespace, self.namespace, target_name(self))

    def fill(self, machine: subprocess.Popen[bytes]) -> None:
        """Let nothing more be written where provisioning keeps its undo file."""
        linux.fill_state(machine)


@register_driver
@attr.s(eq=False)
class VirtualLinuxDriver(NamespaceMachineDriver):
    """Powers a VirtualLinux."""

    bindings = {"machine": VirtualLinux}  # noqa: RUF012  (labgrid's form)
    no_restart: ClassVar[str] = "its kernel is that of the bench's own host"

    def boot(self) -> subprocess.Popen[bytes]:
        """Boot the machine, as on its first day."""
        resource: VirtualLinux = self._resource
        resource.plug_in()
        return linux.boot(
            linux.LinuxMachine(
                name=target_name(self),
                namespace=resource.own_namespace,
                folder=Path(resource.folder),
                control_address=resource.control_address,
                cpus=tuple(resource.cpus),
                fault=resource.fault,
            )
        )
