# SPDX-License-Identifier: Apache-2.0
"""labgrid's view of the virtual Windows machine: a resource that describes it, a driver that powers it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any, ClassVar

import attr

from hw.bench import VirtualSpec
from hw.drivers.labgrid_api import register_driver, register_resource, target_name
from hw.drivers.namespace_machine import NamespaceMachine, NamespaceMachineDriver
from hw.faults import Fault
from hw.journal import Journal
from hw.virtual import network, windows


@register_resource
@attr.s(eq=False)
class VirtualWindows(NamespaceMachine):
    """Wine in a network namespace, as a Windows machine; attributes are described in docs/bench-files.md."""

    faults: ClassVar[frozenset[Fault]] = frozenset(Fault) - {Fault.HANGS_AT_PROMPT}
    """Those that it can be given: it has no console at which somebody could be asked."""

    priority: int = attr.ib(default=0, validator=attr.validators.instance_of(int))

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        self.disk = Path()
        """What it writes to its disk lies here; of `attach`."""

    def attach(self, journal: Journal, network_spec: VirtualSpec, own_namespace: str) -> None:
        """Make the machine's namespace and links; see `hw.drivers.attachable`."""
        if self.own_namespace:
            return
        self.disk = windows.new_disk(own_namespace)
        journal.record("folder", path=str(self.disk))
        journal.record("namespace", name=own_namespace)
        network.create_namespace(own_namespace)
        windows.attach(own_namespace, self.namespace, target_name(self), self.addresses, network_spec)
        self.own_namespace = own_namespace

    def cut(self) -> None:
        """End all that runs in the machine; its disk and its links stay."""
        windows.power_off(self.own_namespace)

    def fill(self, machine: subprocess.Popen[bytes]) -> None:
        """Let nothing more be written where provisioning keeps its undo file."""
        windows.fill_disk(machine, self.disk)


@register_driver
@attr.s(eq=False)
class VirtualWindowsDriver(NamespaceMachineDriver):
    """Powers a VirtualWindows."""

    bindings = {"machine": VirtualWindows}  # noqa: RUF012  (labgrid's form)
    no_restart: ClassVar[str] = "Wine has no kernel that could restart"

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        self._first = True

    def boot(self) -> subprocess.Popen[bytes]:
        """Boot the machine, the first time with an empty disk."""
        resource: VirtualWindows = self._resource
        first, self._first = self._first, False
        return windows.boot(
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


CARD_PAGE = "drive_c/Program Files/Benchwright/card.page"
"""Of its disk: the page of a timecard, a file that this machine and programs in Wine both map."""


def page_of(target: Any) -> Path | None:
    """Return where a machine's timecard has its page on this machine; None: it is none that Wine plays."""
    found = [each for each in target.resources if isinstance(each, VirtualWindows)]
    return found[0].disk / "new" / CARD_PAGE if found else None
