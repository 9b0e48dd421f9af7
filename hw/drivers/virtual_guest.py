# SPDX-License-Identifier: Apache-2.0
"""labgrid's view of a guest of the virtual bench: a resource that describes it, a driver that powers it."""

from __future__ import annotations

import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any, ClassVar

import attr
from labgrid.driver.common import Driver
from labgrid.protocol import PowerProtocol
from labgrid.resource.common import Resource

from hw.drivers.labgrid_api import (
    check_active,
    cpu_list,
    one_of_its_faults,
    register_driver,
    register_resource,
    resource_class,
    target_name,
)
from hw.errors import BenchError
from hw.faults import Fault
from hw.protocols import Node
from hw.virtual import accel, image
from hw.virtual.console_log import EmulatorCrashError, SilentBootError, wait_for_boot
from hw.virtual.guest_config import GuestBridge, GuestClock, GuestConfig, GuestInterface, write_run_config
from hw.virtual.guest_faults import cut_control_link, with_boot_fault
from hw.virtual.image_recipe import DEFAULT_KIND, RECIPES
from hw.virtual.qemu import GuestCard, GuestMachine, QemuGuest, ThreadPlacement

PAGE_FILE = "timecard.page"
STARTS_MAX = 2
"""A guest that stays silent, as one in hundreds does under emulation, is started once more; likewise one
whose emulator crashes: QEMU's translator has races between the processors of a guest that maps devices."""

# Fills the file system of provisioning's undo file; a reboot, or a power cut, ends it.
_FILL_DISK = """
set -e
mkdir -p /var/lib/benchwright
mount -t tmpfs -o size=64k tmpfs /var/lib/benchwright
dd if=/dev/zero of=/var/lib/benchwright/filler bs=4k 2>/dev/null || :
"""

_INT = attr.validators.instance_of(int)
_BELOW_WITNESS = attr.validators.in_(range(90))
"""A guest that held up the witness of the machine would be excused for what it computes itself."""
_STR = attr.validators.instance_of(str)


@register_resource
@attr.s(eq=False)
class VirtualGuest(Resource):
    """A guest under QEMU; attributes are described in docs/bench-files.md.

    Args:
        image: Folder below `targets/` with the recipe of its image, and of the machine that it runs on.
        role: `target`, `producer` or `impair`: which kernel, and how its test interfaces are connected.
        fault: What is wrong with it, one of `faults`; empty: nothing.
        namespace: Namespace of the switch (filled in by the bench).
        folder: Folder for the run's keys, initrd, console log and control socket (filled in by the bench).
        control_prefix_length: Of the control network (filled in by the bench).
        test_prefix_length: Of the test network (filled in by the bench).
        test_mtu_bytes: Of the test network (filled in by the bench).
    """

    faults: ClassVar[frozenset[Fault]] = frozenset(Fault)
    """Those that it can be given."""

    cpus: int = attr.ib(default=1, validator=_INT)
    memory_mb: int = attr.ib(default=384, validator=_INT)
    image: str = attr.ib(default=DEFAULT_KIND, validator=attr.validators.in_(tuple(RECIPES)))
    role: str = attr.ib(default="target", validator=attr.validators.in_(("target", "producer", "impair")))
    test_address: str = attr.ib(default="", validator=_STR)
    control_address: str = attr.ib(default="", validator=_STR)
    vcpu_priority: int = attr.ib(default=0, validator=_BELOW_WITNESS)
    main_loop_priority: int = attr.ib(default=0, validator=_BELOW_WITNESS)
    vcpu_cpus: list[int] = attr.ib(factory=list[int], validator=cpu_list)
    main_loop_cpus: list[int] = attr.ib(factory=list[int], validator=cpu_list)
    clock_offset_ms: int = attr.ib(default=0, validator=_INT)
    clock_rate_ppb: int = attr.ib(default=0, validator=_INT)
    ptp_card: bool = attr.ib(default=False, validator=attr.validators.instance_of(bool))
    fault: str = attr.ib(default="", validator=one_of_its_faults)
    namespace: str = attr.ib(default="", validator=_STR)
    folder: str = attr.ib(default="", validator=_STR)
    control_prefix_length: int = attr.ib(default=24, validator=_INT)
    test_prefix_length: int = attr.ib(default=24, validator=_INT)
    test_mtu_bytes: int = attr.ib(default=1500, validator=_INT)

    def taps(self) -> list[tuple[str, str]]:
        """Return the guest's taps in the order of its cards, each with the bridge that it belongs on."""
        name = target_name(self)
        test = (
            [(f"i-{name}", "br-impair"), (f"t-{name}", "br-test")]
            if self.role == "impair"
            else [(f"t-{name}", "br-test")]
        )
        return [*test, (f"c-{name}", "br-control")]

    def begin_fault(self, node: Node) -> None:
        """Let a fault begin that it does not have from the start; see `hw.faults.Faulty`."""
        if self.fault == Fault.LOSES_SSH:
            cut_control_link(self.namespace, target_name(self))
        elif self.fault == Fault.FULL_DISK:
            node.run(["sh", "-c", _FILL_DISK])


