# SPDX-License-Identifier: Apache-2.0
"""A native Linux machine: a network namespace of this machine behind a real sshd, with this machine's kernel.

Its network, processes, name, /run, /tmp and /var/lib/benchwright are its own and end with its power. Kernel,
clock, processors and files are this machine's: its view of files and of the kernel's settings is read-only
but for the network's, and no program in it may set the clock or restart the machine.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from hw.bench import VirtualSpec
from hw.faults import Fault
from hw.virtual import network
from hw.virtual.console_log import READY
from hw.virtual.namespace_boot import LOG, in_namespace, start
from hw.virtual.sshd import CONFIG, SERVER, SFTP_SERVER, write_sshd

STATE = "/var/lib/benchwright"
"""Memory of its own: tools, and provisioning's undo file."""
STATE_SIZE = "64m"

# `ip netns exec` gives it a view of mounts of its own, and a /sys of its network; `unshare` a /proc of its
# processes. Files first become read-only, then the places that are its own are laid over them.
_BOOT = """
set -e
{fault}
hostname {name}
mount --bind {folder} /mnt
mount -t tmpfs -o nosuid,nodev,mode=755 tmpfs /run
mkdir -p /run/sshd {folder}
mount --bind /mnt {folder}
umount /mnt
mount -t tmpfs -o nosuid,nodev,mode=1777 tmpfs /tmp
mount -t tmpfs -o nosuid,nodev,mode=700,size={state_size} tmpfs {state}
mount -o remount,bind,ro /
mount --bind /sys/devices/virtual/net /sys/devices/virtual/net
mount -o remount,bind,ro /sys
mount --bind /proc/sys /proc/sys
mount --bind /proc/sys/net /proc/sys/net
mount -o remount,bind,ro /proc/sys
mount --bind /proc/irq /proc/irq
mount -o remount,bind,ro /proc/irq
[ ! -e /proc/sysrq-trigger ] || mount --bind /dev/null /proc/sysrq-trigger
echo '{ready}'
exec setpriv --bounding-set={without} --inh-caps={without} {sshd} -D -e -f {config}
"""
_WITHOUT = "-sys_time,-sys_boot,-sys_module,-sys_rawio"
"""Capabilities that no program in it has: they would be used on this machine."""
BOOT_FAULTS: dict[str, str] = {Fault.NEVER_BOOTS: "exec sleep infinity"}


@dataclass(frozen=True)
class LinuxMachine:
    """A machine as its resource describes it."""

    name: str
    namespace: str
    folder: Path
    control_address: str
    cpus: tuple[int, ...]
    """CPUs of this machine that it runs on; empty: any."""
    fault: str = ""
    """What is wrong with it, one of `Fault`; empty: nothing."""


def attach(namespace: str, switch: str, name: str, addresses: tuple[str, str], spec: VirtualSpec) -> None:
    """Make the namespace of a machine, and connect it to both networks of the bench.

    Args:
        namespace: The machine's; made.
        switch: Namespace of the switch.
        name: The switch's ports are `t-NAME` and `c-NAME`.
        addresses: On the test network, and on the control network.
        spec: Subnets and rate.
    """
    network.create_namespace(namespace)
    network.connect_machine(switch, namespace, name, addresses, spec)


def detach(namespace: str, switch: str, name: str) -> None:
    """End all that runs in a machine, and its namespace with all that was set there; harmless twice."""
    if not Path("/run/netns", namespace).exists():
        return
    network.end_processes(namespace)
    # A namespace goes when the kernel has the time; the ports' names are to be free at once.
    for port in (f"t-{name}", f"c-{name}"):
        network.delete_port(switch, port)
    network.delete_namespace({"name": namespace})


def boot(machine: LinuxMachine) -> subprocess.Popen[bytes]:
    """Start a machine; return the process that lives as long as it, when it is up.

    Args:
        machine: What is started; its namespace is there.

    Raises:
        BenchError: It does not come up; the text quotes its log.
    """
    folder = machine.folder
    folder.mkdir(parents=True, exist_ok=True)
    # With a level, bash does not take the session for a login: no start-up files of this machine.
    settings = {"SetEnv": "SHLVL=1 LC_ALL=C", "Subsystem": f"sftp {SFTP_SERVER}"}
    changed = machine.fault == Fault.CHANGED_HOST_KEY
    write_sshd(folder, machine.control_address, settings, changed_host_key=changed)
    script = _BOOT.format(
        fault=BOOT_FAULTS.get(machine.fault, ""),
        name=machine.name,
        folder=folder,
        state=STATE,
        state_size=STATE_SIZE,
        ready=READY,
        without=_WITHOUT,
        sshd=SERVER,
        config=folder / CONFIG,
    )
    own = ["unshare", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc"]
    argv = [*in_namespace(machine.namespace, machine.cpus), *own, "sh", "-c", script]
    return start(machine.name, machine.namespace, argv, folder / LOG)


def fill_state(machine: subprocess.Popen[bytes]) -> None:
    """Let nothing more be written where provisioning keeps its undo file.

    Args:
        machine: What `boot` has returned.

    Raises:
        BenchError: It cannot be done.
    """
    script = f"dd if=/dev/zero of={STATE}/filler bs=64k 2>/dev/null || :"
    network.run("nsenter", "--mount", "--target", str(machine.pid), "sh", "-c", script)
