# SPDX-License-Identifier: Apache-2.0
"""Faults of a virtual machine: of a guest's boot, of its link, and of the host key that it is known by."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

from hw.faults import Fault
from hw.virtual import network
from hw.virtual.qemu import GuestMachine

_WRONG_IMAGE_BYTES = 1_000_000
ROOT_FILE = "faulty-root"


def with_boot_fault(machine: GuestMachine, fault: str, folder: Path) -> GuestMachine:
    """Return a guest that boots, or does not, as its fault has it; the same one without such a fault.

    Args:
        machine: The guest as it should be.
        fault: One of `Fault`, or nothing.
        folder: Takes the file of a wrong or damaged disk.
    """
    match fault:
        case Fault.WRONG_IMAGE:
            root = folder / ROOT_FILE
            root.write_bytes(bytes(_WRONG_IMAGE_BYTES))
            return replace(machine, root=root)
        case Fault.DAMAGED_IMAGE:
            return replace(machine, root=_damaged(machine.root, folder / ROOT_FILE))
        case Fault.NEVER_BOOTS:
            return replace(machine, extra_arguments=(*machine.extra_arguments, "-S"))  # its clock stands
        case Fault.HANGS_AT_PROMPT:
            return replace(machine, kernel_arguments=f"{machine.kernel_arguments} rdinit=/bin/sh")
        case _:
            return machine


def _damaged(root: Path, copy: Path) -> Path:
    """Return a copy whose second half is empty: a squashfs has its tables there, its head says where."""
    size_bytes = root.stat().st_size
    shutil.copyfile(root, copy)
    os.truncate(copy, size_bytes // 2)
    os.truncate(copy, size_bytes)
    return copy


def cut_control_link(switch: str, name: str) -> None:
    """Pull the plug of a machine's control network out of the switch.

    Args:
        switch: Namespace of the switch.
        name: The machine; its port is `c-NAME`.

    Raises:
        BenchError: There is no such port.
    """
    network.set_port(switch, f"c-{name}", up=False)
