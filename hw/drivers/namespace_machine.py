# SPDX-License-Identifier: Apache-2.0
"""What labgrid sees of every machine that is a network namespace of this one: its place, and its power."""

from __future__ import annotations

import subprocess
from typing import Any, ClassVar

import attr
from labgrid.driver.common import Driver
from labgrid.protocol import PowerProtocol
from labgrid.resource.common import Resource

from hw.drivers.labgrid_api import check_active, cpu_list, one_of_its_faults, target_name
from hw.errors import BenchError
from hw.faults import Fault
from hw.protocols import Node
from hw.virtual.guest_faults import cut_control_link

_INT = attr.validators.instance_of(int)
_STR = attr.validators.instance_of(str)


@attr.s(eq=False)
class NamespaceMachine(Resource):
    """A machine in a namespace; a kind of it says how it is attached, and how its disk fills.

    Args:
        fault: What is wrong with it, one of `faults`; empty: nothing.
        namespace: Namespace of the switch (filled in by the bench).
        folder: Folder for the run's keys, disk and log (filled in by the bench).
        control_prefix_length: Of the control network (filled in by the bench).
        test_prefix_length: Of the test network (filled in by the bench).
    """

    faults: ClassVar[frozenset[Fault]]
    """Those that it can be given."""

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
        self.own_namespace = ""
        """The machine's own network namespace; empty before `attach`."""
        self.running: subprocess.Popen[bytes] | None = None
        """What lives as long as the machine is on; of its power driver."""

    @property
    def addresses(self) -> tuple[str, str]:
        """On the test network, and on the control network."""
        return self.test_address, self.control_address

    def cut(self) -> None:
        """End all that runs in the machine, without asking it; harmless when it is off."""
        raise NotImplementedError

    def fill(self, machine: subprocess.Popen[bytes]) -> None:
        """Let nothing more be written where provisioning keeps its undo file."""
        raise NotImplementedError

    def begin_fault(self, node: Node) -> None:
        """Let a fault begin that it does not have from the start; see `hw.faults.Faulty`."""
        if self.fault == Fault.LOSES_SSH:
            cut_control_link(self.namespace, target_name(self))
        elif self.fault == Fault.FULL_DISK:
            if self.running is None:
                raise BenchError(f"{node.name}: is off")
            self.fill(self.running)


@attr.s(eq=False)
class NamespaceMachineDriver(Driver, PowerProtocol):
    """Powers a NamespaceMachine; a kind of it says how it boots."""

    no_restart: ClassVar[str]
    """Why the machine cannot be asked to restart; see `BenchNodes.restart`."""

    @property
    def _resource(self) -> Any:
        bound: Any = self  # labgrid sets what `bindings` names
        return bound.machine

    def boot(self) -> subprocess.Popen[bytes]:
        """Start the machine; return what lives as long as it, when it is up.

        Raises:
            BenchError: It did not come up; the text quotes its log.
        """
        raise NotImplementedError

    @check_active
    def on(self) -> None:
        """Boot the machine; harmless when it is on. Raises as `boot`."""
        if not self.powered:
            self._resource.running = self.boot()

    @check_active
    def off(self) -> None:
        """End everything that runs in the machine, without asking it."""
        self._cut()

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
        self._cut()

    def _cut(self) -> None:
        machine = self._resource
        if machine.own_namespace:
            machine.cut()
        if machine.running is not None:
            machine.running.wait()
            machine.running = None
