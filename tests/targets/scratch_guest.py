# SPDX-License-Identifier: Apache-2.0
"""Boot one guest in scratch namespaces with the command line of targets/linux-rt/README.md."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from hw.virtual.console_log import put_aside
from hw.virtual.guest_config import GuestConfig, GuestInterface, write_run_config
from hw.virtual.image import ImageSet, build_or_get
from hw.virtual.qemu import CRASHES
from tests.patience import HANG_S

HOST_ADDRESS = "10.78.0.254"
GUEST_ADDRESS = "10.78.0.1"
CONTROL = GuestInterface("52:54:00:00:00:01", "ctl0", f"{GUEST_ADDRESS}/24")
_BOOT_DEADLINE_S = HANG_S
_POLL_S = 0.05
_LOST_TIMER = "kthread timer wakeup didn't happen"
"""What a kernel says of a processor whose timer the emulator has lost, as one in hundreds of several does."""


@dataclass
class ScratchGuest:
    """A guest that runs; made by `boot`.

    Attributes:
        folder: Keys, console log and QMP socket.
        namespace: Namespace of QEMU and of the taps `tap0`, `tap1`, … (one an interface, in their order).
        image: What it was booted from.
        start: Starts QEMU.
        process: QEMU.
    """

    folder: Path
    namespace: str
    image: ImageSet
    start: Callable[[], subprocess.Popen[bytes]]
    process: subprocess.Popen[bytes]
    is_second_start: bool = False

    def console(self) -> str:
        """Return what the guest has said on its console so far."""
        log = self.folder / "console.log"
        return log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""

    def wait_console(self, *texts: str) -> str:
        """Return the first of the texts that the console says; the emulator may fail once until then.

        Raises:
            AssertionError: QEMU ended or the deadline passed without any of them.
        """
        deadline_s = time.monotonic() + _BOOT_DEADLINE_S
        while time.monotonic() < deadline_s:
            ended = self.process.poll() is not None
            said = self.console()
            for text in texts:
                if text in said:
                    return text
            has_failed = self.process.returncode in CRASHES if ended else _LOST_TIMER in said
            if has_failed and not self.is_second_start:
                self._start_once_more()
                deadline_s = time.monotonic() + _BOOT_DEADLINE_S
                continue
            if ended:
                break
            time.sleep(_POLL_S)
        raise AssertionError(f"console says none of {texts}:\n{self.console()[-2000:]}")

    def _start_once_more(self) -> None:
        self.process.kill()
        print(f"noticed: the emulator failed ({self.process.wait()}); starting it once more")
        put_aside(self.folder / "console.log")
        self.process, self.is_second_start = self.start(), True

    def run(self, command: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        """Run a shell command in the guest over SSH."""
        options = ["StrictHostKeyChecking=yes", f"UserKnownHostsFile={self.folder / 'known_hosts'}"]
        options += ["ConnectTimeout=20", "ServerAliveInterval=5", "ServerAliveCountMax=4", "LogLevel=ERROR"]
        # One connection for all commands: its cryptography takes an emulated guest most of a second.
        options += ["ControlMaster=auto", "ControlPersist=60", f"ControlPath={self.folder / 'ssh.sock'}"]
        argv = ["ip", "netns", "exec", self.namespace, "ssh", "-i", str(self.folder / "login")]
        argv += [f"-o{option}" for option in options]
        return subprocess.run(
            [*argv, f"root@{GUEST_ADDRESS}", command],
            check=False,
            input=stdin,
            capture_output=True,
            timeout=HANG_S,
        )

    def output(self, command: str) -> str:
        """Run a shell command that has to succeed; return its stdout without the last newline."""
        done = self.run(command)
        assert done.returncode == 0, f"{command}: {done.returncode}: {done.stderr.decode()}"
        return done.stdout.decode().rstrip("\n")

    def qmp(self, command: str) -> None:
        """Send one command to QEMU's monitor."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(HANG_S)
            connection.connect(str(self.folder / "qmp.sock"))
            stream = connection.makefile("rw")
            stream.readline()
            for name in ("qmp_capabilities", command):
                stream.write(json.dumps({"execute": name}) + "\n")
                stream.flush()
                stream.readline()

    def ended_by_itself(self) -> bool:
        """Wait for QEMU to end; tell whether it did."""
        try:
            self.process.wait(timeout=_BOOT_DEADLINE_S)
        except subprocess.TimeoutExpired:
            return False
        return True


