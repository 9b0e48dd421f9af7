# SPDX-License-Identifier: Apache-2.0
"""labgrid's view of the virtual Windows machine: a resource that describes it, a driver that powers it."""

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
from hw.virtual import network, windows
from hw.virtual.guest_faults import cut_control_link

_INT = attr.validators.instance_of(int)
_STR = attr.validators.instance_of(str)


@register_resource
@attr.s(eq=False)
class VirtualWindows(Resource):
    """Wine in a network namespace, as a Windows machine; attributes are described in docs/bench-files.md.

    Args:
        fault: What is wrong with it, one of `faults`; empty: nothing.
        namespace: Namespace of the switch (filled in by the bench).
        folder: Folder for the run's keys, disk and log (filled in by the bench).
        control_prefix_length: Of the control network (filled in by the bench).
        test_prefix_length: Of the test network (filled in by the bench).
    """

    faults: ClassVar[frozenset[Fault]] = frozenset(Fault) - {Fault.HANGS_AT_PROMPT}
    """Those that it can be given: it has no console at which somebody could be asked."""

    test_address: str = attr.ib(default="", validator=_STR)
    control_address: str = attr.ib(default="", validator=_STR)
    priority: int = attr.ib(default=0, validator=_INT)
    cpus: list[int] = attr.ib(factory=list[int], validator=cpu_list)
    fault: str = attr.ib(default="", validator=one_of_its_faults)
    namespace: str = attr.ib(default="", validator=_STR)
    folder: str = attr.ib(default="", validator=_STR)
    control_prefix_length: int = attr.ib(default=24, validator=_INT)
    test_prefix_length: int = attr.ib(default=24, validator=_INT)

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        self._own_namespace = ""
        self.disk = Path()
        """What it writes to its disk lies here; of `attach`."""
        self.running: subprocess.Popen[bytes] | None = None
        """What lives as long as the machine is on; of its power driver."""

    @property
    def own_namespace(self) -> str:
        """The machine's own network namespace; empty before `attach`."""
        return self._own_namespace

    def attach(self, journal: Journal, network_spec: VirtualSpec, own_namespace: str) -> None:
        """Make the machine's namespace and links; see `hw.drivers.attachable`."""
        if self._own_namespace:
            return
        self.disk = windows.new_disk(own_namespace)
        journal.record("folder", path=str(self.disk))
        journal.record("namespace", name=own_namespace)
        network.create_namespace(own_namespace)
        addresses = (self.test_address, self.control_address)
        windows.attach(own_namespace, self.namespace, target_name(self), addresses, network_spec)
        self._own_namespace = own_namespace

    def begin_fault(self, node: Node) -> None:
        """Let a fault begin that it does not have from the start; see `hw.faults.Faulty`."""
        if self.fault == Fault.LOSES_SSH:
            cut_control_link(self.namespace, target_name(self))
        elif self.fault == Fault.FULL_DISK:
            if self.running is None:
                raise BenchError(f"{node.name}: is off")
            windows.fill_disk(self.running, self.disk)


@register_driver
@attr.s(eq=False)
class VirtualWindowsDriver(Driver, PowerProtocol):
    """Powers a VirtualWindows."""

    bindings = {"machine": VirtualWindows}  # noqa: RUF012  (labgrid's form)
    no_restart: ClassVar[str] = "Wine has no kernel that could restart"
    """Why the machine cannot be asked to restart; see `Bench.restart`."""

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        self._first = True

    @property
    def _resource(self) -> VirtualWindows:
        bound: Any = self  # labgrid sets what `bindings` names
        machine: VirtualWindows = bound.machine
        return machine

    @check_active
    def on(self) -> None:
        """Boot the machine, the first time with an empty disk; harmless when it is on.

        Raises:
            BenchError: It did not come up; the text quotes its log.
        """
        if self.powered:
            return
        resource = self._resource
        first, self._first = self._first, False
        resource.running = windows.boot(
            windows.WindowsMachine(
                name=target_name(self),
                namespace=resource.own_namespace,
                folder=Path(resource.folder),
                disk=resource.disk,
                control_address=resource.control_address,
                priority=resource.priority,
                cpus=tuple(resource.cpus),
                fault=resource.fault,
            ),
            first=first,
        )

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
        if self._resource.own_namespace:
            windows.power_off(self._resource.own_namespace)
        if self._resource.running is not None:
            self._resource.running.wait()
            self._resource.running = None


CARD_PAGE = "drive_c/Program Files/Benchwright/card.page"
"""Of its disk: the page of a timecard, a file that this machine and programs in Wine both map."""


def page_of(target: Any) -> Path | None:
    """Return where a machine's timecard has its page on this machine; None: it is none that Wine plays."""
    found = [each for each in target.resources if isinstance(each, VirtualWindows)]
    return found[0].disk / "new" / CARD_PAGE if found else None
