# SPDX-License-Identifier: Apache-2.0
"""One guest under QEMU: command line, start, priorities of its threads, power.

The threads that run the guest's CPUs and QEMU's main loop get real-time priorities, so that what else this
machine does does not look like a fault of the target.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hw.answers import tail
from hw.errors import BenchError, CapabilityError
from hw.virtual.console_log import put_aside
from hw.virtual.machine import ACCELERATOR, MachineType

CRASHES = frozenset({-signal.SIGABRT, -signal.SIGSEGV})
"""How QEMU ends by a fault of its own, such as a failed assertion. Nothing in a guest can make it."""
PAGE_BYTES = 32768
"""Of what guest and host share: the timecard's page, then the edge device (`registers.h` of bw-edge)."""
KILLED_DEADLINE_S = 30.0
"""The kernel may need long to free gigabytes of locked memory."""


@dataclass(frozen=True)
class GuestCard:
    """A network card of a guest, on a tap of the namespace that QEMU runs in."""

    tap: str
    mac: str


@dataclass(frozen=True)
class ThreadPlacement:
    """How threads of QEMU run: SCHED_FIFO priority, 0 for none, and CPUs of this machine, empty for any."""

    priority: int = 0
    cpus: tuple[int, ...] = ()


@dataclass(frozen=True)
class GuestMachine:
    """All that QEMU is told about one guest."""

    name: str
    namespace: str
    accelerator: str
    cpus: int
    memory_mb: int
    kernel: Path
    initrd: Path
    root: Path
    kernel_arguments: str
    cards: tuple[GuestCard, ...]
    vcpu_threads: ThreadPlacement
    main_loop_threads: ThreadPlacement
    page: Path
    """File of the page that guest and host share: the guest's virtual timecard."""
    emulated: MachineType
    ptp_card: bool = False
    """Whether the guest has a card with a PTP hardware clock, connected to nothing."""
    serial: Path | None = None
    """Socket that somebody listens on, for its serial port; None: a file gets what it says there."""
    disk_writable: bool = False
    """Whether the guest may write to the file of its root, which then is its own."""
    bootloader: Path | None = None
    """Firmware that finds a kernel by itself; None: QEMU loads it."""
    boot_server: Path | None = None
    """Folder that a DHCP and TFTP server offers, alone on the guest's first card; None: no such card."""
    extra_arguments: tuple[str, ...] = field(default=())


def command_line(machine: GuestMachine, folder: Path) -> list[str]:
    """Return QEMU's command line.

    Args:
        machine: The guest.
        folder: Where the console log and the control socket go.
    """
    emulated = machine.emulated
    protected = "off" if machine.disk_writable else "on"
    serial = ["-serial", f"file:{folder / 'console.log'}"]
    if machine.serial is not None:
        serial = ["-chardev", f"socket,id=serial,path={machine.serial}", "-serial", "chardev:serial"]
    start = ["-kernel", str(machine.kernel), "-initrd", str(machine.initrd)]
    start += ["-append", machine.kernel_arguments]
    if machine.bootloader is not None:
        start = ["-bios", str(machine.bootloader)]
    argv = [
        *("ip", "netns", "exec", machine.namespace, emulated.program),
        *("-name", f"{machine.name},debug-threads=on", "-nodefaults", "-no-user-config", "-display", "none"),
        *("-M", emulated.board, "-accel", ACCELERATOR[machine.accelerator]),
        *("-cpu", emulated.cpu[machine.accelerator]),
        *("-smp", str(machine.cpus), "-m", f"{machine.memory_mb}M"),
        # The host may take back memory that looks idle, program text included: a page-in stops a guest for
        # tens of milliseconds.
        *("-overcommit", "mem-lock=on"),
        *start,
        *("-drive", f"file={machine.root},format=raw,if=none,id=root,readonly={protected},file.locking=off"),
        *("-device", "virtio-blk-pci,drive=root"),
        *serial,
        *("-monitor", "none"),
        *("-qmp", f"unix:{folder / 'qmp.sock'},server=on,wait=off"),
        *("-rtc", "base=utc,clock=host", "-no-reboot", "-device", "virtio-rng-pci"),
    ]
    if machine.boot_server is not None:
        argv += ["-netdev", f"user,id=boot,tftp={machine.boot_server},restrict=on"]
        argv += ["-device", "virtio-net-pci,netdev=boot,romfile="]
    for number, card in enumerate(machine.cards):
        argv += ["-netdev", f"tap,id=net{number},ifname={card.tap},script=no,downscript=no"]
        argv += ["-device", f"virtio-net-pci,netdev=net{number},mac={card.mac},rx_queue_size=1024"]
    argv += ["-object", f"memory-backend-file,id=page,mem-path={machine.page},size={PAGE_BYTES},share=on"]
    argv += ["-device", "ivshmem-plain,memdev=page"]
    if machine.ptp_card:
        argv += ["-device", "igb"]
    return [*argv, *machine.extra_arguments]


