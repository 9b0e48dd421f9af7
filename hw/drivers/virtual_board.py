# SPDX-License-Identifier: Apache-2.0
"""A guest as a board in a rack: a switch for its power, a serial port, a disk that it could spoil.

What is seen of it is what is seen of a real board: whether it boots is for `BoardStrategy` to find out.
"""

from __future__ import annotations

import select
import shutil
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

import attr
from labgrid.driver.common import Driver
from labgrid.driver.consoleexpectmixin import ConsoleExpectMixin
from labgrid.protocol import ConsoleProtocol
from pexpect import TIMEOUT

from hw.drivers.labgrid_api import check_active, register_driver, register_resource
from hw.drivers.virtual_guest import VirtualGuest, VirtualGuestDriver
from hw.errors import CapabilityError
from hw.virtual.board_files import INITRD, write_kernel_and_script
from hw.virtual.qemu import GuestMachine, QemuGuest

DISK_FILE = "disk"
BOOT_FOLDER = "boot"
"""What its bootloader is offered by TFTP."""
_RECEIVED_BYTES = 65536
_STR = attr.validators.instance_of(str)


@register_resource
@attr.s(eq=False)
class VirtualBoard(VirtualGuest):
    """A guest that is powered and heard as a board; docs/embedded.md describes what it has beside a guest.

    Args:
        kernel: File of a kernel in the place of the image's; empty: the image's.
        kernel_arguments: Added to those of the image.
        bootloader: File of U-Boot, which then loads kernel and initrd by TFTP; empty: QEMU loads them.
    """

    kernel: str = attr.ib(default="", validator=_STR)
    kernel_arguments: str = attr.ib(default="", validator=_STR)
    bootloader: str = attr.ib(default="", validator=_STR)

    @property
    def serial(self) -> Path:
        """Return the socket that is its serial cable."""
        return Path(self.folder) / "serial.sock"

    @property
    def disk(self) -> Path:
        """Return the file of its disk: a copy of the image's root that the board may write to."""
        return Path(self.folder) / DISK_FILE


@register_driver
@attr.s(eq=False)
class VirtualBoardPowerDriver(VirtualGuestDriver):
    """The power of a VirtualBoard: QEMU's process. It ends at once, as a power cut does."""

    bindings = {"guest": VirtualBoard}  # noqa: RUF012  (labgrid's form)

    @check_active
    def on(self) -> None:
        """Give it power; says nothing about its boot.

        Raises:
            BenchError: QEMU does not run; the text quotes it.
        """
        if not self.powered:
            folder = Path(self._guest.folder)
            folder.mkdir(parents=True, exist_ok=True)
            self._running = QemuGuest.start(self._machine(folder), folder)

    @check_active
    def off(self) -> None:
        """Cut the power."""
        if self._running is not None:
            self._running.power_off(at_once=True)
            self._running = None

    def _machine(self, folder: Path) -> GuestMachine:
        board: Any = self._guest
        machine = super()._machine(folder)
        if not board.disk.exists():
            shutil.copyfile(machine.root, board.disk)
        machine = replace(
            machine,
            kernel=Path(board.kernel) if board.kernel else machine.kernel,
            kernel_arguments=f"{machine.kernel_arguments} {board.kernel_arguments}".strip(),
            root=board.disk,
            disk_writable=True,
            serial=board.serial,
        )
        return self._with_bootloader(machine, folder / BOOT_FOLDER) if board.bootloader else machine

    def _with_bootloader(self, machine: GuestMachine, served: Path) -> GuestMachine:
        board: Any = self._guest
        loader = Path(board.bootloader)
        if not loader.is_file():
            raise CapabilityError(f"{loader} is missing: it comes with the Debian package u-boot-qemu")
        served.mkdir(mode=0o700, exist_ok=True)
        machine.initrd.replace(served / INITRD)
        write_kernel_and_script(served, machine.kernel, machine.kernel_arguments, own_device_tree=False)
        return replace(machine, bootloader=loader, boot_server=served)


@register_driver
@attr.s(eq=False)
class VirtualSerialDriver(ConsoleExpectMixin, Driver, ConsoleProtocol):
    """The bench's end of a VirtualBoard's serial cable; stays plugged in while the board has no power."""

    bindings = {"board": VirtualBoard}  # noqa: RUF012
    txdelay: float = attr.ib(default=0.0, validator=attr.validators.instance_of(float))
    txchunk: int = attr.ib(default=1, validator=attr.validators.instance_of(int))

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        self._plug: socket.socket | None = None
        self._cable: socket.socket | None = None

    def on_activate(self) -> None:
        """Plug the cable in."""
        bound: Any = self
        path: Path = bound.board.serial
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        self._plug = socket.socket(socket.AF_UNIX)
        self._plug.bind(str(path))
        self._plug.listen(1)

    def on_deactivate(self) -> None:
        """Pull it out."""
        for end in (self._cable, self._plug):
            if end is not None:
                end.close()
        self._cable = self._plug = None

    def _read(self, size: int = 1, timeout: float = 0.0, max_size: int | None = None) -> bytes:
        """Return what has come, at least one byte.

        Raises:
            TIMEOUT: Nothing has come in time, or the board has lost its power.
        """
        assert self._plug is not None  # labgrid's check that it is active
        if not select.select([self._cable or self._plug], [], [], timeout)[0]:
            raise TIMEOUT(f"nothing in {timeout:g} s")
        if self._cable is None:
            self._cable, _ = self._plug.accept()
            return self._read(size, timeout, max_size)
        try:
            data = self._cable.recv(max_size or _RECEIVED_BYTES)
        except ConnectionError:
            data = b""
        if not data:
            self._cable.close()
            self._cable = None
            raise TIMEOUT("the board has no power")
        return data

    def _write(self, data: bytes) -> int:
        """Send to the board; nothing where it has no power."""
        if self._cable is None:
            return 0
        self._cable.sendall(data)
        return len(data)