@contextmanager
def boot(
    folder: Path,
    role: str,
    config: GuestConfig,
    macs: Sequence[str] | None = None,
    devices: Sequence[str] = (),
    cpus: int = 1,
) -> Generator[ScratchGuest]:
    """Start a guest and leave nothing of it behind; does not wait for its boot.

    Args:
        folder: Empty folder for its files.
        role: Role whose image is booted.
        config: Its configuration; the keys are replaced by new ones.
        macs: Addresses of the cards that QEMU gives it; default: those of the configuration.
        devices: Further devices, as QEMU names them.
        cpus: Its processors; of several, emulated, one in hundreds of boots fails.
    """
    image = build_or_get(role)
    cards = macs or [interface.mac for interface in config.interfaces]
    namespace = f"bwx-{os.getpid()}-{folder.name[-12:]}"
    _make_key(folder / "login")
    _make_key(folder / "host")
    public = (folder / "host.pub").read_text(encoding="ascii").split()
    (folder / "known_hosts").write_text(f"{GUEST_ADDRESS} {public[0]} {public[1]}\n", encoding="ascii")
    login = (folder / "login.pub").read_text(encoding="ascii").strip()
    host_key = (folder / "host").read_text(encoding="ascii")
    keyed = replace(config, authorized_keys=(login,), host_key=host_key)
    initrd = write_run_config(folder / "initrd", image.initrd, keyed)
    extra = [word for device in devices for word in ("-device", device)]
    _run("ip", "netns", "add", namespace)
    try:
        for number in range(len(cards)):
            _run("ip", "-n", namespace, "tuntap", "add", f"tap{number}", "mode", "tap")
            _run("ip", "-n", namespace, "link", "set", f"tap{number}", "up")
        _run("ip", "-n", namespace, "address", "add", f"{HOST_ADDRESS}/24", "dev", "tap0")
        argv = ["ip", "netns", "exec", namespace, *_qemu(image, initrd, folder, cards, cpus), *extra]

        def start() -> subprocess.Popen[bytes]:
            return subprocess.Popen(argv, stdin=subprocess.DEVNULL)

        guest = ScratchGuest(folder, namespace, image, start, start())
        try:
            yield guest
        finally:
            guest.process.kill()
            guest.process.wait()
    finally:
        _run("ip", "netns", "delete", namespace)


def plain_config(*more: GuestInterface) -> GuestConfig:
    """Return a configuration with the control card and others; its keys are placeholders for `boot`."""
    key = "-----BEGIN OPENSSH PRIVATE KEY-----"
    return GuestConfig("scratch", (CONTROL, *more), GUEST_ADDRESS, ("placeholder",), key)


def _qemu(image: ImageSet, initrd: Path, folder: Path, macs: Sequence[str], cpus: int) -> list[str]:
    argv = ["qemu-system-x86_64", "-M", "q35", "-accel", "tcg,thread=multi", "-cpu", "Nehalem"]
    argv += [
        "-smp",
        str(cpus),
        "-m",
        "384",
        "-nodefaults",
        "-no-user-config",
        "-display",
        "none",
        "-no-reboot",
    ]
    argv += ["-kernel", str(image.kernel), "-initrd", str(initrd), "-append", image.command_line]
    argv += ["-drive", f"if=none,id=root,file={image.root},format=raw,readonly=on"]
    argv += ["-device", "virtio-blk-pci,drive=root", "-device", "virtio-rng-pci"]
    argv += [
        "-serial",
        f"file:{folder / 'console.log'}",
        "-qmp",
        f"unix:{folder / 'qmp.sock'},server=on,wait=off",
    ]
    for number, mac in enumerate(macs):
        argv += ["-netdev", f"tap,id=n{number},ifname=tap{number},script=no,downscript=no"]
        argv += ["-device", f"virtio-net-pci,netdev=n{number},mac={mac}"]
    return argv


def _make_key(path: Path) -> None:
    _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "scratch", "-f", str(path))


def _run(*argv: str) -> None:
    subprocess.run(argv, check=True, timeout=HANG_S)
