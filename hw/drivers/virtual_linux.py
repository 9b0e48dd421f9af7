# SPDX-License-Identifier: Apache-2.0
"""labgrid's view of the native Linux machine: a resource that describes it, a driver that powers it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any, ClassVar

import attr
from labgrid.driver.common import Driver
from labgrid.protocol import PowerProtocol
from labgrid.resource.common import Resource

from hw.bench import VirtualSpec
from hw.drivers.labgrid_api import (
    check_active,
    cpu_list,
    one_of_its_faults,
    register_driver,
    register_resource,
    target_name,
)
from hw.errors import BenchError
from hw.faults import Fault
from hw.journal import Journal
from hw.protocols import Node
from hw.virtual import linux
from hw.virtual.guest_faults import cut_control_link

_INT = attr.validators.instance_of(int)
_STR = attr.validators.instance_of(str)


@register_resource
@attr.s(eq=False)
class VirtualLinux(Resource):
    """A namespace of this machine, as a Linux machine; attributes are described in docs/native-target.md.

    Args:
        fault: What is wrong with it, one of `faults`; empty: nothing.
        namespace: Namespace of the switch (filled in by the bench).
        folder: Folder for the run's keys and log (filled in by the bench).
        control_prefix_length: Of the control network (filled in by the bench).
        test_prefix_length: Of the test network (filled in by the bench).
    """

    faults: ClassVar[frozenset[Fault]] = frozenset(
        {Fault.NEVER_BOOTS, Fault.LOSES_SSH, Fault.FULL_DISK, Fault.CHANGED_HOST_KEY}
    )
    """Those that it can be given: it has no image, and no console at which somebody could be asked."""

    test_address: str = attr.ib(default="", validator=_STR)
    control_address: str = attr.ib(default="", validator=_STR)
    cpus: list[int] = attr.ib(factory=list[int], validator=cpu_list)
    fault: str = attr.ib(default="", validator=one_of_its_faults)
    namespace: str = attr.ib(default="", validator=_STR)
    folder: str = attr.ib(default="", validator=_STR)
    control_prefix_length: int = attr.ib(default=24, validator=_INT)
    test_prefix_length: int = attr.ib(default=24, validator=_INT)

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        self._own_namespace = ""
        self._network: VirtualSpec | None = None
        self.running: subprocess.Popen[bytes] | None = None
        """What lives as long as the machine is on; of its power driver."""

    @property
    def own_namespace(self) -> str:
        """The machine's own network namespace; empty before `attach`."""
        return self._own_namespace

    def attach(self, journal: Journal, network: VirtualSpec, own_namespace: str) -> None:
        """Take in where the machine belongs; power makes its namespace. See `hw.drivers.attachable`."""
        if self._own_namespace:
            return
        journal.record("namespace", name=own_namespace)
        self._own_namespace, self._network = own_namespace, network

    def plug_in(self) -> None:
        """Make the machine's namespace and links, as they are on its first day."""
        if self._network is None:
            raise BenchError(f"{target_name(self)}: is on no bench that makes its network")
        self.unplug()
        addresses = (self.test_address, self.control_address)
        linux.attach(self._own_namespace, self.namespace, target_name(self), addresses, self._network)

    def unplug(self) -> None:
        """End the machine with all its settings; harmless when it is gone."""
        if self._own_namespace:
            linux.detach(self._own_namespace, self.namespace, target_name(self))
        if self.running is not None:
            self.running.wait()
            self.running = None

    def begin_fault(self, node: Node) -> None:
        """Let a fault begin that it does not have from the start; see `hw.faults.Faulty`."""
        if self.fault == Fault.LOSES_SSH:
            cut_control_link(self.namespace, target_name(self))
        elif self.fault == Fault.FULL_DISK:
            if self.running is None:
                raise BenchError(f"{node.name}: is off")
            linux.fill_state(self.running)


@register_driver
@attr.s(eq=False)
class VirtualLinuxDriver(Driver, PowerProtocol):
    """Powers a VirtualLinux."""

    bindings = {"machine": VirtualLinux}  # noqa: RUF012  (labgrid's form)
    no_restart: ClassVar[str] = "its kernel is that of the bench's own host"
    """Why the machine cannot be asked to restart; see `Bench.restart`."""

    @property
    def _resource(self) -> VirtualLinux:
        bound: Any = self  # labgrid sets what `bindings` names
        machine: VirtualLinux = bound.machine
        return machine

    @check_active
    def on(self) -> None:
        """Boot the machine, as on its first day; harmless when it is on.

        Raises:
            BenchError: It did not come up; the text quotes its log.
        """
        if self.powered:
            return
        resource = self._resource
        resource.plug_in()
        resource.running = linux.boot(
            linux.LinuxMachine(
                name=target_name(self),
                namespace=resource.own_namespace,
                folder=Path(resource.folder),
                control_address=resource.control_address,
                cpus=tuple(resource.cpus),
                fault=resource.fault,
            )
        )

    @check_active
    def off(self) -> None:
        """End everything that runs in the machine, without asking it, and every setting of it."""
        self._resource.unplug()

    @check_active
    def cycle(self) -> None:
        """Cut the power and boot again."""
        self.off()
        self.on()

    @property
    def powered(self) -> bool:
        """Tell whether the machine runs; costs nothing, for it is asked while others measure."""
        running = self._resource.running
        return running is not None and running.poll() is None

    def on_deactivate(self) -> None:
        """Leave nothing running."""
        self._resource.unplug()