@register_driver
@attr.s(eq=False)
class VirtualGuestDriver(Driver, PowerProtocol):
    """Powers a VirtualGuest: boots it with a host key and a login key made for this run."""

    bindings = {"guest": VirtualGuest}  # noqa: RUF012  (labgrid's form)

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        self._running: QemuGuest | None = None

    @check_active
    def on(self) -> None:
        """Boot the guest; returns when its console says that it is ready.

        Raises:
            BenchError: It did not come up; the text quotes its console.
        """
        if self._running is not None and self._running.running:
            return
        for left in reversed(range(1 if self._guest.fault else STARTS_MAX)):
            try:
                self._start()
                return
            except (SilentBootError, EmulatorCrashError) as error:
                if not left:
                    raise
                print(f"noticed: {error}; starting it once more", file=sys.stderr, flush=True)

    def _start(self) -> None:
        folder = Path(self._guest.folder)
        folder.mkdir(parents=True, exist_ok=True)
        self._running = QemuGuest.start(self._machine(folder), folder)
        guest = self._running
        try:
            wait_for_boot(f"guest {target_name(self)}", folder / "console.log", lambda: guest.running)
        except BenchError as error:
            crash = guest.crash()
            self.off()
            if crash:
                raise EmulatorCrashError(f"guest {target_name(self)}: QEMU crashed: {crash}") from error
            raise

    @check_active
    def off(self) -> None:
        """Cut the guest's power."""
        if self._running is not None:
            self._running.power_off()
            self._running = None

    @check_active
    def cycle(self) -> None:
        """Cut the power and boot again."""
        self.off()
        self.on()

    @property
    def powered(self) -> bool:
        """Tell whether the guest's QEMU runs."""
        return self._running is not None and self._running.running

    @property
    def qemu(self) -> QemuGuest:
        """The running guest.

        Raises:
            BenchError: It is off.
        """
        if self._running is None:
            raise BenchError(f"guest {target_name(self)} is off")
        return self._running

    @property
    def _guest(self) -> VirtualGuest:
        bound: Any = self  # labgrid sets what `bindings` names
        guest: VirtualGuest = bound.guest
        return guest

    def on_deactivate(self) -> None:
        """Leave nothing running."""
        if self._running is not None:
            self._running.power_off()
            self._running = None

    def _machine(self, folder: Path) -> GuestMachine:
        guest = self._guest
        images = image.build_or_get(guest.role, kind=guest.image)
        cards = [GuestCard(tap, _mac(tap)) for tap, _bridge in guest.taps()]
        initrd = write_run_config(folder / "initrd", images.initrd, self._config(folder, cards))
        machine = GuestMachine(
            name=target_name(self),
            namespace=guest.namespace,
            accelerator=accel.probe(kind=guest.image),
            cpus=guest.cpus,
            memory_mb=guest.memory_mb,
            kernel=images.kernel,
            initrd=initrd,
            root=images.root,
            kernel_arguments=images.command_line,
            cards=tuple(cards),
            vcpu_threads=ThreadPlacement(guest.vcpu_priority, tuple(guest.vcpu_cpus)),
            main_loop_threads=ThreadPlacement(guest.main_loop_priority, tuple(guest.main_loop_cpus)),
            page=folder / PAGE_FILE,
            ptp_card=guest.ptp_card,
            emulated=images.machine,
        )
        return with_boot_fault(machine, guest.fault, folder)

    def _config(self, folder: Path, cards: list[GuestCard]) -> GuestConfig:
        guest = self._guest
        host_key, known_host = _key_pair(folder / "ssh_host_ed25519_key")
        _login_private, login = _key_pair(folder / "login_key")
        if guest.fault == Fault.CHANGED_HOST_KEY:
            _private, known_host = _key_pair(folder / "former_host_key")
        (folder / "known_hosts").write_text(f"{guest.control_address} {known_host}\n")
        control = GuestInterface(
            cards[-1].mac, "control0", f"{guest.control_address}/{guest.control_prefix_length}"
        )
        bridges: tuple[GuestBridge, ...] = ()
        if guest.role == "impair":
            test = [
                GuestInterface(card.mac, f"test{number}", mtu=guest.test_mtu_bytes)
                for number, card in enumerate(cards[:-1])
            ]
            bridges = (GuestBridge("br0", tuple(card.name for card in test)),)
        else:
            address = f"{guest.test_address}/{guest.test_prefix_length}"
            test = [GuestInterface(cards[0].mac, "test0", address, guest.test_mtu_bytes)]
        return GuestConfig(
            hostname=target_name(self),
            interfaces=(*test, control),
            ssh_address=guest.control_address,
            authorized_keys=(login,),
            host_key=host_key,
            bridges=bridges,
            clock=GuestClock(step_ns=guest.clock_offset_ms * 1_000_000, frequency_ppb=guest.clock_rate_ppb),
        )


def guest_attributes(resources: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the attributes, to be added to, of a VirtualGuest or a kind of it among resources."""
    for attributes in resources:
        resource = resource_class(attributes["cls"])
        if resource is not None and issubclass(resource, VirtualGuest):
            return attributes
    return None


def guest_of(target: Any) -> Any:
    """Return the VirtualGuest resource of a labgrid target, or None where it is a real machine."""
    found = [resource for resource in target.resources if isinstance(resource, VirtualGuest)]
    return found[0] if found else None


def _mac(tap: str) -> str:
    """Return a locally administered address that is always the same for the same tap."""
    digest = zlib.crc32(tap.encode())
    return "52:54:" + ":".join(f"{(digest >> shift) & 0xFF:02x}" for shift in (24, 16, 8, 0))


def _key_pair(path: Path) -> tuple[str, str]:
    """Make an ed25519 key pair for this run; return the private key's text and the public key's line."""
    public = path.with_name(path.name + ".pub")
    path.unlink(missing_ok=True)
    public.unlink(missing_ok=True)
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "benchwright", "-f", str(path)],
        check=True,
        stdin=subprocess.DEVNULL,
        capture_output=True,
    )
    return path.read_text(), public.read_text().strip()