class QemuGuest:
    """A running guest. Create it by `start`."""

    def __init__(self, machine: GuestMachine, folder: Path, process: subprocess.Popen[bytes]) -> None:
        """Wrap a started process; use `start`."""
        self.machine = machine
        self.folder = folder
        self._process = process

    @classmethod
    def start(cls, machine: GuestMachine, folder: Path) -> QemuGuest:
        """Start QEMU; returns when its threads run at their priorities.

        Raises:
            CapabilityError: QEMU is not installed.
            BenchError: QEMU ended at once; the text quotes its message.
        """
        program = machine.emulated.program
        if shutil.which(program) is None:
            raise CapabilityError(f"{program} is missing: run `make setup`")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "qmp.sock").unlink(missing_ok=True)
        if machine.serial is None:
            put_aside(folder / "console.log")
        machine.page.write_bytes(bytes(PAGE_BYTES))
        with (folder / "qemu.err").open("wb") as errors:
            process = subprocess.Popen(
                command_line(machine, folder),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,
            )
        guest = cls(machine, folder, process)
        guest._prioritise(deadline=time.monotonic() + 10.0)
        return guest

    def _prioritise(self, deadline: float) -> None:
        while True:
            if self._process.poll() is not None:
                raise BenchError(f"guest {self.machine.name}: QEMU ended: {tail(self.folder / 'qemu.err')}")
            threads = self._threads()
            vcpus = [tid for tid, name in threads.items() if name.startswith("CPU ")]
            if len(vcpus) >= self.machine.cpus:
                break
            if time.monotonic() > deadline:
                raise BenchError(
                    f"guest {self.machine.name}: QEMU has {len(vcpus)} of {self.machine.cpus} CPU threads"
                )
            time.sleep(0.02)
        for tid in threads:
            self._place(tid, self.machine.vcpu_threads if tid in vcpus else self.machine.main_loop_threads)

    def place_vcpus(self, placement: ThreadPlacement) -> None:
        """Let the threads that run the guest's CPUs go on as said; no CPUs: any of this machine.

        Raises:
            BenchError: They cannot.
        """
        cpus = placement.cpus or tuple(range(os.cpu_count() or 1))
        for tid, name in self._threads().items():
            if name.startswith("CPU "):
                self._place(tid, ThreadPlacement(placement.priority, cpus))

    def _place(self, tid: int, placement: ThreadPlacement) -> None:
        try:
            if placement.cpus:
                os.sched_setaffinity(tid, placement.cpus)
            if placement.priority or os.sched_getparam(tid).sched_priority:
                policy = os.SCHED_FIFO if placement.priority else os.SCHED_OTHER
                os.sched_setscheduler(tid, policy, os.sched_param(placement.priority))
        except ProcessLookupError:
            return
        except (OSError, ValueError) as error:
            raise BenchError(
                f"guest {self.machine.name}: its threads cannot run on CPUs {list(placement.cpus)}"
                f" with priority {placement.priority}: {error}"
            ) from error

    def _threads(self) -> dict[int, str]:
        threads: dict[int, str] = {}
        for task in Path(f"/proc/{self._process.pid}/task").iterdir():
            try:
                threads[int(task.name)] = (task / "comm").read_text().strip()
            except FileNotFoundError:
                continue
        return threads

    def emulating_threads(self) -> dict[str, int]:
        """Return the ids of the threads that are the guest's machine: `vcpu0`, …, `main-loop`."""
        found = {
            f"vcpu{name[4:].split('/')[0]}": tid
            for tid, name in self._threads().items()
            if name[:4] == "CPU "
        }
        return {**dict(sorted(found.items())), "main-loop": self._process.pid}

    @property
    def running(self) -> bool:
        """Tell whether QEMU still runs."""
        return self._process.poll() is None

    def crash(self) -> str:
        """Return QEMU's last words where it has ended by a fault of its own; empty: it has not."""
        if self._process.poll() not in CRASHES:
            return ""
        return tail(self.folder / "qemu.err") or f"signal {-self._process.returncode}"

    def command(self, name: str, arguments: Mapping[str, Any] | None = None, timeout_s: float = 5.0) -> Any:
        """Send one command to QEMU's monitor (QMP) and return its answer.

        Raises:
            BenchError: QEMU is gone or refuses.
        """
        try:
            with socket.socket(socket.AF_UNIX) as link:
                link.settimeout(timeout_s)
                link.connect(str(self.folder / "qmp.sock"))
                stream = link.makefile("rw", encoding="utf-8")
                stream.readline()
                for request in (
                    {"execute": "qmp_capabilities"},
                    {"execute": name, "arguments": dict(arguments or {})},
                ):
                    stream.write(json.dumps(request) + "\n")
                    stream.flush()
                    answer = _answer(stream.readline)
            return answer
        except (OSError, ValueError) as error:
            raise BenchError(f"guest {self.machine.name}: {name}: {error}") from error

    def power_off(self, timeout_s: float = 5.0, at_once: bool = False) -> None:
        """Cut the power: QEMU ends without asking the guest.

        Args:
            timeout_s: Time that QEMU gets to end by itself.
            at_once: Do not let it end anything either: what it holds back of a disk is lost.
        """
        if self.running:
            (self._process.kill if at_once else self._process.terminate)()
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            try:
                self._process.wait(KILLED_DEADLINE_S)
            except subprocess.TimeoutExpired as error:
                raise BenchError(
                    f"guest {self.machine.name}: process {self._process.pid} does not end after SIGKILL"
                ) from error


def _answer(readline: Any) -> Any:
    while True:
        line = readline()
        if not line:
            raise OSError("QEMU closed the connection")
        message: dict[str, Any] = json.loads(line)
        if "error" in message:
            raise OSError(message["error"].get("desc", "refused"))
        if "return" in message:
            return message["return"]
